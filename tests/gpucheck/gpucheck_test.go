// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// run is the command on the machine, with the shipped binary.
func (m *machine) run() (page string, err error) {
	m.t.Helper()
	s := settings{collector: spawn.Binary(m.t), smi: m.smi, source: "auto", library: m.library, out: m.out, rounds: 10, pause: 400 * time.Millisecond}
	path, err := s.run(context.Background())
	if path == "" {
		return "", err
	}
	content, readErr := os.ReadFile(path)
	require.NoError(m.t, readErr)
	m.t.Log(string(content))
	return string(content), err
}

// differing are the metrics that differ on a page.
func differing(page string) (all []string) {
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` .*\\*\\*differs\\*\\*").FindAllStringSubmatch(page, -1) {
		all = append(all, m[1])
	}
	return all
}

// Scenario: an H100 under load, as it was captured, whose driver and nvidia-smi say the same.
// Guarantees: everything that nvidia-smi has a word for is compared and agrees; the page names model, driver and date, and
// nothing that tells one machine from another.
func TestTheReceiverAgreesWithNvidiaSMI(t *testing.T) {
	m := newMachine(t, fakegpu.H100())
	page, err := m.run()
	require.NoError(t, err)
	assert.Empty(t, differing(page))
	assert.FileExists(t, filepath.Join(m.out, "h100-80gb-hbm3-590.48.01.md"))
	assert.Contains(t, page, "# NVIDIA H100 80GB HBM3, driver 590.48.01\n")
	assert.Contains(t, page, "**The receiver and nvidia-smi say the same.**")
	assert.Contains(t, page, "on "+time.Now().UTC().Format(time.DateOnly))
	compared := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|[^|]*\\| ([1-9]\\d*) \\| ([1-9]\\d*) \\| agrees \\|$").FindAllString(page, -1)
	// The GPUs, 22 of the pairs (no pages are retired on an H100), nine reasons, processes, energy.
	assert.Len(t, compared, 1+22+9+1+1, strings.Join(compared, "\n"))
	for _, secret := range []string{m.world.GPUs[0].UUID, m.world.GPUs[0].Serial, "11327"} {
		assert.NotContains(t, page, secret)
	}
}

func TestADividedGPUAgreesToo(t *testing.T) {
	m := newMachine(t, fakegpu.H100MIG())
	page, err := m.run()
	require.NoError(t, err)
	assert.Contains(t, page, "| MIG | enabled, 4 instances |")
	assert.NotContains(t, page, "`hw.gpu.utilization", "neither of them has it")
	assert.FileExists(t, filepath.Join(m.out, "h100-80gb-hbm3-mig-590.48.01.md"))
}

// Guarantees: the command fails, and the page says where, when a value, a process or a GPU differs, when one side alone has
// something, and when a counter does not grow as it should.
func TestWhatDiffersIsAFailure(t *testing.T) {
	m := newMachine(t, fakegpu.H100())
	gpu := m.says.GPUs[0]
	gpu["temperature.gpu"] = "62" // three degrees more
	gpu["memory.total"] = "81561" // two MiB more
	gpu["clocks_event_reasons.active"] = "0x0000000000000004"
	gpu["remapped_rows.pending"] = "Yes"
	gpu["retired_pages.double_bit.count"] = "0" // the receiver has none
	delete(gpu, "utilization.decoder")          // the receiver has it
	gpu[fieldFirmware] = "96.00.A5.00.02"
	m.says.Processes[1]["used_gpu_memory"] = "2000"
	m.tell()
	page, err := m.run()
	require.ErrorIs(t, err, errDiffer)
	assert.ElementsMatch(t, []string{
		"GPUs: UUID, model, driver, serial number, firmware, PCI", "hw.gpu.memory.limit", "hw.gpu.utilization {decoder}",
		"hw.temperature {gpu}", "nvidia.gpu.memory.remap.pending", "nvidia.gpu.memory.retired_pages {double_bit}",
		"nvidia.gpu.throttle.reason {sw_power_cap}", "nvidia.gpu.process.memory.usage",
	}, differing(page))
	assert.Contains(t, page, "GPU 0: 59, where nvidia-smi says 62")
	assert.Contains(t, page, "**8 of ")
}

func TestACollectorThatDoesNotWorkIsAnError(t *testing.T) {
	m := newMachine(t, fakegpu.H100())
	s := settings{collector: "/bin/false", smi: m.smi, source: "nvml", out: m.out, rounds: 2}
	page, err := s.run(context.Background())
	assert.Empty(t, page)
	assert.ErrorContains(t, err, "the Collector ended")
	assert.NoDirExists(t, m.out)

	s.smi = filepath.Join(t.TempDir(), "nvidia-smi")
	_, err = s.run(context.Background())
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestFieldsThatAnOldNvidiaSMIDoesNotKnowAreNotAskedFor(t *testing.T) {
	m := newMachine(t, fakegpu.H100())
	m.says.Unknown = []string{"clocks_event_reasons.active", "memory.reserved"}
	m.tell()
	s, err := newSMI(context.Background(), m.smi, fields())
	require.NoError(t, err)
	assert.Len(t, s.fields, len(fields())-2)
	at, err := s.sample(context.Background())
	require.NoError(t, err)
	assert.Equal(t, "59", at.gpus[m.world.GPUs[0].UUID]["temperature.gpu"])
	assert.NotContains(t, at.gpus[m.world.GPUs[0].UUID], "memory.reserved")
}
