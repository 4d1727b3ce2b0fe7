// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"
)

// window is in which the kernel says once of a process that it has changed. Who is told looks at the process when the window
// has passed, so the last change is seen, and thousands of changes cost one look.
const window = time.Millisecond

// ringSize is bytes: ten thousand notes.
const ringSize = 1 << 18

// listen tells of changes until the ring is closed.
func (p *Probe) listen(ring *ringbuf.Reader) {
	defer close(p.listened)
	var record ringbuf.Record
	for {
		if err := ring.ReadInto(&record); err != nil {
			if errors.Is(err, ringbuf.ErrClosed) {
				return
			}
			if p.opts.Log != nil {
				p.opts.Log("reading changes: %v", err)
			}
			time.Sleep(window)
			continue
		}
		if len(record.RawSample) < 16 {
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
	v := &p.changed
	if err := p.kernel.Processes.Lookup(&id, v); err != nil || v.Pid == 0 {
		return // it has ended, and Read has said so
	}
	p.telling.Lock()
	defer p.telling.Unlock()
	if _, told := p.told[id]; told {
		return
	}
	if p.opts.Changed != nil {
		p.opts.Changed(Change{
			PID: int(v.Pid), StartTime: v.Start, Live: v.Live,
			At: time.Now().UnixNano() - monotonic() + int64(v.Changed),
		})
	}
	if v.Ended != 0 {
		p.goneLocked(id, v)
	}
}

// gone tells that a process has ended, unless that was told.
func (p *Probe) gone(id uint32, v *countersProcess) {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.goneLocked(id, v)
}

func (p *Probe) goneLocked(id uint32, v *countersProcess) {
	if _, told := p.told[id]; told {
		return
	}
	p.told[id] = struct{}{}
	if p.opts.Gone != nil {
		p.opts.Gone(int(v.Pid), v.Start)
	}
}

// monotonic is the clock that bpf_ktime_get_ns reads.
func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}
