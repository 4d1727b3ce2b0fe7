// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
)

// owners says whose a process is.
type owners interface {
	Resolve(pid uint32, device workload.Device, now int64) workload.Process
}

// bound sorts the processes of a device by PID, each once, and keeps those that hold the most. The others become one, with the
// PID 0. It returns how many they were.
func bound(d *gpu.Device, most int) (beyond int) {
	byPID := func(a, b gpu.Process) int { return cmp.Compare(a.PID, b.PID) }
	slices.SortFunc(d.Processes, byPID)
	before := len(d.Processes)
	d.Processes = slices.CompactFunc(d.Processes, func(a, b gpu.Process) bool { return a.PID == b.PID })
	if len(d.Processes) > 0 && d.Processes[0].PID == 0 {
		d.Processes = d.Processes[1:]
	}
	for range before - len(d.Processes) {
		d.Refuse(gpu.Scrambled)
	}
	if beyond = len(d.Processes) - most; beyond <= 0 {
		return 0
	}
	slices.SortFunc(d.Processes, func(a, b gpu.Process) int {
		return cmp.Or(cmp.Compare(b.Memory+1, a.Memory+1), byPID(a, b)) // what is not known comes last
	})
	var rest uint64
	for _, p := range d.Processes[most:] {
		if p.Memory != gpu.Unknown {
			rest += p.Memory
		}
	}
	d.Processes = d.Processes[:most]
	d.AddProcess(0).Memory = rest
	slices.SortFunc(d.Processes, byPID)
	return beyond
}

// identify finds out who the processes of the device are. They stand in the order of d.Processes. What was written of those
// that are not there any more, or are called otherwise by now, is ended with the columns.
func (w *writer) identify(d *gpu.Device, who owners) {
	sh := w.of
	sh.previous, sh.processes = sh.processes, sh.previous[:0]
	if !d.Known {
		return
	}
	at := 0
	for i := range d.Processes {
		p := process{Process: workload.Process{PID: d.Processes[i].PID}}
		if p.PID != 0 {
			p.Process = who.Resolve(p.PID, sh.device, w.now)
		}
		for at < len(sh.previous) && sh.previous[at].PID < p.PID {
			at++
		}
		if at < len(sh.previous) && sh.previous[at].sameSeries(&p) {
			p.points = sh.previous[at].points
			sh.previous[at].points = gpu.Set{}
		}
		sh.processes = append(sh.processes, p)
	}
}

// perProcess writes the points of the column for the processes of the device.
func (w *writer) perProcess(d *gpu.Device) {
	w.room = len(w.of.processes)
	for i := range w.of.processes {
		p, values := &w.of.processes[i], &d.Processes[i]
		for _, at := range w.column.points {
			switch at {
			case gpu.ProcessMemory:
				if values.Memory == gpu.Unknown {
					w.endPoint(p, at)
					continue
				}
				w.ofProcess(p, at).SetIntValue(int64(values.Memory))
			default:
				v := values.Utilization[at-gpu.ProcessUtilization]
				if v < 0 {
					w.endPoint(p, at)
					continue
				}
				w.ofProcess(p, at).SetDoubleValue(v)
			}
		}
	}
	for i := range w.of.previous {
		w.endProcess(&w.of.previous[i])
	}
}

// endProcess ends what the column has of a process.
func (w *writer) endProcess(p *process) {
	for _, at := range w.column.points {
		w.endPoint(p, at)
	}
}

func (w *writer) endPoint(p *process, at gpu.Point) {
	if p.points.Has(at) {
		p.points.Remove(at)
		p.label(w.ended(gpu.Rows[at].Value, p.attributes()))
	}
}

func (w *writer) ofProcess(p *process, at gpu.Point) pmetric.NumberDataPoint {
	p.points.Add(at)
	point := w.point()
	p.label(w.label(point, gpu.Rows[at].Value, p.attributes()))
	return point
}
