// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"cmp"
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/nvml"
)

// card is a GPU that was seen: who it is, and what is kept of it between readings.
type card struct {
	index int
	dev   nvml.Device
	here  bool // dev is a handle of this session

	uuid, model, serial, firmware, pci string // uuid is empty of one that could not be asked: it never was here
	learnt                             bool
	deaf                               nvml.Outcome // of the attempt to hear its Xids

	memory    bool   // it has told memory of its own
	reasons   uint64 // for which its clocks can be down; 0 is not known
	noMIG     bool   // it cannot be divided
	canMIG    bool   // it has told whether it is divided
	divided   bool   // when it was last asked
	instances []instance
	profile   profile
	seen      uint64 // the newest sample of a process' load, in microseconds since 1970

	rows, pages gpu.State // what its memory said when it was last asked: OK, Degraded or PredictedFailure
}

// instance is a part of a divided GPU, at its index.
type instance struct {
	uuid        string // empty where there is none
	dev         nvml.Device
	name        string // of the profile, e.g. 1g.10gb
	named       bool
	gpu, comput uint32
	numbered    bool // gpu and comput are known
	silent      bool // it does not answer as it should just now
	profile     profile
	device      *gpu.Device // of the reading under way
}

// findAll finds the GPUs with indices below n, and is false where there is none. One that the driver counts and that does not
// say who it is may be one that was seen before, at its index; else it is lost and has no name.
func (s *Source) findAll(n int) bool {
	s.cards = slices.DeleteFunc(s.cards, func(c *card) bool { return c.uuid == "" })
	var silent []int // indices
	lost := false
	for i := range n {
		switch o := s.find(i); o {
		case nvml.OK:
		case nvml.Unsupported, nvml.Absent: // not for us, as of a GPU that belongs to another container
		default:
			silent = append(silent, i)
			lost = lost || o == nvml.Lost
		}
	}
	if len(s.cards) == 0 && !lost {
		return false
	}
	silent = slices.DeleteFunc(silent, func(i int) bool {
		return slices.ContainsFunc(s.cards, func(c *card) bool { return !c.here && c.index == i })
	})
	for _, i := range silent {
		s.cards = append(s.cards, &card{index: i, deaf: nvml.Lost})
	}
	slices.SortStableFunc(s.cards, func(a, b *card) int { return cmp.Compare(a.index, b.index) })
	return true
}

// find takes the handle of the GPU with an index. One that was seen before stays among the cards whatever the outcome.
func (s *Source) find(index int) nvml.Outcome {
	dev, o := s.lib.Device(index)
	if o != nvml.OK {
		return o
	}
	uuid, o := dev.UUID()
	if o != nvml.OK {
		return o
	}
	c := s.card(uuid)
	c.index, c.dev, c.here, c.noMIG = index, dev, true, false
	c.learn()
	return nvml.OK
}

// learn asks who a GPU is. What could not be told just now is asked for again.
func (c *card) learn() {
	if c.learnt {
		return
	}
	c.learnt = true
	for _, of := range [...]struct {
		text *string
		ask  func(nvml.Device) (string, nvml.Outcome)
	}{{&c.model, nvml.Device.Name}, {&c.serial, nvml.Device.Serial}, {&c.firmware, nvml.Device.VBIOS}, {&c.pci, kernelBus}} {
		if *of.text != "" {
			continue
		}
		text, o := of.ask(c.dev)
		*of.text = text
		c.learnt = c.learnt && settled(o)
	}
}

// throttled are the reasons for which the clocks of the card can be down: all where it does not tell, and those for which they
// were.
func (c *card) throttled(r *reading, now uint64) uint64 {
	if c.reasons == 0 {
		bits, o := c.dev.SupportedEventReasons()
		switch {
		case r.ok(o):
			c.reasons = bits
		case settled(o):
			c.reasons = gpu.AllThrottle
		default:
			return gpu.AllThrottle
		}
	}
	c.reasons |= now
	return c.reasons
}

// settled reports whether an outcome is for good, and not of a moment.
func settled(o nvml.Outcome) bool { return o <= nvml.Absent }

// card is the card with a UUID, a new one where it was not seen.
func (s *Source) card(uuid string) *card {
	for _, c := range s.cards {
		if c.uuid == uuid {
			return c
		}
	}
	c := &card{uuid: uuid}
	s.cards = append(s.cards, c)
	return c
}

// profiled reports whether a measurement of the card, or of a part of it, is under way.
func (c *card) profiled() bool {
	return c.profile.has > 0 || slices.ContainsFunc(c.instances, func(at instance) bool { return at.profile.has > 0 })
}

// release gives back what belongs to the session.
func (c *card) release() {
	c.here = false
	c.profile.free()
	for i := range c.instances {
		c.instances[i].profile.free()
	}
	c.instances = c.instances[:0]
}

// introduce tells the snapshot who the card is.
func (c *card) introduce(into *gpu.Snapshot) *gpu.Device {
	d := into.Add()
	d.UUID, d.Index, d.Model, d.Serial, d.Firmware, d.PCI = c.uuid, c.index, c.model, c.serial, c.firmware, c.pci
	d.Deaf = c.deaf != nvml.OK
	return d
}

// kernelBus is the address on the bus as the kernel spells it.
func kernelBus(dev nvml.Device) (string, nvml.Outcome) {
	bus, o := dev.PCI()
	return gpu.KernelBus(bus), o
}
