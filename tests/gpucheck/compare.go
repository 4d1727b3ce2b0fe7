// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verdict is what came of one comparison.
type verdict struct {
	what, tolerance string
	compared        int // how often
	agreed          int
	note            string // of what failed; empty when nothing did
}

func (v *verdict) failed() bool { return v.note != "" }

// compare judges what the receiver wrote by what nvidia-smi said in the same time.
func compare(samples []*sample, points []point, resources map[string]map[string]string) (all []verdict, alone []string) {
	gpus := slices.Sorted(maps.Keys(samples[0].gpus))
	known := map[string]bool{}
	for _, p := range points {
		known[p.metric] = true
	}
	all = append(all, devices(gpus, samples[0], resources))
	for i := range pairs {
		delete(known, pairs[i].metric)
		if v, ok := judge(&pairs[i], gpus, samples, points); ok {
			all = append(all, v)
		}
	}
	delete(known, processMemory)
	if v, ok := processes(gpus, samples, points); ok {
		all = append(all, v)
	}
	if v, ok := energy(gpus, samples, points); ok {
		delete(known, "hw.energy")
		all = append(all, v)
	}
	return all, slices.Sorted(maps.Keys(known))
}

// judge compares one value of all GPUs. ok is false when neither side has it.
func judge(p *pair, gpus []string, samples []*sample, points []point) (v verdict, ok bool) {
	v = verdict{what: p.name(), tolerance: p.said}
	worst := 0.0
	for i, uuid := range gpus {
		their := 0
		for _, s := range samples {
			if _, told := p.expected(s.gpus[uuid]); told {
				their++
			}
		}
		ours := 0
		for _, q := range points {
			if q.device != uuid || q.metric != p.metric || p.key != "" && q.attributes[p.key] != p.value {
				continue
			}
			ours++
			low, high, told := p.span(uuid, samples, q.at)
			if !told {
				continue
			}
			v.compared++
			off := p.off(q.value, low, high)
			if off == 0 {
				v.agreed++
			} else if off > worst {
				worst = off
				v.note = fmt.Sprintf("GPU %d: %s, where nvidia-smi says %s", i, shortest(q.value), spanText(low, high))
			}
		}
		switch {
		case their > 0 && ours == 0:
			return v.fail("GPU %d: nvidia-smi has it, the receiver has not", i), true
		case ours > 0 && their == 0:
			return v.fail("GPU %d: the receiver has it, and nvidia-smi says that there is none", i), true
		case their > 0:
			ok = true
		}
	}
	if v.agreed == v.compared || p.moves && float64(v.agreed) >= enough*float64(v.compared) {
		v.note = ""
	}
	if ok && v.compared == 0 {
		return v.fail("nothing could be compared"), true
	}
	return v, ok
}

func (v verdict) fail(format string, args ...any) verdict {
	v.note = fmt.Sprintf(format, args...)
	return v
}

func (p *pair) name() string {
	if p.key == "" {
		return p.metric
	}
	return p.metric + " {" + p.value + "}"
}

// span is what nvidia-smi said last before a moment and first after it; of what jumps, all that it said.
func (p *pair) span(uuid string, samples []*sample, at time.Time) (low, high float64, ok bool) {
	near := around(samples, at)
	if p.jumps && len(near) > 0 {
		near = samples
	}
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range near {
		if v, told := p.expected(s.gpus[uuid]); told {
			low, high, ok = min(low, v), max(high, v), true
		}
	}
	return low, high, ok
}

// around are the samples that a moment lies between: the last that ended before it, those that were under way, and the first
// that began after it. A moment that does not lie between two has none.
func around(samples []*sample, at time.Time) []*sample {
	from, to := -1, -1
	for i, s := range samples {
		if !s.ended.After(at) {
			from = i
		}
		if to < 0 && !s.begun.Before(at) {
			to = i
		}
	}
	if from < 0 || to < 0 {
		return nil
	}
	return samples[from : to+1]
}

// devices compares who the GPUs are.
func devices(gpus []string, s *sample, resources map[string]map[string]string) verdict {
	v := verdict{what: "GPUs: UUID, model, driver, serial number, firmware, PCI", tolerance: "none"}
	for i, uuid := range gpus {
		resource, row := resources[uuid], s.gpus[uuid]
		if resource == nil {
			return v.fail("GPU %d: the receiver does not know it", i)
		}
		for _, who := range [...]struct{ key, field, want string }{
			{"hw.model", fieldName, row[fieldName]},
			{"hw.driver_version", fieldDriver, row[fieldDriver]},
			{"hw.serial_number", fieldSerial, row[fieldSerial]},
			{"hw.firmware_version", fieldFirmware, row[fieldFirmware]},
			{"nvidia.pci.bus_id", fieldPCI, shortPCI(row[fieldPCI])},
		} {
			v.compared++
			if resource[who.key] != who.want {
				return v.fail("GPU %d: %s differs from nvidia-smi's %s", i, who.key, who.field)
			}
			v.agreed++
		}
	}
	for id, resource := range resources {
		if resource["hw.parent"] == "" && id != "" && s.gpus[id] == nil {
			return v.fail("the receiver has a GPU that nvidia-smi does not know")
		}
	}
	return v
}

// shortPCI spells 00000000:3B:00.0 as the kernel does, 0000:3b:00.0.
func shortPCI(id string) string {
	domain, rest, _ := strings.Cut(id, ":")
	return strings.ToLower(domain[max(0, len(domain)-4):] + ":" + rest)
}

const processMemory = "nvidia.gpu.process.memory.usage"

// processes compares the memory of compute processes. One that one side alone saw has to be missing on the other for more
// than a moment to be a failure; graphics processes, which nvidia-smi does not list here, are left out. What runs in MIG
// instances stands at its GPU in nvidia-smi.
func processes(gpus []string, samples []*sample, points []point) (v verdict, ok bool) {
	v = verdict{what: processMemory, tolerance: "2 MiB + 1 %, by process"}
	tolerance := pair{absolute: 2 * mebi, relative: 0.01}
	for i, uuid := range gpus {
		for pid := range pidsOf(samples, uuid) {
			ok = true
			seen := false
			for _, q := range points {
				if q.metric != processMemory || q.pid != int64(pid) || q.device != uuid && q.attributes["hw.parent"] != uuid {
					continue
				}
				seen = true
				low, high := math.Inf(1), math.Inf(-1)
				for _, s := range around(samples, q.at) {
					if mib, told := number(s.memory[uuid][pid]); told {
						low, high = min(low, mib*mebi), max(high, mib*mebi)
					}
				}
				if low > high {
					continue
				}
				v.compared++
				if tolerance.off(q.value, low, high) == 0 {
					v.agreed++
				} else if v.note == "" {
					v.note = fmt.Sprintf("GPU %d: a process has %s B, where nvidia-smi says %s", i, shortest(q.value), spanText(low, high))
				}
			}
			if !seen {
				return v.fail("GPU %d: nvidia-smi has a process that the receiver has not", i), true
			}
		}
	}
	if float64(v.agreed) >= enough*float64(v.compared) {
		v.note = ""
	}
	return v, ok
}

// pidsOf are the processes that every sample has.
func pidsOf(samples []*sample, uuid string) map[uint32]bool {
	all := map[uint32]bool{}
	for pid := range samples[0].memory[uuid] {
		all[pid] = true
	}
	for _, s := range samples {
		for pid := range all {
			if _, there := s.memory[uuid][pid]; !there {
				delete(all, pid)
			}
		}
	}
	return all
}

// energy compares how fast the counter grows with the power that nvidia-smi saw.
func energy(gpus []string, samples []*sample, points []point) (v verdict, ok bool) {
	v = verdict{what: "hw.energy, as it grows", tolerance: "10 W + 20 % of power.draw"}
	for i, uuid := range gpus {
		var first, last *point
		for j := range points {
			if q := &points[j]; q.device == uuid && q.metric == "hw.energy" {
				if first == nil {
					first = q
				}
				last = q
			}
		}
		if first == nil || !last.at.After(first.at) {
			continue
		}
		low, high := math.Inf(1), math.Inf(-1)
		for _, s := range samples {
			if w, told := number(s.gpus[uuid]["power.draw"]); told {
				low, high = min(low, w), max(high, w)
			}
		}
		if low > high {
			continue
		}
		ok = true
		v.compared++
		watts := (last.value - first.value) / last.at.Sub(first.at).Seconds()
		if (&pair{absolute: 10, relative: 0.2}).off(watts, low, high) > 0 {
			v.note = fmt.Sprintf("GPU %d: grows by %s W, where nvidia-smi says %s", i, shortest(watts), spanText(low, high))
		} else {
			v.agreed++
		}
	}
	return v, ok
}

func shortest(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func spanText(low, high float64) string {
	if low == high {
		return shortest(low)
	}
	return shortest(low) + " to " + shortest(high)
}
