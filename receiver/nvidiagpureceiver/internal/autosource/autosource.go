// SPDX-License-Identifier: Apache-2.0

// Package autosource is the gpu.Source that asks each library for what it knows best: NVML for everything but profiling, and
// for that DCGM where it is there, and else NVML's GPM. Where DCGM goes, NVML goes on; where NVML goes, the session is over.
//
// A host engine can hang, and one elsewhere be out of reach. So DCGM is asked by a goroutine, and a reading waits for that a
// little and no longer: then NVML is asked for all, and DCGM for nothing more until it has answered.
package autosource

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// patience is Source.Patience outside of tests.
const patience = 500 * time.Millisecond

// errSlow is why a DCGM that does not answer is not asked.
var errSlow = fmt.Errorf("DCGM does not answer within %s", patience)

// errHeld is the error of a closing that DCGM does not let happen yet. One that runs in this process has handles of its own.
var errHeld = fmt.Errorf("%w: its session is closed when it does", errSlow)

// Source asks two others.
type Source struct {
	nvml, dcgm gpu.Source
	now        func() time.Time
	again      time.Duration // how often a DCGM that is not there is looked for
	told       func(error)   // why DCGM is not asked; nil when it is

	// Patience is how long a reading, an opening or a closing waits for DCGM. Only tests change it.
	Patience time.Duration

	// away is where the goroutine sends what became of its errand that has dcgm and second for itself; nil while there is none.
	away     chan result
	closing  bool      // that errand ends with a closing
	asked    bool      // DCGM is open
	heard    bool      // that DCGM is asked was told
	next     time.Time // when it is looked for again
	doubted  bool      // its profiling contradicts the utilization, so that NVML's is asked for too
	second   gpu.Snapshot
	profiled gpu.Set // scratch
}

// result is what became of an errand to DCGM.
type result struct {
	open, closing bool
	err           error
}

// New returns a source that is not open. A DCGM that is not there is looked for every so often. told hears why it is not asked,
// each time that it was looked for, and nil when it is.
func New(nvml, dcgm gpu.Source, again time.Duration, told func(error)) *Source {
	return &Source{nvml: nvml, dcgm: dcgm, now: time.Now, again: again, told: told, Patience: patience}
}

// Open opens NVML, which must be there, and DCGM, which need not.
func (s *Source) Open(ctx context.Context, events func(gpu.Event)) error {
	if err := s.nvml.Open(ctx, events); err != nil {
		return err
	}
	s.doubted, s.heard, s.next = false, false, time.Time{}
	s.ask(ctx, nil)
	return nil
}

// Close closes both. Where DCGM does not answer, NVML is closed all the same, and the error says so.
func (s *Source) Close() error {
	s.asked = false
	if before := s.away; before == nil || !s.closing {
		s.send(func() result {
			if before != nil {
				<-before
			}
			return result{closing: true, err: s.dcgm.Close()}
		})
		s.closing = true
	}
	done, back := s.wait(context.Background(), s.Patience)
	if !back {
		done.err = errHeld
	}
	return errors.Join(done.err, s.nvml.Close())
}

// send sends a goroutine to DCGM.
func (s *Source) send(errand func() result) {
	away := make(chan result, 1)
	s.away, s.closing = away, false
	go func() { away <- errand() }()
}

// wait waits for the goroutine that is away, and is false where it does not come back in time.
func (s *Source) wait(ctx context.Context, patience time.Duration) (result, bool) {
	if len(s.away) == 0 && patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case r := <-s.away:
			s.away = nil
			return r, true
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	select {
	case r := <-s.away:
		s.away = nil
		return r, true
	default:
		return result{}, false
	}
}

// ask reads DCGM, where it is wanted, and opens it before where it is not. It is false where nothing came of that.
func (s *Source) ask(ctx context.Context, want *gpu.Set) bool {
	if s.away != nil {
		late, back := s.wait(ctx, 0)
		if !back {
			return false
		}
		s.learn(late)
	}
	asked, now := s.asked, s.now()
	if !asked {
		if now.Before(s.next) {
			return false
		}
		s.next = now.Add(s.again)
	}
	var points gpu.Set
	if want != nil {
		points = *want
	}
	s.send(func() result {
		if !asked {
			// Events are NVML's: DCGM's would be the same ones again.
			if err := s.dcgm.Open(ctx, func(gpu.Event) {}); err != nil {
				return result{err: err}
			}
		}
		if points.Empty() {
			return result{open: true}
		}
		s.second.Reset()
		if err := s.dcgm.Read(ctx, &points, &s.second); err != nil {
			_ = s.dcgm.Close() // of a session that is over: why, is told
			return result{err: err}
		}
		return result{open: true}
	})
	done, back := s.wait(ctx, s.Patience)
	if !back {
		s.tell(errSlow)
		return false
	}
	s.learn(done)
	return done.err == nil
}

// learn takes what became of an errand.
func (s *Source) learn(r result) {
	if r.closing {
		return
	}
	if s.asked && r.err != nil {
		s.next = time.Time{} // the session is over: another one may be possible at once
	}
	s.asked = r.open
	s.tell(r.err)
}

func (s *Source) tell(err error) {
	if err != nil || !s.heard {
		s.told(err)
	}
	s.heard = err == nil
}

// Read fills a snapshot.
func (s *Source) Read(ctx context.Context, want *gpu.Set, to *gpu.Snapshot) error {
	s.profiled = *want
	rest := *want
	rest.Minus(&gpu.Profiled)
	s.profiled.Minus(&rest)
	if s.profiled.Empty() || !s.ask(ctx, &s.profiled) {
		return s.nvml.Read(ctx, want, to)
	}
	if s.doubted {
		rest = *want
	}
	if err := s.nvml.Read(ctx, &rest, to); err != nil {
		return err
	}
	s.doubted = false
	for _, d := range to.Devices {
		if from := s.match(d); from != nil && d.State != gpu.Lost {
			s.merge(d, from)
		}
	}
	for why, n := range s.second.Refused {
		to.Refused[why] += n
	}
	return nil
}

// match finds what DCGM calls a device. They do not always agree on the UUID of an instance, but on its numbers.
func (s *Source) match(d *gpu.Device) *gpu.Device {
	if from := s.second.Find(d.UUID); from != nil || !d.MIG() {
		return from
	}
	for _, from := range s.second.Devices {
		if from.Parent == d.Parent && from.GPUInstance == d.GPUInstance && from.ComputeInstance == d.ComputeInstance {
			return from
		}
	}
	return nil
}

// merge takes DCGM's profiling, unless the device is busy and it says 0. Then NVML's is told, from the next reading on.
func (s *Source) merge(d, from *gpu.Device) {
	from.Copy(gpu.Utilization, d)
	believed := from.CheckProfiling()
	for p := range gpu.DevicePoints {
		if believed && s.profiled.Has(p) {
			d.Copy(p, from)
		}
	}
	if !believed {
		d.Implausible, s.doubted = true, true
	}
}
