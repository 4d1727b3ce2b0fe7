// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"math"

	"github.com/cilium/ebpf"
)

// batchSize is how many processes, or live allocations, are fetched at once. Larger than any bucket of a hash map is.
const batchSize = 256

// reader has the memory that reading needs.
type reader struct {
	batch   *batch[uint32, countersProcess]
	process Process
	ended   []uint32
}

// Read calls fn with each process, in no order. The Process is fn's until fn returns. Processes that have ended are forgotten
// after it: who does not read, fills the map with them.
func (p *Probe) Read(fn func(*Process)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	r := &p.reader
	if r.batch == nil {
		r.batch = newBatch[uint32, countersProcess]()
	}
	p.listener.forget(r.ended) // nobody looks at those of the last time any more
	r.ended = r.ended[:0]
	err := r.batch.each(p.kernel.Processes, func(id uint32, v *countersProcess) {
		if v.Pid == 0 {
			return // just being made
		}
		r.process = Process{
			PID: int(v.Pid), StartTime: v.Start, ID: uint64(id), Ended: v.Ended != 0,
			Live: v.Held[0] + v.Held[1], Managed: v.Managed, Allocated: v.Allocated, Freed: v.Freed, Released: v.Released,
			Allocations: v.Allocations, Frees: v.Frees, Failures: v.Failures, FreeFailures: v.FreeFailures, UnknownFrees: v.UnknownFrees, Missed: v.Missed, Unreturned: v.Unreturned,
			Sizes: v.Sizes, Launches: v.Launches, LaunchSum: v.LaunchSum, LaunchDurations: v.LaunchDurations,
		}
		if r.process.Ended {
			r.ended = append(r.ended, id)
			if p.opts.Gone != nil {
				p.listener.miss(id, ended{r.process.PID, r.process.StartTime})
			}
		}
		fn(&r.process)
	})
	for _, id := range r.ended {
		_ = p.kernel.Processes.Delete(id)
	}
	if err != nil {
		return fmt.Errorf("reading processes: %w", err)
	}
	return nil
}

// batch is what a system call fills.
type batch[K, V any] struct {
	keys   []K
	values []V
	// The same as interfaces, so that each call need not make one.
	anyKeys, anyValues any
}

func newBatch[K, V any]() *batch[K, V] {
	b := &batch[K, V]{keys: make([]K, batchSize), values: make([]V, batchSize)}
	b.anyKeys, b.anyValues = b.keys, b.values
	return b
}

// each calls fn with all that is in a hash map.
func (b *batch[K, V]) each(m *ebpf.Map, fn func(K, *V)) error {
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.BatchLookup(&cursor, b.anyKeys, b.anyValues, nil)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
		for i := range n {
			fn(b.keys[i], &b.values[i])
		}
		if err != nil {
			return nil // the end
		}
	}
}

// sweep removes what processes held that have ended since the last one, and what went with a context.
func (p *Probe) sweep() error {
	var abandoned uint64
	if err := p.kernel.Abandoned.Get(&abandoned); err != nil {
		return err
	}
	if abandoned == p.swept {
		return nil
	}
	// Whose allocations they are is asked after them, so that a process that comes in between is not taken for one that is gone.
	var all []countersKey
	if err := newBatch[countersKey, countersAllocation]().each(p.kernel.Live, func(k countersKey, _ *countersAllocation) { all = append(all, k) }); err != nil {
		return fmt.Errorf("reading live allocations: %w", err)
	}
	current, generation := map[uint32]bool{}, map[uint32]uint32{}
	if err := newBatch[uint32, uint32]().each(p.kernel.Identities, func(_ uint32, id *uint32) { current[*id] = true }); err != nil {
		return fmt.Errorf("reading processes: %w", err)
	}
	if err := newBatch[uint32, countersProcess]().each(p.kernel.Processes, func(id uint32, v *countersProcess) { generation[id] = v.Generation }); err != nil {
		return fmt.Errorf("reading processes: %w", err)
	}
	for _, k := range all {
		address := k.Space&3 == 0
		if !current[k.Id] || address && k.Space>>2 != generation[k.Id]&(math.MaxUint32>>2) {
			_ = p.kernel.Live.Delete(k)
		}
	}
	p.swept = abandoned
	return nil
}

// Drops are the losses since Start. After Close, there are none.
func (p *Probe) Drops() Drops {
	p.mu.Lock()
	defer p.mu.Unlock()
	var n [7]uint64
	if p.closed || p.kernel.Dropped.Get(&n) != nil {
		return Drops{}
	}
	return Drops{Live: n[0], Processes: n[1], Threads: n[2], Unreadable: n[3], Ring: n[4], UnknownFrees: n[5], Unreturned: n[6]}
}
