// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/nvml"
)

// readInstances reads the parts of a divided GPU. They are looked for at each reading: an administrator makes and removes
// them at any time, and a handle can be another part's from one reading to the next. Where a question fails, what was known
// holds on: a failure is no other division.
func (s *Source) readInstances(c *card, r *reading, into *gpu.Snapshot) {
	if c.noMIG || r.over() {
		return
	}
	divided, o := c.dev.MIGEnabled()
	n := 0
	if r.ok(o) {
		c.canMIG = true
	}
	if o == nvml.OK && divided {
		n, o = c.dev.MaxInstances()
		r.ok(o)
	}
	switch {
	case r.over():
		return
	case !settled(o), o == nvml.Unsupported && c.canMIG:
		r.d.MIGEnabled = c.divided
		for i := range c.instances {
			if c.instances[i].uuid != "" {
				c.instances[i].silent = true
				s.readInstance(c, r, i, into)
			}
		}
		return
	}
	c.noMIG = o == nvml.Unsupported
	c.divided = o == nvml.OK && divided
	r.d.MIGEnabled = c.divided
	c.dropInstances(n)
	for len(c.instances) < n {
		c.instances = append(c.instances, instance{})
	}
	for i := range c.instances {
		if !r.over() {
			c.instances[i].identify(c, r, i)
		}
	}
	for i := range c.instances {
		if c.instances[i].uuid != "" && !r.over() {
			s.readInstance(c, r, i, into)
		}
	}
}

// dropInstances forgets those from an index on.
func (c *card) dropInstances(from int) {
	for i := from; i < len(c.instances); i++ {
		c.instances[i].profile.free()
	}
	c.instances = c.instances[:min(from, len(c.instances))]
}

// identify finds out which part is at an index. What it could not tell of itself just now is asked for again.
func (at *instance) identify(c *card, r *reading, index int) {
	at.device = nil
	dev, o := c.dev.Instance(index)
	var uuid string
	if r.ok(o) {
		uuid, o = dev.UUID()
		r.ok(o)
	}
	if at.silent = !settled(o) && at.uuid != ""; at.silent {
		return
	}
	if uuid != at.uuid { // another one, or none
		at.profile.free()
		*at = instance{uuid: uuid}
	}
	if uuid == "" {
		return
	}
	at.dev = dev
	if !at.named {
		name, o := dev.Name()
		r.ok(o)
		_, at.name, _ = strings.Cut(name, "MIG ")
		at.named = settled(o)
	}
	if !at.numbered {
		at.gpu, at.comput, o = dev.InstanceIDs()
		at.numbered = r.ok(o)
	}
}

// sole reports whether a part has its GPU instance for itself: then its profiling and its memory are its own. A part that does
// not tell its number may be in any.
func (c *card) sole(at *instance) bool {
	for i := range c.instances {
		other := &c.instances[i]
		if other != at && other.uuid != "" && (!other.numbered || other.gpu == at.gpu) {
			return false
		}
	}
	return at.numbered
}

// readInstance reads the part at an index.
func (s *Source) readInstance(c *card, whole *reading, index int, into *gpu.Snapshot) {
	at := &c.instances[index]
	d := into.Add()
	d.UUID, d.Parent, d.Index, d.Profile, d.GPUInstance, d.ComputeInstance = at.uuid, c.uuid, index, at.name, at.gpu, at.comput
	d.Model, d.Serial, d.Firmware, d.PCI = c.model, c.serial, c.firmware, c.pci
	sole := c.sole(at)
	d.Shared = !sole
	at.device = d
	if at.silent {
		d.State = gpu.Degraded
		return
	}
	r := &s.part
	*r = reading{d: d}
	want := &s.plan.want
	if want.Any(gpu.MemoryLimit, gpu.MemoryUsage, gpu.MemoryReserved, gpu.MemoryUtilization, gpu.MemoryUnattributed) {
		r.memory(at.dev)
	}
	switch {
	case !sole:
		at.profile.free() // what is measured is all of them together
	case len(s.plan.gpmOf) > 0 && !r.over():
		at.profile.read(s, r, c.dev, at)
	}
	whole.end = max(whole.end, r.end)
}

// instanceOf is the part in which a process runs, nil where it is in none of those that were read.
func (c *card) instanceOf(p *nvml.Process) *gpu.Device {
	for i := range c.instances {
		if at := &c.instances[i]; at.device != nil && at.numbered && at.gpu == p.GPUInstance && at.comput == p.ComputeInstance {
			return at.device
		}
	}
	return nil
}
