// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAPointThatIsSentAgainIsFound(t *testing.T) {
	var o Once
	f := func(start, at, closed int64, want bool) {
		t.Helper()
		assert.Equal(t, want, o.Seen(start, at, closed))
	}
	f(0, 10, 0, false)
	f(10, 20, 0, false)
	f(0, 10, 0, true)
	f(10, 20, 0, true)
	f(11, 20, 0, false) // another start, another point
	f(10, 20, 20, true) // not yet closed
	f(10, 20, 21, false)
	f(10, 20, 21, false) // late: nobody remembers
	assert.Zero(t, o.Len())
}

func TestOfTooManyPointsTheOldestIsForgotten(t *testing.T) {
	var o Once
	for at := range int64(MaxRemembered + 10) {
		assert.False(t, o.Seen(at, at+1, 0))
	}
	assert.Equal(t, MaxRemembered, o.Len())
	assert.False(t, o.Seen(9, 10, 0), "forgotten, and too old to be remembered now")
	for at := int64(10); at < MaxRemembered+10; at++ {
		assert.True(t, o.Seen(at, at+1, 0))
	}
	assert.False(t, o.Seen(30, 32, 0))
	assert.True(t, o.Seen(30, 32, 0))
	assert.False(t, o.Seen(10, 11, 0), "it made room")
	assert.Equal(t, MaxRemembered, o.Len())
}

// Guarantees: as a list of everything would, within its bounds, in any order of points, and restored anywhere.
func TestOnceIsAListOfWhatIsOpen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o Once
		var list []span
		closed, spread := int64(-1000), rapid.Int64Range(1, 200).Draw(t, "spread")
		for range rapid.IntRange(0, 300).Draw(t, "points") {
			closed += rapid.Int64Range(0, 1).Draw(t, "closed")
			p := span{rapid.Int64Range(0, 1).Draw(t, "start"), closed + rapid.Int64Range(-5, spread).Draw(t, "at")}
			if rapid.IntRange(0, 50).Draw(t, "restart") == 0 {
				var restored Once
				require.NoError(t, restored.Restore(through(t, o.State())))
				o = restored
			}
			list = slices.DeleteFunc(list, func(q span) bool { return q.at < closed })
			seen := slices.Contains(list, p)
			require.Equal(t, seen, o.Seen(p.start, p.at, closed))
			if !seen && p.at >= closed {
				list = append(list, p)
				slices.SortFunc(list, span.compare)
				list = list[max(0, len(list)-MaxRemembered):]
			}
			require.Equal(t, len(list), o.Len())
		}
	})
}

func TestASeriesWithoutGapsIsSmallInACheckpoint(t *testing.T) {
	var o Once
	const second = int64(1e9)
	for i := range int64(30) {
		o.Seen(1_700_000_000*second+i*10*second, 1_700_000_010*second+i*10*second, 0)
	}
	data := encode(t, o.State())
	assert.LessOrEqual(t, len(data), 2+18+29*10)
	assert.Len(t, encode(t, new(Once).State()), 1)
}

func TestAStateThatIsNoListOfPointsIsRefused(t *testing.T) {
	f := func(want string, s OnceState) {
		t.Helper()
		var o Once
		o.Seen(1, 2, 0)
		assert.ErrorContains(t, o.Restore(s), want)
		assert.Zero(t, o.Len())
	}
	f("no pairs", OnceState{1})
	f("more than 64", make(OnceState, 130))
	f("order of time", OnceState{1, 2, 3, -1})
	f("order of time", OnceState{1, 2, -1, 0})
	var o Once
	o.Seen(math.MinInt64, math.MaxInt64, 0)
	o.Seen(math.MaxInt64, 0, 0)
	restored := Once{}
	require.NoError(t, restored.Restore(through(t, o.State())))
	assert.Equal(t, o, restored, "differences may wrap")
}

func BenchmarkOnce(b *testing.B) {
	var o Once
	b.ReportAllocs()
	for i := int64(0); b.Loop(); i++ {
		o.Seen(i*10, i*10+10, i*10-300)
	}
}

// Guarantees: what is older than all that is remembered may have been there, and only where there was more than that.
func TestWhatIsForgottenIsKnownToBe(t *testing.T) {
	var o Once
	for i := range int64(MaxRemembered) {
		assert.False(t, o.Forgotten(0))
		assert.False(t, o.Seen(0, 10+i, 0))
	}
	assert.True(t, o.Forgotten(9))
	assert.False(t, o.Forgotten(10))
	assert.False(t, o.Seen(0, 100, 0))
	assert.True(t, o.Forgotten(10))
	assert.False(t, o.Seen(0, 101, 50), "a window has closed")
	assert.False(t, o.Forgotten(10))
}
