// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
)

// fakeEnv names the file of which a copy of the test plays nvidia-smi.
const fakeEnv = "GPUCHECK_FAKE_SMI"

// answers are what the fake nvidia-smi says.
type answers struct {
	GPUs      []map[string]string
	Processes []map[string]string
	Unknown   []string // fields that this version does not know
}

func TestMain(m *testing.M) {
	if file := os.Getenv(fakeEnv); file != "" && len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "--query-") {
		os.Exit(play(file, os.Args[1]))
	}
	os.Exit(m.Run())
}

// play is nvidia-smi --query-gpu=… and --query-compute-apps=….
func play(file, question string) int {
	var a answers
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &a)
	}
	if err != nil {
		fmt.Println(err)
		return 255
	}
	what, list, _ := strings.Cut(question, "=")
	rows := map[string][]map[string]string{"--query-gpu": a.GPUs, "--query-compute-apps": a.Processes}[what]
	asked := strings.Split(list, ",")
	for _, f := range asked {
		if slices.Contains(a.Unknown, f) {
			fmt.Printf("Field \"%s\" is not a valid field to query.\n\n", f)
			return 2
		}
	}
	for _, row := range rows {
		var values []string
		for _, f := range asked {
			value, ok := row[f]
			if !ok {
				value = "[N/A]"
			}
			values = append(values, value)
		}
		fmt.Println(strings.Join(values, ", "))
	}
	fmt.Println("WARNING: infoROM is corrupted at gpu 0000:00:09.0") // as it does, on standard output
	return 0
}

// machine is one with GPUs: a fake driver, and a fake nvidia-smi that says the same until it is told otherwise.
type machine struct {
	t                      testing.TB
	world                  *fakegpu.Scenario
	says                   answers
	library, scenario, smi string
	out, file              string
}

func newMachine(t testing.TB, world *fakegpu.Scenario) *machine {
	t.Helper()
	dir := t.TempDir()
	library, err := fakegpu.Build(dir)
	require.NoError(t, err)
	m := &machine{t: t, world: world, library: library, scenario: filepath.Join(dir, "scenario"),
		smi: filepath.Join(dir, "nvidia-smi"), file: filepath.Join(dir, "smi.json"), out: filepath.Join(dir, "out")}
	require.NoError(t, world.Write(m.scenario))
	t.Setenv(fakegpu.Variable, m.scenario)
	self, err := os.Executable()
	require.NoError(t, err)
	script := fmt.Sprintf("#!/bin/sh\n%s=%s exec %s \"$@\"\n", fakeEnv, m.file, self)
	require.NoError(t, os.WriteFile(m.smi, []byte(script), 0o755))
	m.says = said(world)
	m.tell()
	m.spend()
	return m
}

// spend lets the energy grow by the power, as long as the test runs.
func (m *machine) spend() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	before, begun := map[int]float64{}, time.Now()
	for i := range m.world.GPUs {
		before[i] = m.world.GPUs[i].Values["energy"]
	}
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			for i := range m.world.GPUs {
				g := &m.world.GPUs[i]
				g.Set("energy", before[i]+g.Values["power"]*time.Since(begun).Seconds()) // mJ of mW
			}
			assert.NoError(m.t, m.world.Write(m.scenario))
		}
	}()
	m.t.Cleanup(func() {
		close(stop)
		<-stopped
	})
}

// tell makes nvidia-smi say what m.says holds.
func (m *machine) tell() {
	m.t.Helper()
	content, err := json.Marshal(m.says)
	require.NoError(m.t, err)
	require.NoError(m.t, os.WriteFile(m.file, content, 0o600))
}

// said is what nvidia-smi makes of NVML's numbers, as in the captures of testdata/gpu.
func said(world *fakegpu.Scenario) (a answers) {
	for i := range world.GPUs {
		g := &world.GPUs[i]
		row := map[string]string{fieldUUID: g.UUID, fieldName: g.Name, fieldSerial: g.Serial, fieldFirmware: g.VBIOS,
			fieldPCI: g.BusID, fieldDriver: world.Driver}
		put := func(field, key string, scale float64, format string) {
			if v, ok := g.Values[key]; ok {
				row[field] = fmt.Sprintf(format, v*scale)
			}
		}
		for field, key := range map[string]string{"memory.total": "memory.total", "memory.used": "memory.used", "memory.reserved": "memory.reserved"} {
			put(field, key, 1.0/mebi, "%.0f")
		}
		divided := g.Values["mig.current"] == 1
		if !divided {
			for field, key := range map[string]string{"utilization.gpu": "utilization.gpu", "utilization.memory": "utilization.memory",
				"utilization.encoder": "utilization.encoder", "utilization.decoder": "utilization.decoder",
				"remapped_rows.correctable": "remapped.correctable", "remapped_rows.uncorrectable": "remapped.uncorrectable"} {
				put(field, key, 1, "%.0f")
			}
			for field, key := range map[string]string{"remapped_rows.pending": "remapped.pending", "remapped_rows.failure": "remapped.failure"} {
				if v, ok := g.Values[key]; ok {
					row[field] = map[bool]string{true: "Yes", false: "No"}[v == 1]
				}
			}
		}
		for field, key := range map[string]string{"temperature.gpu": "temperature", "temperature.memory": "temperature.memory",
			"clocks.current.graphics": "clock.graphics", "clocks.current.sm": "clock.sm", "clocks.current.memory": "clock.memory",
			"clocks.current.video":                   "clock.video",
			"ecc.errors.corrected.aggregate.total":   "ecc.corrected.aggregate",
			"ecc.errors.uncorrected.aggregate.total": "ecc.uncorrected.aggregate"} {
			put(field, key, 1, "%.0f")
		}
		put("power.draw", "power", 0.001, "%.2f")
		put("enforced.power.limit", "power.limit.enforced", 0.001, "%.2f")
		if v, ok := g.Values["event_reasons"]; ok {
			row["clocks_event_reasons.active"] = fmt.Sprintf("0x%016X", uint64(v))
		}
		if _, ok := g.Values["mig.current"]; ok {
			row[fieldMIG] = map[bool]string{true: "Enabled", false: "Disabled"}[divided]
		}
		a.GPUs = append(a.GPUs, row)
		for _, p := range g.Processes {
			if p.Kind == fakegpu.Compute {
				a.Processes = append(a.Processes, map[string]string{"gpu_uuid": g.UUID, "pid": strconv.Itoa(int(p.PID)),
					"used_gpu_memory": strconv.FormatUint(p.Memory/mebi, 10)})
			}
		}
	}
	return a
}
