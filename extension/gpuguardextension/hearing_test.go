// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
)

// statuses is a host that keeps what is reported.
type statuses struct {
	extensions
	all []componentstatus.Status
}

func (s *statuses) Report(e *componentstatus.Event) { s.all = append(s.all, e.Status()) }

// observed is a guard whose warnings, and statuses, are kept.
func observed(t *testing.T, cfg *Config) (*rig, *statuses, func() []string) {
	t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	set := extensiontest.NewNopSettings(metadata.Type)
	set.Logger = zap.New(core)
	ext, err := NewFactory().Create(t.Context(), set, cfg)
	require.NoError(t, err)
	host := &statuses{}
	require.NoError(t, ext.Start(t.Context(), host))
	r := &rig{ext.(*gpuGuard), t, cfg}
	t.Cleanup(r.end)
	return r, host, func() (all []string) {
		for _, entry := range logs.TakeAll() {
			all = append(all, entry.Message)
		}
		return all
	}
}

// Guarantees: an armed guard that nobody tells says so within two minutes, once, and so does its status, until somebody does.
func TestAGuardThatNobodyTellsSaysSo(t *testing.T) {
	r, host, warned := observed(t, armed(t))
	assert.Len(t, warned(), 1, "it is armed")
	begin := time.Now()
	r.listen(begin.Add(silence / 2))
	assert.Empty(t, warned())
	for range 3 {
		r.listen(begin.Add(2 * silence))
	}
	got := warned()
	require.Len(t, got, 1)
	assert.Contains(t, got[0], "write guard: "+r.set.ID.String()+" under nvidia_gpu or cuda_memory")
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError}, host.all)
	id := component.MustNewID("gpu_guard")
	_, err := gpuwatch.Find(&statuses{extensions: extensions{id: r.gpuGuard}}, &id)
	require.NoError(t, err)
	for range 3 {
		r.listen(begin.Add(3 * silence))
	}
	assert.Equal(t, []string{"nothing was told to the guard so far: it sees no GPU, and no process that allocates"}, warned())
	assert.Equal(t, componentstatus.StatusOK, host.all[1])
}

func TestWhatIsNotSeenIsSaidOnce(t *testing.T) {
	r, _, warned := observed(t, armed(t))
	warned()
	cmd := workloadtest.Start(t, "leaky")
	r.Live(gpuwatch.Live{Process: gpuwatch.Process{PID: cmd.Process.Pid}, Bytes: gib, At: now()})
	for range 3 {
		r.listen(time.Now().Add(2 * silence))
	}
	got := warned()
	require.Len(t, got, 2)
	assert.Equal(t, partly, got[0])
	assert.Contains(t, got[1], "device_count: 1")
	for _, host := range []string{"there", "", "there"} {
		r.Leak(gpuwatch.Leak{ID: "x", Open: true, Host: host, PID: 7, At: now()})
	}
	got = warned()
	require.Len(t, got, 1)
	assert.Contains(t, got[0], "host_names")
}

func TestAVerdictOfTheSameCollectorNeedsNoHost(t *testing.T) {
	cfg := armed(t)
	cfg.OnLeak = true
	r := start(t, nil, cfg)
	cmd, other := workloadtest.Start(t, "leaky"), workloadtest.Start(t, "leaky")
	for _, of := range []int{cmd.Process.Pid, other.Process.Pid} {
		r.Live(gpuwatch.Live{Process: gpuwatch.Process{PID: of}, Device: gpu, Bytes: gib, At: now()})
	}
	r.Leak(gpuwatch.Leak{ID: "x", Open: true, PID: cmd.Process.Pid, Executable: "leaky", Cause: "not_returned", At: time.Now().Add(time.Second).UnixNano()})
	r.soon("termed", "exited")
	assert.False(t, alive(cmd))
	assert.True(t, alive(other))
}

func TestOneDeviceIsKnownByTheDriver(t *testing.T) {
	f := func(count int, want bool, folders ...string) {
		t.Helper()
		dir := t.TempDir()
		for _, folder := range folders {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, folder), 0o700))
		}
		cfg := defaults()
		cfg.DeviceCount = count
		assert.Equal(t, want, cfg.oneDevice(dir))
	}
	f(0, false)
	f(0, true, "gpus/0000:01:00.0")
	f(0, false, "gpus/0000:01:00.0", "gpus/0000:02:00.0")
	f(0, false, "gpus/0000:01:00.0", "capabilities/gpu0/mig/gi7")
	f(1, true)
	f(2, false, "gpus/0000:01:00.0")
}
