// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// batchSize is how many processes, or live allocations, are fetched at once. Larger than any bucket of a hash map is.
const batchSize = 256

// reader has the memory that reading needs.
type reader struct {
	ids     []uint32
	values  []countersProcess
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
	if r.ids == nil {
		r.ids, r.values = make([]uint32, batchSize), make([]countersProcess, batchSize)
	}
	r.ended = r.ended[:0]
	err := batches(p.kernel.Processes, r.ids, r.values, func(id uint32, v *countersProcess) {
		if v.Pid == 0 {
			return // just being made
		}
		r.process = Process{
			PID: int(v.Pid), StartTime: v.Start, ID: uint64(id), Ended: v.Ended != 0,
			Live: v.Live, Allocated: v.Allocated, Freed: v.Freed, Released: v.Released,
			Allocations: v.Allocations, Frees: v.Frees, Failures: v.Failures, FreeFailures: v.FreeFailures, UnknownFrees: v.UnknownFrees,
			Sizes: v.Sizes, Launches: v.Launches, LaunchSum: v.LaunchSum, LaunchDurations: v.LaunchDurations,
		}
		if r.process.Ended {
			r.ended = append(r.ended, id)
			p.gone(id, v)
		}
		fn(&r.process)
	})
	for _, id := range r.ended {
		p.forget(id)
	}
	if err != nil {
		return fmt.Errorf("reading processes: %w", err)
	}
	return nil
}

// batches calls fn with all that is in a hash map.
func batches[K, V any](m *ebpf.Map, keys []K, values []V, fn func(K, *V)) error {
	var cursor ebpf.MapBatchCursor
	for {
		n, err := m.BatchLookup(&cursor, keys, values, nil)
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return err
		}
		for i := range n {
			fn(keys[i], &values[i])
		}
		if err != nil {
			return nil // the end
		}
	}
}

// forget removes a process that has ended.
func (p *Probe) forget(id uint32) {
	_ = p.kernel.Processes.Delete(id)
	p.telling.Lock()
	delete(p.told, id)
	p.telling.Unlock()
}

// sweep removes what processes held that have ended since the last one.
func (p *Probe) sweep() error {
	var abandoned uint64
	if err := p.kernel.Abandoned.Get(&abandoned); err != nil {
		return err
	}
	if abandoned == p.swept {
		return nil
	}
	// Whose allocations they are is asked after them, so that a process that comes in between is not taken for one that is gone.
	keys, values := make([]countersKey, batchSize), make([]uint64, batchSize)
	var all []countersKey
	if err := batches(p.kernel.Live, keys, values, func(k countersKey, _ *uint64) { all = append(all, k) }); err != nil {
		return fmt.Errorf("reading live allocations: %w", err)
	}
	current := map[uint32]bool{}
	pids, ids := make([]uint32, batchSize), make([]uint32, batchSize)
	if err := batches(p.kernel.Identities, pids, ids, func(_ uint32, id *uint32) { current[*id] = true }); err != nil {
		return fmt.Errorf("reading processes: %w", err)
	}
	for _, k := range all {
		if !current[k.Id] {
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
	var n [6]uint64
	if p.closed || p.kernel.Dropped.Get(&n) != nil {
		return Drops{}
	}
	return Drops{Live: n[0], Processes: n[1], Threads: n[2], Unreadable: n[3], Ring: n[4], UnknownFrees: n[5]}
}
