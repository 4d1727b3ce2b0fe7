// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Series is one promise to one group: an SLO for one combination of its GroupBy values.
type Series struct {
	*Identity
	promise *promise
	ledger  *ledger
	key     string

	panes    window.Panes[sums]
	windows  []openWindow
	good     float64 // events since the series began
	total    float64
	closed   struct{ good, total float64 } // those in closed panes; ratio indicators
	partAt   int64                         // newest event time of good or bad events, and of the total; ratio indicators
	totalAt  int64
	told     told
	first    int64  // start of the pane of the first input
	newest   int64  // event time
	lastData int64  // end of the youngest closed pane that held data
	phase    uint64 // when it is told in turns
	gone     bool
	dirty    bool
}

// told is what was last said of a series' events.
type told struct {
	good, bad uint64
	at        int64
}

// openWindow collects the panes of one window length.
type openWindow struct {
	length time.Duration
	sums   sums
	last   Result // of the window that closed last
}

// sums is what a pane or window holds.
type sums struct {
	n       uint64       // events, for a threshold indicator
	good    sketch.Split // of them
	values  sketch.Distribution
	partial bool // values lacks some of the n events: they had too many different layouts

	goodSum  float64 // for a ratio indicator
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

func newSeries(p *promise, l *ledger, key string, values []string, overflow bool) *Series {
	s := &Series{
		Identity: &Identity{slo: &p.slo, keys: p.groupBy, values: values, overflow: overflow},
		promise:  p, ledger: l, key: key,
		partAt: window.Unset, totalAt: window.Unset, first: window.Unset, newest: window.Unset, lastData: window.Unset,
		told: told{at: window.Unset},
	}
	for _, length := range p.windows {
		s.windows = append(s.windows, openWindow{length: length, last: noResult})
	}
	l.phases++
	s.phase = l.phases
	s.changed()
	return s
}

// changed notes that there is something to tell.
func (s *Series) changed() {
	if !s.dirty {
		s.dirty = true
		s.ledger.series = append(s.ledger.series, s)
	}
}

// Result is the verdict of the evaluation window that closed last. Before the first has closed its End is the start of
// the one that is open, or 0 where there is no input yet.
func (s *Series) Result() Result {
	r := s.windows[0].last
	if r.End == 0 && s.first != window.Unset {
		r.End = window.Start(s.first, s.windows[0].length)
	}
	return r
}

// Window is the length of the evaluation window.
func (s *Series) Window() time.Duration { return s.windows[0].length }

// resultOf is the verdict of the window of the given length that closed last.
func (s *Series) resultOf(length time.Duration) *Result {
	i := slices.IndexFunc(s.windows, func(w openWindow) bool { return w.length == length })
	return &s.windows[i].last
}

// First is the event time before which the series has no input, or window.Unset.
func (s *Series) First() int64 { return s.first }

// Gone reports whether the series was forgotten. Who holds it asks Judge.Series for its successor.
func (s *Series) Gone() bool { return s.gone }

// tellAfter is the least time between two different values of a counter: backends refuse two for one instant.
const tellAfter = int64(time.Millisecond)

// Events is the number of good and bad events since the series began, and the event time at which to tell it. Both only
// grow. The parts of a ratio often come one after the other: until both have come equally far, only the events of closed
// windows are told.
func (s *Series) Events() (good, bad uint64, at int64) {
	g, t := s.good, s.total
	if s.partAt != s.totalAt {
		g, t = s.closed.good, s.closed.total
	}
	g = max(min(g, t), 0)
	good, bad = max(s.told.good, uint64(g)), max(s.told.bad, uint64(max(t-g, 0)))
	at = max(s.newest, s.told.at)
	if s.told.at == at && (good != s.told.good || bad != s.told.bad) {
		at += tellAfter
	}
	s.told = told{good, bad, at}
	return good, bad, at
}

// Late reports whether the window that holds t is closed. The caller checks it before it adds: late data is
// counted, never merged.
func (j *Judge) Late(s *Series, t int64) bool {
	return j.begun && window.Start(t, s.promise.class.pane) < s.promise.class.next
}

func (s *Series) pane(t int64) *sums {
	start := window.Start(t, s.promise.class.pane)
	if s.first == window.Unset || start < s.first {
		s.first = start
		s.promise.seen = true
	}
	s.newest = max(s.newest, t)
	longest := s.promise.longest()
	s.ledger.lastEnd = max(s.ledger.lastEnd, window.Start(start, longest)+int64(longest))
	s.changed()
	return s.panes.At(start)
}

// AddExplicit adds the explicit buckets of a threshold indicator, in base units; n is their sum. It reports false, adding
// nothing, when the pane holds too many different layouts. bounds is kept, counts is not.
func (s *Series) AddExplicit(t int64, bounds []float64, counts []uint64, n uint64) bool {
	p := s.pane(t)
	if !p.values.AddExplicit(bounds, counts) {
		return false
	}
	s.tally(p, s.asGood(sketch.ExplicitAtMost(bounds, counts, s.slo.Objective.Value), n), n)
	return true
}

// AddExponential is AddExplicit for an exponential histogram.
func (s *Series) AddExponential(t int64, e *sketch.Exponential, n uint64) bool {
	p := s.pane(t)
	if !p.values.AddExponential(e) {
		return false
	}
	s.tally(p, s.asGood(e.AtMost(s.slo.Objective.Value), n), n)
	return true
}

// AddValue adds one event of a threshold indicator whose value is known exactly.
func (s *Series) AddValue(t int64, v float64) bool {
	p := s.pane(t)
	if !p.values.Observe(v, 1) {
		return false
	}
	var good uint64
	if s.slo.Objective.Holds(v) {
		good = 1
	}
	s.tally(p, sketch.Split{Certain: good, Rounded: good, Possible: good}, 1)
	return true
}

// AddGood adds good events of a ratio, AddBad bad ones, AddTotal events. Good and total, or bad and total, come in
// points of their own.
func (s *Series) AddGood(t int64, n float64) {
	s.partAt = max(s.partAt, t)
	s.addRatio(t, n, 0)
}

// AddBad adds bad events of a ratio.
func (s *Series) AddBad(t int64, n float64) {
	s.partAt = max(s.partAt, t)
	s.addRatio(t, -n, 0) // good = total − bad
}

// AddTotal adds events of a ratio.
func (s *Series) AddTotal(t int64, n float64) {
	s.totalAt = max(s.totalAt, t)
	if s.slo.Indicator.Ratio.Bad != nil {
		s.addRatio(t, n, n)
		return
	}
	s.addRatio(t, 0, n)
}

// AddRaw adds one event that is a ratio of good already, in [0, 1].
func (s *Series) AddRaw(t int64, good float64) { s.addRatio(t, good, 1) }

func (s *Series) addRatio(t int64, good, total float64) {
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
	if s.slo.Objective.Op.AtMost() {
		return a.Value > b.Value
	}
	return a.Value < b.Value
}

// asGood turns "at or below the objective's value" into "good".
func (s *Series) asGood(atMost sketch.Split, n uint64) sketch.Split {
	if s.slo.Objective.Op.AtMost() {
		return atMost
	}
	return sketch.Split{Certain: n - atMost.Possible, Rounded: n - atMost.Rounded, Possible: n - atMost.Certain}
}

func (s *Series) tally(p *sums, good sketch.Split, n uint64) {
	p.n += n
	p.good = p.good.Add(good)
	s.good += float64(good.Rounded)
	s.total += float64(n)
}

func (a *sums) empty() bool { return a.n == 0 && a.totalSum == 0 && a.goodSum == 0 }

func (a *sums) reset() {
	a.values.Reset()
	*a = sums{values: a.values}
}

// add takes a pane into a window.
func (a *sums) add(p *sums, s *Series) {
	a.n += p.n
	a.good = a.good.Add(p.good)
	a.partial = !a.values.Merge(&p.values) || a.partial || p.partial
	a.goodSum += p.goodSum
	a.totalSum += p.totalSum
	if s.worse(p.worst, a.worst) {
		a.worst = p.worst
	}
}
