// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

func partOptions() Options {
	return Options{Window: 5 * time.Minute, MaxSeries: 100, TTL: 24 * time.Hour, MaxParts: 3, PartTTL: time.Hour}
}

// allTold lets each part tell all of the minutes up to, in minutes after t0.
func allTold(j *Judge, to int64, parts ...string) {
	for _, name := range parts {
		from := t0
		if of := j.ledger.tellers.all[name]; of != nil {
			from = of.reached
		}
		j.Told(name, from, t0+to*minute)
	}
}

// window puts events into the window that begins w windows after t0, and closes it.
func (s *Series) window(j *Judge, w int, good, bad uint64) Result {
	feed(j, s, w, good, bad)
	return s.Result()
}

// Scenario: two parts tell all of a window; then one is away for two windows, of which one looks kept and one missed, and comes
// back.
// Guarantees: what was judged without it is at risk and proves nothing, and so is the window in which it is back; the ones before
// and after are what they are.
func TestAWindowThatNotAllHaveToldOfIsIncomplete(t *testing.T) {
	j := New(&openslo.Catalog{SLOs: []openslo.SLO{ttft()}}, partOptions())
	s := j.Series(0, nil)
	f := func(want State, incomplete bool, r Result) {
		t.Helper()
		assert.Equal(t, want, r.State)
		assert.Equal(t, incomplete, r.Incomplete)
		assert.Equal(t, incomplete, math.IsInf(r.Lower, -1) && math.IsInf(r.Upper, 1) && r.GoodLower == 0 && r.GoodUpper == 1)
	}
	allTold(j, 5, "a", "b")
	f(OK, false, s.window(j, 0, 100, 0))
	allTold(j, 10, "a")
	f(AtRisk, true, s.window(j, 1, 100, 0))
	allTold(j, 15, "a")
	f(AtRisk, true, s.window(j, 2, 0, 100))
	allTold(j, 20, "a", "b") // what b tells of the minutes from 5 to 15 is late
	f(AtRisk, true, s.window(j, 3, 0, 100))
	allTold(j, 25, "a", "b")
	f(Violated, false, s.window(j, 4, 0, 100))
	allTold(j, 30, "a")
	r := s.window(j, 5, 0, 0)
	assert.Equal(t, NoData, r.State, "what is empty is empty")
	assert.True(t, r.Incomplete)
	var news []string
	for _, n := range j.TakeTellerNews() {
		news = append(news, fmt.Sprint(n.Name, n.What, (n.At-t0)/minute))
	}
	assert.Equal(t, []string{fmt.Sprint("b", TellerMissed, 6), fmt.Sprint("b", TellerBack, 20), fmt.Sprint("b", TellerMissed, 26)}, news)
}

// Scenario: two minutes of three are told by two parts, then one by one of them only.
// Guarantees: the minute counts as half observed, and all that was told counts in the budget.
func TestAMinuteThatWasToldInPartIsObservedInPart(t *testing.T) {
	slo := ttft()
	slo.TimeWindow = rolling("28d")
	j := New(&openslo.Catalog{SLOs: []openslo.SLO{slo}}, partOptions())
	s := j.Series(0, nil)
	for m := range int64(3) {
		addCounts(s, t0+m*minute, []uint64{0, 0, 10, 0, 0, 0, 0})
		s.Heard(t0+m*minute, t0+(m+1)*minute)
	}
	allTold(j, 2, "a", "b")
	allTold(j, 3, "a")
	j.Advance(t0 + 3*minute)
	c := s.account.ring.Sum(s.promise.books.layout, t0, t0+3*minute)
	assert.InDelta(t, 30, c.Total, 0)
	assert.InDelta(t, 2.5, c.Observed.Minutes(), 1e-6)
}

// Scenario: a violation is open; a part is away for three windows that look kept.
// Guarantees: hold leaves it open and opens none; open and close take an incomplete window as they take an empty one, and say so.
func TestAPolicyTakesAnIncompleteWindowByItsOnNoData(t *testing.T) {
	f := func(onNoData openslo.NoDataAction, before, without [2]uint64, want ...string) {
		t.Helper()
		slo := ttft()
		j := New(&openslo.Catalog{SLOs: []openslo.SLO{slo}, Policies: []openslo.ViolationPolicy{policyOf(leaf(slo), 1, onNoData)}}, partOptions())
		s := j.Series(0, nil)
		allTold(j, 5, "a", "b")
		feed(j, s, 0, before[0], before[1])
		for w := 1; w < 4; w++ {
			allTold(j, int64(w+1)*5, "a")
			feed(j, s, w, without[0], without[1])
		}
		var got []string
		for _, e := range take(j) {
			assert.Equal(t, strings.HasPrefix(e.Reason, reasonIncomplete), e.Incomplete, e.Reason)
			got = append(got, fmt.Sprint(map[bool]string{true: "opened", false: "closed"}[e.Opened], " ", (e.Time-t0)/(5*minute), " ", e.Incomplete))
		}
		assert.Equal(t, want, got)
	}
	good, bad := [2]uint64{100, 0}, [2]uint64{0, 100}
	f(openslo.NoDataHold, bad, good, "opened 1 false")
	f(openslo.NoDataHold, good, bad)
	f(openslo.NoDataClose, bad, bad, "opened 1 false", "closed 2 true")
	f(openslo.NoDataOpen, good, good, "opened 2 true")
}

// Scenario: the part with the good events is away, so that all that is left is bad.
// Guarantees: nobody is paged; who is paged already is not told that it is over.
func TestNoBurnRateOpensOrClosesWithoutAPart(t *testing.T) {
	f := func(before, without [2]uint64, want int) {
		t.Helper()
		slo := ttft()
		slo.TimeWindow = rolling("28d")
		opts := partOptions()
		opts.BurnRates = []BurnRate{{Long: 10 * time.Minute, Short: 5 * time.Minute, Factor: 10, Severity: "page"}}
		j := New(&openslo.Catalog{SLOs: []openslo.SLO{slo}}, opts)
		s := j.Series(0, nil)
		at := func(m int64, n [2]uint64) {
			addCounts(s, t0+m*minute, []uint64{0, 0, n[0], 0, 0, n[1], 0})
			j.Advance(t0 + (m+1)*minute)
		}
		for m := range int64(20) {
			allTold(j, m+1, "a", "b")
			at(m, before)
		}
		opened := len(take(j))
		for m := int64(20); m < 40; m++ {
			allTold(j, m+1, "a")
			at(m, without)
		}
		assert.Equal(t, want, opened)
		assert.Empty(t, take(j))
	}
	f([2]uint64{100, 1}, [2]uint64{0, 1}, 0)
	f([2]uint64{0, 100}, [2]uint64{100, 0}, 1)
}

// Scenario: a part skips two minutes, which it has lost.
// Guarantees: their window is incomplete, and no other.
func TestWhatAPartSkipsIsMissing(t *testing.T) {
	j := New(&openslo.Catalog{SLOs: []openslo.SLO{ttft()}}, partOptions())
	s := j.Series(0, nil)
	allTold(j, 5, "a", "b")
	assert.False(t, s.window(j, 0, 100, 0).Incomplete)
	j.Told("a", t0+7*minute, t0+8*minute)
	allTold(j, 10, "a", "b")
	assert.True(t, s.window(j, 1, 100, 0).Incomplete)
	allTold(j, 15, "a", "b")
	assert.False(t, s.window(j, 2, 100, 0).Incomplete)
}

// Scenario: a part comes beside two others in the second window.
func TestTheWindowInWhichANewPartComesIsIncomplete(t *testing.T) {
	j := New(&openslo.Catalog{SLOs: []openslo.SLO{ttft()}}, partOptions())
	s := j.Series(0, nil)
	allTold(j, 5, "a", "b")
	assert.False(t, s.window(j, 0, 100, 0).Incomplete)
	allTold(j, 10, "a", "b")
	j.Told("c", t0+8*minute, t0+9*minute)
	allTold(j, 10, "c")
	assert.True(t, s.window(j, 1, 100, 0).Incomplete)
	allTold(j, 15, "a", "b", "c")
	assert.False(t, s.window(j, 2, 100, 0).Incomplete)
	assert.False(t, j.Told("d", t0+14*minute, t0+15*minute), "there is no room")
	assert.Equal(t, 3, j.Parts())
}

// Scenario: a part is away for good.
// Guarantees: for an hour all is incomplete, then it is forgotten, which is said once, and windows are what they are.
func TestAPartThatIsAwayForGoodIsForgotten(t *testing.T) {
	j := New(&openslo.Catalog{SLOs: []openslo.SLO{ttft()}}, partOptions())
	s := j.Series(0, nil)
	allTold(j, 5, "a", "b")
	feed(j, s, 0, 100, 0)
	for w := 1; w < 20; w++ {
		allTold(j, int64(w+1)*5, "a")
		assert.Equal(t, w <= 12, s.window(j, w, 100, 0).Incomplete, "window %d", w)
	}
	assert.Equal(t, []TellerNews{{"b", TellerMissed, t0 + 6*minute}, {"b", TellerForgotten, t0 + 66*minute}}, j.TakeTellerNews())
	assert.Equal(t, 1, j.Parts())
}

// Scenario: three parts tell their minutes in any order, again, and a minute or more at a time, but all before anybody closes
// them; now and then the judge is restarted.
// Guarantees: no window is incomplete.
func TestPartsThatAreAllThereLeaveNoMark(t *testing.T) {
	catalog := everything()
	opts := everyOption()
	opts.MaxParts, opts.PartTTL = 3, time.Hour
	rapid.Check(t, func(t *rapid.T) {
		j := New(catalog, opts)
		names := []string{"a", "b", "c"}
		for at := t0; at < t0+40*minute; {
			step := rapid.Int64Range(1, 7).Draw(t, "minutes") * minute
			for _, in := range rapid.SliceOfN(anyInput(at, at+step), 0, 8).Draw(t, "input") {
				in.give(j)
			}
			for _, name := range rapid.Permutation(names).Draw(t, "order") {
				cut := at + rapid.Int64Range(0, step/minute).Draw(t, "cut")*minute
				if cut > at {
					require.True(t, j.Told(name, at, cut))
				}
				require.True(t, j.Told(name, at, at+step))
				if rapid.Bool().Draw(t, "again") {
					require.True(t, j.Told(name, at, cut))
				}
			}
			at += step
			j.Advance(at)
			if rapid.Bool().Draw(t, "restart") {
				h, all := stateOf(j)
				j = New(catalog, opts)
				_, err := j.Restore(through(t, h, all))
				require.NoError(t, err)
			}
			j.Each(func(s *Series) {
				for i := range s.windows {
					require.False(t, s.windows[i].last.Incomplete, s.slo.ID)
				}
			})
		}
		require.Empty(t, j.TakeTellerNews())
	})
}

// Scenario: a judge is restarted while one part is away, and another catalog comes.
// Guarantees: it is known who is missing, what was judged without it, and since when.
func TestPartsOutliveARestart(t *testing.T) {
	catalog := &openslo.Catalog{SLOs: []openslo.SLO{ttft()}}
	j := New(catalog, partOptions())
	s := j.Series(0, nil)
	allTold(j, 5, "a", "b")
	feed(j, s, 0, 100, 0)
	allTold(j, 10, "a")
	feed(j, s, 1, 100, 0)
	h, all := stateOf(j)
	again := New(catalog, partOptions())
	_, err := again.Restore(through(t, h, all))
	require.NoError(t, err)
	sameJudges(t, j, again, "taken up")
	again.Update(&openslo.Catalog{SLOs: []openslo.SLO{ttft(), ratio("other", 0.9)}})
	s = again.Series(0, nil)
	assert.True(t, s.Result().Incomplete)
	allTold(again, 15, "a")
	assert.True(t, s.window(again, 2, 100, 0).Incomplete)
	allTold(again, 20, "a", "b")
	assert.True(t, s.window(again, 3, 100, 0).Incomplete)
	allTold(again, 25, "a", "b")
	assert.False(t, s.window(again, 4, 100, 0).Incomplete)

	h.Tellers.All = append(h.Tellers.All, h.Tellers.All[0])
	_, err = New(catalog, partOptions()).Restore(h, all)
	assert.ErrorContains(t, err, `part "a" stands twice`)
}
