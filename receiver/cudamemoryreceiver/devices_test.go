// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/probe"
)

const (
	gpu0 = "GPU-96fde4d6-9a69-bfd8-bf26-ee1bf6b35ba1"
	gpu1 = "GPU-20c56d28-0da5-6d26-a36a-e7af1ce2586e"
)

// environment writes a process into a /proc.
func environment(t testing.TB, proc string, pid int, cgroup string, environ ...string) {
	t.Helper()
	folder := filepath.Join(proc, fmt.Sprint(pid))
	require.NoError(t, os.MkdirAll(folder, 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "environ"), []byte(strings.Join(environ, "\x00")), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "cgroup"), []byte(cgroup), 0o600))
}

var contained = "0::/docker/" + strings.Repeat("a1", 32) + "\n"

// Guarantees: a process has the hw.id of the only device that its environment leaves, or that the kubelet has given to its
// container, and none where there may be others.
func TestTheDeviceIsToldWhereThereIsNoOther(t *testing.T) {
	proc := t.TempDir()
	r := newRig(t, func(cfg *Config) { cfg.ProcRoot = proc })
	f := func(pid int, want string) {
		t.Helper()
		found := false
		each(r.metrics.AllMetrics(), func(m pmetric.Metric, p point) {
			if id, _ := p.attributes.Get("process.pid"); m.Name() == "cuda.memory.live" && id.Int() == int64(pid) && !p.ended {
				got, _ := p.attributes.Get("hw.id")
				assert.Equal(t, want, got.Str(), pid)
				found = true
			}
		})
		assert.True(t, found, pid)
	}
	environment(t, proc, 1, "0::/\n", "CUDA_VISIBLE_DEVICES="+gpu0)
	environment(t, proc, 2, "0::/\n", "CUDA_VISIBLE_DEVICES=0,1")
	environment(t, proc, 3, contained, "NVIDIA_VISIBLE_DEVICES="+gpu1)
	environment(t, proc, 4, contained, "NVIDIA_VISIBLE_DEVICES=all")
	environment(t, proc, 5, contained, "NVIDIA_VISIBLE_DEVICES=void")
	environment(t, proc, 6, contained)
	for pid := range 7 {
		r.kernel.add(pid+1, 1, 0) // of the last there is no environment
		r.people.of[pid+1] = workload.Process{Start: uint64(pid+1) * 10}
	}
	r.people.given[4], r.people.given[5], r.people.given[7] = gpu0, gpu1, gpu0
	r.pass(10 * time.Second)
	f(1, gpu0)
	f(2, "")
	f(3, gpu1)
	f(4, "")
	f(5, gpu1)
	f(6, "")
	f(7, "")
	r.people.given[6] = gpu0 // the kubelet has not answered before
	r.pass(10 * time.Second)
	f(6, gpu0)
}

// ears is a guard.
type ears struct {
	component.Component
	live []gpuwatch.Live
	gone []gpuwatch.Process
}

func (e *ears) Device(gpuwatch.Device) {}

func (e *ears) Leak(gpuwatch.Leak) {}

func (e *ears) Live(l gpuwatch.Live) { e.live = append(e.live, l) }

func (e *ears) Gone(p gpuwatch.Process) { e.gone = append(e.gone, p) }

// Guarantees: the guard hears of each change at once and with the device, without a collection between, and of the end.
func TestTheGuardHearsAtOnce(t *testing.T) {
	proc, guard, id := t.TempDir(), &ears{}, component.MustNewID("gpu_guard")
	environment(t, proc, 7, "0::/\n", "CUDA_VISIBLE_DEVICES="+gpu0)
	r := newRig(t, func(cfg *Config) { cfg.ProcRoot, cfg.Guard = proc, &id })
	r.host.extensions = map[component.ID]component.Component{id: guard}
	var err error
	r.guard, err = gpuwatch.Find(r.host, &id)
	require.NoError(t, err)
	r.pass(0)
	of := gpuwatch.Process{PID: 7, StartTime: 70}
	r.kernel.opts.Changed(probe.Change{PID: 7, StartTime: 70, Live: 5, At: 42})
	assert.Equal(t, []gpuwatch.Live{{Process: of, Device: gpu0, Bytes: 5, At: 42}}, guard.live)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		guard.live = guard.live[:0]
		r.changed(probe.Change{PID: 7, StartTime: 70, Live: 5, At: 42})
	}))
	r.kernel.opts.Changed(probe.Change{PID: 7, StartTime: 70, Live: 5, Managed: 3, At: 43})
	r.kernel.opts.Changed(probe.Change{PID: 7, StartTime: 70, Live: 5, Managed: 6, At: 44})
	assert.Equal(t, []uint64{2, 0}, []uint64{guard.live[1].Bytes, guard.live[2].Bytes}, "what may be on the host is not told")
	r.kernel.opts.Gone(7, 70)
	assert.Equal(t, []gpuwatch.Process{of}, guard.gone)
	assert.Empty(t, r.devices.of)
}

func TestAGuardThatIsNotThereIsAnError(t *testing.T) {
	cfg, id := defaults(), component.MustNewID("gpu_guard")
	cfg.Guard = &id
	c, err := NewFactory().CreateMetrics(t.Context(), receivertest.NewNopSettings(metadata.Type), cfg, new(consumertest.MetricsSink))
	require.NoError(t, err)
	require.EqualError(t, c.Start(t.Context(), componenttest.NewNopHost()), `guard: there is no extension "gpu_guard" under service::extensions`)
	require.NoError(t, c.Shutdown(t.Context()))
}
