// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/probe"
)

const (
	// shortageLasts is how long the status tells of an allocation for which there was no room.
	shortageLasts = time.Minute
	// shortageEvery is how often, at most, a line says the same of it.
	shortageEvery = time.Hour
)

// shortage is what is known of allocations for which there was no room.
type shortage struct {
	dropped uint64    // in this session
	most    uint64    // of them that were live at one time, at least
	at      time.Time // when the last of them was noticed; zero: there was none
	said    uint64    // the limit that a line gave as advice
	saidAt  time.Time
}

// heard takes how many there have been in this session. Those that are freed are unknown frees, though not all of these are theirs.
func (s *shortage) heard(drops *probe.Drops, now time.Time) {
	if drops.Live > s.dropped {
		s.dropped, s.at = drops.Live, now
	}
	s.most = max(s.most, drops.Live-min(drops.Live, drops.UnknownFrees))
}

// lasts says whether there were some a short time ago.
func (s *shortage) lasts(now time.Time) bool { return !s.at.IsZero() && now.Sub(s.at) < shortageLasts }

// next is the limit to try: doubled, until all that are known of have room in the share of one process.
func (s *shortage) next(limit uint64) uint64 {
	need := (limit + s.most) * 8 / 7
	for limit *= 2; limit < need && limit < mostEntries; {
		limit *= 2
	}
	return min(limit, mostEntries)
}

// short says that there is no room for all allocations, once for each limit that is the next to try, and now and then.
func (e *engine) short() {
	limit := uint64(e.cfg.MaxEntries)
	next := e.shortage.next(limit)
	advice := fmt.Sprintf("try %d, of which each takes %d bytes of the kernel's memory", next, probe.EntryBytes)
	if next <= limit {
		advice = "and more is not possible"
	}
	err := fmt.Errorf("max_entries: %d is too few: what processes allocate beyond it is not in their cuda.memory.live; %s", limit, advice)
	e.health.Failed(err)
	now := e.now()
	if next == e.shortage.said && now.Sub(e.shortage.saidAt) < shortageEvery {
		return
	}
	e.shortage.said, e.shortage.saidAt = next, now
	e.log.Warn("allocations are not counted, for want of room", zap.Uint64("allocations", e.shortage.dropped), zap.Error(err))
}
