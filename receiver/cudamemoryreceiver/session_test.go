// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/probe"
)

// Scenario: a Collector without the privileges, which are given later.
// Guarantees: one line says what it takes, the status is recoverable, it is tried again, and then all is well.
func TestWithoutPrivilegesItWaits(t *testing.T) {
	for _, refused := range []error{probe.ErrPermission, probe.ErrUnsupported} {
		r := newRig(t, nil)
		r.kernel.refuses = fmt.Errorf("load: %w", refused)
		r.pass(35 * time.Second)
		lines := r.console.FilterMessage("nothing is seen of CUDA memory; it is tried again")
		require.Equal(t, 1, lines.Len())
		assert.Equal(t, "load: "+refused.Error(), lines.All()[0].ContextMap()["error"])
		status, text := r.status()
		assert.Equal(t, componentstatus.StatusRecoverableError, status)
		assert.Contains(t, text, refused.Error())
		assert.Len(t, r.host.events, 1)
		assert.Equal(t, map[string]int64{"": 0}, r.counted("attached", ""))
		assert.Empty(t, r.metrics.AllMetrics())

		r.kernel.refuses = nil
		r.kernel.add(7, 1, 0)
		r.pass(21 * time.Second)
		status, _ = r.status()
		assert.Equal(t, componentstatus.StatusOK, status)
		assert.Equal(t, 1, r.console.FilterMessage("CUDA memory is watched").Len())
		assert.NotEmpty(t, r.series())
		assert.Equal(t, map[string]int64{"": 1}, r.counted("attached", ""))
	}
}

// Scenario: a machine on which nothing uses CUDA, then something does, and ends. Guarantees: one line says so, and nothing is sent;
// what comes is taken up within a second, and that it goes again is nothing that anybody need be told.
func TestWithoutAProcessThatUsesCUDAItWaits(t *testing.T) {
	r := newRig(t, nil)
	r.pass(30 * time.Second)
	assert.Equal(t, 31, r.kernel.looked)
	assert.Equal(t, 1, r.console.Len())
	assert.Equal(t, 1, r.console.FilterMessage("no process uses CUDA yet; it is looked for").Len())
	status, text := r.status()
	assert.Equal(t, componentstatus.StatusRecoverableError, status)
	assert.Equal(t, "no process has loaded CUDA: neither libcudart nor libcuda is mapped", text)
	assert.Empty(t, r.metrics.AllMetrics())
	p := r.kernel.add(7, 1, 0)
	r.pass(time.Second)
	status, _ = r.status()
	assert.Equal(t, componentstatus.StatusOK, status)
	p.Ended, r.kernel.result = true, probe.ScanResult{}
	r.pass(30 * time.Second)
	assert.Len(t, r.host.events, 2)
	assert.Equal(t, map[string]int64{"": 0}, r.counted("libraries", ""))
}

func TestAFileThatTakesNoProbesIsNamed(t *testing.T) {
	r := newRig(t, nil)
	r.kernel.result = probe.ScanResult{Processes: 1, Failed: 1, Err: errors.New("/opt/libcudart.so: no symbols")}
	r.pass(10 * time.Second)
	status, text := r.status()
	assert.Equal(t, componentstatus.StatusRecoverableError, status)
	assert.Equal(t, "no probe is attached: /opt/libcudart.so: no symbols", text)
	assert.Equal(t, 1, r.console.Len())
	r.kernel.opts.Log("%s: %d symbols", "/opt/x.so", 0)
	assert.Equal(t, 1, r.console.FilterMessage("/opt/x.so: 0 symbols").FilterLevelExact(zap.WarnLevel).Len())
}

// Guarantees: why a process may not be looked at is told with its number. That a capability is missing is said only where it is, and is why
// nothing is told only then: one process that a security module hides is nothing unusual.
func TestProcessesThatMayNotBeLookedAtAreToldOf(t *testing.T) {
	hidden := errors.New("process 1: maps: permission denied")
	f := func(has bool, line string, level zapcore.Level, why error) {
		t.Helper()
		was := mayLook
		mayLook = func() bool { return has }
		defer func() { mayLook = was }()
		r := newRig(t, nil)
		r.kernel.add(7, 1, 0)
		r.kernel.result.Unreadable, r.kernel.result.Late, r.kernel.result.Hidden = 5, 1, hidden
		r.pass(10 * time.Second)
		assert.Equal(t, map[string]int64{"": 1}, r.counted("processes_late", ""))
		told := r.console.FilterMessage(line)
		require.Equal(t, 1, told.Len())
		assert.Equal(t, level, told.All()[0].Level)
		assert.Equal(t, hidden.Error(), told.All()[0].ContextMap()["error"])
		assert.Equal(t, map[string]int64{"": 5}, r.counted("processes_hidden", ""))
		assert.Equal(t, map[string]int64{"": 1}, r.counted("libraries", ""))

		r = newRig(t, nil)
		r.kernel.result.Unreadable, r.kernel.result.Hidden = 5, hidden
		r.pass(10 * time.Second)
		r.kernel.result.Hidden = errors.New("process 2: maps: permission denied")
		r.pass(10 * time.Second)
		_, text := r.status()
		assert.Equal(t, why.Error(), text)
		require.Equal(t, 1, r.console.Len(), "once")
		assert.Equal(t, level, r.console.All()[0].Level)
		assert.Equal(t, hidden.Error(), r.console.All()[0].ContextMap()["hidden"])
	}
	f(false, "processes of other users are not seen: CAP_SYS_PTRACE is missing", zap.WarnLevel, errHidden)
	f(true, "some processes may not be looked at: whether they use CUDA is not known", zap.InfoLevel, errIdle)
}

func TestAKernelByWhichProcessesCrashNamesTheSetting(t *testing.T) {
	r := newRig(t, nil)
	r.kernel.refuses = fmt.Errorf("%w: of Linux 6.11.0", probe.ErrUnsafe)
	r.pass(10 * time.Second)
	_, text := r.status()
	assert.Equal(t, "allow_unsafe_kernel: false: a process with a seccomp filter may crash by the probes: of Linux 6.11.0", text)
	assert.False(t, r.kernel.opts.UnsafeKernel)
	r.kernel.refuses = nil
	r.cfg.AllowUnsafeKernel = true
	r.pass(30 * time.Second)
	assert.True(t, r.kernel.opts.UnsafeKernel)
}

// Scenario: the probes are lost while processes run. Guarantees: all series end at once, the status says why, and what is counted
// anew has another beginning.
func TestAfterALossCountingBeginsAnew(t *testing.T) {
	f := func(lose func(*rig), want string) {
		t.Helper()
		r := newRig(t, func(cfg *Config) { cfg.MaxProcesses = 1 })
		p := r.kernel.add(7, 5, 0)
		r.kernel.add(8, 1, 0)
		r.pass(10 * time.Second)
		lose(r)
		r.pass(10 * time.Second)
		assert.Equal(t, []string{"cuda.memory.live{otel.metric.overflow=true} ended", "cuda.memory.live{process.pid=7} ended"}, r.series("cuda.memory.live"))
		status, text := r.status()
		assert.Equal(t, componentstatus.StatusRecoverableError, status)
		assert.Equal(t, want, text)
		assert.Equal(t, 1, r.kernel.closed)
		assert.Equal(t, map[string]int64{"": 0}, r.counted("attached", ""))

		r.kernel.scans, r.kernel.reads = nil, nil
		*p = probe.Process{PID: 7, StartTime: 70, ID: p.ID}
		allocate(p, 1, 0)
		begin := r.clock
		r.pass(30 * time.Second)
		assert.Equal(t, 2, r.kernel.loaded)
		each(r.metrics.AllMetrics(), func(m pmetric.Metric, p point) {
			if m.Name() == "cuda.memory.allocations" {
				assert.Equal(t, "1", p.value)
				assert.False(t, p.start.Before(begin.Add(-10*time.Second)))
			}
		})
		assert.Equal(t, map[string]int64{"": 1}, r.counted("reinitializations", ""))
		status, _ = r.status()
		assert.Equal(t, componentstatus.StatusOK, status)
	}
	f(func(r *rig) { r.kernel.reads = errLost }, "read what was counted: lost")
	f(func(r *rig) { r.kernel.scans = errLost }, "look for processes that use CUDA: lost")
}

// Guarantees: each loss is counted once, under its reason, and from nothing again when the probes are loaded anew.
func TestLossesAreCountedByReason(t *testing.T) {
	r := newRig(t, nil)
	assert.Equal(t, map[string]int64{"max_entries": 0, "processes": 0, "threads": 0, "unreadable": 0, "unknown_free": 0, "unreturned": 0, "untold_change": 0},
		r.counted("dropped", "reason"), "there is an increase from nothing")
	r.kernel.add(7, 1, 0)
	r.kernel.drops = probe.Drops{Live: 1, Processes: 2, Threads: 3, Unreadable: 4, UnknownFrees: 5, Unreturned: 7, Ring: 6}
	want := map[string]int64{"max_entries": 1, "processes": 2, "threads": 3, "unreadable": 4, "unknown_free": 5, "unreturned": 7, "untold_change": 6}
	r.pass(30 * time.Second)
	assert.Equal(t, want, r.counted("dropped", "reason"))
	r.kernel.drops.Live = 11
	want["max_entries"] = 11
	r.pass(10 * time.Second)
	assert.Equal(t, want, r.counted("dropped", "reason"))
	r.lose(t.Context(), errLost)
	r.kernel.drops = probe.Drops{Live: 1}
	want["max_entries"] = 12
	r.pass(30 * time.Second)
	assert.Equal(t, want, r.counted("dropped", "reason"))
}

// Guarantees: a consumer that takes nothing for a while costs what it was not given, and nothing else.
func TestAConsumerThatRefusesIsTold(t *testing.T) {
	r := newRig(t, nil)
	r.next = consumertest.NewErr(errors.New("full"))
	r.kernel.add(7, 1, 0)
	r.pass(10 * time.Second)
	assert.Equal(t, 1, r.console.FilterMessage("a collection was not taken").Len())
	r.next = r.metrics
	r.pass(10 * time.Second)
	assert.Len(t, r.series(), 10)
}
