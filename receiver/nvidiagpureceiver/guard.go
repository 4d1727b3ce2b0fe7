// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
)

// forGuard is what is read for a guard, whether or not a metric is made of it.
var forGuard = []gpu.Point{gpu.MemoryLimit, gpu.MemoryUsage, gpu.MemoryReserved, gpu.ProcessMemory}

// tellGuard tells of what was read just now. A GPU that is divided has no memory but that of its instances, and one that shares
// the host's memory is not too full when that is.
func (e *engine) tellGuard(now int64) {
	if e.guard == nil {
		return
	}
	for _, d := range e.snapshot.Devices {
		if d.MIGEnabled || d.Unified || d.UUID == "" || !d.Has(gpu.MemoryLimit) || !d.Has(gpu.MemoryUsage) {
			continue
		}
		// What the driver has reserved is not free, either.
		r := gpuwatch.Device{ID: d.UUID, Total: d.Int(gpu.MemoryLimit), Used: d.Int(gpu.MemoryUsage), At: now}
		if d.Has(gpu.MemoryReserved) {
			r.Used += d.Int(gpu.MemoryReserved)
		}
		if d.Known {
			r.Processes = make([]gpuwatch.Held, 0, len(d.Processes)) // none is not the same as not read
		}
		for _, p := range d.Processes {
			if p.PID == 0 || p.Memory == gpu.Unknown { // those beyond the limit; nobody knows whether it holds anything
				continue
			}
			who := e.who.Resolve(p.PID, workload.Device{UUID: d.UUID}, now)
			r.Processes = append(r.Processes, gpuwatch.Held{Process: gpuwatch.Process{PID: int(p.PID), StartTime: who.Start}, Bytes: p.Memory})
		}
		e.guard.Device(r)
	}
}
