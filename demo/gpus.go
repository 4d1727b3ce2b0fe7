// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"path/filepath"
	"strconv"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
)

// gpus are simulated ones: the Collector reads them by a fake of NVIDIA's library, which follows a file.
type gpus struct {
	library, scenario string
	world             *fakegpu.Scenario
	replicas          []*onGPU
	next              time.Time // when they are shown anew
}

// onGPU is the process of a replica on its GPU.
type onGPU struct {
	leaked uint64
	starts uint32            // how often it was started again
	first  uint32            // its process at first
	labels map[string]string // of the replica
}

// replica is what the simulator says of one, as far as its GPU shows it.
type replica struct {
	Labels   map[string]string `json:"labels"`
	Requests struct {
		Running int `json:"running"`
	} `json:"requests"`
	LeakedBytes uint64 `json:"leaked_bytes"`
}

const (
	gibi = 1 << 30
	// noProcess is of no replica: near the highest that the kernel gives, so that hardly anybody is taken for a simulated process.
	noProcess = 4_194_100
	// further is the process id of a replica that was started again from the one before, and more than there are replicas.
	further = 32
	// full is how many requests keep a GPU busy.
	full = 32
)

// newGPUs makes the library in a folder. It needs gcc.
func newGPUs(dir string) (*gpus, error) {
	library, err := fakegpu.Build(dir)
	if err != nil {
		return nil, err
	}
	return &gpus{library: library, scenario: filepath.Join(dir, "gpus")}, nil
}

// env tells the Collector of them.
func (g *gpus) env() []string {
	return []string{"NVML_LIBRARY=" + g.library, fakegpu.Variable + "=" + g.scenario}
}

// show gives each replica a GPU, once a second: busy by what runs on it, and with its process, which holds what it leaks besides.
func (g *gpus) show(replicas []replica, now time.Time) error {
	if len(replicas) == 0 || now.Before(g.next) {
		return nil
	}
	g.next = now.Add(time.Second)
	if g.world == nil {
		g.world = fakegpu.Server(len(replicas), 1, noProcess)
		for range replicas {
			g.replicas = append(g.replicas, &onGPU{})
		}
	}
	for i := range replicas {
		g.replicas[i].follow(&g.world.GPUs[i], &replicas[i])
	}
	return g.world.Write(g.scenario)
}

// whose are the labels of the replica that a process is, or was, of.
func (g *gpus) whose(pid int64) map[string]string {
	if g == nil {
		return nil
	}
	for _, p := range g.replicas {
		if later := pid - int64(p.first); p.first != 0 && later >= 0 && later <= int64(p.starts)*further && later%further == 0 {
			return p.labels
		}
	}
	return nil
}

// follow makes a GPU look as its replica says. Memory that is not lost any more was that of a process that has ended: another one is there.
func (p *onGPU) follow(d *fakegpu.GPU, r *replica) {
	const weights = 40 * gibi // with the KV cache, which an engine takes at its start
	d.Name = "simulated " + r.Labels["device.type"]
	busy := min(1, float64(r.Requests.Running)/full)
	d.Set("utilization.gpu", 100*busy)
	d.Set("power", 100_000+500_000*busy)
	d.Set("temperature", 35+30*busy)
	if pid, err := strconv.ParseUint(r.Labels["process.pid"], 10, 32); err == nil {
		if r.LeakedBytes < p.leaked {
			p.starts++
		}
		p.first, p.labels = uint32(pid), maps.Clone(r.Labels)
		maps.DeleteFunc(p.labels, func(key, _ string) bool { return key == "process.pid" || key == "service.instance.id" })
		d.Processes[0].PID = uint32(pid) + p.starts*further // at first as its metrics say
	}
	p.leaked = r.LeakedBytes
	used := min(weights+float64(r.LeakedBytes), d.Values["memory.total"]-d.Values["memory.reserved"])
	d.Processes[0].Memory, d.Processes[0].SM = uint64(used), int(100*busy)
	d.Set("memory.used", used)
}
