// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/nvml"
)

// readProcesses reads who uses a GPU, and puts those that run in a part of it there.
func (s *Source) readProcesses(c *card, r *reading) {
	if !s.plan.processes || r.over() {
		return
	}
	list, sane, o := c.dev.Processes(s.list[:0], r.d.Int(gpu.MemoryLimit))
	s.list = list
	switch {
	case !r.ok(o):
		// A divided GPU tells all of them only to the privileged.
		if o == nvml.Absent && r.d.MIGEnabled {
			s.readProcessesOfInstances(c, r)
		}
	case !sane:
		r.d.Refuse(gpu.Scrambled)
	default:
		r.d.Known = true
		for i := range c.instances {
			if d := c.instances[i].device; d != nil {
				d.Known = true
			}
		}
		for i := range list {
			d := c.instanceOf(&list[i])
			if d == nil {
				d = r.d
			}
			d.AddProcess(list[i].PID).Memory = list[i].Memory
		}
	}
	if s.plan.utilization && r.d.Known && len(r.d.Processes) > 0 && !r.over() {
		s.readLoads(c, r)
	}
}

// readProcessesOfInstances asks each part by itself.
func (s *Source) readProcessesOfInstances(c *card, whole *reading) {
	all := true
	for i := range c.instances {
		at := &c.instances[i]
		if at.device == nil || whole.over() {
			continue
		}
		r := reading{d: at.device}
		list, sane, o := at.dev.Processes(s.list[:0], at.device.Int(gpu.MemoryLimit))
		s.list = list
		switch {
		case !r.ok(o):
			all = false
		case !sane:
			at.device.Refuse(gpu.Scrambled)
			all = false
		default:
			at.device.Known = true
			for j := range list {
				at.device.AddProcess(list[j].PID).Memory = list[j].Memory
			}
		}
		whole.end = max(whole.end, r.end)
	}
	whole.d.Known = all
}

// readLoads reads the share that each process had since the last reading. Who was idle has none. A process of which there are
// several samples has the newest.
func (s *Source) readLoads(c *card, r *reading) {
	loads, o := c.dev.ProcessLoads(s.loads[:0], c.seen)
	s.loads = loads
	if !r.ok(o) {
		return
	}
	for i := range loads {
		load := &loads[i]
		p := r.d.Process(load.PID)
		if p == nil || !newest(loads, load) {
			continue
		}
		for task, percent := range [...]uint32{load.SM, load.Encoder, load.Decoder} {
			if percent > 100 {
				r.d.Refuse(gpu.OutOfRange)
				continue
			}
			p.Utilization[task] = float64(percent) / 100
		}
	}
	// A sample from the future would hide all that follow.
	bound := uint64(s.now().Add(time.Second).UnixMicro())
	for i := range loads {
		if at := loads[i].Time; at > c.seen && at < bound {
			c.seen = at
		}
	}
}

// newest reports whether there is no later sample of the same process.
func newest(loads []nvml.ProcessLoad, load *nvml.ProcessLoad) bool {
	for i := range loads {
		if other := &loads[i]; other.PID == load.PID && other.Time > load.Time {
			return false
		}
	}
	return true
}
