// SPDX-License-Identifier: Apache-2.0

// Package watch knows how full the memory of devices is, who holds it, and since when it is too full.
//
// Two kinds of sources tell it. A reading of a device is a sample: between two nobody knows. Live bytes of a process are told
// whenever they change, so that silence means that they are the same. What is in use of a device is therefore
//
//	the last reading + what live bytes have changed since
//
// and, where no reading is fresh, the sum of the live bytes. It is above the threshold for as long as
//
//   - readings have said so, from the first to the last of them in a row, or, without one that is fresh,
//   - the sum of live bytes has been, until now.
//
// So a spike in a single reading is no reason to end anybody, and without readings live bytes need no event to become one. Live bytes
// may be more than what is in use, as managed memory, which may be more than a device has, or that of a context that was destroyed.
// So where a reading says far less than live bytes of before it, they are no reason, until one says otherwise.
//
// The clock is that of the machine, which somebody may set. Where it was set back, all begins anew but live bytes, which are as they were
// told last, and verdicts.
package watch

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

// Options are the settings of a State.
type Options struct {
	// Threshold is a share of a device's memory.
	Threshold float64
	// For is how long it must have been exceeded.
	For time.Duration
	// StaleAfter is how old a reading may be.
	StaleAfter time.Duration
	// GrowthWindow is how far back growth is measured.
	GrowthWindow time.Duration
	// DeviceMemory is the total, in bytes, of a device that does not tell it; 0: not known.
	DeviceMemory uint64
	// OneDevice says that the machine is known to have one device: what is told of none is on that.
	OneDevice bool
	// OnLeak says that a leak is a reason to act.
	OnLeak bool
	// LeakWithin is how soon nothing may be left of the device, by its verdict, for a leak to be a reason; 0: any is.
	LeakWithin time.Duration
	// MaxDevices and MaxProcesses bound what is remembered.
	MaxDevices, MaxProcesses int
	// MinShare is the least share of a device's memory for which a process is ended.
	MinShare float64
	// Mine says whether a name is one of this machine's.
	Mine func(host string) bool
	// Started is the time, in Unix nanoseconds, of a start in clock ticks since boot.
	Started func(ticks uint64) int64
}

// State is what is known. It is not safe for concurrent use. Times are Unix nanoseconds.
type State struct {
	opts      Options
	devices   map[string]*device
	processes map[gpuwatch.Process]*process
	leaks     map[string]*verdict
	nowhere   *device // that of live bytes of which nobody knows where they are: a process can leak them all the same
	beyond    Beyond
	now       int64 // the latest time that was told
	crowded   bool  // there are devices that there was no room for, so that no other one is the only one
	look      bool  // there may be something to decide
}

// Beyond counts what there was no room for, and verdicts that were not for this machine or name nobody on it.
type Beyond struct {
	Devices, Processes, Leaks uint64
	Elsewhere, Nobody         uint64
}

type device struct {
	id    string
	total uint64 // as it tells; 0: not known
	read  reading
	// live is the sum of the live bytes that are on it, grown what of that has changed since the reading, and released what of the
	// reading was held by processes that have ended since.
	live            uint64
	grown, released int64

	byLive, byReading spell
	// disagrees says that the last reading was far below the live bytes of then, and byDoubt since when, but for that, the memory would
	// be too full.
	disagrees bool
	byDoubt   spell
	dueAt     int64 // since when there is something to decide; 0: there is nothing
	control   Control
}

// reading is the last one.
type reading struct {
	used     uint64
	at       int64 // 0: none
	believed int64 // one before this is not believed: somebody has been ended since
	known    int64 // when it was told
	held     map[gpuwatch.Process]uint64
	heldAt   int64
	rest     uint64 // what was in use and held by nobody who is named
}

// spell is a time in which the memory is too full.
type spell struct {
	since int64 // 0: it is not
	known int64 // when that was known
}

type process struct {
	id      gpuwatch.Process
	started int64
	live    live
	growth  growth
}

// live is what a process has allocated, on one device or on some that are not known.
type live struct {
	known bool
	told  string // the device as it was told; empty: not known
	on    *device
	bytes uint64
	base  uint64 // at the last reading of the device
	then  uint64 // at the last of who holds memory of it
	at    int64
}

type verdict struct {
	gpuwatch.Leak
	heard   int64
	dueAt   int64
	control Control
}

// New returns a State that knows nothing.
func New(o Options) *State {
	return &State{opts: o, devices: map[string]*device{}, processes: map[gpuwatch.Process]*process{}, leaks: map[string]*verdict{}, nowhere: &device{}}
}

// Sizes are how many devices, processes and leaks are remembered.
func (s *State) Sizes() (devices, processes, leaks int) {
	return len(s.devices), len(s.processes), len(s.leaks)
}

// Unplaced are how many processes hold memory of which nobody knows on what device it is.
func (s *State) Unplaced() (n int) {
	for _, p := range s.processes {
		if p.live.known && p.live.on == nil && p.live.bytes > 0 {
			n++
		}
	}
	return n
}

// Read says whether there is a reading of a device.
func (s *State) Read() bool {
	for _, d := range s.devices {
		if d.read.at != 0 {
			return true
		}
	}
	return false
}

// Beyond counts what there was no room for.
func (s *State) Beyond() Beyond { return s.beyond }

// Look says, once, whether there may be something to decide that there was not before.
func (s *State) Look() bool {
	look := s.look
	s.look = false
	return look
}

// Device takes a reading. Processes that are nil were not read.
func (s *State) Device(r gpuwatch.Device, now int64) {
	s.turn(now)
	r.At = min(r.At, now)
	d := s.device(r.ID)
	if d == nil {
		s.crowd(r.ID, r.At, now)
		return
	}
	if r.At < d.read.at {
		return
	}
	if r.Total != 0 {
		d.total = r.Total
	}
	if r.At-d.read.at > int64(s.opts.StaleAfter) {
		d.byReading = spell{} // nobody knows what was between
	}
	d.read.used, d.read.at, d.read.known = r.Used, r.At, now
	if r.Processes != nil {
		s.hold(d, &r)
	}
	d.released = 0
	s.place()
	before := uint64(0)
	for _, p := range s.processes {
		if l := &p.live; l.on == d {
			l.base = l.bytes
			if r.Processes != nil {
				l.then = l.bytes
			}
			if l.at <= r.At {
				before += l.bytes
			}
		}
	}
	d.disagrees = before > r.Used+s.limit(d)/tolerance
	s.placeAndWeigh(r.At, now)
}

// tolerance is the part of a device by which live bytes may be more than a reading without being in doubt.
const tolerance = 20

// hold takes who holds memory on a device.
func (s *State) hold(d *device, r *gpuwatch.Device) {
	was := d.read.held
	d.read.held, d.read.heldAt, d.read.rest = make(map[gpuwatch.Process]uint64, len(r.Processes)), r.At, r.Used
	for _, h := range r.Processes {
		if h.PID <= 0 {
			continue
		}
		p := s.process(h.Process)
		if p == nil {
			continue
		}
		d.read.held[h.Process] = h.Bytes
		d.read.rest -= min(d.read.rest, h.Bytes)
		s.grow(p, r.At)
	}
	for id := range was {
		if _, still := d.read.held[id]; !still {
			s.drop(id)
		}
	}
}

// drop forgets a process of which nothing is left.
func (s *State) drop(id gpuwatch.Process) {
	p := s.processes[id]
	if p == nil || p.live.known {
		return
	}
	for _, d := range s.devices {
		if _, holds := d.read.held[id]; holds {
			return
		}
	}
	delete(s.processes, id)
}

// Live takes the live bytes of a process, in place of what was told of it before.
func (s *State) Live(t gpuwatch.Live, now int64) {
	s.turn(now)
	t.At = min(t.At, now)
	if t.PID <= 0 {
		return
	}
	p := s.process(t.Process)
	if p == nil {
		return
	}
	l := &p.live
	if t.At < l.at {
		return
	}
	before, moved := l.bytes, !l.known || l.told != t.Device
	l.known, l.told, l.bytes, l.at = true, t.Device, t.Bytes, t.At
	if moved {
		if s.device(t.Device) == nil && t.Device != anonymous {
			s.crowd(t.Device, t.At, now)
		}
		s.placeAndWeigh(t.At, now)
	} else if l.on != nil {
		l.on.live = l.on.live - before + t.Bytes
		l.on.grown += int64(t.Bytes) - int64(before)
	}
	s.grow(p, t.At)
	if d := l.on; d != nil {
		if t.At <= d.read.at { // the reading has it
			d.grown -= int64(l.bytes) - int64(l.base)
			l.base = l.bytes
		}
		if t.At <= d.read.heldAt {
			l.then = l.bytes
		}
		s.weigh(d, t.At, now)
	}
}

// Gone forgets a process that has ended. Without a start, it is whoever has the PID.
func (s *State) Gone(id gpuwatch.Process, now int64) {
	if id.StartTime != 0 {
		s.gone(id, now)
		return
	}
	for other := range s.processes {
		if other.PID == id.PID {
			s.gone(other, now)
		}
	}
}

func (s *State) gone(id gpuwatch.Process, now int64) {
	p := s.processes[id]
	if p == nil {
		return
	}
	delete(s.processes, id)
	for _, d := range s.devices {
		released, read := d.read.held[id]
		delete(d.read.held, id)
		if !read && p.live.on == d {
			released = p.live.base
		}
		if d.read.at != 0 {
			d.released += int64(released)
		}
	}
	s.placeAndWeigh(now, now)
}

// Leak takes a verdict. It says whether that is about a process of this machine. One that names no host is if something is known of
// its process, which was started before; until that is so, it waits.
func (s *State) Leak(l gpuwatch.Leak, now int64) bool {
	s.turn(now)
	if !l.Open {
		delete(s.leaks, l.ID)
		return true
	}
	switch {
	case l.PID <= 0: // of a device, for which nobody can be held responsible
		s.beyond.Nobody++
		return false
	case l.Host != "" && !s.opts.Mine(l.Host):
		s.beyond.Elsewhere++
		return false
	case s.leaks[l.ID] == nil && len(s.leaks) >= s.opts.MaxProcesses:
		s.beyond.Leaks++
		return false
	case s.leaks[l.ID] == nil:
		s.leaks[l.ID] = &verdict{heard: now}
	}
	v := s.leaks[l.ID]
	v.Leak = l
	s.look = true
	if l.Host == "" {
		if who, _ := s.leaker(v, s.named(), now); who == nil {
			s.beyond.Elsewhere++
			return false
		}
	}
	return true
}

// anonymous is the device of machines of which no device is known by name.
const anonymous = ""

// device is one by its id, nil if there is no room for it, or if it is not known and nobody could say how large it is.
func (s *State) device(id string) *device {
	if d := s.devices[id]; d != nil {
		return d
	}
	if id == anonymous && (s.opts.DeviceMemory == 0 || !s.opts.OneDevice || len(s.devices) > 0) {
		return nil
	}
	if len(s.devices) >= s.opts.MaxDevices && s.devices[anonymous] == nil {
		return nil
	}
	if id != anonymous {
		delete(s.devices, anonymous)
	}
	d := &device{id: id}
	s.devices[id] = d
	return d
}

// crowd counts that there was no room for a device.
func (s *State) crowd(id string, at, now int64) {
	s.beyond.Devices++
	if id != anonymous && !s.crowded {
		s.crowded = true
		s.placeAndWeigh(at, now)
	}
}

// process is one by its id, nil if there is no room for it.
func (s *State) process(id gpuwatch.Process) *process {
	if p := s.processes[id]; p != nil {
		return p
	}
	if len(s.processes) >= s.opts.MaxProcesses {
		s.beyond.Processes++
		return nil
	}
	p := &process{id: id, started: s.opts.Started(id.StartTime)}
	s.processes[id] = p
	return p
}
