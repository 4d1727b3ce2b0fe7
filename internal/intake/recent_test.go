// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// Guarantees: at least the last half of MaxRecentSpans is remembered, and never more than it; after a restart, too.
func TestRecentSpansAreBounded(t *testing.T) {
	r := newRecent(100)
	seen := func(r *recent, n int) bool {
		var id [8]byte
		binary.BigEndian.PutUint64(id[:], uint64(n+1))
		return r.again([16]byte{1}, id)
	}
	for n := range 1000 {
		require.False(t, seen(&r, n))
		require.LessOrEqual(t, r.len(), 100)
		for back := range min(n, 50) {
			require.True(t, seen(&r, n-back), "%d before %d", back, n)
		}
	}
	later := newRecent(100)
	later.restore(r.state())
	for back := range 50 {
		require.True(t, seen(&later, 999-back))
	}
	for n := 1000; n < 1200; n++ {
		require.False(t, seen(&later, n))
		require.LessOrEqual(t, later.len(), 150)
	}
	require.LessOrEqual(t, later.len(), 100)
}
