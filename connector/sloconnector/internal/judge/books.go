// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/budget"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// BurnWindows are the windows over which burn rates are told, shortest first.
var BurnWindows = []time.Duration{
	5 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour,
}

// books are the rules by which the books of an SLO's series are kept.
type books struct {
	layout     *budget.Layout
	budget     openslo.TimeWindow
	kept       bool            // the SLO has a time window, and with it a budget
	rolling    []time.Duration // over which is summed each Tick, shortest first
	told       int             // of BurnWindows: those that are no longer than the time window
	conditions []condition
	alarming   float64                  // share of bad events below which no burn rate is reached, of the composite neither
	calm       time.Duration            // how long after the last alarming minute no burn rate can be reached any more
	silence    time.Duration            // how long without events until all that tell of that have done so; 0 where none does
	period     struct{ from, to int64 } // of a calendar window, the one that was last asked for
}

func newBooks(slo *openslo.SLO, whole *openslo.SLO, opts Options) books {
	b := books{budget: slo.TimeWindow, kept: slo.TimeWindow.Duration.Count > 0}
	length := time.Duration(math.MaxInt64)
	if b.kept {
		length = slo.TimeWindow.Duration.Approx()
	}
	b.conditions = conditionsOf(slo, length, opts.BurnRates)
	for _, w := range BurnWindows {
		if w <= length {
			b.told++
			b.rolling = append(b.rolling, w)
		}
	}
	conditions := b.conditions
	if whole != nil { // a composite asks its parts about its own windows
		conditions = append(slices.Clone(conditions), conditionsOf(whole, length, opts.BurnRates)...)
	}
	b.alarming = alarming(b.conditions, slo)
	if whole != nil {
		b.alarming = min(b.alarming, alarming(conditions, whole))
	}
	for _, c := range conditions {
		b.rolling = append(b.rolling, c.long, c.short)
	}
	slices.Sort(b.rolling)
	b.rolling = slices.Compact(b.rolling)
	spans := b.rolling
	if b.kept && slo.TimeWindow.Rolling {
		spans = append(slices.Clone(spans), length)
	}
	b.layout = budget.NewLayout(spans...)
	for i := range b.conditions {
		c := &b.conditions[i]
		c.longAt, c.shortAt = slices.Index(b.rolling, c.long), slices.Index(b.rolling, c.short)
		over := func(w time.Duration) time.Duration { return w + b.layout.Resolution(w) + 2*Tick }
		if c.breaching {
			b.calm = max(b.calm, over(c.short))
		}
		if c.noData {
			b.silence = max(b.silence, over(c.long)+c.after)
		}
	}
	return b
}

// alarming is the least share of bad events with which a burn rate is reached.
func alarming(conditions []condition, slo *openslo.SLO) float64 {
	least := math.Inf(1)
	for _, c := range conditions {
		if c.breaching {
			least = min(least, c.threshold*(1-slo.Objective.Target)*(1-2*slack))
		}
	}
	return least
}

// span is how long something that happened has a say.
func (b *books) span() time.Duration {
	if b.kept {
		return max(b.layout.Span(), b.budget.Duration.Approx())
	}
	return 0
}

// periodOf is the start of the calendar window that holds a time; false before the first.
func (b *books) periodOf(t int64) (from int64, ok bool) {
	if t >= b.period.from && t < b.period.to {
		return b.period.from, true
	}
	start, end, ok := b.budget.Bounds(time.Unix(0, t))
	if !ok {
		return 0, false
	}
	b.period.from, b.period.to = start.UnixNano(), end.UnixNano()
	return b.period.from, true
}

// account is what one series has in its books.
type account struct {
	ring   budget.Ring
	period *period // where the window is one of the calendar
	slice  *slice  // of the time-slice budgeting methods
	fill   *filled // nil where nothing is known from elsewhere
	heard  int64   // event time of the newest input in a closed pane
	alarm  int64   // event time after which nothing alarming was posted
}

// newAccount is one without input, but for the event time that was heard of last.
func (p *promise) newAccount(heard int64) account {
	a := account{heard: heard}
	if p.books.kept && !p.books.budget.Rolling {
		a.period = &period{}
	}
	if p.slice > 0 {
		a.slice = &slice{}
	}
	return a
}

// period is a window of the calendar.
type period struct {
	from   int64
	counts budget.Counts
}

// filled is of which time the books know from elsewhere, from a backfill.
type filled struct{ begin, end int64 }

// slice is what the open time slice holds.
type slice struct{ good, total float64 }

// enter writes into the books what was heard of an event time, unless they are filled up to there from elsewhere.
func (s *Series) enter(t int64, c budget.Counts) {
	if f := s.account.fill; (f == nil || t >= f.end) && c != (budget.Counts{}) {
		s.post(t, c)
	}
}

func (s *Series) post(t int64, c budget.Counts) {
	b, a := &s.promise.books, &s.account
	a.ring.Add(b.layout, t, c)
	// A window without a minute in which the share is reached does not reach it either.
	if c.Total > 0 && c.Bad() >= b.alarming*c.Total {
		a.alarm = max(a.alarm, t)
	}
	if a.period == nil {
		return
	}
	from, ok := b.periodOf(t)
	switch {
	case !ok || from < a.period.from:
	case from > a.period.from:
		*a.period = period{from, c}
	default:
		a.period.counts = a.period.counts.Add(c)
	}
}

// observe writes how much of the time up to a closed pane's last input was observed: two inputs that are no further apart
// than the evaluation window cover the time between them, and so does a point that says since when it counts.
func (s *Series) observe(a *pane) time.Duration {
	acc := &s.account
	from := a.first
	if before := acc.heard; before != window.Unset && from-before <= int64(s.promise.evaluation) {
		from = before
	}
	acc.heard = max(acc.heard, a.last)
	return time.Duration(acc.heard - from)
}

// closeSlice judges the time slice that ends: it is good or not as a whole, or counts by its ratio; one without events is
// neither.
func (s *Series) closeSlice(end int64) {
	p, sl := s.promise, s.account.slice
	if sl == nil || end%int64(p.slice) != 0 || sl.total <= 0 {
		return
	}
	ratio := min(max(sl.good/sl.total, 0), 1)
	good := ratio
	if p.slo.Budgeting == openslo.Timeslices {
		good = 0
		if ratio >= p.slo.Objective.TimeSliceTarget*(1-slack) {
			good = 1
		}
	}
	*sl = slice{}
	s.touch()
	s.enter(end-1, budget.Counts{Good: good, Total: 1}) // it happens when it is over, or a window as short as a slice would miss it
}

// rolling sums up the books over the windows of books.rolling that end at an event time.
func (s *Series) rolling(to int64, into []budget.Counts) []budget.Counts {
	b := &s.promise.books
	if len(s.promise.parts) == 0 {
		return s.account.ring.Sums(b.layout, to, b.rolling, into)
	}
	for _, w := range b.rolling {
		into = append(into, s.mixed(func(part *Series) budget.Counts {
			return part.account.ring.Sum(part.promise.books.layout, to-int64(w), to)
		}))
	}
	return into
}

// budget sums up the books over the SLO's time window as of an event time, and tells how much of that window is over.
func (s *Series) budget(to int64) (c budget.Counts, length time.Duration, ok bool) {
	b := &s.promise.books
	if !b.kept {
		return budget.Counts{}, 0, false
	}
	from, rolling := int64(0), b.budget.Rolling
	if rolling {
		start, _, _ := b.budget.Bounds(time.Unix(0, to))
		from = start.UnixNano()
	} else if from, ok = b.periodOf(to); !ok {
		return budget.Counts{}, 0, false
	}
	of := func(s *Series) budget.Counts {
		switch a := &s.account; {
		case rolling:
			return a.ring.Sum(s.promise.books.layout, from, to)
		case a.period.from == from:
			return a.period.counts
		default:
			return budget.Counts{}
		}
	}
	if len(s.promise.parts) > 0 {
		return s.mixed(of), time.Duration(to - from), true
	}
	return of(s), time.Duration(to - from), true
}

// Balance is what the books of a series say as of an event time.
type Balance struct {
	At int64
	// Remaining is the share of the error budget that is left: 1 untouched, below 0 overspent, and 1
	// without events: how much is known of them is Coverage.
	// Coverage is the share of the time window that was observed. NaN where the SLO has no time window, or before it begins.
	Remaining, Coverage float64
	Burn                []float64 // by BurnWindows; NaN where there were no events, or the window is longer than the SLO's
}

// Balance balances the books, into b. It reports false before the first Tick.
func (s *Series) Balance(b *Balance) bool {
	p := s.promise
	at := s.promise.ledger.balanced
	if at == window.Unset || s.known() == window.Unset {
		return false
	}
	b.At, b.Remaining, b.Coverage = at, math.NaN(), math.NaN()
	if c, length, ok := s.budget(at); ok {
		b.Remaining = 1 // nothing is spent where nothing happened
		if left, ok := c.Remaining(p.slo.Objective.Target); ok {
			b.Remaining = left
		}
		if length > 0 {
			b.Coverage = min(float64(c.Observed)/float64(length), 1)
		}
	}
	b.Burn = slices.Grow(b.Burn[:0], len(BurnWindows))
	s.promise.ledger.sums = s.rolling(at, s.promise.ledger.sums[:0])
	for i, w := range BurnWindows {
		rate := math.NaN()
		if i < p.books.told {
			if r, ok := s.promise.ledger.sums[slices.Index(p.books.rolling, w)].BurnRate(p.slo.Objective.Target); ok {
				rate = r
			}
		}
		b.Burn = append(b.Burn, rate)
	}
	return true
}

// Balanced is the event time as of which the books were balanced last, window.Unset before that: all windows up to it are
// closed.
func (j *Judge) Balanced() int64 { return j.ledger.balanced }

// Fill is what is known from elsewhere of a series before its own input.
type Fill struct {
	Start  int64 // event time
	Counts budget.Counts
}

// Backfill writes into the books of a series of the i-th SLO what a backend knows of the time up to `until`, but for what the
// series has heard itself. It reports how many spans were taken.
func (j *Judge) Backfill(i int, values []string, until int64, fills []Fill) (taken int) {
	s := j.Series(i, values)
	a := &s.account
	before := until
	if s.first != window.Unset {
		before = min(before, s.first)
	}
	for _, f := range fills {
		if f.Start >= before {
			continue
		}
		s.post(f.Start, f.Counts)
		taken++
	}
	if taken > 0 {
		if a.fill == nil {
			a.fill = &filled{begin: fills[0].Start}
		}
		a.fill.begin, a.fill.end = min(a.fill.begin, fills[0].Start), max(a.fill.end, before)
		s.lastData = max(s.lastData, before)
		if l := s.promise.ledger; l.balanced == window.Unset { // there was no input yet
			l.balanced = window.Start(until, Tick)
		}
		s.changed()
	}
	return taken
}
