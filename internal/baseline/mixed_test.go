// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// mixture is a composite of a latency and an availability, with 400 and so many events a window.
type mixture struct {
	whole, latency, share *Judge
	composite, one, other Cell
}

func newMixture(t testing.TB, objective float64) *mixture {
	return &mixture{
		whole:   judge(t, Promise{Objective: objective, HigherIsBetter: true}),
		latency: judge(t, Promise{Quantile: 0.95, Objective: 1, Shares: true}),
		share:   judge(t, Promise{Objective: 0.99, HigherIsBetter: true, Shares: true}),
	}
}

// close closes a window in which some of 400 values are beyond the objective, and some of n events are bad.
func (m *mixture) close(i int, slow, bad, n uint64) Result {
	end := int64(i+1) * window
	var w sketch.Distribution
	w.Observe(0.5, 400-slow)
	w.Observe(2, slow)
	a, b := m.latency.Close(&m.one, end, &w), m.share.CloseShare(&m.other, end, float64(n-bad), float64(n))
	return m.whole.CloseMixed(&m.composite, []Part{{0.7, a.Shares}, {0.3, b.Shares}})
}

// Guarantees: a composite is the mean of its parts by their weights, whatever their traffic; and so is what was normal for it.
func TestACompositeIsTheMeanOfItsParts(t *testing.T) {
	m := newMixture(t, 0.9)
	r := m.close(0, 20, 1000, 100_000)
	assert.InDelta(t, 0.7*0.95+0.3*0.99, r.Observed.Value, 1e-9)
	assert.InDelta(t, 0.9, r.Static, 0)
	assert.False(t, r.Dynamic.Known())
	for i := 1; i < 288; i++ {
		r = m.close(i, 20, 1000, 100_000)
	}
	r = m.close(288, 200, 1000, 100_000)
	assert.InDelta(t, 0.7*0.5+0.3*0.99, r.Observed.Value, 1e-9)
	for _, e := range []Estimate{r.Dynamic, r.Frozen} {
		assert.InDelta(t, 0.7*0.95+0.3*0.99, e.Value, 1e-6)
	}
	assert.Equal(t, OK, r.State, "one window does not accuse")
	assert.Equal(t, Degraded, m.close(289, 200, 1000, 100_000).State)
}

// Guarantees: where a part has too few events nothing is known of the whole.
func TestACompositeWithoutAPartIsNotKnown(t *testing.T) {
	m := newMixture(t, 0.9)
	for i := range 5 {
		r := m.close(i, 200, 100, 299)
		require.Equal(t, InsufficientData, r.State)
		require.True(t, math.IsNaN(r.Observed.Value) && math.IsNaN(r.Deviation))
	}
}

// Scenario: nothing changes in a month of windows, with few events of one part and many of the other, and few bad ones of
// either. Guarantees: what chance does is no drift.
func TestAStableCompositeIsQuiet(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 9))
		draw := func(n uint64, p float64) (bad uint64) {
			for range n {
				if r.Float64() < p {
					bad++
				}
			}
			return bad
		}
		m := newMixture(t, 0.97)
		for i := range 8640 {
			got := m.close(i, draw(400, 0.03), draw(2000, 0.005), 2000)
			require.Equal(t, OK, got.State, "window %d: %+v", i, got)
		}
	}
}
