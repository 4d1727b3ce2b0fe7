// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/budget"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Advance closes every pane and window that ends at or before the watermark, in event time and deterministically.
func (j *Judge) Advance(watermark int64) {
	if watermark == window.Unset || len(j.classes) == 0 || !j.begin(watermark) {
		return
	}
	for end := j.nextEnd(); end <= watermark; end = j.nextEnd() {
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
	for _, c := range j.classes {
		j.begun = j.begun || window.Start(oldest, c.pane)+int64(c.pane) <= watermark
	}
	if j.begun {
		j.lastData = oldest // until its pane is closed
		for _, c := range j.classes {
			c.next = window.Start(oldest, c.pane)
		}
	}
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

// LastEnd is the end of the youngest window that was ever given data, or window.Unset.
func (j *Judge) LastEnd() int64 { return j.ledger.lastEnd }

func (j *Judge) nextEnd() int64 {
	end := int64(math.MaxInt64)
	for _, c := range j.classes {
		end = min(end, c.next+int64(c.pane))
	}
	return end
}

// closeAt closes the panes that end at end, then the windows, then asks the policies, then balances the books, then forgets
// who is silent.
func (j *Judge) closeAt(end int64) {
	j.ledger.tellers.close(end, j.opts.PartTTL)
	for _, c := range j.classes {
		if c.next+int64(c.pane) != end {
			continue
		}
		for _, p := range c.promises {
			for _, s := range p.ordered {
				if s.closePane(c.next, end) {
					s.lastData = end
					if !s.live {
						s.wake()
						j.lookAt = window.Unset
					}
					j.lastData = max(j.lastData, end)
				}
				s.closeInterval(end)
				s.closeRatio(end)
				s.closeSlice(end)
				s.closeWindows(end)
			}
		}
		c.next = end
	}
	for _, p := range j.promises {
		if len(p.parts) > 0 {
			for _, s := range p.ordered {
				s.closeParts(end)
			}
		}
	}
	j.closed = end
	for _, pol := range j.policies {
		if end%int64(pol.spec.Window) == 0 {
			pol.judge(end, j.ledger)
		}
	}
	if end%int64(Tick) == 0 {
		j.balance(end)
	}
	j.expire(end)
}

// closePane moves a pane into the books and the open windows, and reports whether it was given input.
func (s *Series) closePane(start, end int64) bool {
	a := s.panes.Take(start)
	if a == nil {
		return false
	}
	if s.touch(); end%int64(Tick) == 0 {
		s.changed() // the books are balanced
	}
	if s.promise.ledger.distributions != nil {
		s.tellDistribution(a, start, end)
	}
	observed := s.observe(a)
	if share := s.promise.ledger.tellers.share; share < 1 {
		observed = time.Duration(share * float64(observed))
	}
	s.enter(start, budget.Counts{Observed: observed})
	if s.promise.interval > 0 {
		s.rate.amount += a.summed().amount
		s.rate.heard = true
		if s.worse(a.worst, s.rate.worst) {
			s.rate.worst = a.worst
		}
	} else {
		s.settle(&a.sums, start)
	}
	a.reset()
	a.first, a.last = 0, 0
	s.panes.Release(a, &s.promise.free)
	return true
}

// closeInterval makes the one event of an interval whose rate is compared with the objective.
func (s *Series) closeInterval(end int64) {
	length := s.promise.interval
	if length == 0 || end%int64(length) != 0 {
		return
	}
	if s.rate.heard {
		one := &s.promise.ledger.one
		one.reset()
		v := s.rate.amount / length.Seconds()
		one.values.Observe(v, 1)
		one.worst = s.rate.worst
		s.tally(one, all(1, s.slo.Objective.Holds(v)), 1)
		s.settle(one, end-1)
		s.newest = max(s.newest, end)
		s.changed()
	}
	*s.rate = interval{}
}

// settle takes what happened from start on into the windows and the books.
func (s *Series) settle(a *sums, start int64) {
	for i := range s.windows {
		s.windows[i].sums.add(a, s)
	}
	if s.slo.Indicator.Ratio == nil {
		s.settled(budget.Counts{Good: float64(a.good.Rounded), Total: float64(a.n)}, a.worst, start)
		return
	}
	sum := a.summed()
	s.ratio.open.good += sum.good
	s.ratio.open.total += sum.total
	if sum.partAt == sum.totalAt {
		s.settleRatio(a.worst, start)
	}
}

// settleRatio counts the events of a ratio whose parts have come equally far, or are not waited for any more.
func (s *Series) settleRatio(worst *Exemplar, at int64) {
	// No more events were good than there were, and no fewer than none: what is beyond must not make up for others.
	r := s.ratio
	total := max(r.open.total, 0)
	good := min(max(r.open.good, 0), total)
	s.good += good - r.open.good
	s.total += total - r.open.total
	r.closed.good += good
	r.closed.total += total
	r.open = parts{}
	s.settled(budget.Counts{Good: good, Total: total}, worst, at)
}

// closeRatio waits no longer for a part of a ratio when its window, or its slice, is over.
func (s *Series) closeRatio(end int64) {
	p := s.promise
	if s.ratio != nil && s.ratio.open != (parts{}) && (end%int64(p.evaluation) == 0 || p.slice > 0 && end%int64(p.slice) == 0) {
		s.settleRatio(nil, end-1)
		s.changed()
	}
}

// settled takes what was counted into the books.
func (s *Series) settled(c budget.Counts, worst *Exemplar, at int64) {
	if worst != nil && c.Good < c.Total {
		s.witness, s.shown = worst, false
	}
	if sl := s.account.slice; sl != nil {
		sl.good += c.Good
		sl.total += c.Total
		return
	}
	s.enter(at, c)
}

// closeWindows judges the windows that end at end. The first is the evaluation window, whose result is told.
func (s *Series) closeWindows(end int64) {
	if len(s.promise.parts) > 0 || !s.live {
		return // its parts come first; and of a group that is not waited for there is no news
	}
	for i, length := range s.promise.windows {
		if end%int64(length) != 0 {
			continue
		}
		w := &s.windows[i]
		w.last = s.promise.judge(&w.sums, end-int64(length), end)
		s.weigh(&w.last)
		w.sums.reset()
		s.touch()
		if i == 0 {
			s.changed()
		}
	}
}

// weigh marks a verdict on a window of which not all was told.
func (s *Series) weigh(r *Result) {
	if s.promise.ledger.tellers.incomplete(r.Start) {
		r.incomplete(s.slo.Indicator.Threshold != nil)
	}
}

// closeParts is closeWindows for a composite.
func (s *Series) closeParts(end int64) {
	if !s.live {
		return
	}
	for i, length := range s.promise.windows {
		if end%int64(length) != 0 {
			continue
		}
		w := &s.windows[i]
		w.last = s.judgeParts(length, end-int64(length), end)
		s.weigh(&w.last)
		s.touch()
		if i == 0 {
			s.changed()
		}
	}
}

// wake begins to wait for a group.
func (s *Series) wake() {
	for _, p := range s.promise.kin {
		if other := p.series[s.key]; other != nil {
			other.live = true
			other.changed()
		}
	}
}

// expire stops waiting for the groups of which nothing was heard for their TTL: their violations close. When their books
// hold nothing of them any more, they are forgotten. Only what is closed counts: how much of the future is known already
// depends on how the input is cut into batches.
func (j *Judge) expire(end int64) {
	if end < j.lookAt {
		return
	}
	j.lookAt = math.MaxInt64
	var silent, gone []*Series
	j.Each(func(s *Series) {
		if len(s.promise.groupBy) == 0 {
			return
		}
		until := s.last(func(p *promise) time.Duration { return p.ttl })
		if end > until {
			if s.live {
				silent = append(silent, s)
			}
			until = s.last(func(p *promise) time.Duration { return p.keep })
			if end > until {
				if !s.awaited() {
					gone = append(gone, s)
					return
				}
				until = end // until its pane closes
			}
		}
		j.lookAt = min(j.lookAt, until+1)
	})
	j.giveUp(silent, end)
	j.forget(gone, end)
}

// last is the event time up to which a group may be silent, when each of its promises waits for as long as limit says after
// its last input.
func (s *Series) last(limit func(*promise) time.Duration) int64 {
	until := window.Unset
	for _, p := range s.promise.kin {
		if at := p.series[s.key].lastData; at != window.Unset {
			until = max(until, at+int64(limit(p)))
		}
	}
	return until
}

// awaited reports whether a group has data in an open pane.
func (s *Series) awaited() bool {
	return slices.ContainsFunc(s.promise.kin, func(p *promise) bool { return p.series[s.key].panes.Len() > 0 })
}

// giveUp stops waiting for silent series.
func (j *Judge) giveUp(silent []*Series, end int64) {
	sortSeries(silent)
	for _, s := range silent {
		s.live = false
		s.touch()
		s.calmSilent(end)
		for _, pol := range s.promise.watched {
			pol.tallies[s.key].forget(end, j.ledger)
		}
	}
}

// forget forgets series.
func (j *Judge) forget(gone []*Series, end int64) {
	sortSeries(gone)
	for _, s := range gone {
		s.calmAll(end, reasonForgotten)
		j.ledger.retire(s)
	}
	for _, s := range gone {
		s.gone = true
		delete(s.promise.series, s.key)
		j.series--
		j.evicted++
		s.touch()
		for _, pol := range s.promise.watched {
			delete(pol.tallies, s.key)
		}
	}
	if len(gone) > 0 {
		for _, p := range j.promises {
			p.ordered = slices.DeleteFunc(p.ordered, (*Series).Gone)
		}
	}
}

// sortSeries puts series in an order that a replay repeats.
func sortSeries(all []*Series) {
	slices.SortFunc(all, func(a, b *Series) int {
		return cmp.Or(strings.Compare(a.slo.ID, b.slo.ID), strings.Compare(a.key, b.key))
	})
}

// makeRoom forgets the series that nobody waits for any more, although their books still hold something: who is there now
// comes first. It looks once for each closed pane.
func (j *Judge) makeRoom() {
	if j.closed == window.Unset || j.closed == j.roomMade {
		return
	}
	j.roomMade = j.closed
	var gone []*Series
	j.Each(func(s *Series) {
		if len(s.promise.groupBy) > 0 && !s.live && !s.awaited() {
			gone = append(gone, s)
		}
	})
	j.forget(gone, j.closed)
}

// skip jumps over emptiness that can change no verdict any more: after a gap of years there is no need to judge
// each of its windows.
func (j *Judge) skip(watermark int64) {
	at := j.nextEnd()
	if at > watermark || j.lastData == window.Unset || at-j.lastData < int64(j.patience) {
		return
	}
	to := watermark
	if oldest, ok := j.oldest(); ok {
		to = min(to, oldest)
	}
	j.Each(func(s *Series) { // who becomes silent in between is forgotten when it does
		if len(s.promise.groupBy) == 0 || s.lastData == window.Unset {
			return
		}
		for _, limit := range []time.Duration{s.promise.ttl, s.promise.keep} {
			if until := s.lastData + int64(limit); until >= at {
				to = min(to, until)
			}
		}
	})
	for _, c := range j.classes {
		c.next = max(c.next, window.Start(to, c.pane))
		j.closed = max(j.closed, c.next)
	}
	j.ledger.tellers.close(window.Start(j.closed, Tick), j.opts.PartTTL)
	if j.ledger.balanced != window.Unset {
		j.balance(max(j.ledger.balanced, window.Start(to, Tick)))
	}
}
