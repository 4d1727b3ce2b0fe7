// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
)

// heard is a point of any kind. Values are whole, as bytes are, so that sums do not depend on their order.
type heard struct {
	at    int64
	kind  int
	value float64
}

func (p heard) into(j *Judge, s *Series) Outcome {
	return [...]func(*Series, int64, float64) Outcome{j.Add, j.Running, j.Cache, j.Served}[p.kind](s, p.at, p.value)
}

func points(t *rapid.T) []heard {
	span := rapid.SampledFrom([]time.Duration{time.Hour, 30 * time.Hour, 400 * time.Hour}).Draw(t, "span")
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) heard {
		return heard{
			at:   t0 + rapid.Int64Range(0, int64(span)).Draw(t, "at"),
			kind: rapid.IntRange(0, 3).Draw(t, "kind"), value: float64(rapid.IntRange(2000, 9000).Draw(t, "value")), // none is near zero
		}
	}), 1, 200).Draw(t, "points")
}

// recent are those that are remembered, whatever came first.
func recent(j *Judge, all []heard) []heard {
	newest := slices.MaxFunc(all, func(a, b heard) int { return int(a.at - b.at) }).at
	return slices.DeleteFunc(slices.Clone(all), func(p heard) bool {
		return floorDiv(p.at, j.width)+1 <= start(floorDiv(newest, j.width), topLevel)
	})
}

func TestPointsMayComeInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := NewJudge(DefaultOptions())
		var a, b Series
		all := points(t)
		for _, p := range all {
			p.into(j, &a)
		}
		for _, p := range rapid.Permutation(all).Draw(t, "other order") {
			p.into(j, &b)
		}
		assert.Equal(t, a.cells, b.cells)
		assert.Equal(t, a.newest, b.newest)
	})
}

func TestTheUnionOfTwoSeriesIsTheSeriesOfAllPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := NewJudge(DefaultOptions())
		var whole, a, b Series
		for _, p := range points(t) {
			p.into(j, &whole)
			if rapid.Bool().Draw(t, "side") {
				p.into(j, &a)
			} else {
				p.into(j, &b)
			}
		}
		j.Merge(&a, &b)
		assert.Equal(t, whole.cells, a.cells)
		var sum, want float64
		for _, c := range a.cells {
			sum += c.bytes
		}
		for _, c := range whole.cells {
			want += c.bytes
		}
		assert.InDelta(t, want, sum, 0)
	})
}

// Guarantees: no cell is lost on its way to a wider one.
func TestNothingIsLostBetweenCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := NewJudge(DefaultOptions())
		var s Series
		all := points(t)
		for _, p := range all {
			p.into(j, &s)
		}
		want := map[int]float64{}
		for _, p := range recent(j, all) {
			want[p.kind] += p.value
		}
		got := map[int]float64{}
		for _, c := range s.cells {
			for kind, v := range []float64{c.bytes, c.load, c.cache, c.served} {
				if v > 0 {
					got[kind] += v
				}
			}
		}
		assert.Equal(t, want, got)
	})
}

func TestASeriesIsBounded(t *testing.T) {
	j := NewJudge(DefaultOptions())
	var s Series
	most := 0
	for at := t0; at < t0+int64(30*24*time.Hour); at += int64(10 * time.Second) {
		j.Add(&s, at, 1e9)
		most = max(most, s.Cells())
	}
	assert.LessOrEqual(t, most, viewCells+topLevel*(viewCells/2+2))
	assert.Less(t, s.Bytes(), 40_000)
}

// Guarantees: a series that was written and read goes on as if nothing had been, whenever that is.
func TestASeriesThatWasRestoredGoesOnAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		stop := rapid.IntRange(0, 5*360).Draw(t, "stop")
		p := noisy(0.1*gib, 0.5, follows(20*gib, 0.2*gib, 6, 0.02))
		run := func(restored bool) (all []Result) {
			of, j, s := p(rand.New(rand.NewPCG(seed, 1))), NewJudge(OptionsFor(time.Hour)), new(Series)
			for tick := range 5 * 360 {
				if restored && tick == stop {
					data, err := checkpoint.Encode(s.State())
					require.NoError(t, err)
					var st SeriesState
					require.NoError(t, checkpoint.Decode(data, &st))
					j, s = NewJudge(OptionsFor(time.Hour)), new(Series)
					require.NoError(t, s.Restore(st))
				}
				at := t0 + int64(tick)*int64(10*time.Second)
				m := of(float64(tick) / 360)
				j.Add(s, at, math.Round(m.bytes)) // as bytes are: sums do not depend on their order
				j.Running(s, at, m.running)
				if tick%6 == 0 {
					r := j.Judge(s, at, Alone(80*gib-m.bytes))
					for _, v := range []*float64{&r.Rate.Value, &r.Rate.Low, &r.Rate.High, &r.Exhaustion.Value, &r.Exhaustion.Low, &r.Exhaustion.High, &r.PerServed, &r.PerRequest, &r.PerRequestFirst} {
						if math.IsNaN(*v) {
							*v = -1 // equal to itself
						}
					}
					all = append(all, r)
				}
			}
			return all
		}
		assert.Equal(t, run(false), run(true))
	})
}

func TestADamagedStateIsRefused(t *testing.T) {
	j := NewJudge(DefaultOptions())
	f := func(damage func(*SeriesState), want string) {
		t.Helper()
		var s Series
		for i := range int64(200) {
			j.Add(&s, t0+i*int64(time.Minute), 1e9)
		}
		st := s.State()
		damage(&st)
		assert.ErrorContains(t, s.Restore(st), want)
		assert.Equal(t, Series{}, s)
	}
	f(func(st *SeriesState) { st.State = 9 }, "state of a series: 9")
	f(func(st *SeriesState) { st.Last.Value = math.NaN() }, "want finite numbers")
	f(func(st *SeriesState) { st.Cells[3].Bytes = -1 }, "cell 3: -1")
	f(func(st *SeriesState) { st.Cells[3].Level = 60 }, "cell 3: level 60")
	f(func(st *SeriesState) { st.Cells[3].At = st.Cells[2].At }, "cell 3: ")
	f(func(st *SeriesState) { st.Newest++ }, "newest cell at")
	f(func(st *SeriesState) { st.Newest-- }, "is not remembered")
}

// Guarantees: memory that falls to near zero and comes back is one that slept; where it does not come back, or with less, it has begun anew.
func TestMemoryNearZeroSleepsOrBeginsAnew(t *testing.T) {
	j := NewJudge(DefaultOptions())
	at := func(i int) int64 { return t0 + int64(i)*int64(10*time.Second) }
	begin := func() *Series {
		s := new(Series)
		for i := range 100 {
			assert.Equal(t, Taken, j.Add(s, at(i), 1e9))
		}
		return s
	}
	s := begin()
	assert.Equal(t, Withheld, j.Add(s, at(100), 0), "one wrong reading")
	assert.Equal(t, Taken, j.Add(s, at(101), 1e9))
	for i := 102; i < 150; i++ {
		assert.Equal(t, Withheld, j.Add(s, at(i), 1e6), "it sleeps")
	}
	when, bytes := s.Last()
	assert.Equal(t, at(149), when)
	assert.InDelta(t, 1e6, bytes, 0)
	assert.Equal(t, Withheld, j.Add(s, at(150), 5e8), "it wakes")
	assert.Equal(t, Taken, j.Add(s, at(151), 0.996e9))
	assert.Equal(t, t0, s.Since())
	total := 0.0
	for _, c := range s.cells {
		total += c.bytes
	}
	assert.InDelta(t, 101e9+0.996e9, total, 0)

	s = begin()
	for i := 100; i < 110; i++ {
		assert.Equal(t, Withheld, j.Add(s, at(i), 1e6))
	}
	j.Running(s, at(111), 3)
	for i := 110; i < 170; i++ {
		assert.Equal(t, Withheld, j.Add(s, at(i), 0.99e9), "it may still take the rest")
	}
	assert.Equal(t, Taken, j.Add(s, at(170), 0.99e9))
	assert.Equal(t, at(109), s.Since(), "when it was near zero last")
	assert.Equal(t, Late, j.Add(s, at(50), 1e9), "what was before is over")

	s = begin()
	for i := 100; i < 199; i++ {
		assert.Equal(t, Withheld, j.Add(s, at(i), 1e6), "for as long as it was awake")
	}
	assert.Equal(t, Taken, j.Add(s, at(199), 1e6))
	assert.Equal(t, at(199), s.Since())
}

func TestNothingStaysOfAProcessThatHasBegunAnew(t *testing.T) {
	j := NewJudge(DefaultOptions())
	var s Series
	at := func(i int) int64 { return t0 + int64(i)*int64(10*time.Second) }
	j.Add(&s, at(0), 1e9)
	assert.Equal(t, Taken, j.Add(&s, at(103), 2e6), "it was awake for no time")
	total := 0.0
	for _, c := range s.cells {
		total += c.bytes
	}
	assert.InDelta(t, 4e6, total, 0)
}

func TestWhatIsNoAmountIsRefused(t *testing.T) {
	j := NewJudge(DefaultOptions())
	var s Series
	for _, v := range []float64{math.NaN(), -1, math.Inf(1), math.Inf(-1)} {
		for kind := range 4 {
			assert.Equal(t, Invalid, heard{t0, kind, v}.into(j, &s))
		}
	}
	assert.Zero(t, s.Cells())
}
