// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

const (
	// maxDevices is far above what a machine has: 16 GPUs of 7 instances are 128.
	maxDevices = 1024
	// maxCodes bounds the Xid codes of a device that are counted one by one; NVIDIA's catalog has fewer than 200, most of them
	// unused.
	maxCodes = 64
)

// Ledger is the memory. The zero value remembers nothing.
type Ledger struct {
	devices map[string]*Device
	driver  string
	changes []Change
	turn    uint64
	excused bool
}

// Device is what is remembered of one.
type Device struct {
	// Since is when it was first seen, and when its Xid counters stood at zero.
	Since int64
	// Xids are the codes that were heard, in the order of their codes.
	Xids []XidCount
	// LastXid is the code that was heard last, 0 when there was none.
	LastXid uint64
	// Others counts the Xids of codes that were too many to be counted one by one.
	Others uint64

	who      gpu.Device // its identity, without processes
	counters [gpu.DevicePoints]counter
	state    gpu.State
	failure  bool // a row could not be remapped, when that was last asked
	pending  bool
	parts    []string // the UUIDs of its instances, sorted
	divided  bool
	turn     uint64 // when it was last read
	read     bool   // at all
	doubted  bool   // its profiling
}

// XidCount is how often a code was heard since Device.Since.
type XidCount struct {
	Code, Count uint64
}

type counter struct {
	last  float64
	since int64
}

// ChangeKind is what has changed.
type ChangeKind uint8

const (
	// Lost is a GPU that does not answer any more, or is not there any more.
	Lost ChangeKind = iota
	// Recovered is one that is back.
	Recovered
	// DriverChanged is another version of the driver.
	DriverChanged
	// MIGChanged is a GPU that is divided otherwise than before.
	MIGChanged
	// ProfilingStopped is profiling that is not believed any more.
	ProfilingStopped
	// ProfilingResumed is profiling that is believed again.
	ProfilingResumed
)

// Change is something that was not so at the reading before.
type Change struct {
	Kind     ChangeKind
	UUID     string   // of the GPU; empty where it is about all
	From, To string   // versions of the driver
	Divided  bool     // whether MIG is on now
	Parts    []string // the UUIDs of the instances now
}

// Len is the number of devices that are remembered.
func (l *Ledger) Len() int { return len(l.devices) }

// Excuse says that what is missing at the next reading was taken away on purpose: the handles had been given back for that.
func (l *Ledger) Excuse() { l.excused = true }

// Read compares a reading with the one before. A GPU that could not say who it is gets a name. Devices that are missing come back into the snapshot as lost ones, and the
// states of the others say what remapped rows mean for them.
func (l *Ledger) Read(s *gpu.Snapshot, now int64) {
	if l.devices == nil {
		l.devices = map[string]*Device{}
	}
	l.turn++
	if s.Driver != "" {
		if l.driver != "" && l.driver != s.Driver {
			l.changes = append(l.changes, Change{Kind: DriverChanged, From: l.driver, To: s.Driver})
			l.excused = true // it was unloaded, and devices may have been exchanged meanwhile
		}
		l.driver = s.Driver
	}
	l.name(s)
	for i, d := range s.Devices {
		if m := l.note(s, d, now); m != nil {
			l.compare(m, s, i)
		}
	}
	l.missing(s)
	l.excused = false
}

// name names GPUs that could not say who they are: as the one that is missing at that place; else as the place.
func (l *Ledger) name(s *gpu.Snapshot) {
	for _, d := range s.Devices {
		if d.UUID == "" {
			d.UUID = placeName(d)
			if at := l.missingAt(s, d); at != "" {
				d.UUID = at
			}
		}
	}
}

// placeName is what a GPU without a UUID is called.
func placeName(d *gpu.Device) string {
	if d.PCI != "" {
		return d.PCI
	}
	return fmt.Sprintf("index-%d", d.Index)
}

// missingAt is the UUID, or the placeName, of a GPU that is remembered at the place of another and is not in the snapshot;
// empty where there is none.
func (l *Ledger) missingAt(s *gpu.Snapshot, d *gpu.Device) (found string) {
	for uuid, m := range l.devices {
		here := m.who.Index == d.Index
		if m.who.PCI != "" && d.PCI != "" {
			here = m.who.PCI == d.PCI
		}
		if here && m.read && m.who.Parent == "" && s.Find(uuid) == nil && (found == "" || uuid < found) {
			found = uuid
		}
	}
	return found
}

// adopt is about a GPU that is new: it may be one that could not say who it was until now.
func (l *Ledger) adopt(s *gpu.Snapshot, d *gpu.Device) {
	if d.MIG() {
		return
	}
	at := l.missingAt(s, d)
	if at == "" || placeName(&l.devices[at].who) != at {
		return
	}
	delete(l.devices, at)
	if d.State != gpu.Lost {
		l.changes = append(l.changes, Change{Kind: Recovered, UUID: d.UUID})
	}
}

// note remembers who a device is. It is nil where there is no room for one more.
func (l *Ledger) note(s *gpu.Snapshot, d *gpu.Device, now int64) *Device {
	m := l.devices[d.UUID]
	if m == nil {
		l.adopt(s, d)
		if len(l.devices) >= maxDevices {
			return nil
		}
		m = &Device{Since: now}
		l.devices[d.UUID] = m
	}
	m.turn = l.turn
	m.Since = min(m.Since, now) // a clock can be set back
	if d.State != gpu.Lost || !m.read {
		m.who = *d
		m.who.Processes = nil
	} else {
		restore(d, &m.who)
	}
	if d.Has(gpu.RemapFailure) {
		m.failure = d.Int(gpu.RemapFailure) == 1
	}
	if d.Has(gpu.RemapPending) {
		m.pending = d.Int(gpu.RemapPending) == 1
	}
	if d.State == gpu.OK || d.State == gpu.Degraded {
		switch {
		case m.failure:
			d.State = gpu.PredictedFailure
		case m.pending:
			d.State = gpu.Degraded
		}
	}
	return m
}

// restore fills in what a lost device cannot tell of itself any more.
func restore(d, was *gpu.Device) {
	d.Parent, d.Index, d.Minor, d.Model, d.Serial = was.Parent, was.Index, was.Minor, was.Model, was.Serial
	d.Firmware, d.PCI, d.Profile, d.MIGEnabled = was.Firmware, was.PCI, was.Profile, was.MIGEnabled
	d.GPUInstance, d.ComputeInstance = was.GPUInstance, was.ComputeInstance
}

// compare tells what has changed of the device at a place.
func (l *Ledger) compare(m *Device, s *gpu.Snapshot, at int) {
	d := s.Devices[at]
	first := !m.read
	m.read = true
	if before := m.state; (before == gpu.Lost) != (d.State == gpu.Lost) && !d.MIG() && (!first || d.State == gpu.Lost) {
		kind := Recovered
		if d.State == gpu.Lost {
			kind = Lost
		}
		l.changes = append(l.changes, Change{Kind: kind, UUID: d.UUID})
	}
	m.state = d.State
	if d.Implausible != m.doubted && (d.Implausible || d.Has(gpu.SMActive) || d.Has(gpu.GraphicsActive)) {
		kind := ProfilingResumed
		if d.Implausible {
			kind = ProfilingStopped
		}
		m.doubted = d.Implausible
		l.changes = append(l.changes, Change{Kind: kind, UUID: d.UUID})
	}
	if d.MIG() || d.State == gpu.Lost {
		return
	}
	if parts := s.Instances(at); m.divided != d.MIGEnabled || !same(m.parts, parts) {
		m.parts = nil
		for _, part := range parts {
			m.parts = append(m.parts, part.UUID)
		}
		slices.Sort(m.parts)
		m.divided = d.MIGEnabled
		if !first {
			l.changes = append(l.changes, Change{Kind: MIGChanged, UUID: d.UUID, Divided: m.divided, Parts: m.parts})
		}
	}
}

// same reports whether the instances are those that are remembered.
func same(sorted []string, parts []*gpu.Device) bool {
	if len(sorted) != len(parts) {
		return false
	}
	for _, part := range parts {
		if _, ok := slices.BinarySearch(sorted, part.UUID); !ok {
			return false
		}
	}
	return true
}

// missing puts GPUs that were there before back into the snapshot, as lost. What was taken away on purpose is forgotten, and so
// are instances that are not there any more: they went with their GPU, or when it was divided otherwise.
func (l *Ledger) missing(s *gpu.Snapshot) {
	if len(l.devices) == len(s.Devices) {
		return // the usual case: all are there
	}
	var gone []*Device
	for uuid, m := range l.devices {
		if m.turn == l.turn {
			continue
		}
		if m.who.Parent != "" || l.excused || !m.read {
			delete(l.devices, uuid)
			continue
		}
		gone = append(gone, m)
	}
	slices.SortFunc(gone, func(a, b *Device) int { return a.who.Index - b.who.Index })
	for _, m := range gone {
		d := s.Add()
		d.UUID, d.State = m.who.UUID, gpu.Lost
		restore(d, &m.who)
		m.turn = l.turn
		if m.state != gpu.Lost {
			l.changes = append(l.changes, Change{Kind: Lost, UUID: d.UUID})
			m.state = gpu.Lost
		}
	}
}

// Heard counts an Xid. Of a device that is not known, and for which there is no room, nothing is remembered.
func (l *Ledger) Heard(e gpu.Event) {
	if e.Kind != gpu.Xid || e.UUID == "" {
		return
	}
	m := l.devices[e.UUID]
	if m == nil {
		if len(l.devices) >= maxDevices {
			return
		}
		if l.devices == nil {
			l.devices = map[string]*Device{}
		}
		m = &Device{Since: e.Time - 1, turn: l.turn}
		l.devices[e.UUID] = m
	}
	m.LastXid = e.Code
	i, ok := slices.BinarySearchFunc(m.Xids, e.Code, func(x XidCount, code uint64) int {
		switch {
		case x.Code < code:
			return -1
		case x.Code > code:
			return 1
		}
		return 0
	})
	switch {
	case ok:
		m.Xids[i].Count++
	case len(m.Xids) < maxCodes:
		m.Xids = slices.Insert(m.Xids, i, XidCount{e.Code, 1})
	default:
		m.Others++
	}
}

// Device is what is remembered of a device; nil where there was no room.
func (l *Ledger) Device(uuid string) *Device { return l.devices[uuid] }

// Xid is how often a code was heard.
func (m *Device) Xid(code uint64) uint64 {
	for _, x := range m.Xids {
		if x.Code == code {
			return x.Count
		}
	}
	return 0
}

// Start is since when a counter that the driver keeps counts, as far as that is known: since it was first seen, or since it
// was seen to begin anew. At that reading itself, Start is now: nobody knows how much of it is new
// (https://opentelemetry.io/docs/specs/otel/metrics/data-model/#cumulative-streams-handling-unknown-start-time).
func (m *Device) Start(p gpu.Point, value float64, now int64) int64 {
	c := &m.counters[p]
	if c.since == 0 || value < c.last || c.since > now { // the last: the clock was set back
		c.since = now
	}
	c.last = value
	return c.since
}

// Take returns what has changed since the last call.
func (l *Ledger) Take() []Change {
	all := l.changes
	l.changes = nil
	return all
}
