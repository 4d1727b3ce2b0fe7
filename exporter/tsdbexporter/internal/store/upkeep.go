// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/prometheus/prometheus/tsdb"
)

const (
	upkeepEvery = time.Minute
	// manyBytes of chunks are written before their time: they are in memory, and have to find room on the disk.
	manyBytes = 10 << 20
	// headSpan is what the head may span before its oldest two hours become a block, as in the TSDB.
	headSpan = 3 * time.Hour
)

// upkeepTick is how often it is looked what there is to do.
var upkeepTick = time.Second

// upkeep does what the TSDB does by itself every minute: it writes the chunks of the head that are full, makes blocks, and deletes what
// is too old. The TSDB does not look before it writes chunks, and panics when it cannot, in a goroutine where nobody can recover; so its
// own is idle (see tsdbOptions), and this one looks.
type upkeep struct {
	stop context.CancelFunc // ends compactions, too
	done sync.WaitGroup

	turned time.Time // when all of it was last done
	failed time.Time // when blocks last could not be made
	warned time.Time // when it was last said that there is no room
}

func (s *Store) startUpkeep(ctx context.Context) {
	s.DisableCompactions()
	s.written.Store(s.made())
	tick := time.NewTicker(upkeepTick)
	s.upkeep.done.Go(func() {
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				s.turn(ctx, now)
			case <-ctx.Done():
				return
			}
		}
	})
}

func (s *Store) stopUpkeep() {
	s.upkeep.stop()
	s.upkeep.done.Wait()
}

// turn does what is due.
func (s *Store) turn(ctx context.Context, now time.Time) {
	u := &s.upkeep
	due := now.Sub(u.turned) >= upkeepEvery
	if due {
		u.turned = now
		if err := s.reload(); err != nil {
			s.log.Error("blocks cannot be read again", "err", err)
		}
	}
	made, pending := s.made(), s.pending()
	if pending > 0 && (due || pending >= manyBytes || s.roomFor(s.needed()) != nil) && s.mayWrite(now, pending) {
		s.ForceHeadMMap()
		s.written.Store(made)
	}
	s.mu.Lock()
	s.keepPending()
	s.mu.Unlock()
	if (due || s.spans() > headSpan && now.Sub(u.failed) >= upkeepEvery) && s.mayWrite(now, s.pending()+s.late()) {
		if err := s.Compact(ctx); err != nil && ctx.Err() == nil {
			u.failed = now
			s.log.Error("compaction failed", "err", err)
		}
	}
}

// mayWrite says whether there is room, and tells people when there is none.
func (s *Store) mayWrite(now time.Time, bytes int64) bool {
	err := s.roomFor(bytes)
	if err != nil && now.Sub(s.upkeep.warned) >= upkeepEvery {
		s.upkeep.warned = now
		s.log.Warn("chunks and blocks are not written until there is room on the disk; the write-ahead log has what is in them", "err", err)
	}
	return err == nil
}

// late is how many bytes of late samples have to be written before they become a block.
func (s *Store) late() int64 {
	if s.Head().MinOOOTime() == math.MaxInt64 {
		return 0
	}
	return int64(s.Head().NumSeries()) * lateChunkBytes
}

// spans is the time from the oldest sample of the head to the newest.
func (s *Store) spans() time.Duration {
	oldest, newest := s.Head().MinTime(), s.Head().MaxTime()
	if oldest > newest { // it is empty
		return 0
	}
	return time.Duration(newest-oldest) * time.Millisecond
}

// reload lets the TSDB look at its blocks, and delete those that are beyond the retention. It does so whenever it has made a block, so it
// is given nothing to make one of.
func (s *Store) reload() error {
	if s.Head().MinTime() == math.MaxInt64 { // with no sample and no block there is nothing to delete
		return nil
	}
	return s.CompactHead(tsdb.NewRangeHead(s.Head(), math.MinInt64, beforeAll))
}

// beforeAll is such a last millisecond of a range that its end, which is the next one, is before all time: it overflows, as the TSDB
// does nothing else at an end that is not later than what it has seen.
const beforeAll = math.MaxInt64
