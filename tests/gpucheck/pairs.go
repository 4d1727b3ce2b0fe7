// SPDX-License-Identifier: Apache-2.0

package main

import "math"

// pair is what the receiver calls a value beside what nvidia-smi calls it.
type pair struct {
	metric     string
	key, value string // the attribute that tells points of the metric apart; empty where there is one
	fields     []string
	// of makes the metric's value of the fields'.
	of func(fields []float64) float64
	// How far it may be off: absolutely, in the metric's unit, and as a share of the value. A metric that does not move has
	// to agree each time, one that does nine times of ten.
	absolute, relative float64
	moves              bool
	// jumps says that it may be anything a tenth of a second later, so that it is compared with all that nvidia-smi said.
	jumps bool
	said  string // the tolerance in words
}

// enough is how often something that moves has to agree: a value can jump there and back between two looks.
const enough = 0.9

const mebi = 1 << 20

// pairs are all that nvidia-smi has a word for.
var pairs = append([]pair{
	fixed("hw.gpu.memory.limit", "", "", "memory.total", mebi, mebi, "1 MiB, to which nvidia-smi rounds"),
	moving("hw.gpu.memory.usage", "", "", "memory.used", mebi, 2*mebi, 0.01, "2 MiB + 1 %"),
	fixed("nvidia.gpu.memory.reserved", "", "", "memory.reserved", mebi, mebi, "1 MiB"),
	{metric: "hw.gpu.memory.utilization", fields: []string{"memory.used", "memory.total"},
		of: func(v []float64) float64 { return v[0] / v[1] }, absolute: 0.01, moves: true, said: "0.01"},
	jumping("hw.gpu.utilization", "hw.gpu.task", "general", "utilization.gpu"),
	jumping("hw.gpu.utilization", "hw.gpu.task", "encoder", "utilization.encoder"),
	jumping("hw.gpu.utilization", "hw.gpu.task", "decoder", "utilization.decoder"),
	jumping("nvidia.gpu.memory_controller.utilization", "", "", "utilization.memory"),
	moving("hw.power", "", "", "power.draw", 1, 5, 0.1, "5 W + 10 %"),
	fixed("nvidia.gpu.power.limit", "", "", "enforced.power.limit", 1, 0.01, "0.01 W"),
	moving("hw.temperature", "hw.sensor_location", "gpu", "temperature.gpu", 1, 2, 0, "2 °C"),
	moving("hw.temperature", "hw.sensor_location", "memory", "temperature.memory", 1, 2, 0, "2 °C"),
	moving("nvidia.gpu.clock.frequency", "nvidia.gpu.clock", "graphics", "clocks.current.graphics", 1e6, 15e6, 0.05, "15 MHz + 5 %"),
	moving("nvidia.gpu.clock.frequency", "nvidia.gpu.clock", "sm", "clocks.current.sm", 1e6, 15e6, 0.05, "15 MHz + 5 %"),
	moving("nvidia.gpu.clock.frequency", "nvidia.gpu.clock", "memory", "clocks.current.memory", 1e6, 15e6, 0.05, "15 MHz + 5 %"),
	moving("nvidia.gpu.clock.frequency", "nvidia.gpu.clock", "video", "clocks.current.video", 1e6, 15e6, 0.05, "15 MHz + 5 %"),
	fixed("hw.errors", "error.type", "ecc_corrected", "ecc.errors.corrected.aggregate.total", 1, 0, "none"),
	fixed("hw.errors", "error.type", "ecc_uncorrected", "ecc.errors.uncorrected.aggregate.total", 1, 0, "none"),
	fixed("nvidia.gpu.memory.remapped_rows", "nvidia.remap.cause", "correctable", "remapped_rows.correctable", 1, 0, "none"),
	fixed("nvidia.gpu.memory.remapped_rows", "nvidia.remap.cause", "uncorrectable", "remapped_rows.uncorrectable", 1, 0, "none"),
	fixed("nvidia.gpu.memory.remap.pending", "", "", "remapped_rows.pending", 1, 0, "none"),
	fixed("nvidia.gpu.memory.remap.failure", "", "", "remapped_rows.failure", 1, 0, "none"),
	fixed("nvidia.gpu.memory.retired_pages", "nvidia.retirement.cause", "single_bit", "retired_pages.single_bit_ecc.count", 1, 0, "none"),
	fixed("nvidia.gpu.memory.retired_pages", "nvidia.retirement.cause", "double_bit", "retired_pages.double_bit.count", 1, 0, "none"),
}, throttles()...)

// throttles are the bits of one field.
func throttles() (all []pair) {
	for bit, reason := range []string{"idle", "application_clocks", "sw_power_cap", "hw_slowdown", "sync_boost",
		"sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "display_clocks"} {
		all = append(all, pair{metric: "nvidia.gpu.throttle.reason", key: "nvidia.throttle.reason", value: reason,
			fields: []string{"clocks_event_reasons.active"}, moves: true, jumps: true, said: "none, of the whole time",
			of: func(v []float64) float64 { return float64(uint64(v[0]) >> bit & 1) }})
	}
	return all
}

func fixed(metric, key, value, field string, scale, absolute float64, said string) pair {
	return pair{metric: metric, key: key, value: value, fields: []string{field}, absolute: absolute, said: said,
		of: func(v []float64) float64 { return v[0] * scale }}
}

func moving(metric, key, value, field string, scale, absolute, relative float64, said string) pair {
	p := fixed(metric, key, value, field, scale, absolute, said)
	p.relative, p.moves = relative, true
	return p
}

// jumping is a fraction that nvidia-smi has in percent.
func jumping(metric, key, value, field string) pair {
	p := moving(metric, key, value, field, 0.01, 0.1, 0, "0.1, of the whole time")
	p.jumps = true
	return p
}

// fields are all that nvidia-smi is asked for.
func fields() []string {
	all := []string{fieldUUID, fieldDriver, fieldName, fieldSerial, fieldFirmware, fieldPCI, fieldMIG}
	seen := map[string]bool{}
	for _, p := range pairs {
		for _, f := range p.fields {
			if !seen[f] {
				seen[f] = true
				all = append(all, f)
			}
		}
	}
	return all
}

// expected is what the sample says of a GPU. ok is false when nvidia-smi cannot tell.
func (p *pair) expected(row map[string]string) (v float64, ok bool) {
	values := make([]float64, len(p.fields))
	for i, f := range p.fields {
		if values[i], ok = number(row[f]); !ok {
			return 0, false
		}
	}
	v = p.of(values)
	return v, !math.IsNaN(v) && !math.IsInf(v, 0)
}

// off is how far v is outside of the span, beyond the tolerance.
func (p *pair) off(v, low, high float64) float64 {
	slack := p.absolute + p.relative*math.Max(math.Abs(low), math.Abs(high))
	return max(0, low-slack-v, v-high-slack)
}
