// SPDX-License-Identifier: Apache-2.0

package dcgmsource

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/dcgm"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// errStale is a host engine that does not read any more what it was asked to watch.
var errStale = errors.New("the host engine does not renew its values")

// errOthers are GPUs that the host engine did not have before, or that could not say who they are.
var errOthers = errors.New("the host engine has other GPUs than before")

// askAgain is how often a GPU that could not say who it is is asked again.
const askAgain = 10 * time.Second

// reading is what one Read is about.
type reading struct {
	want         *gpu.Set
	s            *gpu.Snapshot
	now          int64 // by the host engine's clock
	fresh, stale int
}

// Read fills a snapshot.
func (s *Source) Read(ctx context.Context, want *gpu.Set, to *gpu.Snapshot) error {
	if s.session == nil {
		return errors.New("not open")
	}
	if err := s.follow(); err != nil {
		return err
	}
	r := &reading{want: want, s: to, now: s.now().Add(s.ahead).UnixNano()}
	to.Driver = s.driver
	s.whole, s.pieces = s.whole[:0], s.pieces[:0]
	for i := range s.gpus {
		d := &s.gpus[i]
		s.whole = append(s.whole, d.entity)
		add(to, &d.who)
		if d.who.UUID == "" {
			to.Devices[len(to.Devices)-1].State = gpu.Lost
		}
		for j := range d.instances {
			add(to, &d.instances[j].who)
			if d.instances[j].sole {
				s.pieces = append(s.pieces, d.instances[j].entity)
			}
		}
	}
	for _, of := range []struct {
		entities []dcgm.Entity
		mig      bool
	}{{s.whole, false}, {s.pieces, true}} {
		s.wanted(want, of.mig)
		if len(s.ids) == 0 || len(of.entities) == 0 {
			continue
		}
		if err := s.session.Latest(of.entities, s.ids, false, &s.values); err != nil {
			return err
		}
		for i := range s.values.Len() {
			s.take(r, s.values.At(i))
		}
	}
	switch {
	case r.fresh > 0 || r.stale == 0:
		return nil
	case *want == s.opts.Points:
		return errStale
	}
	var all gpu.Snapshot // perhaps it is only these that are not renewed
	return s.Read(ctx, &s.opts.Points, &all)
}

// follow identifies the devices anew when they are divided otherwise than before. Where there are others, the session has to
// begin anew: they are not watched in this one.
func (s *Source) follow() error {
	entities, err := s.session.GPUs(s.whole[:0])
	if err != nil {
		return err
	}
	s.whole = entities
	if !slices.EqualFunc(entities, s.gpus, func(e dcgm.Entity, d device) bool { return d.entity == e }) {
		return errOthers
	}
	if err := s.askNameless(); err != nil {
		return err
	}
	if s.found, err = s.session.Parts(s.found[:0]); err != nil {
		return err
	}
	if slices.Equal(s.found, s.parts) {
		return nil
	}
	if err := s.identify(); err != nil {
		return err
	}
	return s.watch()
}

// askNameless asks the GPUs that could not say who they are, now and then; errOthers is that one can.
func (s *Source) askNameless() error {
	now := s.now()
	if now.Before(s.askAt) {
		return nil
	}
	s.askAt = now.Add(askAgain)
	for i := range s.gpus {
		d := &s.gpus[i]
		if d.who.UUID != "" {
			continue
		}
		if err := s.session.Latest([]dcgm.Entity{d.entity}, []uint16{fieldUUID}, true, &s.values); err != nil {
			return err
		}
		if s.values.Len() == 1 && s.values.At(0).Text() != "" {
			return errOthers
		}
	}
	return nil
}

func add(s *gpu.Snapshot, who *gpu.Device) {
	d := s.Add()
	d.UUID, d.Parent, d.Index, d.Minor, d.Model, d.Serial = who.UUID, who.Parent, who.Index, who.Minor, who.Model, who.Serial
	d.Firmware, d.PCI, d.Profile, d.MIGEnabled = who.Firmware, who.PCI, who.Profile, who.MIGEnabled
	d.GPUInstance, d.ComputeInstance = who.GPUInstance, who.ComputeInstance
}

// wanted leaves the fields that are wanted in s.ids.
func (s *Source) wanted(want *gpu.Set, mig bool) {
	s.ids = s.ids[:0]
	for i := range s.fields {
		if f := &s.fields[i]; mig && !f.mig || f.id != fieldXid && !want.Any(f.points...) {
			continue
		}
		s.ids = append(s.ids, s.fields[i].id)
	}
}

// of is the device in the snapshot that an entity's values are those of.
func (s *Source) of(r *reading, e dcgm.Entity) *gpu.Device {
	at := 0
	for i := range s.gpus {
		if s.gpus[i].entity == e {
			return r.s.Devices[at]
		}
		at++
		for _, in := range s.gpus[i].instances {
			if in.sole && in.entity == e {
				return r.s.Devices[at]
			}
			at++
		}
	}
	return nil
}

// take takes a value.
func (s *Source) take(r *reading, v dcgm.Value) {
	d := s.of(r, v.Entity())
	if d == nil || d.UUID == "" {
		return
	}
	switch status := v.Status(); {
	case errors.Is(status, dcgm.GPUIsLost), errors.Is(status, dcgm.ResetRequired):
		d.State = gpu.Lost
		return
	case v.Field() == fieldXid:
		switch {
		case status == nil:
			s.heard(d, v)
		case errors.Is(status, dcgm.NotSupported), errors.Is(status, dcgm.NotWatched):
			d.Deaf = true
		}
		return
	case errors.Is(status, dcgm.NotSupported), errors.Is(status, dcgm.NotWatched), errors.Is(status, dcgm.NoData):
		return
	case status != nil:
		d.Refuse(gpu.Failed)
		return
	}
	f := s.field(v.Field())
	if f == nil {
		return
	}
	number, integer, presence := v.Number()
	switch {
	case presence == dcgm.Blank:
		d.Refuse(gpu.Blank)
	case presence == dcgm.Absent:
		if v.Field() == fieldMemory && !d.MIG() {
			d.Unified = true
		}
	case r.now-v.Time() > int64(staleIntervals*s.opts.Interval(f.group)+clockDifference):
		d.Refuse(gpu.Stale)
		r.stale++
	default:
		r.fresh++
		set(d, f, r.want, number, integer)
	}
}

func (s *Source) field(id uint16) *field {
	for i := range s.fields {
		if s.fields[i].id == id {
			return &s.fields[i]
		}
	}
	return nil
}

func set(d *gpu.Device, f *field, want *gpu.Set, number float64, integer uint64) {
	if f.id == fieldThrottle {
		d.SetThrottle(integer, gpu.AllThrottle) // which of them it supports, DCGM does not tell
		return
	}
	for _, p := range f.points {
		row := &gpu.Rows[p]
		switch {
		case !want.Has(p):
		case row.Metric.Double:
			d.Set(p, row.DCGM.In(number))
		default:
			d.SetInt(p, integer*uint64(row.DCGM.Scale))
		}
	}
}

// heard tells of an Xid that was not there before. DCGM keeps the last one only: of two within an interval, the first is
// not seen. One from before the session is no news.
func (s *Source) heard(d *gpu.Device, v dcgm.Value) {
	code, presence := v.Int()
	if presence != dcgm.Present || code == 0 || v.Time() <= max(s.opened, s.xids[d.UUID]) {
		return
	}
	s.xids[d.UUID] = v.Time()
	s.events(gpu.Event{Time: v.Time() - int64(s.ahead), Kind: gpu.Xid, UUID: d.UUID, Code: code})
}
