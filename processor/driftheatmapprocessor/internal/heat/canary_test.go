// SPDX-License-Identifier: Apache-2.0

package heat

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/twosample"
)

// pair is a version and its canary, with 500 values a window each, far below the objective.
type pair struct {
	m      *Map
	random *rand.Rand
	at     int64
	state  baseline.State
}

func newPair(t *testing.T, seed uint64) *pair {
	p := &pair{random: rand.New(rand.NewPCG(seed, 9))}
	o, options := baseline.DefaultOptions(), twosample.DefaultOptions()
	o.Decay.Window, options.OnlySignificant = time.Minute, true
	var err error
	p.m, err = New(catalog(), Options{
		Baseline: o, Dimensions: []string{"version"}, MaxCells: 100, TTL: time.Hour,
		Canary: &Canary{Reference: "v1", Candidate: "v2", Options: options},
		Closed: func(c *Cell) {
			if c.Values[0] == "v2" {
				p.state = c.Result().State
			}
		},
	})
	require.NoError(t, err)
	return p
}

// window closes one in which the canary is slower by a factor, or has a share of its requests delayed.
func (p *pair) window(factor, delayed float64) baseline.State {
	for range 500 {
		p.m.take(event{0, []string{"v1"}, p.at, 0.1 * math.Exp(0.4*p.random.NormFloat64())})
		v := 0.1 * factor * math.Exp(0.4*p.random.NormFloat64())
		if p.random.Float64() < delayed {
			v = 0.9
		}
		p.m.take(event{0, []string{"v2"}, p.at, v})
	}
	p.at += minute
	p.m.Advance(p.at)
	return p.state
}

// Scenario: a canary is worse for 300 windows, by a little: a tenth slower, or a request in 33 delayed. A window on its own does not
// find that each time. Guarantees: once it is degraded it stays so; when it is as good as the other, it is ok again
// in 15 windows.
func TestACanaryIsWorseUntilTheEffectIsGone(t *testing.T) {
	f := func(factor, delayed float64) {
		t.Helper()
		longest, misses := 0, 0
		for seed := range uint64(5) {
			p := newPair(t, seed)
			for i := range 6 {
				require.Equal(t, baseline.OK, p.window(1, 0), "window %d", i)
			}
			found := 0
			for p.window(factor, delayed) != baseline.Degraded {
				found++
				found++
				require.Less(t, found, 20)
			}
			for i := range 300 {
				require.Equal(t, baseline.Degraded, p.window(factor, delayed), "seed %d, window %d", seed, i)
				if p.m.results[0].Verdict != twosample.Degraded {
					misses++
				}
			}
			back := 1
			for p.window(1, 0) != baseline.OK {
				back++
				require.LessOrEqual(t, back, 15, "seed %d", seed)
			}
			longest = max(longest, back)
		}
		t.Logf("%v, %v: not found in %d of 1,500 windows, ok again in %d at most", factor, delayed, misses, longest)
		assert.Positive(t, misses)
	}
	f(1.1, 0)
	f(1, 0.03)
}
