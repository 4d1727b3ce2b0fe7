// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/budget"
)

// whole is a slot of whole numbers, gap minutes before the last, with 30 seconds observed.
func whole(gap, total, bad uint64) []byte {
	var b []byte
	for _, v := range []uint64{gap << 1, 30, total << 1, bad} {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func fractions(total, good float64) []byte {
	b := []byte{0, 30, 1}
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(total))
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(good))
}

func TestADamagedStateSaysWhatIsWrong(t *testing.T) {
	l := budget.NewLayout(burn...)
	f := func(newest uint32, slots []byte, want string) {
		t.Helper()
		var r budget.Ring
		r.Add(l, start, traffic(0))
		before := r.State()
		err := r.Restore(l, budget.RingState{Newest: newest, Slots: slots})
		require.EqualError(t, err, "state of a ring: "+want)
		assert.Equal(t, before, r.State(), "the ring is as it was")
	}
	join := func(list ...[]byte) (all []byte) {
		for _, b := range list {
			all = append(all, b...)
		}
		return all
	}
	f(math.MaxUint32, nil, "minute 4294967295 is later than nanoseconds can say, which is 153722867")
	f(100, whole(0, 5, 1)[:2], "slot 0: ends within a slot")
	f(100, join(whole(0, 5, 1), whole(1, 5, 1)[:3]), "slot 1: ends within a slot")
	f(100, fractions(5, 1)[:15], "slot 0: ends within a slot")
	f(100, whole(1, 5, 1), "slot 0 begins 1 minutes earlier than the one before it, which begins at 100: want the newest first")
	f(100, join(whole(0, 5, 1), whole(0, 5, 1)), "slot 1 begins 0 minutes earlier than the one before it, which begins at 100: want the newest first")
	f(100, join(whole(0, 5, 1), whole(101, 5, 1)), "slot 1 begins 101 minutes earlier than the one before it, which begins at 100: want the newest first")
	f(100, whole(0, 5, 6), "slot 0: -1 of 5 are good: want a share of a count")
	f(100, fractions(5, 6), "slot 0: 6 of 5 are good: want a share of a count")
	f(100, fractions(5, math.NaN()), "slot 0: NaN of 5 are good: want a share of a count")
	f(100, fractions(math.Inf(1), 1), "slot 0: 1 of +Inf are good: want a share of a count")
	f(100, fractions(-1, -2), "slot 0: -2 of -1 are good: want a share of a count")
	f(100, []byte{0, 0, 0, 0}, "slot 0 is empty")
	f(100, []byte{0, 30, 3, 0}, "slot 0: 3 is not twice a total")
	f(100, append([]byte{0}, append(binary.AppendUvarint(nil, 1<<32), 4, 0)...), "slot 0: 4294967296 seconds observed: want at most 4294967295")
}

// Guarantees: bytes from a damaged store are refused, or are a ring whose sums are numbers and whose state is its own.
func FuzzRestore(f *testing.F) {
	l := budget.NewLayout(burn...)
	for _, r := range []*budget.Ring{
		{},
		full(l, traffic),
		ring(l, added{start, budget.Counts{Good: 0.5, Total: 1.5}}, added{start - minute, budget.Counts{Good: 1 << 60, Total: 1 << 61}}),
	} {
		s := r.State()
		f.Add(s.Newest, s.Slots)
		f.Add(s.Newest, s.Slots[:len(s.Slots)/2])
	}
	f.Add(uint32(100), whole(0, 5, 1))
	f.Add(uint32(100), fractions(math.NaN(), 1))
	f.Fuzz(func(t *testing.T, newest uint32, slots []byte) {
		var r, again budget.Ring
		if err := r.Restore(l, budget.RingState{Newest: newest, Slots: slots}); err != nil {
			return
		}
		sum := r.Sum(l, 0, math.MaxInt64)
		assert.True(t, sum.Good >= 0 && sum.Good <= sum.Total && sum.Total < math.Inf(1) && sum.Observed >= 0, sum)
		assert.LessOrEqual(t, r.Len(), 120)
		require.NoError(t, again.Restore(l, r.State()))
		assert.Equal(t, r.State(), again.State())
		r.Add(l, start, traffic(0))
	})
}
