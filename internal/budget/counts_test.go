// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-llm/otelcol-llm/internal/budget"
)

func TestRemainingIsTheShareOfTheBudgetThatIsLeft(t *testing.T) {
	f := func(good, total, target, want float64) {
		t.Helper()
		v, ok := budget.Counts{Good: good, Total: total}.Remaining(target)
		assert.True(t, ok)
		assert.InDelta(t, want, v, 1e-9)
	}
	f(1000, 1000, 0.99, 1) // untouched
	f(995, 1000, 0.99, 0.5)
	f(990, 1000, 0.99, 0) // spent
	f(980, 1000, 0.99, -1)
	f(0, 1000, 0.99, -99)
	f(9, 10, 0.99, -9) // low traffic: a tenth of an event was allowed, one was bad
	f(1, 1, 0.9995, 1)
	f(0, 1, 0.9995, -1999)
	f(3, 4, 0, 0.75) // everything may be bad
	f(0, 4, 0, 0)
	f(2.5, 4, 0.5, 0.25) // summed ratios
}

// Scenario: Google's example of a 99.9 % objective. Guarantees: 1 spends the budget exactly by the window's end, 14.4 in
// an hour 2 % of 30 days.
func TestABurnRateOfOneSpendsTheBudgetExactly(t *testing.T) {
	f := func(good, total, target, want float64) {
		t.Helper()
		v, ok := budget.Counts{Good: good, Total: total}.BurnRate(target)
		assert.True(t, ok)
		assert.InDelta(t, want, v, 1e-9)
	}
	f(999_000, 1_000_000, 0.999, 1)
	f(985_600, 1_000_000, 0.999, 14.4)
	f(1000, 1000, 0.999, 0)
	f(0, 1000, 0.999, 1000)
	f(0, 1, 0.95, 20) // low traffic: the only event was bad
	f(3, 4, 0, 0.25)
}

func TestNoDataIsNotGoodData(t *testing.T) {
	f := func(c budget.Counts, target float64) {
		t.Helper()
		v, ok := c.Remaining(target)
		assert.False(t, ok)
		assert.Zero(t, v)
		v, ok = c.BurnRate(target)
		assert.False(t, ok)
		assert.Zero(t, v)
	}
	f(budget.Counts{}, 0.99)
	f(budget.Counts{Observed: time.Hour}, 0.99)
	// Targets that leave no budget, or are none.
	f(budget.Counts{Good: 1, Total: 1}, 1)
	f(budget.Counts{Good: 1, Total: 2}, 1.2)
	f(budget.Counts{Good: 1, Total: 2}, -0.1)
	f(budget.Counts{Good: 1, Total: 2}, math.NaN())
}

// Scenario: uneven traffic, of which sloth#241 tells: a busy minute without errors, then a quiet one of nothing else.
// Guarantees: the burn rate is that of all events, about 1 %, and not the average of 0 % and 100 %.
func TestABurnRateIsNeverAnAverageOfRatios(t *testing.T) {
	l := budget.NewLayout(burn...)
	var r budget.Ring
	r.Add(l, start, budget.Counts{Good: 1000, Total: 1000})
	r.Add(l, start+minute, budget.Counts{Good: 0, Total: 10})
	for _, c := range r.Sums(l, start+2*minute, burn, nil) {
		v, ok := c.BurnRate(0.99)
		assert.True(t, ok)
		assert.InDelta(t, 10.0/1010/0.01, v, 1e-9) // and not 50
		v, ok = c.Remaining(0.99)
		assert.True(t, ok)
		assert.InDelta(t, 1-10.0/1010/0.01, v, 1e-9)
	}
}

func TestCountsAddUp(t *testing.T) {
	a := budget.Counts{Good: 1, Total: 2, Observed: time.Minute}
	assert.Equal(t, budget.Counts{Good: 4, Total: 7, Observed: 3 * time.Minute},
		a.Add(budget.Counts{Good: 3, Total: 5, Observed: 2 * time.Minute}))
	assert.Equal(t, a, a.Add(budget.Counts{}))
	assert.InDelta(t, 1, a.Bad(), 0)
	assert.Zero(t, budget.Counts{Good: 0.1 + 0.2, Total: 0.3}.Bad(), "what rounding leaves is not bad, let alone less than nothing")
	assert.Equal(t, time.Duration(math.MaxInt64), budget.Counts{Observed: math.MaxInt64}.Add(a).Observed)
}
