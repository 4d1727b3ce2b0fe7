// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"cmp"
	"slices"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/nvml"
)

// card is a GPU that was seen: who it is, and what is kept of it between readings.
type card struct {
	index int
	dev   nvml.Device
	here  bool // dev is a handle of this session

	uuid, model, serial, firmware, pci string

	noMIG     bool // it cannot be divided
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
	gpu, comput uint32
	profile     profile
	device      *gpu.Device // of the reading under way
}

// find takes the handle of the GPU with an index, and learns who it is where that is not known.
func (s *Source) find(index int) {
	dev, o := s.lib.Device(index)
	if o != nvml.OK {
		return // a lost one that was seen before stays among the cards
	}
	uuid, o := dev.UUID()
	if o != nvml.OK {
		return
	}
	c := s.card(uuid)
	c.index, c.dev, c.here, c.noMIG = index, dev, true, false
	if c.model == "" {
		c.model, _ = dev.Name()
		c.serial, _ = dev.Serial()
		c.firmware, _ = dev.VBIOS()
		bus, _ := dev.PCI()
		c.pci = kernelBus(bus)
	}
	slices.SortStableFunc(s.cards, func(a, b *card) int { return cmp.Compare(a.index, b.index) })
}

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
	return d
}

// kernelBus spells NVML's 00000000:00:09.0 as the kernel does: 0000:00:09.0.
func kernelBus(bus string) string {
	domain, rest, ok := strings.Cut(strings.ToLower(bus), ":")
	if !ok {
		return ""
	}
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	return domain + ":" + rest
}
