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
	list, sane, o := c.dev.Processes(s.list[:0])
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
			addProcess(d, &list[i])
		}
	}
	if s.plan.utilization && r.d.Known && len(r.d.Processes) > 0 && !r.over() {
		s.readLoads(c, r)
	}
}

// addProcess adds a process to the device that it runs on. Memory that the device does not have is not the process', whose
// neighbours are as they are.
func addProcess(d *gpu.Device, p *nvml.Process) {
	most := d.Int(gpu.MemoryLimit)
	if most == 0 {
		most = uint64(gpu.Rows[gpu.ProcessMemory].Max)
	}
	memory := p.Memory
	if memory > most && memory != nvml.UnknownMemory {
		d.Refuse(gpu.OutOfRange)
		memory = gpu.Unknown
	}
	d.AddProcess(p.PID).Memory = memory
}

// readProcessesOfInstances asks each part by itself.
func (s *Source) readProcessesOfInstances(c *card, whole *reading) {
	all := true
	for i := range c.instances {
		at := &c.instances[i]
		if at.device == nil || whole.over() {
			continue
		}
		if at.silent {
			all = false
			continue
		}
		r := reading{d: at.device}
		list, sane, o := at.dev.Processes(s.list[:0])
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
				addProcess(at.device, &list[j])
			}
		}
		whole.end = max(whole.end, r.end)
	}
	whole.d.Known = all
}

// readLoads reads the share that each process had since the last reading. Who was idle has none. A process of which there are
// several samples has the newest.
func (s *Source) readLoads(c *card, r *reading) {
	loads, o := c.dev.ProcessLoads(c.seen)
	if !r.ok(o) {
		return
	}
	processes := r.d.Processes
	s.times = append(s.times[:0], make([]uint64, len(processes))...)
	at := 0
	// A sample from the future would hide all that follow.
	bound, seen := uint64(s.now().Add(time.Second).UnixMicro()), c.seen
	for i := range loads {
		load := &loads[i]
		if load.TimeStamp > seen && load.TimeStamp < bound {
			seen = load.TimeStamp
		}
		if at = find(processes, load.Pid, at); at == len(processes) || load.TimeStamp < s.times[at] {
			continue
		}
		s.times[at] = load.TimeStamp
		for task, percent := range [...]uint32{load.SmUtil, load.EncUtil, load.DecUtil} {
			if percent > 100 {
				r.d.Refuse(gpu.OutOfRange)
				continue
			}
			processes[at].Utilization[task] = float64(percent) / 100
		}
	}
	c.seen = seen
}

// find is the place of a process, len(list) where it is not there. Samples mostly have the order of processes, so it is looked
// for from the last one found on.
func find(list []gpu.Process, pid uint32, last int) int {
	for i := min(last, len(list)); i < len(list); i++ {
		if list[i].PID == pid {
			return i
		}
	}
	for i := range list[:min(last, len(list))] {
		if list[i].PID == pid {
			return i
		}
	}
	return len(list)
}
