// SPDX-License-Identifier: Apache-2.0

package coupling

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// one returns the only cell.
func one(t *testing.T, m *Map) (c *Cell) {
	require.Equal(t, 1, m.Len())
	for _, c = range m.cells {
	}
	return c
}

// feed gives a map samples of an engine whose throughput grows until a batch of 48.
func feed(m *Map, r *rand.Rand, n int, by ...string) {
	for range n {
		batch := float64(1 + r.IntN(128))
		m.Add(by, Sample{Batch: batch, Throughput: 30 * min(batch, 48) * (1 + 0.05*r.NormFloat64()), Context: "<=1000", Hits: ">0.5"})
	}
}

func TestTheKneeIsFoundInNoisySamples(t *testing.T) {
	m := New(10, 0.98)
	feed(m, rand.New(rand.NewPCG(1, 1)), 3000, "qwen")
	batch, ok := one(t, m).knee()
	require.True(t, ok)
	assert.InEpsilon(t, 48, batch, 0.1)
	var ends []float64
	one(t, m).octaves(func(upTo, throughput float64) {
		ends = append(ends, upTo)
		assert.LessOrEqual(t, throughput, 30*min(upTo, 48)*1.1)
	})
	assert.Equal(t, []float64{1, 2, 4, 8, 16, 32, 64, 128}, ends)
}

func TestAFewBatchSizesHaveNoKnee(t *testing.T) {
	m := New(10, 0.98)
	for batch := range 4 {
		m.Add(nil, Sample{Batch: float64(batch), Throughput: 10})
	}
	_, ok := one(t, m).knee()
	assert.False(t, ok)
}

// Guarantees: what was long ago is forgotten, whole cells too; there are never more than there is room for, and what is no
// measurement takes none.
func TestCellsAreBoundedAndForgotten(t *testing.T) {
	m := New(3, 0.5)
	for i := range 5 {
		assert.Equal(t, i < 3, m.Add([]string{fmt.Sprint(i)}, Sample{Batch: 2, Throughput: 1}))
	}
	assert.Equal(t, 3, m.Len())
	for range 7 {
		m.Close(func(*Cell, Curve) {})
	}
	assert.Zero(t, m.Len())
	for _, s := range []Sample{{0, 1, "", ""}, {1, 0, "", ""}, {math.NaN(), 1, "", ""}, {1, math.NaN(), "", ""}, {math.Inf(1), 1, "", ""}, {1, math.Inf(1), "", ""}, {1, 1e200, "", ""}} {
		m.Add(nil, s)
	}
	assert.Zero(t, m.Len())
}

// Guarantees: what is learned after a window does not change what was told when it was over.
func TestWhatWasToldStands(t *testing.T) {
	m := New(10, 0.5)
	m.Add(nil, Sample{Batch: 2, Throughput: 10})
	m.Close(func(_ *Cell, before Curve) { assert.Empty(t, before.Octaves) })
	m.Add(nil, Sample{Batch: 2, Throughput: 1000})
	want := Curve{Octaves: []Octave{{UpTo: 2, Throughput: 10}}}
	assert.Equal(t, want, one(t, m).Told())
	m.Close(func(c *Cell, before Curve) {
		assert.Equal(t, want, before)
		assert.InDelta(t, (0.25*10+0.5*1000)/0.75, c.Told().Octaves[0].Throughput, 1e-9)
	})
	for range 10 {
		m.Close(func(c *Cell, _ Curve) { want = c.Told() })
	}
	assert.Empty(t, want.Octaves, "the last that is told of a cell is that nothing is left")
	assert.Zero(t, m.Len())
}

func TestARestoredMapIsTheUninterruptedOne(t *testing.T) {
	m, restored := New(10, 0.98), New(10, 0.98)
	feed(m, rand.New(rand.NewPCG(1, 1)), 1000, "qwen")
	m.Close(func(*Cell, Curve) {})
	require.NoError(t, restored.Restore(m.State(), 1))
	assert.Equal(t, m.cells, restored.cells)
}

func TestAStateThatIsNoneIsRefused(t *testing.T) {
	f := func(want string, st CellState) {
		t.Helper()
		require.ErrorContains(t, New(10, 0.98).Restore([]CellState{st}, 1), want)
	}
	f("2 values, want 1", CellState{By: []string{"a", "b"}})
	f("a knee at -1", CellState{By: []string{"x"}, Told: Curve{Knee: -1}})
	f("octave 1 up to 2", CellState{By: []string{"x"}, Told: Curve{Octaves: []Octave{{UpTo: 2, Throughput: 1}, {UpTo: 2, Throughput: 1}}}})
	for _, s := range []StepState{
		{}, {Weight: math.NaN(), Batch: 1, Throughput: 1}, {Weight: 1, Batch: math.Inf(1), Throughput: 1}, {Weight: 1, Batch: 1}, {Weight: 1, Batch: 1, Throughput: -1},
		{At: 3, Weight: 1, Batch: 1, Throughput: 1}, {Weight: 1, Batch: 1, Throughput: 1, Squares: -1}, {Weight: 1, Batch: 1, Throughput: 1, Squares: math.NaN()}, {Weight: math.Inf(1), Batch: 1, Throughput: 1},
	} {
		f("is none", CellState{By: []string{"x"}, Steps: []StepState{s}})
	}
}

func BenchmarkAdd(b *testing.B) {
	m := New(10, 0.98)
	by := []string{"qwen"}
	m.Add(by, Sample{Batch: 12, Throughput: 1, Context: "<=1000"})
	b.ReportAllocs()
	for b.Loop() {
		m.Add(by, Sample{Batch: 12, Throughput: 1, Context: "<=1000"})
	}
}
