// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensiontest"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
)

const (
	gib = uint64(1 << 30)
	gpu = "GPU-a"
)

// rig is an extension that runs, with real processes.
type rig struct {
	*gpuGuard
	t   *testing.T
	cfg *Config
}

// brief is the grace of those who do not end when they are asked.
const brief = 300 * time.Millisecond

// armed is a configuration that ends processes called leaky.
func armed(t *testing.T) *Config {
	cfg := defaults()
	// However slow the machine is, who ends when asked has the time, and no reading is old.
	cfg.DryRun, cfg.For, cfg.Grace, cfg.StaleAfter, cfg.KubeletSocket, cfg.KubeletLogs = false, 0, time.Minute, time.Hour, "", ""
	cfg.Policy.Victims = []RuleConfig{{Name: "leaks", Executable: []string{"leaky"}}}
	cfg.Audit.File = filepath.Join(t.TempDir(), "audit.jsonl")
	cfg.CgroupRoot = workloadtest.Cgroups(t)
	return cfg
}

func start(t *testing.T, tel *componenttest.Telemetry, cfg *Config) *rig {
	t.Helper()
	require.NoError(t, cfg.Validate())
	set := extensiontest.NewNopSettings(metadata.Type)
	if tel != nil {
		set.TelemetrySettings = tel.NewTelemetrySettings()
	}
	ext, err := NewFactory().Create(t.Context(), set, cfg)
	require.NoError(t, err)
	require.NoError(t, ext.Start(t.Context(), componenttest.NewNopHost()))
	r := &rig{ext.(*gpuGuard), t, cfg}
	t.Cleanup(r.end)
	return r
}

func (r *rig) end() { require.NoError(r.t, r.Shutdown(context.Background())) }

// stubborn is a process of a name that ignores being asked to end.
func stubborn(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	sleep := workloadtest.Start(t, name)
	workloadtest.End(sleep)
	cmd := exec.Command("sh", "-c", `trap '' TERM; echo ready; exec "$0" 3600`, sleep.Path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { workloadtest.End(cmd) })
	_, err = out.Read(make([]byte, 6))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		target, err := os.Readlink("/proc/" + itoa(cmd.Process.Pid) + "/exe")
		return err == nil && filepath.Base(target) == name
	}, time.Minute, time.Millisecond)
	return cmd
}

// fills lets a process hold 90 of the 100 GiB of a device. Nobody tells when it was started.
func (r *rig) fills(cmd *exec.Cmd) {
	of := gpuwatch.Process{PID: cmd.Process.Pid}
	r.Live(gpuwatch.Live{Process: of, Device: gpu, Bytes: gib, At: now()})
	r.Device(gpuwatch.Device{ID: gpu, Total: 100 * gib, Used: gib, At: now()})
	r.Live(gpuwatch.Live{Process: of, Device: gpu, Bytes: 90 * gib, At: now()})
}

// alive says whether a process is there and no zombie.
func alive(cmd *exec.Cmd) bool {
	stat, err := os.ReadFile("/proc/" + itoa(cmd.Process.Pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// audited are the outcomes in the audit file, refusals with their reasons.
func (r *rig) audited() (all []string) {
	r.t.Helper()
	content, err := os.ReadFile(r.cfg.Audit.File)
	require.NoError(r.t, err)
	for line := range strings.Lines(string(content)) {
		if !strings.HasSuffix(line, "\n") {
			break // it is being written
		}
		var of map[string]any
		require.NoError(r.t, json.Unmarshal([]byte(line), &of))
		text := of["gpu_guard.outcome"].(string)
		if reason, ok := of["gpu_guard.reason"]; ok {
			text += ": " + reason.(string)
		}
		all = append(all, text)
	}
	return all
}

func (r *rig) soon(want ...string) {
	r.t.Helper()
	if !assert.Eventually(r.t, func() bool { return slices.Equal(want, r.audited()) }, time.Minute, time.Millisecond) {
		r.t.Fatalf("the audit has %q", r.audited())
	}
}

func TestARealProcessIsEndedAndOnRecord(t *testing.T) {
	r := start(t, nil, armed(t))
	cmd := workloadtest.Start(t, "leaky")
	r.fills(cmd)
	r.soon("termed", "exited")
	assert.False(t, alive(cmd))
	content, err := os.ReadFile(r.cfg.Audit.File)
	require.NoError(t, err)
	var of map[string]any
	require.NoError(t, json.Unmarshal([]byte(strings.Split(string(content), "\n")[1]), &of))
	for key, want := range map[string]any{
		"event": "gpu_guard.action", "process.pid": float64(cmd.Process.Pid), "process.executable.name": "leaky", "process.executable.path": cmd.Path,
		"hw.id": gpu, "gpu_guard.rule": "leaks", "gpu_guard.trigger": "threshold", "gpu_guard.dry_run": false, "gpu_guard.method": "kill",
	} {
		assert.Equal(t, want, of[key], key)
	}
	for _, key := range []string{"time", "text", "gpu_guard.action.id", "process.creation.time", "gpu_guard.process.start_ticks", "gpu_guard.duration"} {
		assert.Contains(t, of, key)
	}
}

func TestARealProcessThatIgnoresItIsKilled(t *testing.T) {
	cfg := armed(t)
	cfg.Grace = brief
	r := start(t, nil, cfg)
	cmd := stubborn(t, "leaky")
	r.fills(cmd)
	r.soon("termed", "killed")
	assert.False(t, alive(cmd))
}

// Scenario: a process that ignores being asked to end has started others, in a control group of its own.
// Guarantees: with cgroup_kill all of them end, and with somebody protected among them, nobody does.
func TestARealControlGroupIsKilled(t *testing.T) {
	f := func(beside string, wantAlive bool, want ...string) {
		t.Helper()
		cfg := armed(t)
		cfg.Method, cfg.Grace = "cgroup_kill", brief
		cfg.Policy.Protected = []RuleConfig{{Executable: []string{"database"}}}
		r := start(t, nil, cfg)
		first, second := stubborn(t, "leaky"), stubborn(t, beside)
		group := filepath.Join("gpuguardtest-"+itoa(os.Getpid()), beside)
		workloadtest.Move(t, first, group)
		workloadtest.Move(t, second, group)
		r.fills(first)
		r.soon(want...)
		if !wantAlive {
			require.Eventually(t, func() bool { return !alive(first) && !alive(second) }, time.Minute, time.Millisecond)
		}
		assert.Equal(t, wantAlive, alive(first))
		assert.Equal(t, wantAlive, alive(second))
	}
	f("worker", false, "termed", "killed")
	f("database", true, "refused: in_cgroup: protected")
}

func TestInADryRunNobodyIsTouched(t *testing.T) {
	cfg := armed(t)
	cfg.DryRun, cfg.Grace = true, brief
	r := start(t, nil, cfg)
	cmd := workloadtest.Start(t, "leaky")
	r.fills(cmd)
	r.soon("would_term")
	time.Sleep(2 * cfg.Grace)
	assert.True(t, alive(cmd))
}

func TestWhoIsProtectedIsNeverTouched(t *testing.T) {
	cfg := armed(t)
	cfg.Grace, cfg.Policy.Protected = brief, []RuleConfig{{Command: []string{"3600$"}}}
	r := start(t, nil, cfg)
	cmd := workloadtest.Start(t, "leaky")
	r.fills(cmd)
	r.soon("refused: protected")
	time.Sleep(2 * cfg.Grace)
	assert.True(t, alive(cmd))
}

func TestTheCollectorDoesNotEndItself(t *testing.T) {
	cfg := armed(t)
	cfg.Policy.Victims = []RuleConfig{{Executable: []string{"*"}}}
	r := start(t, nil, cfg)
	now := time.Now().UnixNano()
	r.Device(gpuwatch.Device{ID: gpu, Total: 100 * gib, Used: 90 * gib, At: now, Processes: []gpuwatch.Held{{Process: gpuwatch.Process{PID: os.Getpid()}, Bytes: 90 * gib}}})
	r.soon("refused: self")
}

func TestANumberThatWasGivenAnewIsNobody(t *testing.T) {
	r := start(t, nil, armed(t))
	cmd := workloadtest.Start(t, "leaky")
	r.Device(gpuwatch.Device{ID: gpu, Total: 100 * gib, Used: 91 * gib, At: now()})
	r.Live(gpuwatch.Live{Process: gpuwatch.Process{PID: cmd.Process.Pid, StartTime: 1}, Device: gpu, Bytes: 90 * gib, At: now()})
	r.soon("refused: no_candidate")
	assert.True(t, alive(cmd))
}

func TestALeakOfThisMachineIsAReason(t *testing.T) {
	cfg := armed(t)
	cfg.OnLeak, cfg.HostNames = true, []string{"gpu-7"}
	r := start(t, nil, cfg)
	cmd := workloadtest.Start(t, "leaky")
	leak := func(id, host string) {
		r.Leak(gpuwatch.Leak{ID: id, Open: true, Host: host, PID: cmd.Process.Pid, Device: gpu, Cause: "not_returned", At: time.Now().Add(time.Second).UnixNano()})
	}
	leak("a", "gpu-8")
	r.Device(gpuwatch.Device{ID: gpu, Total: 100 * gib, Used: 6 * gib, At: time.Now().UnixNano(),
		Processes: []gpuwatch.Held{{Process: gpuwatch.Process{PID: cmd.Process.Pid}, Bytes: 5 * gib}}})
	time.Sleep(100 * time.Millisecond)
	assert.Empty(t, r.audited())
	leak("b", "gpu-7")
	r.soon("termed", "exited")
	assert.False(t, alive(cmd))
}

// Guarantees: a restart, or many, gives no new budget; and when what was spent is not known, all is.
func TestTheBudgetOutlivesARestart(t *testing.T) {
	cfg := armed(t)
	cfg.MaxActionsPerHour, cfg.Cooldown = 1, time.Second
	r := start(t, nil, cfg)
	r.fills(workloadtest.Start(t, "leaky"))
	r.soon("termed", "exited")
	r.end()
	time.Sleep(cfg.Cooldown)
	r = start(t, nil, cfg)
	cmd := workloadtest.Start(t, "leaky")
	r.fills(cmd)
	r.soon("termed", "exited", "refused: budget")
	r.end()

	require.NoError(t, os.WriteFile(cfg.Audit.File+".state", []byte("{"), 0o600))
	r = start(t, nil, cfg)
	time.Sleep(cfg.Cooldown + 100*time.Millisecond)
	r.fills(cmd)
	r.soon("termed", "exited", "refused: budget", "refused: budget")
	assert.FileExists(t, cfg.Audit.File+".state.damaged")
	assert.True(t, alive(cmd))
}

func TestAnActionThatWasCutShortIsTold(t *testing.T) {
	cfg := armed(t)
	require.NoError(t, os.WriteFile(cfg.Audit.File+".state",
		[]byte(`{"spent":[1],"ended":1,"paused":true,"pending":{"id":"a1","pid":7,"start":9,"executable":"leaky","device":"GPU-a"}}`), 0o600))
	r := start(t, nil, cfg)
	r.soon("interrupted")
	assert.True(t, r.view().Paused, "it stays stopped")
	r.end()
	r = start(t, nil, cfg)
	r.soon("interrupted")
}

func TestWhereTheAuditCannotBeWrittenTheCollectorDoesNotStart(t *testing.T) {
	cfg := armed(t)
	cfg.Audit.File = filepath.Join(cfg.Audit.File, "none", "audit.jsonl")
	ext, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(metadata.Type), cfg)
	require.NoError(t, err)
	require.ErrorContains(t, ext.Start(t.Context(), componenttest.NewNopHost()), "audit::file: open ")
	require.NoError(t, ext.Shutdown(t.Context()))
}

func TestWhatCannotWorkKeepsTheCollectorFromStarting(t *testing.T) {
	f := func(want string, change func(*Config)) {
		t.Helper()
		cfg := armed(t)
		change(cfg)
		require.NoError(t, cfg.Validate())
		ext, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(metadata.Type), cfg)
		require.NoError(t, err)
		err = ext.Start(t.Context(), componenttest.NewNopHost())
		require.ErrorContains(t, err, want)
		require.NoError(t, ext.Shutdown(t.Context()))
	}
	f("has no control groups of version 2, which method: cgroup_kill takes", func(cfg *Config) { cfg.Method, cfg.CgroupRoot = "cgroup_kill", t.TempDir() })
	f("cgroup_root: /none: ", func(cfg *Config) { cfg.Method, cfg.CgroupRoot = "cgroup_kill", "/none" })
	other := start(t, nil, armed(t))
	f("another guard writes it", func(cfg *Config) { cfg.Audit.File = other.cfg.Audit.File })
}

// Guarantees: who subscribes hears of all that was done before, once, and of what is done from then on.
func TestActionsAreTold(t *testing.T) {
	r := start(t, nil, armed(t))
	r.fills(workloadtest.Start(t, "leaky"))
	r.soon("termed", "exited")
	var mu sync.Mutex
	var told []gpuaction.Outcome
	cancel := r.Subscribe(func(a gpuaction.Action) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, a.Outcome)
	})
	assert.Equal(t, []gpuaction.Outcome{"termed", "exited"}, told)
	r.Subscribe(func(a gpuaction.Action) { assert.NotEqual(t, gpuaction.Exited, a.Outcome) })()
	r.record(gpuaction.Action{Outcome: gpuaction.Refused})
	assert.Len(t, told, 3)
	cancel()
	r.record(gpuaction.Action{Outcome: gpuaction.Refused})
	assert.Len(t, told, 3)
}

// Scenario: the disk is full for a while. Guarantees: nothing of the record is lost, and the operator is told.
func TestTheRecordWaitsForTheDisk(t *testing.T) {
	cfg := armed(t)
	r := start(t, nil, cfg)
	whole := r.book.file
	require.NoError(t, whole.Close())
	require.NoError(t, os.Remove(cfg.Audit.File))
	require.NoError(t, os.Mkdir(cfg.Audit.File, 0o700)) // it cannot be opened
	r.record(gpuaction.Action{Outcome: gpuaction.Refused, Reason: "one"})
	_, failing := r.book.lately()
	assert.NotEmpty(t, failing)
	require.NoError(t, os.Remove(cfg.Audit.File))
	r.record(gpuaction.Action{Outcome: gpuaction.Refused, Reason: "two"})
	assert.Equal(t, []string{"refused: one", "refused: two"}, r.audited())
	_, failing = r.book.lately()
	assert.Empty(t, failing)
}

func TestBooksAreBounded(t *testing.T) {
	var b book
	for range 3 * maxUntold {
		lost, err := b.add(gpuaction.Action{})
		require.NoError(t, err)
		assert.Zero(t, lost)
	}
	assert.Len(t, b.last, maxUntold)
	b.Subscribe(func(gpuaction.Action) {})
	_, err := b.add(gpuaction.Action{})
	require.NoError(t, err)
	assert.Len(t, b.last, maxLast)
}

func TestLifecycle(t *testing.T) {
	cfg := armed(t)
	lifecycletest.Test(t, componenttest.NewNopHost(), func(t testing.TB) extension.Extension {
		ext, err := NewFactory().Create(t.Context(), extensiontest.NewNopSettings(metadata.Type), cfg)
		require.NoError(t, err)
		return ext
	}, func(_ testing.TB, ext extension.Extension) {
		ext.(gpuwatch.Watcher).Device(gpuwatch.Device{ID: gpu})
		ext.(gpuwatch.Watcher).Gone(gpuwatch.Process{PID: 1})
	})
}

func TestOthersFindIt(t *testing.T) {
	id := component.NewID(metadata.Type)
	assert.Equal(t, gpuaction.DefaultID, id)
	r := start(t, nil, armed(t))
	host := extensions{id: r.gpuGuard}
	_, err := gpuwatch.Find(host, &id)
	require.NoError(t, err)
	_, err = gpuaction.Find(host, id)
	require.NoError(t, err)
	none := component.MustNewID("none")
	_, err = gpuwatch.Find(host, &none)
	assert.True(t, err != nil && !errors.Is(err, os.ErrNotExist))
}

type extensions map[component.ID]component.Component

func (h extensions) GetExtensions() map[component.ID]component.Component { return h }
