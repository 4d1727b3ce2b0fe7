// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// table has the metrics by their names, for the settings. What they are stands in gpu.Metrics.
var table = func() []*emit.Metric {
	all := make([]*emit.Metric, len(gpu.Metrics))
	for i, m := range gpu.Metrics {
		all[i] = &emit.Metric{Name: m.Name, Default: !m.Off}
	}
	return all
}()

// column is a metric with its points, in the order in which they are written.
type column struct {
	*gpu.Metric
	points []gpu.Point
}

// columns returns those of the metrics that are on.
func columns(on emit.Enabled) (all []column) {
	for i, m := range gpu.Metrics {
		if !on.Has(table[i]) {
			continue
		}
		c := column{Metric: m}
		for p := range gpu.Points {
			if gpu.Rows[p].Metric == m {
				c.points = append(c.points, p)
			}
		}
		all = append(all, c)
	}
	return all
}

// plan is what is read, and what is written of that, when some groups are due.
type plan struct {
	read, write gpu.Set
	name        string // of the groups, for the receiver's own telemetry
}

// plans returns a plan for every set of groups, by their bits. Also are points that are read for others than the columns.
func plans(all []column, also gpu.Set) (plans [1 << gpu.Groups]plan) {
	for due := range plans {
		p := &plans[due]
		for g := range gpu.Groups {
			if due&(1<<g) == 0 {
				continue
			}
			if p.name != "" {
				p.name += "+"
			}
			p.name += g.String()
		}
		for _, c := range all {
			if due&(1<<c.Group) != 0 {
				p.write.Add(c.points...)
			}
		}
		p.read = p.write
		for point := range gpu.Points {
			if also.Has(point) && due&(1<<gpu.Rows[point].Metric.Group) != 0 {
				p.read.Add(point)
			}
		}
		needs := func(of gpu.Point, points ...gpu.Point) {
			if p.write.Has(of) {
				p.read.Add(points...)
			}
		}
		needs(gpu.MemoryUtilization, gpu.MemoryLimit, gpu.MemoryUsage)
		needs(gpu.MemoryUnattributed, gpu.MemoryLimit, gpu.MemoryUsage, gpu.MemoryReserved, gpu.ProcessMemory)
		// Processes are found by their memory.
		if p.write.Any(gpu.ProcessUtilization, gpu.ProcessEncoderUtilization, gpu.ProcessDecoderUtilization) {
			p.read.Add(gpu.ProcessMemory)
		}
		// Profiling is held against the utilization.
		if p.read.Any(gpu.GraphicsActive, gpu.SMActive) {
			p.read.Add(gpu.Utilization, gpu.GraphicsActive, gpu.SMActive)
		}
		if due&(1<<gpu.Expensive) != 0 && !p.read.Empty() {
			p.read.Add(gpu.RemapFailure, gpu.RemapPending) // of which the state is made
		}
	}
	return plans
}
