// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/budget"
)

// added is one Add, as the model keeps it.
type added struct {
	t int64
	c budget.Counts
}

func ring(l *budget.Layout, list ...added) *budget.Ring {
	var r budget.Ring
	for _, a := range list {
		r.Add(l, a.t, a.c)
	}
	return &r
}

func merged(l *budget.Layout, rings ...*budget.Ring) *budget.Ring {
	var r budget.Ring
	for _, o := range rings {
		r.Merge(l, o)
	}
	return &r
}

// model is the rule, written down without any of the ring's economies: all that was added, and where by the newest time
// each of it belongs. It counts in minutes.
type model struct {
	windows          []time.Duration
	list             []added
	finest, coarsest int64
	newest, span     int64
}

func newModel(windows []time.Duration, list []added) *model {
	m := &model{windows: windows, list: list, finest: math.MaxInt64}
	for _, w := range windows {
		width := int64(resolutions[w] / time.Minute)
		m.finest, m.coarsest = min(m.finest, width), max(m.coarsest, width)
		m.span = max(m.span, int64(w/time.Minute))
	}
	for _, a := range list {
		if a.c != (budget.Counts{}) { // nothing makes nothing older
			m.newest = max(m.newest, a.t/minute)
		}
	}
	m.newest -= m.newest % m.finest
	return m
}

// slot is where the slot begins that holds minute at: the widest that lies wholly behind every window that asks for a
// narrower one. Windows may end two minutes before the newest time.
func (m *model) slot(at int64) int64 {
	begin := at - at%m.finest
	for _, width := range []int64{1, 5, 30, 2 * 60, 6 * 60, 24 * 60, 3 * 24 * 60, 9 * 24 * 60} {
		end := at - at%width + width
		fits := m.finest <= width && width <= m.coarsest
		for _, w := range m.windows {
			fits = fits && (int64(resolutions[w]/time.Minute) >= width || end <= m.newest-int64(w/time.Minute)-2)
		}
		if fits {
			begin = at - at%width
		}
	}
	return begin
}

func (m *model) forgotten(at int64) bool { return at-at%m.coarsest+m.coarsest <= m.newest-m.span-2 }

func (m *model) sum(from, to int64) (sum budget.Counts) {
	first := m.slot(max(from, 0) / minute)
	for _, a := range m.list {
		if begin := m.slot(a.t / minute); begin >= first && begin*minute < to && !m.forgotten(a.t/minute) {
			sum = sum.Add(a.c)
		}
	}
	return sum
}

// drawWindows draws the windows of an SLO, shortest first.
func drawWindows(t *rapid.T) []time.Duration {
	all := slices.Sorted(maps.Keys(resolutions))
	if rapid.Bool().Draw(t, "usual windows") {
		return burn
	}
	windows := rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, 8, rapid.ID[time.Duration]).Draw(t, "windows")
	slices.Sort(windows)
	return windows
}

// ages are how long before start something may lie, up to the age most: all kinds of slots and their edges alike, for
// numbers that rapid draws are mostly small.
func ages(most time.Duration) (list []time.Duration) {
	for _, step := range []time.Duration{1, 5, 30, 2 * 60, 6 * 60, 24 * 60, 3 * 24 * 60, 9 * 24 * 60} {
		for i := range time.Duration(42) {
			for _, age := range []time.Duration{i * step * time.Minute, i*step*time.Minute + time.Duration(start%int64(9*day))} {
				if age <= most {
					list = append(list, age)
				}
			}
		}
	}
	return list
}

// drawAdds draws adds within a little more than the span. Fractions are eighths, and large numbers leave room, so that every
// sum is exact.
func drawAdds(t *rapid.T, span time.Duration) []added {
	ages := rapid.SampledFrom(ages(span + span/8))
	least := rapid.SampledFrom([]int{0, 50}).Draw(t, "at least") // rapid likes lists to be short
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) added {
		age := int64(ages.Draw(t, "age")) + rapid.Int64Range(-1, minute).Draw(t, "and")
		total := float64(rapid.Uint64Range(0, rapid.SampledFrom([]uint64{3, 5000, 1 << 40}).Draw(t, "most")).Draw(t, "total"))
		good := math.Floor(total * rapid.Float64Range(0, 1).Draw(t, "share"))
		if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
			good, total = good/8, total/8
		}
		seconds := rapid.SampledFrom([]int64{0, 15, 60, 3600}).Draw(t, "seconds")
		return added{start - age, budget.Counts{Good: good, Total: total, Observed: time.Duration(seconds) * time.Second}}
	}), least, 150).Draw(t, "adds")
}

func check(t *testing.T, property func(t *rapid.T, l *budget.Layout, windows []time.Duration, list []added)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		windows := drawWindows(t)
		l := budget.NewLayout(windows...)
		property(t, l, windows, drawAdds(t, l.Span()))
	})
}

func TestTheOrderOfAddsDoesNotMatter(t *testing.T) {
	check(t, func(t *rapid.T, l *budget.Layout, _ []time.Duration, list []added) {
		want := ring(l, list...).State()
		assert.Equal(t, want, ring(l, rapid.Permutation(list).Draw(t, "order")...).State())
		slices.SortStableFunc(list, func(a, b added) int { return cmp.Compare(a.t, b.t) })
		assert.Equal(t, want, ring(l, list...).State())
	})
}

// Guarantees: merge(part A, part B) = whole, in any grouping and order, and the empty ring adds nothing.
func TestMergedPartsAreTheWhole(t *testing.T) {
	check(t, func(t *rapid.T, l *budget.Layout, _ []time.Duration, list []added) {
		var parts [3][]added
		for _, a := range list {
			k := rapid.IntRange(0, 2).Draw(t, "part")
			parts[k] = append(parts[k], a)
		}
		a, b, c := ring(l, parts[0]...), ring(l, parts[1]...), ring(l, parts[2]...)
		before := b.State()
		want := ring(l, list...).State()
		assert.Equal(t, want, merged(l, merged(l, a, b), c).State())
		assert.Equal(t, want, merged(l, a, merged(l, b, c)).State())
		assert.Equal(t, want, merged(l, c, b, a).State())
		assert.Equal(t, before, b.State(), "what is merged stays as it is")

		a.Merge(l, &budget.Ring{})
		assert.Equal(t, ring(l, parts[0]...).State(), a.State())
		assert.Equal(t, a.State(), merged(l, a).State())
	})
}

func TestRollingIsRecomputedFromRawAtTheRingsResolution(t *testing.T) {
	check(t, func(t *rapid.T, l *budget.Layout, windows []time.Duration, list []added) {
		r, m := ring(l, list...), newModel(windows, list)
		to := start + rapid.Int64Range(-2*minute, int64(day)).Draw(t, "to")
		if rapid.Bool().Draw(t, "aligned") {
			to -= to % minute
		}
		var want []budget.Counts
		for _, w := range windows {
			want = append(want, m.sum(to-int64(w), to))
			assert.Equal(t, want[len(want)-1], r.Sum(l, to-int64(w), to), w)
		}
		assert.Equal(t, want, r.Sums(l, to, windows, make([]budget.Counts, 3)))

		from := start - int64(rapid.SampledFrom(ages(l.Span())).Draw(t, "ago"))
		assert.Equal(t, m.sum(from, to), r.Sum(l, from, to))
		assert.Equal(t, m.sum(math.MinInt64, math.MaxInt64), r.Sum(l, math.MinInt64, math.MaxInt64))
	})
}

// Scenario: something every minute, all sums asked for at every minute. Guarantees: not only where rapid looks, but at
// each edge of each slot a minute moves, and is forgotten, exactly when it is to be.
func TestEveryMinuteIsWhereTheModelHasIt(t *testing.T) {
	windows := []time.Duration{5 * time.Minute, 2 * time.Hour, 6 * time.Hour}
	l := budget.NewLayout(windows...)
	var r budget.Ring
	var list []added
	var sums []budget.Counts
	for i := range int64(8 * 60) {
		a := added{start + i*minute, budget.Counts{Good: float64(i), Total: float64(i + i%3), Observed: time.Minute}}
		list = append(list, a)
		r.Add(l, a.t, a.c)
		m := newModel(windows, list)
		for _, to := range []int64{a.t - 2*minute, a.t, a.t + minute} {
			sums = r.Sums(l, to, windows, sums)
			for k, w := range windows {
				require.Equal(t, m.sum(to-int64(w), to), sums[k], "%v at minute %d", w, i)
			}
		}
		require.Equal(t, m.sum(0, math.MaxInt64), r.Sum(l, 0, math.MaxInt64), "minute %d", i)
		starts := map[int64]bool{}
		for _, a := range list {
			if !m.forgotten(a.t / minute) {
				starts[m.slot(a.t/minute)] = true
			}
		}
		require.Equal(t, len(starts), r.Len(), "slots at minute %d", i)
	}
}

// Scenario: two events, and nothing between them. Guarantees: the older is forgotten by its age alone, however few slots
// lead there, and whichever comes first.
func TestForgettingGoesByAgeAlone(t *testing.T) {
	l := budget.NewLayout(burn...)
	one := budget.Counts{Good: 1, Total: 1}
	forgotten := 0
	for age := 27 * day; age < 30*day; age += 10 * time.Minute {
		list := []added{{start, one}, {start - int64(age), one}}
		want := newModel(burn, list).sum(0, math.MaxInt64)
		require.Equal(t, want, ring(l, list...).Sum(l, 0, math.MaxInt64), age)
		slices.Reverse(list)
		require.Equal(t, want, ring(l, list...).Sum(l, 0, math.MaxInt64), age)
		if want == one {
			forgotten++
		}
	}
	assert.NotZero(t, forgotten)
}

// Scenario: counts beyond 2^53, where float64 has no halves and soon no ones. Guarantees: a slot gives back what it was given.
func TestHugeCountsAreKept(t *testing.T) {
	l := budget.NewLayout(burn...)
	for _, total := range []float64{1 << 32, 1<<53 - 1, 1 << 53, 1 << 55, 1 << 64, 1e300} {
		for _, good := range []float64{0, 1, 1 << 31, total} {
			c := budget.Counts{Good: good, Total: total}
			r := ring(l, added{start, c}, added{start + 10*minute, budget.Counts{Observed: time.Second}})
			assert.Equal(t, c, r.Sum(l, start, start+minute))
		}
	}
}

func TestNothingWithinTheLongestWindowIsLostOrInvented(t *testing.T) {
	check(t, func(t *rapid.T, l *budget.Layout, _ []time.Duration, list []added) {
		var want budget.Counts
		kept := slices.DeleteFunc(list, func(a added) bool { return a.t < start-int64(l.Span()) })
		for _, a := range kept {
			want = want.Add(a.c)
		}
		assert.Equal(t, want, ring(l, kept...).Sum(l, 0, math.MaxInt64))
	})
}

// Guarantees: a ring that went through a checkpoint goes on as if nothing had been.
func TestRestoredIsUninterrupted(t *testing.T) {
	check(t, func(t *rapid.T, l *budget.Layout, _ []time.Duration, list []added) {
		cut := rapid.IntRange(0, len(list)).Draw(t, "cut")
		b, err := cbor.Marshal(ring(l, list[:cut]...).State())
		require.NoError(t, err)
		var s budget.RingState
		require.NoError(t, cbor.Unmarshal(b, &s))
		r := ring(l, added{start, budget.Counts{Total: 5}}) // what was there before is replaced
		require.NoError(t, r.Restore(l, s))
		for _, a := range list[cut:] {
			r.Add(l, a.t, a.c)
		}
		assert.Equal(t, ring(l, list...).State(), r.State())
	})
}

// Scenario: an SLO's windows change between two starts, and the longest becomes longer. Guarantees: all of it is still
// there, and nothing else.
func TestAStateFitsAnotherLayout(t *testing.T) {
	check(t, func(t *rapid.T, l *budget.Layout, _ []time.Duration, list []added) {
		list = slices.DeleteFunc(list, func(a added) bool { return a.t < start-int64(l.Span()) })
		old := ring(l, list...)
		other := budget.NewLayout(append(drawWindows(t), l.Span()*2)...)
		var r budget.Ring
		require.NoError(t, r.Restore(other, old.State()))
		assert.Equal(t, old.Sum(l, 0, math.MaxInt64), r.Sum(other, 0, math.MaxInt64))
	})
}

func TestWhatCannotBeACountIsNotCounted(t *testing.T) {
	l := budget.NewLayout(burn...)
	var r budget.Ring
	for _, c := range []budget.Counts{
		{},
		{Observed: time.Millisecond},
		{Good: math.NaN(), Total: 1},
		{Good: 1, Total: math.NaN()},
		{Good: 1, Total: math.Inf(1)},
		{Good: -1, Total: 1},
		{Good: -2, Total: -1},
		{Observed: -time.Hour},
	} {
		r.Add(l, start, c)
		assert.Zero(t, r.Len(), c)
	}
	r.Add(l, start, budget.Counts{Good: 3, Total: 2, Observed: 90*time.Second + 400*time.Millisecond})
	assert.Equal(t, budget.Counts{Good: 2, Total: 2, Observed: 90 * time.Second}, r.Sum(l, 0, math.MaxInt64))
}

func TestAnyTimeCanBeAdded(t *testing.T) {
	l := budget.NewLayout(burn...)
	one := budget.Counts{Good: 1, Total: 1}
	var r budget.Ring
	for _, at := range []int64{math.MinInt64, -1, 0, 1} {
		r.Add(l, at, one)
	}
	assert.Equal(t, 1, r.Len(), "nothing is before the epoch")
	assert.InDelta(t, 4, r.Sum(l, 0, 1).Total, 0)
	r.Add(l, math.MaxInt64, one)
	assert.Equal(t, 1, r.Len(), "1970 is forgotten")
	assert.Equal(t, one, r.Sums(l, math.MaxInt64, burn, nil)[0])
	r.Add(l, 0, one)
	assert.Equal(t, 1, r.Len())
	assert.Zero(t, r.Sum(l, 0, 0))
	assert.Zero(t, r.Sum(l, math.MaxInt64, 0))
}

func TestAnEmptyRingIsEmpty(t *testing.T) {
	l := budget.NewLayout(burn...)
	var r budget.Ring
	assert.Zero(t, r.Len())
	assert.Zero(t, r.Sum(l, 0, math.MaxInt64))
	assert.Equal(t, make([]budget.Counts, len(burn)), r.Sums(l, start, burn, nil))
	r.Merge(l, &budget.Ring{})
	assert.Equal(t, budget.RingState{}, r.State())
	require.NoError(t, r.Restore(l, budget.RingState{}))
	assert.Zero(t, r.Len())
}
