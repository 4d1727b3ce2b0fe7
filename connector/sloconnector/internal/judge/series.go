// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Series is one promise to one group: an SLO for one combination of its GroupBy values.
type Series struct {
	promise  *promise
	key      string
	values   []string
	overflow bool

	panes   window.Panes[sums]
	windows []openWindow
	good    float64 // events since the series began
	total   float64
	told    struct{ good, bad uint64 }
	first   int64 // event time of the first input's pane
	newest  int64 // event time
	gone    bool
	// Dirty says that there is something to tell since the caller last set it to false.
	Dirty bool
}

// openWindow collects the panes of one window length.
type openWindow struct {
	length time.Duration
	sums   sums
	last   Result // of the window that closed last
}

// sums is what a pane or window holds.
type sums struct {
	good     sketch.Split // threshold indicators: good events
	values   sketch.Distribution
	goodSum  float64 // ratio indicators
	totalSum float64
	worst    Exemplar
}

// Exemplar is a trace that stands for a value.
type Exemplar struct {
	TraceID [16]byte
	SpanID  [8]byte
	Value   float64
}

func (e *Exemplar) known() bool { return e.TraceID != [16]byte{} }

func newSeries(p *promise, key string, values []string, overflow bool) *Series {
	s := &Series{promise: p, key: key, values: values, overflow: overflow, first: window.Unset, newest: window.Unset, Dirty: true}
	for _, length := range p.windows {
		s.windows = append(s.windows, openWindow{length: length, last: noResult})
	}
	return s
}

// SLO is the SLO that is promised.
func (s *Series) SLO() *openslo.SLO { return &s.promise.slo }

// Group calls f for every group-by key that has a value here.
func (s *Series) Group(f func(key, value string)) {
	for i, key := range s.promise.groupBy {
		if s.values[i] != "" {
			f(key, s.values[i])
		}
	}
}

// Tenant identifies the values that the group has for some of the keys: series that agree in it share a resource.
func (s *Series) Tenant(keys []string) string {
	var b strings.Builder
	s.Group(func(key, value string) {
		if slices.Contains(keys, key) {
			b.WriteString(key)
			b.WriteByte(0)
			b.WriteString(value)
			b.WriteByte(0)
		}
	})
	return b.String()
}

// Overflow reports whether the series holds all groups beyond MaxSeries.
func (s *Series) Overflow() bool { return s.overflow }

// Result is the verdict of the evaluation window that closed last.
func (s *Series) Result() *Result { return &s.windows[0].last }

// resultOf is the verdict of the window of the given length that closed last.
func (s *Series) resultOf(length time.Duration) *Result {
	i := slices.IndexFunc(s.windows, func(w openWindow) bool { return w.length == length })
	return &s.windows[i].last
}

// Newest is the event time of the newest input, or window.Unset.
func (s *Series) Newest() int64 { return s.newest }

// Events is the number of good and bad events since the series began. Both only grow, also where the good events
// of a ratio come in before or after the total: what is ahead waits for the other.
func (s *Series) Events() (good, bad uint64) {
	g := math.Max(math.Min(s.good, s.total), 0)
	s.told.good = max(s.told.good, uint64(g))
	s.told.bad = max(s.told.bad, uint64(math.Max(s.total-g, 0)))
	return s.told.good, s.told.bad
}

// First is the event time before which the series has no input, or window.Unset.
func (s *Series) First() int64 { return s.first }

// Gone reports whether the series was forgotten. Who holds it asks Judge.Series for its successor.
func (s *Series) Gone() bool { return s.gone }

// Late reports whether the window that holds t is closed. The caller checks it before it adds: late data is
// counted, never merged.
func (j *Judge) Late(s *Series, t int64) bool {
	return j.begun && window.Start(t, s.promise.class.pane) < s.promise.class.next
}

func (s *Series) pane(t int64) *sums {
	start := window.Start(t, s.promise.class.pane)
	if s.first == window.Unset {
		s.first = start
	}
	s.newest = max(s.newest, t)
	s.Dirty = true
	return s.panes.At(start)
}

// AddExplicit adds the explicit buckets of a threshold indicator, in base units. It reports false, adding nothing,
// when the pane holds too many different layouts. bounds is kept, counts is not.
func (s *Series) AddExplicit(t int64, bounds []float64, counts []uint64) bool {
	p := s.pane(t)
	before := p.values.Count()
	if !p.values.AddExplicit(bounds, counts) {
		return false
	}
	s.count(p, sketch.ExplicitAtMost(bounds, counts, s.promise.slo.Objective.Value), p.values.Count()-before)
	return true
}

// AddExponential is AddExplicit for an exponential histogram.
func (s *Series) AddExponential(t int64, e *sketch.Exponential) bool {
	p := s.pane(t)
	if !p.values.AddExponential(e) {
		return false
	}
	s.count(p, e.AtMost(s.promise.slo.Objective.Value), e.Count())
	return true
}

// AddValue adds one event of a threshold indicator whose value is known exactly.
func (s *Series) AddValue(t int64, v float64) bool {
	p := s.pane(t)
	if !p.values.Observe(v, 1) {
		return false
	}
	o := &s.promise.slo.Objective
	var good uint64
	if o.Holds(v) {
		good = 1
	}
	s.tally(p, sketch.Split{Certain: good, Rounded: good, Possible: good}, 1)
	return true
}

// AddRatio adds to the sums of a ratio indicator. Either may be zero: good and total often come in different points.
func (s *Series) AddRatio(t int64, good, total float64) {
	p := s.pane(t)
	p.goodSum += good
	p.totalSum += total
	s.good += good
	s.total += total
}

// AddExemplar offers a trace that stands for a value; the worst of a window is kept.
func (s *Series) AddExemplar(t int64, e Exemplar) {
	if p := s.pane(t); s.worse(e, p.worst) {
		p.worst = e
	}
}

// worse reports whether a is a better witness of a broken promise than b.
func (s *Series) worse(a, b Exemplar) bool {
	if !a.known() || !b.known() {
		return a.known()
	}
	if s.promise.slo.Objective.Op.AtMost() {
		return a.Value > b.Value
	}
	return a.Value < b.Value
}

// count adds n events of which some are at or below the objective's value.
func (s *Series) count(p *sums, atMost sketch.Split, n uint64) { s.tally(p, s.asGood(atMost, n), n) }

// asGood turns "at or below the objective's value" into "good".
func (s *Series) asGood(atMost sketch.Split, n uint64) sketch.Split {
	if s.promise.slo.Objective.Op.AtMost() {
		return atMost
	}
	return sketch.Split{Certain: n - atMost.Possible, Rounded: n - atMost.Rounded, Possible: n - atMost.Certain}
}

func (s *Series) tally(p *sums, good sketch.Split, n uint64) {
	p.good = p.good.Add(good)
	s.good += float64(good.Rounded)
	s.total += float64(n)
}

func (a *sums) empty() bool { return a.values.Count() == 0 && a.totalSum == 0 && a.goodSum == 0 }

func (a *sums) reset() {
	a.good = sketch.Split{}
	a.values.Reset()
	a.goodSum, a.totalSum = 0, 0
	a.worst = Exemplar{}
}
