// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"math"
	"time"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/cause"
	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// judgeAll says what there is to say of everybody at a time.
func (f *Fleet) judgeAll(at int64) {
	devices, newest := map[ID]cause.Seen{}, f.newest()
	f.noteProcesses(at)
	for _, d := range sorted(f.devices) {
		if f.silent(d, at, newest, "nothing more is heard of the device") {
			continue
		}
		place := d.places[0]
		place.left = d.limit - d.used
		var result trend.Result
		result, devices[d.ID] = f.look(&place.device, at, place.left)
		f.judgeDevice(d, at, result, devices[d.ID])
	}
	for _, p := range sorted(f.processes) {
		if f.silent(p, at, newest, "the process has ended") {
			continue
		}
		var objects cause.Facts
		for i, seen := range []*cause.Seen{&objects.Engine, &objects.Context, &objects.Block} {
			if p.objects[i].Since() != 0 {
				f.judge.Add(&p.objects[i], at-1, p.counts[i]+1)
			}
			_, *seen = f.look(&p.objects[i], at, math.NaN())
		}
		whole := p.whole()
		counts := f.counts(p, at)
		if whole != nil && counts {
			_, objects.Live = f.look(&whole.live, at, math.NaN())
		}
		for _, place := range p.places {
			if place == whole {
				continue
			}
			facts, id := objects, ID{Host: p.Host, Device: place.Device}
			place.left = math.NaN()
			if of := f.devices[id]; of != nil {
				place.left, facts.Device = of.limit-of.used, devices[id]
			}
			live, seen := f.look(&place.live, at, place.left)
			if !counts {
				live, seen = trend.Result{Rate: unknown, Exhaustion: unknown, PerServed: math.NaN(), PerRequest: math.NaN(), PerRequestFirst: math.NaN()}, cause.Unknown
			}
			if place.live.Since() != 0 {
				facts.Live = seen
			}
			before := place.Result
			place.Result, facts.Process = f.look(&place.used, at, place.left)
			if place.used.Since() == 0 {
				if place.Result = live; before.State == trend.Leaking && !counts {
					place.Result = before // nobody can tell
				}
			}
			f.explain(place, facts)
		}
		f.tell(p, at)
	}
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
func (f *Fleet) look(s *trend.Series, at int64, left float64) (trend.Result, cause.Seen) {
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

// Judged reports whether there is memory of which something is said.
func (p *Place) Judged() bool { return p.used.Since() != 0 || p.live.Since() != 0 || p.whole }
