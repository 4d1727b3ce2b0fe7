// SPDX-License-Identifier: Apache-2.0

package fakegpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Guarantees: a function that a driver is too old for is not in its library, and all others are.
func TestMissingFunctionsAreNotThere(t *testing.T) {
	exported := func(missing ...string) string {
		library, err := Build(t.TempDir(), missing...)
		require.NoError(t, err)
		out, err := exec.Command("nm", "-D", "--defined-only", library).Output()
		require.NoError(t, err)
		return string(out)
	}
	all := exported()
	old := H100().Old().Missing
	left := exported(old...)
	for _, name := range old {
		assert.Contains(t, all, " "+name+"\n")
		assert.NotContains(t, left, " "+name+"\n")
	}
	assert.Equal(t, strings.Count(all, "\n")-len(old), strings.Count(left, "\n"))
	for line := range strings.Lines(all) {
		assert.Contains(t, line, " T nvml", "the library shows what is not NVML's")
	}
}

func TestAKeyThatNobodyKnowsIsRefused(t *testing.T) {
	f := func(key string, ok bool) {
		t.Helper()
		s := H100()
		s.GPUs[0].Set(key, 1)
		err := s.Write(filepath.Join(t.TempDir(), "scenario"))
		assert.Equal(t, ok, err == nil, key)
	}
	f("temperature", true)
	f("field.197", true)
	f("gpm.2", true)
	f("temprature", false)
	f("field.x", false)
}

// Guarantees: what the scenarios say is what the captures of real machines say.
func TestScenariosHaveTheValuesOfTheCaptures(t *testing.T) {
	f := func(capture string, s *Scenario, absent ...string) {
		t.Helper()
		c := readCapture(t, capture)
		d := &s.GPUs[0].Device
		for key, w := range captured {
			got, has := d.Values[key]
			want, told := c[w.metric]
			require.Equal(t, told, has, "%s: %s", capture, key)
			if told {
				assert.InEpsilon(t, 1+want*w.scale, 1+got, 1e-9, "%s: %s", capture, key)
			}
		}
		for _, key := range absent {
			assert.NotContains(t, d.Values, key)
		}
		var held float64
		for _, p := range s.GPUs[0].Processes {
			pid := `compute_app_used_memory_bytes{pid="` + strconv.Itoa(int(p.PID)) + `"`
			assert.InDelta(t, c[pid], p.Memory, 0, pid)
			held++
		}
		assert.InDelta(t, c["compute_apps"], held, 0)
		for _, text := range []string{s.Driver, d.Name, d.BusID, d.VBIOS, d.Serial} {
			assert.Contains(t, c.info(t), `"`+text+`"`)
		}
		assert.InDelta(t, c["pci_device_id"], d.Values["pci.device_id"], 0)
		assert.InDelta(t, c["memory_free_bytes"], d.Values["memory.total"]-d.Values["memory.used"]-d.Values["memory.reserved"], mebi)
	}
	f("h100-80gb-hbm3_590.48.01.metrics", H100())
	f("h100-mig_590.48.01.metrics", H100MIG(), "utilization.gpu", "remapped.pending")
	f("l40s_595.80.metrics", L40S(), "temperature.memory", "mig.current")
}

// captured are the keys that a capture has, by its names, and what makes NVML's unit of the exporter's.
var captured = map[string]struct {
	metric string
	scale  float64
}{
	"memory.total": {"memory_total_bytes", 1}, "memory.used": {"memory_used_bytes", 1}, "memory.reserved": {"memory_reserved_bytes", 1},
	"utilization.gpu": {"utilization_gpu_ratio", 100}, "utilization.memory": {"utilization_memory_ratio", 100},
	"utilization.encoder": {"utilization_encoder_ratio", 100}, "utilization.decoder": {"utilization_decoder_ratio", 100},
	"power": {"power_draw_watts", 1000}, "power.average": {"power_draw_average_watts", 1000}, "power.instant": {"power_draw_instant_watts", 1000},
	"power.limit": {"power_limit_watts", 1000}, "power.limit.enforced": {"enforced_power_limit_watts", 1000}, "power.limit.default": {"power_default_limit_watts", 1000},
	"power.limit.min": {"power_min_limit_watts", 1000}, "power.limit.max": {"power_max_limit_watts", 1000},
	"temperature": {"temperature_gpu", 1}, "temperature.memory": {"temperature_memory", 1}, "temperature.margin": {"temperature_gpu_tlimit", 1},
	"clock.graphics": {"clocks_current_graphics_clock_hz", 1e-6}, "clock.sm": {"clocks_current_sm_clock_hz", 1e-6},
	"clock.memory": {"clocks_current_memory_clock_hz", 1e-6}, "clock.video": {"clocks_current_video_clock_hz", 1e-6},
	"clock.graphics.max": {"clocks_max_graphics_clock_hz", 1e-6}, "clock.memory.max": {"clocks_max_memory_clock_hz", 1e-6},
	"event_reasons": {"clocks_event_reasons_active", 1}, "event_reasons.supported": {"clocks_event_reasons_supported", 1},
	"field.74": {"clocks_event_reasons_counters_sw_power_cap_seconds", 1e9},
	"ecc.mode": {"ecc_mode_current", 1}, "ecc.corrected.aggregate": {"ecc_errors_corrected_aggregate_total", 1},
	"ecc.uncorrected.aggregate": {"ecc_errors_uncorrected_aggregate_total", 1},
	"remapped.correctable":      {"remapped_rows_correctable", 1}, "remapped.uncorrectable": {"remapped_rows_uncorrectable", 1},
	"remapped.pending": {"remapped_rows_pending", 1}, "remapped.failure": {"remapped_rows_failure", 1},
	"mig.current": {"mig_mode_current", 1}, "performance_state": {"pstate", 1},
	"pcie.generation": {"pcie_link_gen_current", 1}, "pcie.width": {"pcie_link_width_current", 1},
}

type capture map[string]float64

// readCapture are the values of a capture by name without nvidia_smi_; those of processes keep their pid.
func readCapture(t *testing.T, name string) capture {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "gpu", name))
	require.NoError(t, err)
	c := capture{}
	for _, m := range regexp.MustCompile(`(?m)^nvidia_smi_(\w+(?:\{pid="\d+")?)(.*) (\S+)$`).FindAllStringSubmatch(string(text), -1) {
		value, err := strconv.ParseFloat(m[3], 64)
		require.NoError(t, err)
		c[m[1]] = value
		if m[1] == "gpu_info" {
			c[m[2]] = 0
		}
	}
	return c
}

// info are the labels of the series that names the device.
func (c capture) info(t *testing.T) string {
	t.Helper()
	for key := range c {
		if strings.Contains(key, "compute_cap=") {
			return key
		}
	}
	t.Fatal("no gpu_info")
	return ""
}

func TestTheInstancesAreThoseOfTheCapture(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "gpu", "nvidia-smi_h100-mig_load.txt"))
	require.NoError(t, err)
	pattern := regexp.MustCompile(`(?s)GPU Instance ID +: (\d+).*?Multiprocessor count +: (\d+).*?Shared FB Memory Usage\s+Total +: (\d+) MiB.*?Used +: (\d+) MiB`)
	found := pattern.FindAllStringSubmatch(string(text), -1)
	instances := H100MIG().GPUs[0].Instances
	require.Len(t, found, len(instances))
	for i, m := range found {
		for j, key := range []string{"gi", "multiprocessors", "memory.total", "memory.used"} {
			want, err := strconv.ParseFloat(m[1+j], 64)
			require.NoError(t, err)
			if j >= 2 {
				want *= mebi
			}
			assert.InDelta(t, want, instances[i].Values[key], 0, "%d %s", i, key)
		}
	}
}
