// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

// Trigger is a reason to act.
type Trigger struct {
	Device      string
	Used, Total uint64
	// Above is how long the device has been too full, and Since since when there is something to decide.
	Above time.Duration
	Since int64
	// Detection is how long it took until it was known that the device is too full.
	Detection time.Duration
	// Disagrees says that live bytes are above the threshold and what is read of the device is far below them: nobody is to be ended.
	Disagrees bool
	// Leak is set if a leak is the reason.
	Leak *gpuwatch.Leak
	*Control
}

// Control keeps the same from being tried, or told, again and again. It belongs to whoever acts.
type Control struct {
	NotBefore int64            // when it is tried again
	Told      map[string]int64 // what was told lately, and when
	Done      bool             // for ever
}

// Candidate is a process that holds memory of a device.
type Candidate struct {
	gpuwatch.Process
	Held, Growth uint64
	// Leak is its open verdict, if there is one.
	Leak *gpuwatch.Leak
}

// Due are the reasons to act now: devices that are too full, the fullest first, then leaks, the oldest first.
func (s *State) Due(now int64) (all []Trigger) {
	s.turn(now)
	for _, d := range s.devices {
		s.weigh(d, now, now) // a reading becomes stale without a word
		since := s.due(d, now)
		if since == 0 {
			d.dueAt = 0
			if doubt := d.byDoubt.since; doubt != 0 && now-doubt >= int64(s.opts.For) && now >= d.control.NotBefore {
				all = append(all, Trigger{
					Device: d.id, Used: s.used(d, now), Total: s.limit(d), Above: time.Duration(now - doubt), Since: now, Disagrees: true, Control: &d.control,
				})
			}
			continue
		}
		if d.dueAt == 0 {
			d.dueAt = since
		}
		if now < d.control.NotBefore {
			continue
		}
		began := d.byLive
		if began.since == 0 || d.byReading.since != 0 && d.byReading.since < began.since {
			began = d.byReading
		}
		all = append(all, Trigger{
			Device: d.id, Used: s.used(d, now), Total: s.limit(d), Above: time.Duration(now - began.since), Since: max(d.dueAt, d.control.NotBefore),
			Detection: time.Duration(began.known - began.since), Control: &d.control,
		})
	}
	slices.SortFunc(all, func(a, b Trigger) int {
		return cmp.Or(-cmp.Compare(float64(a.Used)/float64(a.Total), float64(b.Used)/float64(b.Total)), cmp.Compare(a.Device, b.Device))
	})
	if !s.opts.OnLeak {
		return all
	}
	full, named := len(all), s.named()
	for _, v := range s.leaks {
		if v.control.Done || now < v.control.NotBefore {
			continue
		}
		p, d := s.leaker(v, named, now)
		if p == nil || s.held(p, d, now) < s.least(d) || now < s.urgent(v) {
			v.dueAt = 0
			continue
		}
		if v.dueAt == 0 {
			v.dueAt = now
		}
		leak := v.Leak
		all = append(all, Trigger{
			Device: d.id, Used: s.used(d, now), Total: s.limit(d), Since: max(v.dueAt, v.control.NotBefore), Leak: &leak, Control: &v.control,
		})
	}
	slices.SortFunc(all[full:], func(a, b Trigger) int {
		return cmp.Or(cmp.Compare(a.Leak.At, b.Leak.At), cmp.Compare(a.Leak.ID, b.Leak.ID))
	})
	return all
}

// urgent is from when on a leak is a reason. 0: at once, also where nobody has said how long there is.
func (s *State) urgent(v *verdict) int64 {
	if s.opts.LeakWithin == 0 || v.Exhaustion <= s.opts.LeakWithin {
		return 0
	}
	if v.Exhaustion-s.opts.LeakWithin > time.Duration(math.MaxInt64-v.At) {
		return math.MaxInt64
	}
	return v.At + int64(v.Exhaustion-s.opts.LeakWithin)
}

// least is what a process must hold of a device to be ended.
func (s *State) least(d *device) uint64 {
	return max(1, uint64(math.Ceil(s.opts.MinShare*float64(s.limit(d)))))
}

// leaker is the process of a verdict, and the device of which it holds most; nil while it is not known to hold any. A process
// that was started after the verdict is another one with its PID.
func (s *State) leaker(v *verdict, named map[int][]*process, now int64) (who *process, where *device) {
	most := uint64(0)
	for _, p := range named[v.PID] {
		if p.started == 0 || p.started >= v.At {
			continue
		}
		of := func(d *device) {
			if v.Device != "" && v.Device != d.id && (d.id != anonymous || v.Host == "") {
				return
			}
			if held := s.held(p, d, now); held > most {
				who, where, most = p, d, held
			}
		}
		for _, d := range s.devices {
			of(d)
		}
		of(s.nowhere)
	}
	return who, where
}

// find is a device by its id; without one, it is nowhere.
func (s *State) find(id string) *device {
	if d := s.devices[id]; d != nil || id != anonymous {
		return d
	}
	return s.nowhere
}

// named are the processes whose PIDs verdicts name.
func (s *State) named() map[int][]*process {
	of := make(map[int][]*process, len(s.leaks))
	for _, v := range s.leaks {
		of[v.PID] = nil
	}
	for _, p := range s.processes {
		if others, is := of[p.id.PID]; is {
			of[p.id.PID] = append(others, p)
		}
	}
	return of
}

// held is what a process holds of a device: what a reading that is not stale says, or leaves for it if it does not name it, and what its
// live bytes have changed since; else these.
func (s *State) held(p *process, d *device, now int64) uint64 {
	l, on := &p.live, p.live.on == d || p.live.on == nil && d == s.nowhere
	if !s.recent(d.read.heldAt, now) {
		if on {
			return l.bytes
		}
		return 0
	}
	held, named := d.read.held[p.id]
	if !on {
		return held
	}
	if !named {
		held = min(l.then, d.read.rest)
	}
	return uint64(max(int64(min(held, math.MaxInt64/2))+int64(l.bytes)-int64(l.then), 0))
}

// Next is when Due may give something that it does not give now, if nothing is told until then; 0: never.
func (s *State) Next(now int64) (next int64) {
	sooner := func(at int64) {
		if at > now && (next == 0 || at < next) {
			next = at
		}
	}
	for _, d := range s.devices {
		for _, of := range []spell{d.byLive, d.byDoubt} {
			if of.since != 0 {
				sooner(of.since + int64(s.opts.For))
			}
		}
		if s.fresh(d, now) && d.live >= uint64(math.Ceil(s.opts.Threshold*float64(s.limit(d)))) && !d.disagrees {
			sooner(d.read.at + int64(s.opts.StaleAfter) + 1) // then live bytes decide
		}
		if d.dueAt != 0 {
			sooner(d.control.NotBefore)
		}
	}
	for _, v := range s.leaks {
		if s.opts.OnLeak && !v.control.Done {
			sooner(v.control.NotBefore)
			sooner(s.urgent(v))
		}
	}
	return next
}

// Candidates are the processes on which a trigger can act, in the order of the PIDs.
func (s *State) Candidates(t *Trigger, now int64) (all []Candidate) {
	d := s.find(t.Device)
	if d == nil {
		return nil
	}
	leaking, named := map[*process]*gpuwatch.Leak{}, s.named()
	for _, v := range s.leaks {
		if p, _ := s.leaker(v, named, now); p != nil && (t.Leak == nil || t.Leak.ID == v.ID) {
			leak := v.Leak
			leaking[p] = &leak
		}
	}
	for _, p := range s.processes {
		held := s.held(p, d, now)
		if held < s.least(d) || t.Leak != nil && leaking[p] == nil {
			continue
		}
		all = append(all, Candidate{Process: p.id, Held: held, Growth: p.growth.by(now, s.opts.GrowthWindow), Leak: leaking[p]})
	}
	slices.SortFunc(all, func(a, b Candidate) int { return cmp.Or(a.PID-b.PID, cmp.Compare(a.StartTime, b.StartTime)) })
	return all
}

// Holds says whether there is still a reason to act on a process.
func (s *State) Holds(t *Trigger, id gpuwatch.Process, now int64) bool {
	p, d := s.processes[id], s.find(t.Device)
	if p == nil || d == nil || s.held(p, d, now) == 0 {
		return false
	}
	if t.Leak != nil {
		return s.leaks[t.Leak.ID] != nil
	}
	return s.due(d, now) != 0
}

// Acted begins anew, after somebody was ended: what was read before then counts for nothing.
func (s *State) Acted(now int64) {
	for _, d := range s.devices {
		d.read.believed = now
		d.byLive, d.byReading, d.byDoubt, d.dueAt = spell{}, spell{}, spell{}, 0
		s.weigh(d, now, now)
	}
}

// Processes are all that are known.
func (s *State) Processes() (all []gpuwatch.Process) {
	for id := range s.processes {
		all = append(all, id)
	}
	return all
}

const (
	// deviceTTL is how long a device is remembered of which nothing is read, and on which nothing is, as a MIG device that is no more.
	deviceTTL = 10 * time.Minute
	// leakTTL is how long a verdict is remembered of which there is no process, as when nobody tells that it is closed.
	leakTTL = time.Hour
)

// Expire forgets devices and verdicts of which nothing is heard.
func (s *State) Expire(now int64) {
	s.turn(now)
	busy := map[*device]bool{}
	for _, p := range s.processes {
		busy[p.live.on] = true
	}
	for id, d := range s.devices {
		if !busy[d] && now-d.read.at > int64(deviceTTL) {
			delete(s.devices, id)
		}
	}
	s.placeAndWeigh(now, now)
	named := s.named()
	for id, v := range s.leaks {
		if p, _ := s.leaker(v, named, now); p == nil && now-v.heard > int64(leakTTL) {
			delete(s.leaks, id)
		}
	}
}

// View is what is known of a device, for people.
type View struct {
	Device      string
	Used, Total uint64
	Above       time.Duration // 0: it is not too full
	Candidates  []Candidate
}

// Views are all devices, by id.
func (s *State) Views(now int64) (all []View) {
	for _, d := range s.devices {
		v := View{Device: d.id, Used: s.used(d, now), Total: s.limit(d)}
		for _, spell := range []spell{d.byLive, d.byReading} {
			if spell.since != 0 {
				v.Above = max(v.Above, time.Duration(now-spell.since))
			}
		}
		v.Candidates = s.Candidates(&Trigger{Device: d.id}, now)
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b View) int { return cmp.Compare(a.Device, b.Device) })
	return all
}

// Leaks are the open verdicts, the oldest first.
func (s *State) Leaks() (all []gpuwatch.Leak) {
	for _, v := range s.leaks {
		all = append(all, v.Leak)
	}
	slices.SortFunc(all, func(a, b gpuwatch.Leak) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.ID, b.ID)) })
	return all
}
