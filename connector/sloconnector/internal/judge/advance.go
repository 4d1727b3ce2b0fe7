// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"
	"strings"

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

// LastEnd is the end of the youngest window that was ever given data, or window.Unset.
func (j *Judge) LastEnd() int64 { return j.ledger.lastEnd }

func (j *Judge) nextEnd() int64 {
	end := int64(math.MaxInt64)
	for _, c := range j.classes {
		end = min(end, c.next+int64(c.pane))
	}
	return end
}

// closeAt closes the panes that end at end, then the windows, then asks the policies, then forgets who is silent.
func (j *Judge) closeAt(end int64) {
	for _, c := range j.classes {
		if c.next+int64(c.pane) != end {
			continue
		}
		for _, p := range c.promises {
			for _, s := range p.series {
				if s.closePane(c.next) {
					s.lastData = end
					j.lastData = max(j.lastData, end)
				}
				s.closeWindows(end)
			}
		}
		c.next = end
	}
	j.closed = end
	for _, pol := range j.policies {
		if end%int64(pol.spec.Window) == 0 {
			pol.judge(end, j.ledger)
		}
	}
	j.expire(end)
}

// closePane moves a pane into the open windows and reports whether it held data.
func (s *Series) closePane(start int64) bool {
	a := s.panes.Take(start)
	if a == nil {
		return false
	}
	for i := range s.windows {
		s.windows[i].sums.add(a, s)
	}
	// No more events were good than there were: a surplus must not make up for later failures.
	if surplus := a.goodSum - max(a.totalSum, 0); surplus > 0 {
		s.good -= surplus
		a.goodSum -= surplus
	}
	s.closed.good += max(a.goodSum, 0)
	s.closed.total += a.totalSum
	if a.goodSum < 0 {
		s.good -= a.goodSum
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
		w.last = s.promise.judge(&w.sums, end-int64(w.length), end)
		w.sums.reset()
		if i == 0 {
			s.changed()
		}
	}
}

// expire forgets the groups of which nothing was heard for so long that nobody waits for them any more. Only what is
// closed counts: how much of the future is known already depends on how the input is cut into batches.
func (j *Judge) expire(end int64) {
	var silent []*Series
	j.Each(func(s *Series) {
		if j.silent(s, end) {
			silent = append(silent, s)
		}
	})
	if len(silent) == 0 {
		return
	}
	slices.SortFunc(silent, func(a, b *Series) int { // a replay tells the same story
		if c := strings.Compare(a.slo.ID, b.slo.ID); c != 0 {
			return c
		}
		return strings.Compare(a.key, b.key)
	})
	for _, s := range silent {
		for _, pol := range s.promise.watched {
			pol.tallies[s.key].forget(end, j.ledger)
		}
	}
	silent = slices.DeleteFunc(silent, j.awaited)
	for _, s := range silent {
		j.ledger.retire(s)
	}
	for _, s := range silent {
		j.drop(s)
	}
}

// silent reports whether a series and its kin have been without data for their TTL.
func (j *Judge) silent(s *Series, end int64) bool {
	return len(s.promise.groupBy) > 0 &&
		!slices.ContainsFunc(s.promise.kin, func(p *promise) bool { return !p.series[s.key].silent(end) })
}

func (s *Series) silent(end int64) bool {
	return s.lastData == window.Unset || end-s.lastData > int64(s.promise.ttl)
}

// awaited reports whether a group has data in an open pane.
func (j *Judge) awaited(s *Series) bool {
	return slices.ContainsFunc(s.promise.kin, func(p *promise) bool { return p.series[s.key].panes.Len() > 0 })
}

func (j *Judge) drop(s *Series) {
	s.gone = true
	delete(s.promise.series, s.key)
	j.series--
	j.evicted++
	for _, pol := range s.promise.watched {
		delete(pol.tallies, s.key)
	}
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
		if len(s.promise.groupBy) > 0 && s.lastData != window.Unset && !s.silent(at) {
			to = min(to, s.lastData+int64(s.promise.ttl))
		}
	})
	for _, c := range j.classes {
		c.next = max(c.next, window.Start(to, c.pane))
	}
}
