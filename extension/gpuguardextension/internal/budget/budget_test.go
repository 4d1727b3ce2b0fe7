// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

const minute = int64(time.Minute)

func TestABudgetIsSpentAndComesBack(t *testing.T) {
	b := New(Options{MaxPerHour: 2, Cooldown: time.Minute})
	now := 1000 * minute
	assert.Zero(t, b.Cool(now))
	assert.True(t, b.Spend(now))
	assert.False(t, b.Spend(now), "it cools down")
	b.Ended(now + minute)
	assert.Equal(t, now+2*minute, b.Cool(now+minute), "from the end of the action")
	assert.False(t, b.Spend(now+2*minute-1))
	assert.True(t, b.Spend(now+2*minute))
	assert.Zero(t, b.Left(now+30*minute))
	assert.False(t, b.Spend(now+30*minute))
	assert.Equal(t, now+60*minute, b.Next(now+30*minute))
	assert.False(t, b.Spend(now+60*minute-1))
	assert.True(t, b.Spend(now+60*minute))
}

func TestARestartGivesNoNewBudget(t *testing.T) {
	b := New(Options{MaxPerHour: 1, Cooldown: time.Minute})
	now := 1000 * minute
	assert.True(t, b.Spend(now))
	again := New(b.Options)
	again.Restore(b.State())
	assert.False(t, again.Spend(now+30*minute))
	assert.True(t, again.Spend(now+60*minute))

	again = New(b.Options)
	again.Exhaust(now)
	assert.False(t, again.Spend(now+59*minute))
	assert.True(t, again.Spend(now+60*minute))
}

func TestNoBudgetIsNone(t *testing.T) {
	b := New(Options{Cooldown: time.Minute})
	assert.False(t, b.Spend(minute))
	assert.Zero(t, b.Left(minute))
}

// Scenario: the clock was years ahead when something was spent, and was set right.
// Guarantees: that counts for an hour, and not for years.
func TestAClockThatWasAheadBlocksForAnHourAtMost(t *testing.T) {
	b := New(Options{MaxPerHour: 1, Cooldown: time.Minute})
	assert.True(t, b.Spend(1e6*minute))
	assert.False(t, b.Spend(1000*minute))
	assert.True(t, b.Spend(1060*minute))
}

// Guarantees: within any hour there are never more than so many, and never two within the cool-down.
func TestABudgetIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := Options{MaxPerHour: rapid.IntRange(0, 4).Draw(rt, "max"), Cooldown: time.Duration(rapid.IntRange(0, 20).Draw(rt, "cool")) * time.Minute}
		b := New(o)
		now, ended := 1000*minute, int64(0)
		var spent []int64
		for range 100 {
			now += rapid.Int64Range(0, 10*minute).Draw(rt, "wait")
			if b.Spend(now) {
				assert.GreaterOrEqual(rt, now, ended+int64(o.Cooldown)*min(int64(len(spent)), 1))
				spent = append(spent, now)
				now += rapid.Int64Range(0, minute).Draw(rt, "takes")
				b.Ended(now)
				ended = now
			}
			if rapid.IntRange(0, 9).Draw(rt, "restart") == 0 {
				again := New(o)
				again.Restore(b.State())
				b = again
			}
		}
		for i, at := range spent {
			if j := i + o.MaxPerHour; j < len(spent) {
				assert.GreaterOrEqual(rt, spent[j]-at, int64(Span))
			}
		}
	})
}
