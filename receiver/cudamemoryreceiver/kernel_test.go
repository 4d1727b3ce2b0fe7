// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-llm/otelcol-llm/internal/fakecuda"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/metadata"
)

// listener is a guard that passes on what it hears, and how long after it happened.
type listener struct {
	component.Component
	live chan heard
	gone chan gpuwatch.Process
}

type heard struct {
	gpuwatch.Live
	after time.Duration
}

func (l *listener) Device(gpuwatch.Device) {}
func (l *listener) Leak(gpuwatch.Leak)     {}

func (l *listener) Live(live gpuwatch.Live) {
	l.live <- heard{live, time.Since(time.Unix(0, live.At))}
}

func (l *listener) Gone(p gpuwatch.Process) { l.gone <- p }

// Scenario: on the real kernel, a process allocates again and again, and is killed; nothing is collected meanwhile.
// Guarantees: the guard hears of the last of its allocations, with the exact bytes and the device, and of its end. How long that
// takes is logged: a machine that is busy with other tests proves nothing of it.
func TestTheGuardHearsWhatTheKernelSees(t *testing.T) {
	built, err := fakecuda.Build(t.TempDir())
	require.NoError(t, err)
	cmd := exec.Command(built.Workload)
	cmd.Env = []string{"CUDA_VISIBLE_DEVICES=" + gpu0}
	w, err := fakecuda.Run(cmd)
	require.NoError(t, err)
	do := func(command, want string) {
		t.Helper()
		got, err := w.Do(command)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	do("load "+built.Runtime, "")

	cfg, id, proc := defaults(), component.MustNewID("gpu_guard"), t.TempDir()
	pid := strconv.Itoa(w.PID())
	require.NoError(t, os.Symlink(filepath.Join("/proc", pid), filepath.Join(proc, pid))) // and no process of the tests that run beside this one
	cfg.Guard, cfg.ProcRoot, cfg.CollectionInterval = &id, proc, time.Hour
	ears := &listener{live: make(chan heard, 10_000), gone: make(chan gpuwatch.Process, 10)}
	host := &statuses{Host: componenttest.NewNopHost(), extensions: map[component.ID]component.Component{id: ears}}
	c, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, new(consumertest.MetricsSink))
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), host))

	require.Eventually(t, func() bool { // until the probes are there
		do("churn cudaMalloc cudaFree 1 4096", "1 0")
		return len(ears.live) > 0
	}, time.Minute, 10*time.Millisecond)
	var latencies []time.Duration
	for want := uint64(1); want <= 50; want++ {
		do("alloc cudaMalloc 1 1048576", "1 0")
		for last := uint64(0); last != want*mebi; {
			select {
			case l := <-ears.live:
				last = l.Bytes
				assert.Equal(t, w.PID(), l.PID)
				assert.Equal(t, gpu0, l.Device)
				latencies = append(latencies, l.after)
			case <-time.After(20 * time.Second):
				t.Fatalf("allocation %d was not heard of", want)
			}
		}
	}
	slices.Sort(latencies)
	t.Logf("from the allocation's return: p50 %s, p99 %s", latencies[len(latencies)/2], latencies[len(latencies)*99/100])
	_ = w.Kill()
	select {
	case gone := <-ears.gone:
		assert.Equal(t, w.PID(), gone.PID)
		assert.NotZero(t, gone.StartTime)
	case <-time.After(20 * time.Second):
		t.Fatal("its end was not heard of")
	}
	require.NoError(t, c.Shutdown(t.Context()))
}
