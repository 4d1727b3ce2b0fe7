// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"math"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

// place says on which devices live bytes are, and adds them up anew: on the one that was told; else on the only one on which
// the process holds memory; else on the only one that there is; else nobody knows. One is the only one if there is a reading of it, and
// none of another, or if that is known of the machine.
func (s *State) place() {
	holders := map[gpuwatch.Process]*device{} // nil: on several
	for _, d := range s.devices {
		d.live, d.grown = 0, 0
		for id := range d.read.held {
			if _, several := holders[id]; several {
				holders[id] = nil
			} else {
				holders[id] = d
			}
		}
	}
	var only *device
	if len(s.devices) == 1 && !s.crowded {
		for _, d := range s.devices {
			if s.opts.OneDevice || d.read.at != 0 {
				only = d
			}
		}
	}
	for id, p := range s.processes {
		if !p.live.known {
			continue
		}
		l, was := &p.live, p.live.on
		on, holds := holders[id]
		switch {
		case l.told != "":
			l.on = s.devices[l.told]
		case holds:
			l.on = on
		default:
			l.on = only
		}
		if l.on == nil {
			continue
		}
		if l.on != was {
			// What of it a reading has is not known, except of a process that was not there yet: nothing.
			l.base, l.then = l.bytes, l.bytes
			if p.started > l.on.read.at {
				l.base = 0
			}
			if p.started > l.on.read.heldAt {
				l.then = 0
			}
		}
		l.on.live += l.bytes
		l.on.grown += int64(l.bytes) - int64(l.base)
	}
}

// placeAndWeigh is for what may be about all devices: live bytes can leave one for another.
func (s *State) placeAndWeigh(at, now int64) {
	s.place()
	for _, d := range s.devices {
		s.weigh(d, at, now)
	}
}

// limit is the memory of a device; 0: not known.
func (s *State) limit(d *device) uint64 {
	if d.total != 0 || d == s.nowhere {
		return d.total
	}
	return s.opts.DeviceMemory
}

// fresh says whether the last reading is believed.
func (s *State) fresh(d *device, now int64) bool {
	return d.read.at >= d.read.believed && s.recent(d.read.at, now)
}

// recent says whether what was read at a time is not stale. What is of a time to come is of before the clock was set back.
func (s *State) recent(at, now int64) bool {
	return at != 0 && at-now < slack && now-at <= int64(s.opts.StaleAfter)
}

// use is what is in use by the reading and what has changed since.
func (d *device) use() uint64 {
	return uint64(max(int64(min(d.read.used, math.MaxInt64/2))+d.grown-d.released, 0))
}

// used is what is known to be in use.
func (s *State) used(d *device, now int64) uint64 {
	if s.fresh(d, now) {
		return d.use()
	}
	return d.live
}

// weigh finds out whether the memory of a device is too full, by what was so at a time and is known now.
func (s *State) weigh(d *device, at, now int64) {
	full := uint64(math.Ceil(s.opts.Threshold * float64(s.limit(d))))
	at = min(at, now)
	fresh, live := s.fresh(d, now), full > 0 && d.live >= full
	reading := full > 0 && fresh && d.use() >= full
	changed := d.byReading.set(reading, at, now)
	changed = d.byLive.set(live && !fresh && !d.disagrees, at, now) || changed
	changed = d.byDoubt.set(live && !reading && d.disagrees, at, now) || changed
	due := s.due(d, now)
	if due == 0 {
		d.dueAt = 0
	}
	s.look = s.look || changed || due != 0 && d.dueAt == 0
}

// set begins or ends it, and says whether it did.
func (p *spell) set(is bool, at, now int64) bool {
	if is == (p.since != 0) {
		return false
	}
	*p = spell{}
	if is {
		*p = spell{since: max(at, 1), known: now}
	}
	return true
}

// due is since when it has been too full for long enough; 0: it has not.
func (s *State) due(d *device, now int64) int64 {
	wait := int64(s.opts.For)
	if since := d.byLive.since; since != 0 && now-since >= wait {
		return max(since+wait, d.byLive.known)
	}
	if since := d.byReading.since; since != 0 && s.fresh(d, now) {
		if wait == 0 {
			return d.byReading.known
		}
		if d.read.at-since >= wait {
			return d.read.known
		}
	}
	return 0
}

// growth is by how much a process has grown lately: since its least within one to two windows' halves.
type growth struct {
	begun     int64 // the half that is under way
	low, last uint64
	now       uint64
}

// grow takes what a process holds.
func (s *State) grow(p *process, at int64) {
	bytes := p.live.bytes
	if !p.live.known {
		for _, d := range s.devices {
			bytes += d.read.held[p.id]
		}
	}
	g, half := &p.growth, int64(s.opts.GrowthWindow/2)
	switch {
	case g.begun == 0:
		*g = growth{begun: at, low: bytes, last: bytes}
		if p.started != 0 && at-p.started < int64(s.opts.GrowthWindow) {
			g.low, g.last = 0, 0 // it is new: all of it has grown
		}
	case at-g.begun >= 2*half:
		g.begun, g.last, g.low = at, g.now, min(g.now, bytes) // it was silent: it held what it held
	case at-g.begun >= half:
		g.begun, g.last, g.low = g.begun+half, g.low, min(g.now, bytes)
	}
	g.low, g.now = min(g.low, bytes), bytes
}

// by is the growth, at now.
func (g *growth) by(now int64, window time.Duration) uint64 {
	if now-g.begun >= int64(window) {
		return 0 // nothing was told for so long
	}
	return g.now - min(g.low, g.last)
}
