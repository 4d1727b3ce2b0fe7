// SPDX-License-Identifier: Apache-2.0

package dcgmsource

import (
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/dcgm"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// device is a GPU with its instances.
type device struct {
	entity    dcgm.Entity
	who       gpu.Device // its identity
	instances []instance
}

// instance is a MIG device.
type instance struct {
	who gpu.Device
	// entity is what its values are those of: a GPU instance. Of one that is shared by several compute instances, which are
	// several MIG devices, the values are nobody's: then there is none.
	entity dcgm.Entity
	sole   bool
}

var (
	gpuIdentity      = []uint16{fieldDriver, fieldName, fieldIndex, fieldSerial, fieldUUID, fieldMinor, fieldPCI, fieldMIG, fieldVBIOS}
	instanceIdentity = []uint16{fieldName, fieldVisible}
)

// identify finds out which devices there are.
func (s *Source) identify() error {
	entities, err := s.session.GPUs(s.whole[:0])
	if err != nil {
		return err
	}
	s.whole = entities
	if s.parts, err = s.session.Parts(s.parts[:0]); err != nil {
		return err
	}
	if err := s.session.Latest(entities, gpuIdentity, true, &s.values); err != nil {
		return err
	}
	s.setClock()
	s.gpus = s.gpus[:0]
	for _, e := range entities {
		d := device{entity: e, who: gpu.Device{Index: int(e.ID), Minor: -1}}
		for i := range s.values.Len() {
			if v := s.values.At(i); v.Entity() == e {
				s.learn(&d.who, v)
			}
		}
		s.gpus = append(s.gpus, d) // one that is lost from the start, too, though it cannot be named
	}
	return s.identifyParts()
}

// setClock takes the time of the host engine from values that it has just read. A second is no difference: it read them a little
// ago, and clocks are never quite the same.
func (s *Source) setClock() {
	var newest int64
	for i := range s.values.Len() {
		if v := s.values.At(i); v.Status() == nil {
			newest = max(newest, v.Time())
		}
	}
	s.ahead = 0
	if ahead := time.Duration(newest - s.now().UnixNano()); newest > 0 && ahead.Abs() > time.Second {
		s.ahead = ahead
	}
}

func (s *Source) learn(d *gpu.Device, v dcgm.Value) {
	number, ok := uint64(0), false
	if _, n, presence := v.Number(); presence == dcgm.Present && v.Status() == nil {
		number, ok = n, true
	}
	switch v.Field() {
	case fieldDriver:
		if text := v.Text(); text != "" {
			s.driver = text
		}
	case fieldName:
		d.Model = v.Text()
	case fieldSerial:
		d.Serial = v.Text()
	case fieldUUID:
		d.UUID = v.Text()
	case fieldPCI:
		d.PCI = gpu.KernelBus(v.Text())
	case fieldVBIOS:
		d.Firmware = v.Text()
	case fieldIndex:
		if ok {
			d.Index = int(number)
		}
	case fieldMinor:
		if ok {
			d.Minor = int(number)
		}
	case fieldMIG:
		d.MIGEnabled = ok && number == 1
	}
}

func (s *Source) identifyParts() error {
	s.pieces = s.pieces[:0]
	for _, p := range s.parts {
		s.pieces = append(s.pieces, p.Entity)
	}
	if err := s.session.Latest(s.pieces, instanceIdentity, true, &s.values); err != nil {
		return err
	}
	text := func(e dcgm.Entity, field uint16) string {
		for i := range s.values.Len() {
			if v := s.values.At(i); v.Entity() == e && v.Field() == field {
				return v.Text()
			}
		}
		return ""
	}
	for _, p := range s.parts {
		at := slices.IndexFunc(s.gpus, func(d device) bool { return d.who.UUID == p.GPU && p.GPU != "" })
		if p.Entity.Kind != dcgm.ComputeInstance || at < 0 {
			continue
		}
		d := &s.gpus[at]
		in := instance{entity: p.Parent, sole: s.sole(p), who: gpu.Device{
			UUID: text(p.Entity, fieldVisible), Parent: p.GPU, Index: len(d.instances), Minor: -1, Model: d.who.Model,
			Profile: text(p.Parent, fieldName), GPUInstance: p.GPUInstance, ComputeInstance: p.ComputeInstance,
		}}
		if in.who.UUID == "" { // as drivers before R470 named it
			in.who.UUID = fmt.Sprintf("MIG-%s/%d/%d", p.GPU, p.GPUInstance, p.ComputeInstance)
		}
		d.instances = append(d.instances, in)
	}
	return nil
}

// sole reports whether a compute instance has its GPU instance for itself.
func (s *Source) sole(p dcgm.Part) bool {
	for _, other := range s.parts {
		if other.Parent == p.Parent && other.Entity != p.Entity {
			return false
		}
	}
	return true
}
