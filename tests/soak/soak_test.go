// SPDX-License-Identifier: Apache-2.0

//go:build soak

package soak

import (
	"flag"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

var (
	warmUp  = flag.Duration("soak-warm-up", 5*time.Minute, "how long the demo runs before anything is held against it: what is filled first is the newest chunk of each series, 120 samples in two minutes, and the windows of burn rates and baselines, in five")
	length  = flag.Duration("soak-for", 10*time.Minute, "how long it is watched then")
	writeTo = flag.String("soak-report", "", "file to write the report to, such as docs/soak.md; empty only logs it")
)

const (
	every = 2 * time.Second

	// maxGrowth is how much the resident memory may grow in a minute. What has to grow is 32 bytes for each 120 samples that
	// the database moves from memory to a file, until it writes a block after three hours, 0.05 MiB a minute at the demo's rate;
	// and one more minute in the rings of the error budgets. The rest is what ten minutes do not tell from the teeth of the garbage
	// collector, 30 MiB high. What leaks one object of 16 bytes a point, 3,000 times a second, grows by 2.7 MiB a minute.
	maxGrowth = 512 << 10
	// maxMore is by what share the number of series may have grown at the end, and rare how many there may be besides: nothing new joins
	// the demo, but an outcome that is rare is seen for the first time.
	maxMore = 0.05
	rare    = 2
)

// sizes are the metrics of what data can fill, with what they count.
var sizes = map[string]string{
	"otelcol_tsdb_series":                "series in the head of `tsdb`",
	"otelcol_slo_series":                 "series of `slo`",
	"otelcol_slo_input_series":           "input series of `slo`",
	"otelcol_drift_heatmap_cells":        "cells of `drift_heatmap`",
	"otelcol_drift_heatmap_input_series": "input series of `drift_heatmap`",
}

// Scenario: the demo runs, with its simulator of eight replicas that are scraped every second, its fault and its end.
// Guarantees: once it is warm, the Collector's resident memory and heap stay what they are, and so does what it counts in every map
// that data can fill.
func TestTheDemoStaysAsLargeAsItIs(t *testing.T) {
	run := &watch{commit: commit(t)}
	d := startDemo(t)
	time.Sleep(*warmUp)
	run.began = time.Now()
	for end := run.began.Add(*length); time.Now().Before(end); time.Sleep(every) {
		run.add(d.look(t))
	}
	require.Greater(t, len(run.samples), 20, "too short to say anything")
	text := run.report(t)
	t.Log(text)
	if *writeTo != "" {
		require.NoError(t, os.WriteFile(filepath.Join(spawn.Root(t), *writeTo), []byte(text), 0o644))
	}

	assert.Less(t, run.growth(resident), float64(maxGrowth), "resident memory, bytes a minute")
	assert.Less(t, run.growth(heap), float64(maxGrowth), "live heap, bytes a minute")
	for name, what := range sizes {
		first, last, there := run.ends(name)
		if !there {
			t.Errorf("%s: the Collector does not tell of %s", name, what)
			continue
		}
		assert.Positive(t, first, what)
		assert.LessOrEqual(t, last, first*(1+maxMore)+rare, what)
	}
	d.stop(t)
}

// demo is the command that `make demo` runs, and its Collector.
type demo struct {
	cmd       *exec.Cmd
	collector string // pid
	telemetry string // URL of its own metrics
}

func startDemo(t testing.TB) *demo {
	t.Helper()
	root := spawn.Root(t)
	binary := filepath.Join(t.TempDir(), "demo")
	build := exec.Command("go", "build", "-o", binary, "./demo")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))

	// While its usual ports are taken, it takes others: whatever else runs here, nobody sends to it.
	for _, port := range []string{"4317", "4318"} {
		if l, err := net.Listen("tcp", "localhost:"+port); err == nil {
			defer l.Close()
		}
	}
	d := &demo{cmd: exec.Command(binary)}
	d.cmd.Dir = root
	log, err := os.Create(filepath.Join(t.TempDir(), "demo.log"))
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("the demo said:\n%s", text)
		}
		log.Close()
	})
	d.cmd.Stdout, d.cmd.Stderr = log, log
	require.NoError(t, d.cmd.Start())
	t.Cleanup(func() {
		if d.cmd.ProcessState == nil {
			_ = d.cmd.Process.Signal(syscall.SIGTERM) // it ends its children
			_ = d.cmd.Wait()
		}
	})
	require.Eventually(t, func() bool {
		d.collector = childOf(d.cmd.Process.Pid, "otelcol-llm")
		return d.collector != ""
	}, 30*time.Second, 50*time.Millisecond, "the demo starts no Collector")
	d.telemetry = "http://localhost:" + environment(t, d.collector, "DEMO_TELEMETRY_PORT") + "/metrics"
	require.Eventually(t, func() bool { _, err := get(d.telemetry); return err == nil }, 30*time.Second, 100*time.Millisecond, "the Collector tells nothing")
	return d
}

func (d *demo) stop(t testing.TB) {
	t.Helper()
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGINT))
	require.NoError(t, d.cmd.Wait())
}

// childOf is the pid of a child of a process that runs a command of that name.
func childOf(pid int, name string) string {
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has just ended
		}
		if status := fields(string(text)); status["Name"] == name && status["PPid"] == itoa(pid) {
			return filepath.Base(filepath.Dir(file))
		}
	}
	return ""
}

// fields are the lines of a file such as /proc/self/status.
func fields(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			out[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return out
}

// environment is a variable of a process.
func environment(t testing.TB, pid, name string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/environ")
	require.NoError(t, err)
	for variable := range strings.SplitSeq(string(text), "\x00") {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	t.Fatalf("the Collector has no %s", name)
	return ""
}

func read(r io.ReadCloser) (string, error) {
	defer r.Close()
	text, err := io.ReadAll(r)
	return string(text), err
}
