// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/nvml"
)

// readInstances reads the parts of a divided GPU. They are looked for at each reading: an administrator makes and removes
// them at any time, and a handle can be another part's from one reading to the next.
func (s *Source) readInstances(c *card, r *reading, into *gpu.Snapshot) {
	if c.noMIG || r.over() {
		return
	}
	divided, o := c.dev.MIGEnabled()
	if !r.ok(o) {
		c.noMIG = o == nvml.Unsupported || o == nvml.Absent
		return
	}
	if !divided {
		c.dropInstances(0)
		return
	}
	r.d.MIGEnabled = true
	n, o := c.dev.MaxInstances()
	if !r.ok(o) {
		return
	}
	c.dropInstances(n)
	for len(c.instances) < n {
		c.instances = append(c.instances, instance{})
	}
	for i := range c.instances {
		if !r.over() {
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

// readInstance reads the part at an index, where there is one.
func (s *Source) readInstance(c *card, whole *reading, index int, into *gpu.Snapshot) {
	at := &c.instances[index]
	at.device = nil
	dev, o := c.dev.Instance(index)
	var uuid string
	if whole.ok(o) {
		uuid, o = dev.UUID()
		whole.ok(o)
	}
	if uuid != at.uuid { // another one, or none
		at.profile.free()
		*at = instance{uuid: uuid}
		if uuid != "" {
			name, _ := dev.Name()
			_, at.name, _ = strings.Cut(name, "MIG ")
			at.gpu, at.comput, _ = dev.InstanceIDs()
		}
	}
	if uuid == "" {
		return
	}
	at.dev = dev
	d := into.Add()
	d.UUID, d.Parent, d.Index, d.Profile, d.GPUInstance, d.ComputeInstance = uuid, c.uuid, index, at.name, at.gpu, at.comput
	d.Model, d.Serial, d.Firmware, d.PCI = c.model, c.serial, c.firmware, c.pci
	at.device = d
	r := &s.part
	*r = reading{d: d}
	want := &s.plan.want
	if want.Any(gpu.MemoryLimit, gpu.MemoryUsage, gpu.MemoryReserved, gpu.MemoryUtilization, gpu.MemoryUnattributed) {
		r.memory(dev)
	}
	if len(s.plan.gpmOf) > 0 && !r.over() {
		at.profile.read(s, r, c.dev, at.gpu)
	}
	whole.end = max(whole.end, r.end)
}

// instanceOf is the part in which a process runs, nil where it is in none of those that were read.
func (c *card) instanceOf(p *nvml.Process) *gpu.Device {
	for i := range c.instances {
		if at := &c.instances[i]; at.device != nil && at.gpu == p.GPUInstance && at.comput == p.ComputeInstance {
			return at.device
		}
	}
	return nil
}
