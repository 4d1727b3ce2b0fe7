// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Guarantees: a budget is spent in what is left of it by how fast it burns; at 1 or below it never is, and what was said long ago does not count.
func TestABudgetIsSpentAtThePresentBurn(t *testing.T) {
	const day = 24 * time.Hour
	f := func(want float64, tell func(b budgets)) {
		t.Helper()
		b := budgets{}
		tell(b)
		within, already := b.spent("slo", 28*day, t0)
		assert.InDelta(t, want, within, 1e-6)
		assert.False(t, already)
	}
	say := func(b budgets, kind Kind, group uint64, window string, at int64, v float64) {
		b.take(&observation{at, kind, &Where{SLO: "slo", Series: group, Window: window}, v})
	}
	never := math.Inf(1)
	f(never, func(budgets) {})
	f(never, func(b budgets) { say(b, Burn, 1, "1h", t0, 14) }) // how much is left is not known
	f(never, func(b budgets) { say(b, Remaining, 1, "", t0, 0.5) })
	half := func(b budgets, burn map[string]float64) {
		say(b, Remaining, 1, "", t0, 0.5)
		for window, rate := range burn {
			say(b, Burn, 1, window, t0, rate)
		}
	}
	f((day).Seconds(), func(b budgets) { half(b, map[string]float64{"1h": 14, "5m": 100, "3d": 1}) })
	f(never, func(b budgets) { half(b, map[string]float64{"1h": 0, "5m": 100}) }) // nothing burns now
	f((7 * day).Seconds(), func(b budgets) { half(b, map[string]float64{"6h": 2, "1d": 1}) })
	f(never, func(b budgets) { half(b, map[string]float64{"1h": 1}) })
	f((day).Seconds(), func(b budgets) { // one is spent, which says nothing of the others
		half(b, map[string]float64{"1h": 14})
		say(b, Remaining, 2, "", t0, -0.2)
	})
	f((day).Seconds(), func(b budgets) { // of two groups, the first
		half(b, map[string]float64{"1h": 14})
		say(b, Remaining, 2, "", t0, 0.9)
		say(b, Burn, 2, "1h", t0, 2)
	})
	f(never, func(b budgets) {
		say(b, Remaining, 1, "", t0-int64(2*time.Hour), 0.5)
		say(b, Burn, 1, "1h", t0-int64(2*time.Hour), 14)
	})
	b := budgets{}
	say(b, Remaining, 1, "", t0, -0.2)
	within, already := b.spent("slo", 28*day, t0)
	assert.True(t, already)
	assert.InDelta(t, never, within, 0)
}

func TestBudgetsAreBounded(t *testing.T) {
	b := budgets{}
	take := func(slo string, group uint64, at int64) {
		b.take(&observation{at, Remaining, &Where{SLO: slo, Series: group}, 1})
	}
	for i := range maxBudgets + 10 {
		take("slo", uint64(i), t0)
		take(fmt.Sprint(i), 1, t0)
	}
	assert.Len(t, b["slo"], maxBudgets)
	assert.Len(t, b, maxBudgets)
	take("slo", math.MaxUint64, t0+2*budgetTTL)
	assert.Len(t, b, 1)
	assert.Len(t, b["slo"], 1, "those that are silent make room")
}

// Scenario: a server leaks; nothing is left in some 75 hours, one promise of its service burns at 28 with half of its budget left, one at 0.5, and
// one has none left. Guarantees: each breaks by what comes first, and the last is none that the leak breaks; after a restart, too.
func TestThePresentBurnBringsTheBreakForward(t *testing.T) {
	promises := func(o *Options) {
		o.Objectives = func() (all []Objective) {
			for _, id := range []string{"burns", "keeps", "broken"} {
				all = append(all, Objective{ID: id, Service: "chat", Window: 28 * 24 * time.Hour})
			}
			return append(all, Objective{ID: "another", Service: "other", Window: 28 * 24 * time.Hour})
		}
	}
	r := newRig(t, promises)
	r.run(4, func(at int64, h float64) {
		if h > 3 && h < 3.01 {
			head, shards := r.State()
			next := newRig(t, promises)
			var all []ProcessState
			for _, some := range shards {
				all = append(all, some...)
			}
			_, err := next.Restore(head, all)
			require.NoError(t, err)
			*r = *next
		}
		r.hear(at, Limit, gpu, 80*gib)
		r.hear(at, DeviceUsed, gpu, 50*gib+0.4*gib*h)
		r.hear(at, Used, server, 40*gib+0.4*gib*h)
		r.hear(at, Running, Where{Host: "a", PID: "71", Service: "chat"}, 4)
		r.hear(at, Cache, Where{Host: "a", PID: "71", Service: "chat"}, 0.75)
		if h < 2.9 {
			for slo, said := range map[string][2]float64{"burns": {0.5, 28}, "keeps": {0.9, 0.5}, "broken": {-0.1, 2}, "another": {0.1, 100}} {
				r.hear(at, Remaining, Where{SLO: slo}, said[0])
				r.hear(at, Burn, Where{SLO: slo, Window: "1h"}, said[1])
			}
		}
	})
	require.Len(t, r.events, 1)
	got := r.events[0].Promises
	require.Len(t, got, 2)
	assert.Equal(t, Promise{ID: "burns", Within: 12 * 3600, By: ByBurn}, got[0])
	assert.Equal(t, ByExhaustion, got[1].By)
	assert.InEpsilon(t, (30-0.4*3.3)/0.4*3600, got[1].Within, 0.02)
	assert.InDelta(t, 0.25, r.events[0].CacheFree, 1e-9)
	assert.Contains(t, r.events[0].Text, "; burns breaks in 12 hours at the present burn rate, and 1 more")
}
