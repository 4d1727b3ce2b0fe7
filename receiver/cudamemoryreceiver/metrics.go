// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/probe"
)

// kind is the shape of a metric. All are cumulative, and those of numbers integers.
type kind int

const (
	upDownCounter kind = iota
	counter
	histogram // exponential
)

func (k kind) String() string {
	return [...]string{"up-down counter", "counter", "exponential histogram, cumulative"}[k]
}

// instrument is one of the metrics that are written of each process.
type instrument struct {
	name, description, unit string
	kind                    kind
	launches                bool // it takes the probes of launches

	number  func(*probe.Process) uint64       // what it is; of a histogram nil
	buckets func(*probe.Process) distribution // of a histogram
}

// distribution is what an exponential histogram is made of.
type distribution struct {
	scale, offset int32
	counts        []uint64
	sum           float64
}

var live = instrument{
	name: "cuda.memory.live", unit: "By", kind: upDownCounter, number: func(p *probe.Process) uint64 { return p.Live },
	description: "What the process has allocated on GPUs and not freed, since it was first seen.",
}

// table has the metrics in the order in which they are written.
var table = []*instrument{
	&live,
	{
		name: "cuda.memory.allocated", unit: "By", kind: counter, number: func(p *probe.Process) uint64 { return p.Allocated },
		description: "What the process has allocated, freed or not.",
	},
	{
		name: "cuda.memory.allocations", unit: "{allocation}", kind: counter, number: func(p *probe.Process) uint64 { return p.Allocations },
		description: "Allocations that succeeded. One by the runtime, which calls the driver for it, is one.",
	},
	{
		name: "cuda.memory.frees", unit: "{allocation}", kind: counter, number: func(p *probe.Process) uint64 { return p.Frees },
		description: "Allocations that were freed. Those of before the process was first seen do not count.",
	},
	{
		name: "cuda.memory.failures", unit: "{allocation}", kind: counter, number: func(p *probe.Process) uint64 { return p.Failures },
		description: "Allocations that returned an error, such as out of memory.",
	},
	{
		name: "cuda.memory.allocation.size", unit: "By", kind: histogram,
		buckets: func(p *probe.Process) distribution {
			return distribution{probe.SizeScale, probe.SizeOffset, p.Sizes[:], float64(p.Allocated)}
		},
		description: "Sizes of the allocations that succeeded, in powers of two.",
	},
	{
		name: "cuda.kernel.launches", unit: "{launch}", kind: counter, launches: true, number: func(p *probe.Process) uint64 { return p.Launches },
		description: "Launches of kernels that succeeded.",
	},
	{
		name: "cuda.kernel.launch.duration", unit: "s", kind: histogram, launches: true,
		buckets: func(p *probe.Process) distribution {
			return distribution{probe.LaunchScale, probe.LaunchOffset, p.LaunchDurations[:], float64(p.LaunchSum) / 1e9}
		},
		description: "Time from a launch of a kernel to its return: the host's, not that in which the kernel runs.",
	},
}

// names has the metrics by their names, for the settings.
var names = func() (all []*emit.Metric) {
	for _, m := range table {
		all = append(all, &emit.Metric{Name: m.name, Default: true})
	}
	return all
}()

// written returns those of the metrics that are on and counted.
func written(cfg *Config) (all []*instrument) {
	on := cfg.Metrics.Enabled(names)
	for i, m := range table {
		if on.Has(names[i]) && (!m.launches || cfg.Events.Launches) {
			all = append(all, m)
		}
	}
	return all
}
