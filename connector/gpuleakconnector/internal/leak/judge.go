// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"math"
	"time"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/cause"
	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// judgeAll says what there is to say of everybody at a time: first what grows, then, as they share what is left, when that is gone.
func (f *Fleet) judgeAll(at int64) {
	devices, newest := map[ID]cause.Seen{}, f.newest()
	f.noteProcesses(at)
	judged := f.spoken[:0]
	for _, d := range sorted(f.devices) {
		if f.silent(d, at, newest, "nothing more is heard of the device") {
			continue
		}
		place := d.places[0]
		place.left = d.left()
		var result trend.Result
		result, devices[d.ID] = f.look(&place.device, at, trend.Headroom{Bytes: place.left, Taken: d.taken})
		d.grows = trend.Estimate{}
		if result.State == trend.Leaking && result.Rate.Known() {
			d.grows = result.Rate
		}
		if f.judgeDevice(d, at, result, devices[d.ID]) {
			judged = append(judged, d)
		}
	}
	for _, p := range sorted(f.processes) {
		if !f.silent(p, at, newest, "the process has ended") {
			f.judgeProcess(p, at, devices)
			judged = append(judged, p)
		}
	}
	f.share(judged)
	for _, p := range judged {
		f.tell(p, at)
	}
	f.spoken = judged
	clear(f.spoken) // one that is forgotten is not kept
}

// judgeProcess says what there is to say of the memory of a process.
func (f *Fleet) judgeProcess(p *Process, at int64, devices map[ID]cause.Seen) {
	var objects cause.Facts
	for i, seen := range []*cause.Seen{&objects.Engine, &objects.Context, &objects.Block} {
		if p.objects[i].Since() != 0 {
			f.judge.Add(&p.objects[i], at-1, p.counts[i]+1)
		}
		_, *seen = f.look(&p.objects[i], at, trend.Alone(math.NaN()))
	}
	whole := p.whole()
	counts := f.counts(p, at)
	if whole != nil && counts {
		_, objects.Live = f.look(&whole.live, at, trend.Alone(math.NaN()))
	}
	for _, place := range p.places {
		if place == whole {
			continue
		}
		facts, left := objects, trend.Alone(math.NaN())
		of := f.devices[ID{Host: p.Host, Device: place.Device}]
		if of != nil {
			left, facts.Device = trend.Headroom{Bytes: of.left(), Taken: of.taken}, devices[of.ID]
		}
		place.left = left.Bytes
		live, seen := f.look(&place.live, at, left)
		if !counts {
			live, seen = trend.Result{Rate: unknown, Exhaustion: unknown, PerServed: math.NaN(), PerRequest: math.NaN(), PerRequestFirst: math.NaN()}, cause.Unknown
		}
		if place.live.Since() != 0 {
			facts.Live = seen
		}
		before := place.Result
		place.Result, facts.Process = f.look(&place.used, at, left)
		if place.used.Since() == 0 {
			if place.Result = live; before.State == trend.Leaking && !counts {
				place.Result = before // nobody can tell
			}
		}
		if of != nil && facts.Process == cause.Rising && f.grewToo(&of.places[0].device, &place.Result, at) {
			facts.Device = cause.Rising
		}
		place.stands(counts)
		f.explain(place, facts)
	}
}

// grewToo reports whether the memory in use of a device grew while that of a process did, by half of it at least: by itself, a device on which one process
// after another grows and ends is one that gets its memory back.
func (f *Fleet) grewToo(device *trend.Series, of *trend.Result, at int64) bool {
	return device.Since() != 0 && f.judge.Rose(device, at-int64(of.Span)) >= of.Rate.Value*of.Span.Seconds()/2
}

// share adds up how fast the memory of each device is taken by those that were found to grow, or, where that is more for certain, by what the device itself
// shows, and says of each of them when nothing is left.
func (f *Fleet) share(judged []*Process) {
	takers := func(visit func(d *Process, of *Place)) {
		for _, p := range judged {
			for _, place := range p.places {
				if d := f.devices[ID{Host: p.Host, Device: place.Device}]; d != nil && place.Result.State >= trend.Suspect && place.Result.Rate.Known() {
					visit(d, place)
				}
			}
		}
	}
	for _, d := range f.devices {
		d.taken = trend.Estimate{}
	}
	takers(func(d *Process, of *Place) {
		r := of.Result.Rate
		d.taken.Value += max(r.Value, 0)
		d.taken.Low += max(r.Low, 0)
		d.taken.High += max(r.High, 0)
	})
	for _, d := range f.devices {
		if d.grows.Low > d.taken.High {
			d.taken = d.grows
		}
	}
	takers(func(d *Process, of *Place) {
		left := trend.Headroom{Bytes: of.left, Taken: d.taken}
		of.Result.Exhaustion = left.Exhaustion(of.Result.Rate)
	})
}

// unknown is an estimate of what nobody knows.
var unknown = trend.Estimate{Value: math.NaN(), Low: math.NaN(), High: math.NaN()}

// silence is how long a host of which nothing at all is heard is waited for: its collector is being replaced, or cannot be reached.
const silence = 24 * time.Hour

// newest is when each host was heard of last.
func (f *Fleet) newest() map[string]int64 {
	at := map[string]int64{}
	for _, of := range []map[ID]*Process{f.devices, f.processes} {
		for id, p := range of {
			at[id.Host] = max(at[id.Host], p.heard)
		}
	}
	return at
}

// silent reports whether a process says nothing, so that nothing is said of it: it is forgotten if its host goes on without it, and is
// waited for otherwise.
func (f *Fleet) silent(p *Process, at int64, newest map[string]int64, why string) bool {
	ttl := int64(f.options.TTL)
	if at-p.heard <= ttl {
		return false
	}
	if newest[p.Host]-p.heard > ttl || at-p.heard > max(int64(silence), ttl) {
		f.forget(p, at, why)
	}
	return true
}

// whole is what a process has allocated on whatever device, where the driver tells its memory by device: it says why, and is not judged
// besides. It is nil where there is none.
func (p *Process) whole() (whole *Place) {
	byDevice := false
	for _, place := range p.places {
		if place.Device == "" && place.used.Since() == 0 {
			whole = place
		} else if place.used.Since() != 0 {
			byDevice = true
		}
	}
	if !byDevice {
		return nil
	}
	if whole != nil {
		whole.Result = trend.Result{}
	}
	return whole
}

// look judges a series, and says whether it grows.
func (f *Fleet) look(s *trend.Series, at int64, left trend.Headroom) (trend.Result, cause.Seen) {
	if s.Since() == 0 {
		return trend.Result{}, cause.Unknown
	}
	r := f.judge.Judge(s, at, left)
	switch {
	case r.State >= trend.Suspect:
		return r, cause.Rising
	case !r.Rate.Known():
		return r, cause.Unknown
	default:
		return r, cause.Flat
	}
}

// explain finds why memory leaks, where it may.
func (f *Fleet) explain(place *Place, facts cause.Facts) {
	place.Before, place.Cause = place.Cause, nil
	if place.Result.State >= trend.Suspect {
		place.Cause = f.options.Rules.Of(facts)
	}
}

// tell says what was found of all memory of a process.
func (f *Fleet) tell(p *Process, at int64) {
	whole := p.whole()
	for _, place := range p.places {
		if place == whole {
			continue
		}
		if place.Standing == CallsMissed && !p.misses.told && f.options.Missed != nil {
			p.misses.told = true
			f.options.Missed(p)
		}
		place.Promised, place.Promises = place.Promises, nil
		if place.Result.State == trend.Leaking && f.options.Objectives != nil {
			place.Promises = f.breaks(place, f.options.Objectives(), at)
		}
		if f.options.Judged != nil {
			f.options.Judged(place, at)
		}
	}
	f.openOrClose(p, at)
}

// forget drops a process or a device.
func (f *Fleet) forget(p *Process, at int64, why string) {
	if p.open != nil {
		f.end(p, at, why)
	}
	for _, place := range p.places {
		if f.options.Gone != nil {
			f.options.Gone(place, at)
		}
	}
	if p.PID == "" {
		delete(f.devices, p.ID)
	} else {
		delete(f.processes, p.ID)
		f.joins.stale = true
	}
	f.evicted++
}

// Memory is what was heard last of the memory of a place.
func (p *Place) Memory() float64 {
	_, bytes := p.used.Last()
	switch {
	case p.whole:
		_, bytes = p.device.Last()
	case p.used.Since() == 0:
		_, bytes = p.live.Last()
	}
	return bytes
}

// Left is how much of the device is left; NaN where it is not known.
func (p *Place) Left() float64 { return p.left }

// Judged reports whether there is memory of which something is said, if only that it is not known.
func (p *Place) Judged() bool { return p.holds() || p.whole || p.Of.misses.last != 0 && p.heard != 0 }
