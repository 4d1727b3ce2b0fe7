// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// recent remembers which spans were heard lately, so that one that is sent again is found. It remembers at least the last
// half of its limit.
type recent struct {
	limit    int
	now, old map[uint64]struct{}
	touched  bool // since the last checkpoint
}

func newRecent(limit int) recent {
	return recent{limit: limit, now: map[uint64]struct{}{}, old: map[uint64]struct{}{}}
}

// again reports whether a span was heard before, and remembers it. Items without a span are never known.
func (r *recent) again(trace pcommon.TraceID, span pcommon.SpanID) bool {
	if r.limit == 0 || span.IsEmpty() {
		return false
	}
	var id [24]byte
	copy(id[:], trace[:])
	copy(id[16:], span[:])
	key := xxhash.Sum64(id[:])
	if _, known := r.now[key]; known {
		return true
	}
	if _, known := r.old[key]; known {
		return true
	}
	if 2*len(r.now) >= r.limit {
		r.now, r.old = r.old, r.now
		clear(r.now)
	}
	r.now[key] = struct{}{}
	r.touched = true
	return false
}

func (r *recent) len() int { return len(r.now) + len(r.old) }

// state is what is remembered, for a checkpoint.
func (r *recent) state() []byte {
	b := make([]byte, 0, 8*(len(r.now)+len(r.old)))
	for _, m := range []map[uint64]struct{}{r.old, r.now} {
		for key := range m {
			b = binary.LittleEndian.AppendUint64(b, key)
		}
	}
	return b
}

func (r *recent) restore(b []byte) {
	for ; len(b) >= 8 && len(r.old) < r.limit; b = b[8:] {
		r.old[binary.LittleEndian.Uint64(b)] = struct{}{}
	}
}
