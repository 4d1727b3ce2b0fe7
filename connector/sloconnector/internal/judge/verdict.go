// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"sort"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// State is the verdict on a window.
type State int

// The states, in the order of States.
const (
	OK       State = iota
	AtRisk         // the source's buckets cannot tell whether the objective was kept
	Violated       // proven to be missed
	NoData
)

// States are the values of the attribute state of slo.state.
var States = []string{OK: "ok", AtRisk: "at_risk", Violated: "violated", NoData: "no_data"}

func (s State) String() string { return States[s] }

// Result is what a closed window says.
type Result struct {
	Start, End int64 // event time, [Start, End)
	State      State
	// Value is the SLI: the quantile at the target of a threshold indicator, the ratio of a ratio indicator.
	// It lies in [Lower, Upper], which differ where the source's resolution leaves it open. NaN without data.
	Value, Lower, Upper float64
	Total               float64 // events
	Exemplar            Exemplar
}

// noResult is the verdict without data.
var noResult = Result{State: NoData, Value: math.NaN(), Lower: math.NaN(), Upper: math.NaN()}

// slack keeps the rounding of target · total from deciding: 0.95 · 20 is not exactly 19.
const slack = 1e-9

// judge gives the verdict on the sums of a window.
func (p *promise) judge(a *sums, start, end int64) Result {
	r := noResult
	r.Start, r.End = start, end
	if p.slo.Indicator.Ratio != nil {
		p.judgeRatio(a, &r)
	} else {
		p.judgeThreshold(a, &r)
	}
	r.Exemplar = a.worst
	return r
}

// target is the share of good events that a single window must have: a Timeslices objective judges its slices by
// timeSliceTarget, and target is for the share of good slices.
func (p *promise) target() float64 {
	if o := &p.slo.Objective; p.slo.Budgeting == openslo.Timeslices && o.TimeSliceTarget > 0 {
		return o.TimeSliceTarget
	}
	return p.slo.Objective.Target
}

func (p *promise) judgeRatio(a *sums, r *Result) {
	if a.totalSum <= 0 {
		return
	}
	ratio := min(max(a.goodSum/a.totalSum, 0), 1)
	r.Value, r.Lower, r.Upper, r.Total = ratio, ratio, ratio, a.totalSum
	r.State = OK
	if ratio < p.target()*(1-slack) {
		r.State = Violated
	}
}

func (p *promise) judgeThreshold(a *sums, r *Result) {
	n := a.values.Count()
	if n == 0 {
		return
	}
	target := p.target()
	q := target
	if !p.slo.Objective.Op.AtMost() {
		q = 1 - target // 95 % at or above 80 tokens/s means that the 5th percentile is
	}
	e := a.values.Quantile(q)
	r.Value, r.Lower, r.Upper, r.Total = e.Value, e.Lower, e.Upper, float64(n)
	need := target * float64(n) * (1 - slack)
	switch {
	case float64(a.good.Possible) < need:
		r.State = Violated
	case float64(a.good.Certain) < need:
		r.State = AtRisk
	default:
		r.State = OK
	}
}

// Advance closes every pane and window that ends at or before the watermark, in event time and deterministically.
func (j *Judge) Advance(watermark int64) {
	if watermark == window.Unset || len(j.classes) == 0 {
		return
	}
	if !j.begin(watermark) {
		return
	}
	for {
		end := j.nextEnd()
		if end > watermark {
			break
		}
		j.closeAt(end)
		j.skip(watermark)
	}
}

// begin waits for the first pane to be complete: until then, no pane is too late to be the first.
func (j *Judge) begin(watermark int64) bool {
	if j.begun {
		return true
	}
	oldest, ok := j.oldest()
	if !ok {
		return false
	}
	first := int64(math.MaxInt64)
	for _, c := range j.classes {
		c.next = window.Start(oldest, c.pane)
		first = min(first, c.next+int64(c.pane))
	}
	j.begun = first <= watermark
	return j.begun
}

// oldest is the start of the oldest open pane of all series.
func (j *Judge) oldest() (int64, bool) {
	start, found := int64(math.MaxInt64), false
	j.Each(func(s *Series) {
		if at, ok := s.panes.Oldest(); ok {
			start, found = min(start, at), true
		}
	})
	return start, found
}

// LastEnd is the end of the youngest pane that holds data, or window.Unset.
func (j *Judge) LastEnd() int64 {
	end := window.Unset
	j.Each(func(s *Series) {
		if start, ok := s.panes.Youngest(); ok {
			// All windows over the pane, so that a window is not left open for the sake of its last pane.
			for _, w := range s.windows {
				end = max(end, window.Start(start, w.length)+int64(w.length))
			}
		}
	})
	return end
}

func (j *Judge) nextEnd() int64 {
	end := int64(math.MaxInt64)
	for _, c := range j.classes {
		end = min(end, c.next+int64(c.pane))
	}
	return end
}

// closeAt closes the panes that end at end, then the windows, then asks the policies.
func (j *Judge) closeAt(end int64) {
	for _, c := range j.classes {
		if c.next+int64(c.pane) != end {
			continue
		}
		for _, p := range c.promises {
			var silent []string
			for key, s := range p.series {
				if s.closePane(c.next) {
					j.lastData = max(j.lastData, end)
				}
				s.closeWindows(end)
				if j.expired(s, end) {
					silent = append(silent, key)
				}
			}
			sort.Strings(silent) // a replay tells the same story
			for _, key := range silent {
				j.forget(p, key, end)
			}
		}
		c.next = end
	}
	for _, pol := range j.policies {
		if end%int64(pol.spec.Window) == 0 {
			j.events = pol.judge(end, j.events)
		}
	}
}

// closePane moves a pane into the open windows and reports whether it held data.
func (s *Series) closePane(start int64) bool {
	a := s.panes.Take(start)
	if a == nil {
		return false
	}
	for i := range s.windows {
		w := &s.windows[i].sums
		w.good = w.good.Add(a.good)
		w.values.Merge(&a.values)
		w.goodSum += a.goodSum
		w.totalSum += a.totalSum
		if s.worse(a.worst, w.worst) {
			w.worst = a.worst
		}
	}
	held := !a.empty()
	a.reset()
	s.panes.Release(a)
	return held
}

// closeWindows judges the windows that end at end. The first is the evaluation window, whose result is told.
func (s *Series) closeWindows(end int64) {
	for i := range s.windows {
		w := &s.windows[i]
		if end%int64(w.length) != 0 {
			continue
		}
		r := s.promise.judge(&w.sums, end-int64(w.length), end)
		w.last = r
		w.sums.reset()
		s.Dirty = s.Dirty || i == 0
	}
}

// skip jumps over emptiness that can change no verdict any more: after a gap of years there is no need to judge
// each of its windows.
func (j *Judge) skip(watermark int64) {
	at := j.nextEnd()
	if at > watermark || j.lastData == window.Unset || at-j.lastData < int64(j.patience)+int64(j.opts.TTL) {
		return
	}
	to := watermark
	if oldest, ok := j.oldest(); ok {
		to = min(to, oldest)
	}
	for _, c := range j.classes {
		c.next = max(c.next, window.Start(to, c.pane))
	}
}

// expired reports whether a series and those that share a policy's group with it have been silent for the TTL.
func (j *Judge) expired(s *Series, now int64) bool {
	if len(s.promise.groupBy) == 0 || !s.silent(now, int64(j.opts.TTL)) {
		return false
	}
	for _, pol := range s.promise.watched {
		for _, leaf := range pol.tallies[s.key].leaves {
			if leaf != nil && !leaf.silent(now, int64(j.opts.TTL)) {
				return false
			}
		}
	}
	return true
}

func (s *Series) silent(now, ttl int64) bool {
	return s.panes.Len() == 0 && (s.newest == window.Unset || now-s.newest > ttl)
}

// forget drops a series of which nothing was heard; its violations close.
func (j *Judge) forget(p *promise, key string, now int64) {
	p.series[key].gone = true
	delete(p.series, key)
	j.series--
	j.evicted++
	for _, pol := range p.watched {
		j.events = pol.detach(key, now, j.events)
	}
}
