// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/nvml"
)

const (
	// closest is how close two samples may be: NVML says 100 ms.
	closest = 100 * time.Millisecond
	// A device that does not have performance monitoring is asked again: it may only not have it just now.
	askAbleAgain = 10 * time.Minute
)

// profile is GPU performance monitoring of a device: a reading tells what happened since the one before, and waits for
// nothing. One that comes too soon after it tells the same once more.
type profile struct {
	able          bool      // the device has it
	asked         time.Time // when it was asked for that; zero while it did not answer
	refused       bool      // it has, and could not sample when it was last asked, as while it is divided
	before, spare nvml.Sample
	taken         time.Time // when before was; zero while there is none
	has           int       // how many of the samples there are
	told          []measured
}

// measured is a point and what was measured of it last.
type measured struct {
	point gpu.Point
	value float64
}

func readProfile(s *Source, c *card, r *reading) {
	c.profile.read(s, r, c.dev, nil)
}

// read takes a sample of a GPU, or of a part of it, and tells what is between it and the last one.
func (p *profile) read(s *Source, r *reading, card nvml.Device, part *instance) {
	now := s.now()
	if !p.able && now.Sub(p.asked) >= askAbleAgain {
		able, o := card.MeasuresPerformance()
		if !r.ok(o) {
			return
		}
		p.asked, p.able = now, able
	}
	if !p.able {
		return
	}
	if now.Sub(p.taken) < closest {
		p.tell(s, r)
		return
	}
	if !p.allocate(s, r) {
		return
	}
	p.told = p.told[:0]
	var o nvml.Outcome
	if part == nil {
		o = p.spare.Take(card)
	} else {
		o = p.spare.TakeInstance(card, part.gpu)
	}
	p.refused = o == nvml.Unsupported
	if !r.ok(o) {
		if p.refused {
			p.taken = time.Time{} // what it was then and what it will be are not compared
		}
		return
	}
	last := p.taken
	p.before, p.spare, p.taken = p.spare, p.before, now
	if last.IsZero() || !r.ok(s.plan.gpm.Between(p.spare, p.before)) {
		return
	}
	for i, point := range s.plan.gpmOf {
		if v, o := s.plan.gpm.Value(i); r.ok(o) {
			p.told = append(p.told, measured{point, gpu.Rows[point].GPM.In(v)})
		}
	}
	p.tell(s, r)
}

// tell tells what was measured last.
func (p *profile) tell(s *Source, r *reading) {
	for i := range p.told {
		if s.plan.want.Has(p.told[i].point) {
			r.d.Set(p.told[i].point, p.told[i].value)
		}
	}
}

// allocate makes room for the two samples.
func (p *profile) allocate(s *Source, r *reading) bool {
	for p.has < 2 {
		sample, o := s.lib.NewSample()
		if !r.ok(o) {
			return false
		}
		p.before, p.spare = p.spare, sample
		p.has++
	}
	return true
}

// free gives the room back and forgets the device.
func (p *profile) free() {
	if p.has > 0 {
		p.spare.Free()
	}
	if p.has > 1 {
		p.before.Free()
	}
	*p = profile{}
}
