// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// calm is level for some hours, and leaks from then on.
func calm(bytes, perHour, hours float64) process {
	return func(*rand.Rand) func(float64) moment {
		return func(h float64) moment { return moment{bytes + perHour*max(h-hours, 0), untold, 0} }
	}
}

// Scenario: a process is calm for an hour to half a day, and leaks 1 GiB an hour from then on. Guarantees: as soon as that is told, and for as long as it goes on, the rate
// is that of the leak and not that of the span in which it began: within a tenth, and within its bounds as often as those say but for a few, whose place of the bend is uncertain, too.
func TestTheRateOfALeakThatBeganLateIsItsOwn(t *testing.T) {
	within, told := 0, 0
	for _, hours := range []float64{1, 5, 12} {
		for _, noise := range []float64{20 * mib, small, 3 * small} {
			for _, later := range []float64{2.5, 3.2, 4.2, 6} {
				for seed := range uint64(4) {
					last := watch(DefaultOptions(), noisy(noise, 0.5, calm(20*gib, gib, hours)), seed, hours+later, 80*gib).last
					if last.State < Leaking {
						continue
					}
					const truth = gib / 3600.0
					if told++; last.Rate.Low <= truth && truth <= last.Rate.High {
						within++
					}
					assert.InEpsilon(t, truth, last.Rate.Value, 0.1, "calm for %v h, noise %v, after %v h, seed %d", hours, noise, later, seed)
				}
			}
		}
	}
	assert.Greater(t, told, 100)
	assert.Greater(t, float64(within), 0.85*float64(told), "of %d", told)
	t.Logf("%d of %d", within, told)
}
