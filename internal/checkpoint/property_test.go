// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Scenario: any sequence of saves. Some stop anywhere: after any number of their writes, in order or in none, with the
// process gone or only an error. Between them the process starts anew, once with a flipped bit in any one value.
// Guarantees: what is loaded is one of the last two generations, as it was when it was saved and never a mixture. Without
// a flipped bit it is never older than the last save that succeeded; with one it may be nothing, which is told.
func TestWhateverTheStorageDoesALoadIsAWholeGeneration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx, m := context.Background(), newMemory()
		all := map[uint64]parts{0: nil} // generations by sequence, whether their save succeeded or not
		last, before := uint64(0), uint64(0)
		s, _ := opened(t, m)
		state := parts{}

		reload := func(oldest uint64, mayBeEmpty bool) {
			s = New(m, "test")
			got, problems, err := s.Load(ctx)
			require.NoError(t, err)
			if got.Sequence == 0 && mayBeEmpty && last > 0 {
				require.NotEmpty(t, problems, "it says that it starts empty")
			}
			if !mayBeEmpty || got.Sequence > 0 {
				require.GreaterOrEqual(t, got.Sequence, oldest)
			}
			require.Equal(t, all[got.Sequence], got.Parts)
			last, before, state = got.Sequence, 0, maps.Clone(got.Parts)
			if state == nil {
				state = parts{}
			}
		}
		names := rapid.SampledFrom([]string{"p", "q", "r", "s"})
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			changed := rapid.MapOfN(names, rapid.SliceOfN(rapid.Byte(), 0, 3), 0, 3).Draw(t, "changed")
			removed := rapid.SliceOfN(names, 0, 2).Draw(t, "removed")
			next := maps.Clone(state)
			for _, name := range removed {
				delete(next, name)
			}
			maps.Copy(next, changed)

			kind := rapid.SampledFrom([]string{"save", "save", "crash in order", "crash", "error", "bit", "restart"}).Draw(t, "kind")
			switch kind {
			case "crash in order":
				left := rapid.IntRange(0, 8).Draw(t, "writes")
				m.does = func() bool { left--; return left >= 0 }
			case "crash", "error":
				m.does = func() bool { return rapid.Bool().Draw(t, "does") }
			}
			if kind == "error" {
				m.fails = errors.New("disk full")
			}
			switch kind {
			case "bit":
				if len(m.values) > 0 {
					flip(t, m)
				}
				reload(before, true)
				continue
			case "restart":
				reload(last, false)
				continue
			}
			err := s.Save(ctx, changed, removed)
			m.does, m.fails = nil, nil
			written := len(changed)+len(removed) > 0
			if written {
				all[s.sequence] = next
			}
			switch {
			case kind == "save":
				require.NoError(t, err)
				if written {
					before, last, state = last, s.sequence, next
				}
			case kind == "error" && written:
				require.Error(t, err) // and it goes on from the last generation
			default:
				reload(last, false)
			}
		}
	})
}

// flip turns one bit of one value around, and leaves an empty one with a byte. It never heals what it damaged before.
func flip(t *rapid.T, m *memory) {
	key := rapid.SampledFrom(slices.Sorted(maps.Keys(m.values))).Draw(t, "key")
	value := m.values[key]
	if len(value) == 0 {
		m.values[key] = []byte{0}
		return
	}
	bit := rapid.IntRange(0, 8*len(value)-1).Draw(t, "bit")
	value[bit/8] ^= 1 << (bit % 8)
	if bytes.Equal(value, m.written[key]) {
		value[bit/8] ^= 1 << ((bit + 1) % 8)
	}
}
