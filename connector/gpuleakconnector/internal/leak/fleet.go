// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/cause"
	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// Refusal says why a point does not count.
type Refusal uint8

const (
	// None: it counts.
	None Refusal = iota
	// Late: what it is about is judged already.
	Late
	// Full: there is no room for one more process, device or point.
	Full
	// Nowhere: it names no process and no device.
	Nowhere
)

// Options are the settings of a Fleet.
type Options struct {
	Trend trend.Options
	Rules cause.Rules
	// Objectives are the promises as they are now; nil knows none.
	Objectives func() []Objective
	// MaxProcesses bounds processes and devices, each; TTL is how long, in event time, one is known of which nothing is heard while its
	// host says something.
	MaxProcesses int
	TTL          time.Duration
	// Contested is called once for each process under whose id another one tells memory, and Missed for each that is not judged because calls were missed.
	Contested func(p *Process, by *Where)
	Missed    func(p *Process)
	// Judged is called for each that was judged, and Gone for each of which nothing more is said.
	Judged, Gone func(p *Place, at int64)
}

// maxPending bounds the points that wait for the watermark: an hour of 1,000 processes.
const maxPending = 1 << 20

// Fleet is all processes and devices. It is not safe for concurrent use.
type Fleet struct {
	options   Options
	judge     *trend.Judge
	processes map[ID]*Process
	devices   map[ID]*Process // unattributed memory: a process without a PID
	pending   []observation
	joins     joins
	origins   map[string]*origin // of traffic that is joined by a relation
	budgets   budgets
	judged    int64      // up to which event time, exclusively
	spoken    []*Process // those of which something was said last; scratch
	events    []Event
	evicted   uint64
	unjoined  [unjoinedReasons]uint64
}

type observation struct {
	at    int64
	kind  Kind
	where *Where
	value float64
}

// Process is one that holds memory of devices, or a device that holds memory for nobody.
type Process struct {
	ID
	Executable string
	Service    string // whose requests it works on, as its traffic says; "" where that is not known
	Names      Names
	Labels     []Label
	said       *Where // who it is, as the last point of the driver said, or of its allocations where there is none
	saidAt     int64  // when that was
	contested  bool
	misses     misses
	told       int64 // of a device: when a process told memory on it last
	driver     bool  // the driver tells of it
	places     []*Place
	load       load
	objects    [3]trend.Series // engines, contexts, blocks
	counts     [3]float64
	heard      int64
	open       *opened
	leaks      uint32  // opened so far
	limit      float64 // of a device; NaN where it is not known
	used       float64
	reserved   float64        // by the driver, besides what is used
	grows      trend.Estimate // of a device: how fast what is in use leaks; 0 where it does not
	taken      trend.Estimate // and how fast its memory is taken by all that grow, as was judged last
}

// left is how much of a device is left; NaN where that is not known.
func (p *Process) left() float64 { return p.limit - p.reserved - p.used }

// Place is the memory of a process on one device.
type Place struct {
	Of     *Process
	Device string // "" where it is not known
	Result trend.Result
	// Standing is whether there is a verdict, and Stood whether there was one before.
	Standing, Stood Standing
	// Cause is why it leaks, nil where it does not or nobody knows. Before is what was said before.
	Cause, Before *cause.Rule
	// Promises are those that it will break, the first one first, while it leaks. Promised are those of before.
	Promises, Promised []Promise
	used, live         trend.Series
	device             trend.Series // memory in use of the whole device, where this is one
	whole              bool         // which is judged, since nothing is told of processes on it
	heard              int64
	left               float64 // at the last verdict
}

// New returns a fleet that has heard nothing.
func New(o Options) *Fleet {
	return &Fleet{
		options: o, judge: trend.NewJudge(o.Trend), processes: map[ID]*Process{}, devices: map[ID]*Process{}, origins: map[string]*origin{}, budgets: budgets{},
	}
}

// Len is the number of processes and devices.
func (f *Fleet) Len() int { return len(f.processes) + len(f.devices) }

// Pending is how many points wait for the watermark.
func (f *Fleet) Pending() int { return len(f.pending) }

// Evicted is how many processes and devices were forgotten.
func (f *Fleet) Evicted() uint64 { return f.evicted }

// Late is the event time before which everything is late.
func (f *Fleet) Late() int64 { return f.judged }

// Hear takes a point in. Where is kept, and must not change any more.
func (f *Fleet) Hear(at int64, kind Kind, where *Where, value float64) Refusal {
	switch {
	case !kind.names(where):
		return Nowhere
	case at < f.judged:
		return Late
	case len(f.pending) >= maxPending, !f.room(kind, where, at):
		return Full
	}
	f.pending = append(f.pending, observation{at, kind, where, value})
	return None
}

// room makes room for what a point is about, and reports whether there is some. It is made when the point is heard, so that one that
// is heard counts.
func (f *Fleet) room(kind Kind, w *Where, at int64) bool {
	of, id := f.processes, ID{Host: w.Host, PID: w.PID}
	if kind.OfDevice() {
		of, id = f.devices, ID{Host: w.Host, Device: w.Device}
	} else if kind > Missed {
		return true // it makes no new one
	}
	if of[id] == nil {
		if len(of) >= f.options.MaxProcesses {
			return false
		}
		of[id] = unheard(id, at)
	}
	return true
}

// unheard is a process or a device of which nothing is known yet.
func unheard(id ID, at int64) *Process {
	p := &Process{ID: id, heard: at, limit: math.NaN(), used: math.NaN()}
	if id.PID == "" {
		p.place(id.Device)
	}
	return p
}

// Advance judges as far as a watermark allows.
func (f *Fleet) Advance(watermark int64) {
	every := int64(f.options.Trend.Every())
	if f.judged == 0 && len(f.pending) > 0 {
		first := slices.MinFunc(f.pending, func(a, b observation) int { return cmp.Compare(a.at, b.at) }).at
		if first -= first % every; watermark < first+every {
			return // what is older may still come
		}
		f.judged = first
	}
	if f.judged == 0 || watermark < f.judged+every {
		return
	}
	slices.SortStableFunc(f.pending, func(a, b observation) int { return cmp.Compare(a.at, b.at) })
	done := 0
	for f.judged+every <= watermark {
		at := f.judged + every
		until := watermark
		if done < len(f.pending) {
			until = min(until, f.pending[done].at)
		}
		if quiet := f.quiet(at, until); quiet > at {
			f.judged = quiet - quiet%every // nobody to judge
			continue
		}
		for done < len(f.pending) && f.pending[done].at < at {
			f.take(&f.pending[done])
			done++
		}
		f.judged = at
		f.judgeAll(at)
	}
	f.pending = slices.Delete(f.pending, 0, done)
}

// quiet is until when, from a time on, there is nobody to judge: all are silent, and are waited for.
func (f *Fleet) quiet(at, until int64) int64 {
	for _, of := range []map[ID]*Process{f.devices, f.processes} {
		for _, p := range of {
			if at-p.heard <= int64(f.options.TTL) {
				return at
			}
			until = min(until, p.heard+max(int64(silence), int64(f.options.TTL)))
		}
	}
	return until
}

// take gives a point to what it is about.
func (f *Fleet) take(o *observation) {
	switch o.kind {
	case Missed:
		f.missed(o)
	case Used, Live:
		p := f.process(o)
		if p == nil {
			return
		}
		place := p.place(o.where.Device)
		p.heard, place.heard = max(p.heard, o.at), max(place.heard, o.at)
		if o.kind == Live && o.at <= p.misses.last {
			return
		}
		of := &place.used
		if o.kind == Live {
			of = &place.live
		}
		if of.Since() == 0 {
			f.joins.stale = true // it holds memory from now on
		}
		f.judge.Add(of, o.at, o.value)
	case Limit, DeviceUsed, Reserved, Unattributed:
		f.deviceTakes(o)
	case Burn, Remaining:
		f.budgets.take(o)
	default:
		f.join(o)
	}
}

// process is that of a point, a new one where it is not known or another program or container has its PID now. Who it is, the driver's
// points say where there are any: what the two say need not be spelled alike. It is nil where another one goes on under its PID.
func (f *Fleet) process(o *observation) *Process {
	w := o.where
	id := ID{Host: w.Host, PID: w.PID}
	p := f.processes[id]
	if p != nil && o.kind != Used && p.driver {
		return p
	}
	if p != nil && p.said == w {
		p.saidAt = max(p.saidAt, o.at)
		return p
	}
	if p != nil && p.driver == (o.kind == Used) {
		switch program, container := differ(p.Executable, w.Executable), differ(p.Names.Container, w.Names.Container); {
		case program && !container && f.renames(p, o):
		case program && o.kind == Missed && o.at-p.saidAt <= int64(f.options.TTL):
			return nil // what is live says whose it is
		case (program || container) && f.contests(p, o):
			return nil
		case program:
			f.forget(p, o.at, "another program has its process id now")
			p = nil
		case container:
			f.forget(p, o.at, "another container has its process id now")
			p = nil
		}
	}
	if p == nil {
		p = unheard(id, o.at)
		f.processes[id] = p
	}
	p.said, p.saidAt, p.driver = w, max(p.saidAt, o.at), o.kind == Used
	if w.Executable != "" {
		p.Executable = w.Executable
	}
	if len(w.Labels) > 0 {
		p.Labels = w.Labels
	}
	if names := p.Names.with(&w.Names); names != p.Names {
		p.Names, f.joins.stale = names, true
	}
	return p
}

func (f *Fleet) deviceTakes(o *observation) {
	id := ID{Host: o.where.Host, Device: o.where.Device}
	d := f.devices[id]
	if d == nil {
		d = unheard(id, o.at)
		f.devices[id] = d
	}
	if len(o.where.Labels) > 0 {
		d.Labels = o.where.Labels
	}
	place := d.places[0]
	d.heard, place.heard = max(d.heard, o.at), max(place.heard, o.at)
	switch o.kind {
	case Limit:
		d.limit = o.value
	case Reserved:
		d.reserved = o.value
	case DeviceUsed:
		d.used = o.value
		f.judge.Add(&place.device, o.at, o.value)
	default:
		f.judge.Add(&place.used, o.at, o.value)
	}
}

// place is the memory of a process on a device, new where it is not known.
func (p *Process) place(device string) *Place {
	for _, place := range p.places {
		if place.Device == device {
			return place
		}
	}
	place := &Place{Of: p, Device: device, left: math.NaN()}
	p.places = append(p.places, place)
	slices.SortFunc(p.places, func(a, b *Place) int { return cmp.Compare(a.Device, b.Device) })
	return place
}

// sorted are processes or devices in a fixed order: what is told has one.
func sorted(of map[ID]*Process) []*Process {
	all := make([]*Process, 0, len(of))
	for _, p := range of {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *Process) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Device, b.Device))
	})
	return all
}
