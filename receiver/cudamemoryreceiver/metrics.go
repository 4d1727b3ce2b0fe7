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

	attribute string                            // that tells parts apart; empty where there is one
	parts     []part                            // of all but a histogram
	buckets   func(*probe.Process) distribution // of a histogram
}

// part is a point of a process.
type part struct {
	value  string // of the attribute
	number func(*probe.Process) uint64
}

func whole(number func(*probe.Process) uint64) []part { return []part{{number: number}} }

// points is how many there are of a process.
func (i *instrument) points() int { return max(len(i.parts), 1) }

// distribution is what an exponential histogram is made of.
type distribution struct {
	scale, offset int32
	counts        []uint64
	sum           float64
}

var live = instrument{
	name: "cuda.memory.live", unit: "By", kind: upDownCounter, parts: whole(func(p *probe.Process) uint64 { return p.Live }),
	description: "What the process has allocated on GPUs and not freed, since it was first seen.",
}

// table has the metrics in the order in which they are written.
var table = []*instrument{
	&live,
	{
		name: "cuda.memory.managed", unit: "By", kind: upDownCounter, parts: whole(func(p *probe.Process) uint64 { return p.Managed }),
		description: "That part of cuda.memory.live which moves between GPUs and the host as it is used, and may be more than any GPU has.",
	},
	{
		name: "cuda.memory.missed", unit: "{call}", kind: counter, attribute: "cuda.memory.miss", parts: []part{
			{"unknown_free", func(p *probe.Process) uint64 { return p.UnknownFrees }},
			{"max_entries", func(p *probe.Process) uint64 { return p.Missed }},
			{"unreturned", func(p *probe.Process) uint64 { return p.Unreturned }},
		},
		description: "Calls that cuda.memory.live lacks, by why: what was freed was not known, there was no room for what was allocated, or it never returned. Where it rises, live is not all of it.",
	},
	{
		name: "cuda.memory.allocated", unit: "By", kind: counter, parts: whole(func(p *probe.Process) uint64 { return p.Allocated }),
		description: "What the process has allocated, freed or not.",
	},
	{
		name: "cuda.memory.allocations", unit: "{allocation}", kind: counter, parts: whole(func(p *probe.Process) uint64 { return p.Allocations }),
		description: "Allocations that succeeded. One by the runtime, which calls the driver for it, is one.",
	},
	{
		name: "cuda.memory.frees", unit: "{allocation}", kind: counter, parts: whole(func(p *probe.Process) uint64 { return p.Frees }),
		description: "Allocations that were freed. Those of before the process was first seen do not count.",
	},
	{
		name: "cuda.memory.failures", unit: "{allocation}", kind: counter, parts: whole(func(p *probe.Process) uint64 { return p.Failures }),
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
		name: "cuda.kernel.launches", unit: "{launch}", kind: counter, launches: true, parts: whole(func(p *probe.Process) uint64 { return p.Launches }),
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
