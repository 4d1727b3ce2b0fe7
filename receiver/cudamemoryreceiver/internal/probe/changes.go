// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// window is in which the kernel says once of a process that it has changed. Who is told looks at the process when the window
// has passed, so the last change is seen, and thousands of changes cost one look.
const window = time.Millisecond

// ringSize is bytes: ten thousand notes.
const ringSize = 1 << 18

// listener tells of changes and of the end of processes, by one goroutine that holds no lock while it does.
type listener struct {
	ring *ringbuf.Reader
	done chan struct{}
	// process is that of which is told.
	process countersProcess

	mu sync.Mutex
	// claimed are processes of whose end somebody tells, or has told: until the reading after the one that forgets them.
	claimed map[uint32]struct{}
	// missed are those of whose end the kernel could not tell.
	missed []ended
}

// ended is a process that has ended.
type ended struct {
	pid       int
	startTime uint64
}

// listen tells what the ring says until it is closed.
func (p *Probe) listen() {
	l := &p.listener
	defer close(l.done)
	var record ringbuf.Record
	for {
		err := l.ring.ReadInto(&record)
		switch {
		case errors.Is(err, ringbuf.ErrClosed):
			return
		case errors.Is(err, ringbuf.ErrFlushed):
			for _, x := range l.take() {
				p.opts.Gone(x.pid, x.startTime)
			}
			continue
		case err != nil:
			if p.opts.Log != nil {
				p.opts.Log("reading changes: %v", err)
			}
			time.Sleep(window)
			continue
		case len(record.RawSample) < 16:
			continue
		}
		// struct note
		at, id, ended := binary.NativeEndian.Uint64(record.RawSample), binary.NativeEndian.Uint32(record.RawSample[8:]), binary.NativeEndian.Uint32(record.RawSample[12:])
		if ended == 0 {
			if wait := int64(at) + int64(window) - monotonic(); wait > 0 {
				time.Sleep(time.Duration(wait))
			}
		}
		p.tell(id)
	}
}

// tell tells how a process is now.
func (p *Probe) tell(id uint32) {
	v := &p.listener.process
	if err := p.kernel.Processes.Lookup(&id, v); err != nil || v.Pid == 0 {
		return // it has ended, and Read has said so
	}
	if v.Ended != 0 && !p.listener.claim(id) {
		return
	}
	if p.opts.Changed != nil {
		p.opts.Changed(Change{
			PID: int(v.Pid), StartTime: v.Start, Live: v.Held[0] + v.Held[1], Managed: v.Managed,
			At: wall(int64(v.Changed)),
		})
	}
	if v.Ended != 0 && p.opts.Gone != nil {
		p.opts.Gone(int(v.Pid), v.Start)
	}
}

// claim is true once for each process.
func (l *listener) claim(id uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.claimed[id]; ok {
		return false
	}
	l.claimed[id] = struct{}{}
	return true
}

// miss has the end of a process told that Read has seen, unless the kernel has told of it.
func (l *listener) miss(id uint32, x ended) {
	if l.ring == nil || !l.claim(id) {
		return
	}
	l.mu.Lock()
	l.missed = append(l.missed, x)
	l.mu.Unlock()
	_ = l.ring.Flush()
}

func (l *listener) take() []ended {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.missed
	l.missed = nil
	return all
}

func (l *listener) forget(ids []uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		delete(l.claimed, id)
	}
}

// wall is when it was a time of monotonic, in Unix nanoseconds. Whoever is stopped between a look at the one clock and at the other looks
// again.
func wall(at int64) int64 {
	for {
		before, now := monotonic(), time.Now().UnixNano()
		if monotonic()-before < int64(window) {
			return now - before + at
		}
	}
}

// monotonic is the clock that bpf_ktime_get_ns reads.
func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}
