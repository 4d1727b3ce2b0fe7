// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"cmp"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// pane is the open pane that holds an event time.
func (s *Series) pane(t int64) *pane {
	p := s.promise
	start := window.Start(t, p.class.pane)
	if s.first == window.Unset || start < s.first {
		s.first = start
		p.seen = true
	}
	s.newest = max(s.newest, t)
	s.promise.ledger.lastEnd = max(s.promise.ledger.lastEnd, window.Start(start, p.longest)+int64(p.longest))
	s.counted()
	a := s.panes.At(start, &p.free)
	if a.first == 0 || t < a.first {
		a.first = t
	}
	a.last = max(a.last, t)
	return a
}

// Cover notes that a point at t, which is added besides, tells of all that happened since an event time.
func (s *Series) Cover(since, t int64) {
	if a := s.pane(t); since < a.first {
		a.first = since
	}
}

// Heard notes that all that happened in [start, end), the beginning of which lies in an open pane, was told.
func (s *Series) Heard(start, end int64) {
	a := s.pane(start)
	a.last = max(a.last, end-1)
}

// AddExplicit adds the explicit buckets of a threshold indicator, in base units; n is their sum. It reports false, adding
// nothing, when the pane holds too many different layouts. bounds is kept, counts is not.
func (s *Series) AddExplicit(t int64, bounds []float64, counts []uint64, n uint64) bool {
	p := s.pane(t)
	if !p.values.AddExplicit(bounds, counts) {
		return false
	}
	s.tally(&p.sums, s.asGood(sketch.ExplicitAtMost(bounds, counts, s.slo.Objective.Value), n), n)
	return true
}

// AddExponential is AddExplicit for an exponential histogram.
func (s *Series) AddExponential(t int64, e *sketch.Exponential, n uint64) bool {
	p := s.pane(t)
	if !p.values.AddExponential(e) {
		return false
	}
	s.tally(&p.sums, s.asGood(e.AtMost(s.slo.Objective.Value), n), n)
	return true
}

// AddJudged is AddExponential for events of which more is known than their buckets tell.
func (s *Series) AddJudged(t int64, e *sketch.Exponential, n uint64, o Outcome) bool {
	if o == ByValue {
		return s.AddExponential(t, e, n)
	}
	p := s.pane(t)
	if !p.values.AddExponential(e) {
		return false
	}
	s.tally(&p.sums, o.split(n), n)
	return true
}

// AddValue adds one event of a threshold indicator whose value is known exactly.
func (s *Series) AddValue(t int64, v float64) bool {
	p := s.pane(t)
	if !p.values.Observe(v, 1) {
		return false
	}
	s.tally(&p.sums, all(1, s.slo.Objective.Holds(v)), 1)
	return true
}

// all is the split of n events that are good as a whole or not.
func all(n uint64, good bool) sketch.Split {
	if !good {
		return sketch.Split{}
	}
	return sketch.Split{Certain: n, Rounded: n, Possible: n}
}

// AddUnknown adds events of a threshold indicator whose value was not measured: they could have been good or bad.
func (s *Series) AddUnknown(t int64, n uint64) { s.pane(t).unknown += n }

// AddExpected adds requests of which each should have been measured.
func (s *Series) AddExpected(t int64, n float64) { s.pane(t).expected += n }

// AddAmount adds to what an objective on a rate sums up.
func (s *Series) AddAmount(t int64, v float64) { s.pane(t).summing().amount += v }

// AddGood adds good events of a ratio, AddBad bad ones, AddTotal events. Good and total, or bad and total, come in
// points of their own.
func (s *Series) AddGood(t int64, n float64) {
	s.addRatio(t, n, 0, true, false)
}

// AddBad adds bad events of a ratio.
func (s *Series) AddBad(t int64, n float64) {
	s.addRatio(t, -n, 0, true, false) // good = total − bad
}

// AddTotal adds events of a ratio.
func (s *Series) AddTotal(t int64, n float64) {
	good := 0.0
	if s.slo.Indicator.Ratio.Bad != nil {
		good = n
	}
	s.addRatio(t, good, n, false, true)
}

// AddRaw adds one event that is a ratio of good already, in [0, 1].
func (s *Series) AddRaw(t int64, good float64) { s.addRatio(t, good, 1, true, true) }

// AddParts adds what another judge of the same ratio has counted; part and whole say which of its parts has come as far as t.
func (s *Series) AddParts(t int64, good, total float64, part, whole bool) {
	s.addRatio(t, good, total, part, whole)
}

// addRatio adds to a ratio; part and whole say which of its parts has come as far as t.
func (s *Series) addRatio(t int64, good, total float64, part, whole bool) {
	p, r := s.pane(t).summing(), s.ratio
	if part {
		p.partAt, r.partAt = max(p.partAt, t), max(r.partAt, t)
	}
	if whole {
		p.totalAt, r.totalAt = max(p.totalAt, t), max(r.totalAt, t)
	}
	p.good += good
	p.total += total
	s.good += good
	s.total += total
}

// AddExemplar offers a trace that stands for a value; the worst of a window is kept.
func (s *Series) AddExemplar(t int64, e Exemplar) {
	if !e.known() {
		return
	}
	e.Time = t
	if p := s.pane(t); s.worse(&e, p.worst) {
		kept := e // so that only what is kept takes memory
		p.worst = &kept
	}
}

// worse reports whether a is a better witness of a broken promise than b. The first of equals stays, whatever the order.
func (s *Series) worse(a, b *Exemplar) bool {
	switch {
	case a == nil || b == nil:
		return a != nil
	case a.Value == b.Value:
		return cmp.Or(cmp.Compare(a.Time, b.Time), bytes.Compare(a.TraceID[:], b.TraceID[:]), bytes.Compare(a.SpanID[:], b.SpanID[:])) < 0
	case s.slo.Indicator.Threshold == nil || s.slo.Objective.Op.AtMost():
		return a.Value > b.Value
	default:
		return a.Value < b.Value
	}
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

// summing is what a has of plain, to be added to.
func (a *sums) summing() *plain {
	if a.plain == nil {
		a.plain = &plain{}
	}
	return a.plain
}

// summed is what a has of plain.
func (a *sums) summed() plain {
	if a.plain == nil {
		return plain{}
	}
	return *a.plain
}

// reset empties the sums, which keep their memory.
func (a *sums) reset() {
	a.values.Reset()
	if a.plain != nil {
		*a.plain = plain{}
	}
	*a = sums{values: a.values, plain: a.plain}
}

// add takes a pane into a window.
func (a *sums) add(p *sums, s *Series) {
	a.n += p.n
	a.good = a.good.Add(p.good)
	a.partial = !a.values.Merge(&p.values) || a.partial || p.partial
	a.unknown += p.unknown
	a.expected += p.expected
	if p.plain != nil {
		sum := a.summing()
		sum.good += p.plain.good
		sum.total += p.plain.total
	}
	if s.worse(p.worst, a.worst) {
		a.worst = p.worst
	}
}
