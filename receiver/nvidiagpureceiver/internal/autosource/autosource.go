// SPDX-License-Identifier: Apache-2.0

// Package autosource is the gpu.Source that asks each library for what it knows best: NVML for everything but profiling, and
// for that DCGM where it is there, and else NVML's GPM. Where DCGM goes, NVML goes on; where NVML goes, the session is over.
package autosource

import (
	"context"
	"errors"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// again is how often a DCGM that is not there is looked for.
const again = time.Minute

// Source asks two others.
type Source struct {
	nvml, dcgm gpu.Source
	now        func() time.Time
	told       func(error) // why DCGM is not asked; nil when it is

	asked    bool      // DCGM is open
	next     time.Time // when it is looked for again
	doubted  bool      // its profiling contradicts the utilization, so that NVML's is asked for too
	second   gpu.Snapshot
	profiled gpu.Set // scratch
}

// New returns a source that is not open. told hears why DCGM is not asked, each time that it was looked for, and nil when it
// is.
func New(nvml, dcgm gpu.Source, told func(error)) *Source {
	return &Source{nvml: nvml, dcgm: dcgm, now: time.Now, told: told}
}

// Open opens NVML, which must be there, and DCGM, which need not.
func (s *Source) Open(ctx context.Context, events func(gpu.Event)) error {
	if err := s.nvml.Open(ctx, events); err != nil {
		return err
	}
	s.doubted, s.next = false, time.Time{}
	s.look(ctx)
	return nil
}

// look looks for DCGM. Events are NVML's: DCGM's would be the same ones again.
func (s *Source) look(ctx context.Context) {
	now := s.now()
	if s.asked || now.Before(s.next) {
		return
	}
	s.next = now.Add(again)
	err := s.dcgm.Open(ctx, func(gpu.Event) {})
	s.asked = err == nil
	s.told(err)
}

// Close closes both.
func (s *Source) Close() error {
	s.asked = false
	return errors.Join(s.dcgm.Close(), s.nvml.Close())
}

// Read fills a snapshot.
func (s *Source) Read(ctx context.Context, want *gpu.Set, to *gpu.Snapshot) error {
	s.profiled = *want
	rest := *want
	rest.Minus(&gpu.Profiled)
	s.profiled.Minus(&rest)
	if s.profiled.Empty() || !s.ask(ctx) {
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

// ask reads DCGM. It is false where nothing came of that.
func (s *Source) ask(ctx context.Context) bool {
	s.look(ctx)
	if !s.asked {
		return false
	}
	s.second.Reset()
	if err := s.dcgm.Read(ctx, &s.profiled, &s.second); err != nil {
		s.asked, s.next = false, time.Time{}
		_ = s.dcgm.Close() // of a session that is over: why, is told
		s.told(err)
		return false
	}
	return true
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
