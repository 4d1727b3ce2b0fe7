// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

func encode(t require.TestingT, v any) []byte {
	data, err := checkpoint.Encode(v)
	require.NoError(t, err)
	return data
}

// through brings a state through a checkpoint.
func through[S any](t require.TestingT, in S) (out S) {
	require.NoError(t, checkpoint.Decode(encode(t, in), &out))
	return out
}

// points draws cumulative points: most go on, some are old, some begin anew.
func points(t *rapid.T, f func(p Point, restart bool)) {
	p := Point{Start: rapid.Int64Range(0, 1).Draw(t, "known"), Time: 1000, Since: 990} // 0: the source does not know it
	for range rapid.IntRange(1, 30).Draw(t, "points") {
		p.Time += rapid.Int64Range(-2, 20).Draw(t, "time")
		if rapid.IntRange(0, 9).Draw(t, "new") == 0 {
			p.Start = p.Time - rapid.Int64Range(-1, 20).Draw(t, "start")
		}
		f(p, rapid.IntRange(0, 5).Draw(t, "restart") == 0)
	}
}

// Guarantees: a tracker that was restored anywhere goes on as the one that was never interrupted.
func TestARestoredNumberIsTheUninterruptedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var whole, restored Number
		value := rapid.Float64Range(0, 100)
		points(t, func(p Point, restart bool) {
			if restart {
				require.NoError(t, restored.Restore(through(t, whole.State())))
			}
			v := value.Draw(t, "value")
			want, outcome := whole.Add(p, v)
			got, same := restored.Add(p, v)
			require.Equal(t, outcome, same)
			require.Equal(t, want, got)
		})
		require.Equal(t, whole, restored)
	})
}

func TestARestoredExplicitIsTheUninterruptedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var whole, restored Explicit
		layouts := [][]float64{{1, 2}, {1, 3}, nil}
		counts, bounds := []uint64{0, 0, 0}, layouts[0]
		points(t, func(p Point, restart bool) {
			if restart {
				require.NoError(t, restored.Restore(through(t, whole.State()), nil))
			}
			if rapid.IntRange(0, 9).Draw(t, "layout") == 0 {
				bounds = rapid.SampledFrom(layouts).Draw(t, "bounds")
				counts = make([]uint64, len(bounds)+1)
			}
			for i := range counts {
				counts[i] = uint64(max(0, int64(counts[i])+rapid.Int64Range(-1, 9).Draw(t, "count")))
			}
			want, outcome := whole.Add(p, bounds, counts, nil)
			got, same := restored.Add(p, bounds, counts, nil)
			require.Equal(t, outcome, same)
			require.Equal(t, want, got)
			require.Equal(t, whole.Last(), restored.Last())
		})
	})
}

func TestARestoredExponentialIsTheUninterruptedOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var whole, restored Exponential
		h := sketch.Exponential{Scale: 3, Factor: 1, Positive: sketch.Buckets{Offset: -2, Counts: make([]uint64, 4)}, Negative: sketch.Buckets{Counts: make([]uint64, 1)}}
		points(t, func(p Point, restart bool) {
			if restart {
				require.NoError(t, restored.Restore(through(t, whole.State())))
			}
			if rapid.IntRange(0, 9).Draw(t, "scale") == 0 {
				h.Scale = rapid.Int32Range(0, 4).Draw(t, "new scale")
			}
			h.ZeroCount += rapid.Uint64Range(0, 1).Draw(t, "zeros")
			for _, side := range [][]uint64{h.Positive.Counts, h.Negative.Counts} {
				for i := range side {
					side[i] = uint64(max(0, int64(side[i])+rapid.Int64Range(-1, 9).Draw(t, "count")))
				}
			}
			var want, got sketch.Exponential
			outcome := whole.Add(p, &h, &want)
			require.Equal(t, outcome, restored.Add(p, &h, &got))
			require.Equal(t, want, got)
		})
	})
}

func TestATrackerWithoutPointsIsAByte(t *testing.T) {
	assert.Len(t, encode(t, new(Number).State()), 1)
	assert.Len(t, encode(t, new(Explicit).State()), 1)
	assert.Len(t, encode(t, new(Exponential).State()), 1)
}

func TestRestoredBoundariesAreShared(t *testing.T) {
	known := []float64{1, 2}
	intern := func(bounds []float64) []float64 { assert.Equal(t, known, bounds); return known }
	var e, restored Explicit
	e.Add(Point{Time: 1}, []float64{1, 2}, []uint64{1, 2, 3}, nil)
	require.NoError(t, restored.Restore(through(t, e.State()), intern))
	assert.Same(t, &known[0], &restored.Bounds()[0])
}

func TestAStateThatIsNoTrackerIsRefused(t *testing.T) {
	var n Number
	assert.EqualError(t, n.Restore(&NumberState{Value: math.Inf(1)}), "last value +Inf is not finite")
	assert.Equal(t, Number{}, n)

	explicit := func(bounds []float64, counts ...uint64) {
		t.Helper()
		var e Explicit
		assert.ErrorContains(t, e.Restore(&ExplicitState{Last: sketch.ExplicitState{Bounds: bounds, Counts: counts}}, nil), "are no histogram")
		assert.Equal(t, Explicit{}, e)
	}
	explicit([]float64{1}, 1)
	explicit([]float64{1, 1}, 1, 1, 1)
	explicit([]float64{math.Inf(1)}, 1, 1)
	explicit([]float64{1}, 1, sketch.MaxCount)

	exponential := func(want string, last sketch.ExponentialState) {
		t.Helper()
		var e Exponential
		assert.ErrorContains(t, e.Restore(&ExponentialState{Last: last}), want)
		assert.Equal(t, Exponential{}, e)
	}
	exponential("scale 21", sketch.ExponentialState{Scale: 21})
	exponential("9007199254740993 events", sketch.ExponentialState{ZeroCount: sketch.MaxCount + 1})
}

func BenchmarkState(b *testing.B) {
	var e Explicit
	bounds, counts := make([]float64, 16), make([]uint64, 17)
	for i := range bounds {
		bounds[i], counts[i] = 0.001*float64(1+i*i), uint64(100*i)
	}
	e.Add(Point{Start: 1_700_000_000e9, Time: 1_700_000_300e9}, bounds, counts, nil)
	data := encode(b, e.State())
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			encode(b, e.State())
		}
		b.ReportMetric(float64(len(data)), "B/series")
	})
	b.Run("restore", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var s *ExplicitState
			var restored Explicit
			if checkpoint.Decode(data, &s) != nil || restored.Restore(s, nil) != nil {
				b.Fatal("not restored")
			}
		}
	})
}
