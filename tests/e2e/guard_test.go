// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
)

const guardToken = "a-token-of-24-characters"

const guardConfig = `
extensions:
  gpu_guard:
    for: 500ms
    grace: 1h
    cooldown: 1s
    kubelet_socket: ""
    audit: {file: %[1]s/audit.jsonl}
    admin: {endpoint: %[2]q, token: %[3]s}
    policy: {victims: [{name: leaks, executable: [leaky]}]}
receivers:
  nvidia_gpu: {nvml_library: %[1]s/libnvidia-ml.so.1, source: nvml, collection_interval: 100ms, kubelet_socket: "", guard: gpu_guard}
  gpu_guard:
  otlp: {protocols: {http: {endpoint: %[4]q}}}
connectors:
  gpu_leak: {guard: gpu_guard, min_duration: 5m, lateness: 0s, idle_timeout: 1h}
exporters:
  nop:
  file: {path: %[1]s/events.jsonl, append: true, flush_interval: 50ms}
service:
  extensions: [gpu_guard]
  pipelines:
    metrics: {receivers: [nvidia_gpu], exporters: [nop]}
    metrics/in: {receivers: [otlp], exporters: [gpu_leak]}
    metrics/leak: {receivers: [gpu_leak], exporters: [nop]}
    logs: {receivers: [gpu_guard], exporters: [file]}
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: localhost, port: %[5]d}}}}]}}
`

// guarded is a Collector that watches a GPU of a fake, on which a real process holds memory.
type guarded struct {
	*spawn.Collector
	t                  *testing.T
	dir                string
	admin, otlp, stats string // URLs
	world              *fakegpu.Scenario
	victim             *exec.Cmd
	options            spawn.Options
}

// startGuarded starts it with what is set besides. The process holds 20 GB of 85.
func startGuarded(t *testing.T, victim *exec.Cmd, more ...string) *guarded {
	t.Helper()
	admin, otlp, port := spawn.FreeEndpoint(t), spawn.FreeEndpoint(t), spawn.FreePort(t)
	g := &guarded{
		t: t, dir: t.TempDir(), admin: "http://" + admin, otlp: "http://" + otlp + "/v1/metrics", stats: fmt.Sprintf("http://localhost:%d/metrics", port),
		world: fakegpu.H100(), victim: victim,
	}
	_, err := fakegpu.Build(g.dir)
	require.NoError(t, err)
	g.holds(20)
	configs := []string{spawn.WriteConfig(t, fmt.Sprintf(guardConfig, g.dir, admin, guardToken, otlp, port))}
	for _, text := range more {
		configs = append(configs, "yaml:"+text)
	}
	g.options = spawn.Options{Configs: configs, Env: []string{fakegpu.Variable + "=" + filepath.Join(g.dir, "scenario")}}
	g.run()
	return g
}

func (g *guarded) run() {
	g.t.Helper()
	g.Collector = spawn.Start(g.t, g.options)
	g.WaitReady()
}

// stubborn is a process that ignores being asked to end, and has started another one.
func stubborn(t *testing.T) *exec.Cmd {
	t.Helper()
	copied := workloadtest.Start(t, "leaky")
	workloadtest.End(copied)
	cmd := exec.Command("sh", "-c", `trap '' TERM; "$0" 3600 & exec "$0" 3600`, copied.Path)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { workloadtest.End(cmd) })
	require.Eventually(t, func() bool {
		target, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "exe"))
		return err == nil && filepath.Base(target) == "leaky"
	}, patience, 5*time.Millisecond)
	return cmd
}

// holds lets the process hold so many GB.
func (g *guarded) holds(gb uint64) {
	g.t.Helper()
	gpu := &g.world.GPUs[0]
	gpu.Set("memory.used", float64(gb*1e9))
	gpu.Processes = []fakegpu.Process{{
		Kind: fakegpu.Compute, PID: workloadtest.PID(g.victim), Memory: gb * 1e9, GPUInstance: fakegpu.NoInstance, ComputeInstance: fakegpu.NoInstance, SM: fakegpu.Idle,
	}}
	require.NoError(g.t, g.world.Write(filepath.Join(g.dir, "scenario")))
}

// alive says whether the process is there, and no zombie.
func (g *guarded) alive() bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(g.victim.Process.Pid), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// audited are the outcomes in the audit, refusals with their reasons.
func (g *guarded) audited() (all []string) {
	g.t.Helper()
	each(g.t, filepath.Join(g.dir, "audit.jsonl"), func(line []byte) {
		var of map[string]any
		require.NoError(g.t, json.Unmarshal(line, &of))
		all = append(all, outcome(of))
	})
	return all
}

// told are the same, of the log events.
func (g *guarded) told() (all []string) {
	g.t.Helper()
	each(g.t, filepath.Join(g.dir, "events.jsonl"), func(line []byte) {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(line)
		require.NoError(g.t, err)
		for _, r := range ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
			assert.Equal(g.t, "gpu_guard.action", r.EventName())
			all = append(all, outcome(r.Attributes().AsRaw()))
		}
	})
	return all
}

func outcome(of map[string]any) string {
	if reason, ok := of["gpu_guard.reason"]; ok {
		return fmt.Sprint(of["gpu_guard.outcome"], ": ", reason)
	}
	return fmt.Sprint(of["gpu_guard.outcome"])
}

// soon waits until the audit and the events begin with these.
func (g *guarded) soon(want ...string) {
	g.t.Helper()
	begins := func(all []string) bool { return len(all) >= len(want) && slices.Equal(want, all[:len(want)]) }
	if !assert.Eventually(g.t, func() bool { return begins(g.audited()) && begins(g.told()) }, patience, 20*time.Millisecond) {
		g.t.Fatalf("the audit has %q, the events are %q", g.audited(), g.told())
	}
}

func (g *guarded) ask(method, path, token string) int {
	g.t.Helper()
	request, err := http.NewRequest(method, g.admin+path, http.NoBody)
	require.NoError(g.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(request)
	require.NoError(g.t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(g.t, err)
	return resp.StatusCode
}

// Scenario: a process fills a GPU, step by step; the guard is switched on. When it has spent its budget it is started again.
// Guarantees: the process is ended once the GPU is too full, not sooner; that is on record and told, within the time that is promised, by
// the guard's own histograms; and a restart gives no new budget.
func TestAProcessThatFillsAGPUIsEnded(t *testing.T) {
	parallel(t)
	g := startGuarded(t, workloadtest.Start(t, "leaky"), "extensions::gpu_guard::dry_run: false", "extensions::gpu_guard::max_actions_per_hour: 1")
	for _, gb := range []uint64{40, 60, 70} {
		g.holds(gb)
		time.Sleep(300 * time.Millisecond)
	}
	assert.True(t, g.alive(), "below the threshold")
	assert.Empty(t, g.audited())
	g.holds(74)
	g.soon("termed", "exited")
	assert.False(t, g.alive())
	all := seriesOf(get(t, g.stats), "otelcol_gpu_guard_decision_duration_seconds_count{")
	assert.Equal(t, "1", all)
	assert.Zero(t, g.Stop())
	before := len(g.audited())

	g.victim = workloadtest.Start(t, "leaky")
	g.holds(80)
	g.run()
	require.Eventually(t, func() bool { return len(g.audited()) > before }, patience, 20*time.Millisecond)
	assert.Equal(t, "refused: budget", g.audited()[before])
	assert.NotContains(t, g.audited()[2:], "termed")
	assert.True(t, g.alive())
	assert.Zero(t, g.Stop())
}

// Scenario: a process in a control group ignores being asked to end, and has started another one there.
// Guarantees: with cgroup_kill both end.
func TestAControlGroupThatFillsAGPUIsEnded(t *testing.T) {
	parallel(t)
	victim := stubborn(t)
	group := filepath.Join(fmt.Sprintf("gpuguarde2e-%d", os.Getpid()), "group")
	workloadtest.Move(t, victim, group)
	children, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", victim.Process.Pid))
	require.NoError(t, err)
	child := strings.TrimSpace(string(children))
	folder := filepath.Join(workloadtest.Cgroups(t), group)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte(child), 0o600))
	g := startGuarded(t, victim, "extensions::gpu_guard::dry_run: false", "extensions::gpu_guard::grace: 500ms", "extensions::gpu_guard::method: cgroup_kill",
		"extensions::gpu_guard::cgroup_root: "+workloadtest.Cgroups(t))
	g.holds(80)
	g.soon("termed", "killed")
	assert.False(t, g.alive())
	require.Eventually(t, func() bool {
		members, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
		return err == nil && len(members) == 0
	}, patience, 10*time.Millisecond)
	assert.Zero(t, g.Stop())
}

func TestInADryRunAProcessThatFillsAGPUIsLeftAlone(t *testing.T) {
	parallel(t)
	g := startGuarded(t, workloadtest.Start(t, "leaky"), "extensions::gpu_guard::grace: 500ms")
	g.holds(80)
	g.soon("would_term")
	time.Sleep(2 * time.Second) // the grace is over for long
	assert.True(t, g.alive())
	assert.NotContains(t, g.audited(), "termed")
	assert.Zero(t, g.Stop())
}

func TestAProtectedProcessIsNeverEnded(t *testing.T) {
	parallel(t)
	g := startGuarded(t, workloadtest.Start(t, "leaky"), "extensions::gpu_guard::dry_run: false",
		"extensions::gpu_guard::policy::protected: [{name: serving, command: [' 3600$']}]")
	g.holds(84)
	g.soon("refused: protected")
	time.Sleep(2 * time.Second)
	assert.True(t, g.alive())
	assert.Equal(t, []string{"refused: protected"}, g.audited(), "it is told once")
	assert.Zero(t, g.Stop())
}

// Scenario: somebody stops the guard; the Collector is killed and started again; then the guard is let go on.
// Guarantees: nobody is ended until then, and only who has the token can say so.
func TestPeopleStopTheGuard(t *testing.T) {
	parallel(t)
	g := startGuarded(t, workloadtest.Start(t, "leaky"), "extensions::gpu_guard::dry_run: false")
	assert.Equal(t, http.StatusUnauthorized, g.ask("POST", "/pause", "another-token-of-this-length"))
	assert.Equal(t, http.StatusOK, g.ask("POST", "/pause", guardToken))
	g.holds(80)
	g.soon("refused: paused")
	time.Sleep(time.Second)
	assert.True(t, g.alive())
	assert.Equal(t, http.StatusOK, g.ask("POST", "/resume", guardToken))
	g.soon("refused: paused", "termed", "exited")
	assert.False(t, g.alive())
	assert.Zero(t, g.Stop())
}

// Scenario: gpu_leak finds that a process leaks, on a GPU that is far from full. Guarantees: it is ended, for that and no other reason.
func TestAProcessThatLeaksIsEnded(t *testing.T) {
	parallel(t)
	g := startGuarded(t, workloadtest.Start(t, "leaky"), "extensions::gpu_guard::dry_run: false", "extensions::gpu_guard::on_leak: true")
	host, err := os.Hostname()
	require.NoError(t, err)
	begin := time.Now().Add(-5 * time.Minute)
	grown := func(at time.Time) pmetric.Metrics {
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("host.name", host)
		metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
		for name, value := range map[string]float64{
			"hw.gpu.memory.limit": 85e9, "hw.gpu.memory.usage": 20e9 * (1 + at.Sub(begin).Minutes()/20), "nvidia.gpu.process.memory.usage": 19e9 * (1 + at.Sub(begin).Minutes()/20),
		} {
			m := metrics.AppendEmpty()
			m.SetName(name)
			p := m.SetEmptyGauge().DataPoints().AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(at))
			p.SetIntValue(int64(value))
			p.Attributes().PutStr("hw.id", g.world.GPUs[0].UUID)
			if strings.Contains(name, "process") {
				p.Attributes().PutInt("process.pid", int64(g.victim.Process.Pid))
				p.Attributes().PutStr("process.executable.name", "leaky")
			}
		}
		return md
	}
	send := func(at time.Time) {
		body, err := pmetricotlp.NewExportRequestFromMetrics(grown(at)).MarshalProto()
		require.NoError(t, err)
		resp, err := http.Post(g.otlp, "application/x-protobuf", strings.NewReader(string(body)))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	for at := begin; at.Before(time.Now()); at = at.Add(time.Second) {
		send(at)
	}
	require.Eventually(t, func() bool {
		send(time.Now())
		return !g.alive()
	}, patience, 200*time.Millisecond)
	g.soon("termed", "exited")
	each(t, filepath.Join(g.dir, "audit.jsonl"), func(line []byte) {
		var of map[string]any
		require.NoError(t, json.Unmarshal(line, &of))
		assert.Equal(t, "leak", of["gpu_guard.trigger"])
		assert.NotEmpty(t, of["gpu.leak.id"])
	})
	assert.Zero(t, g.Stop())
}

// Guarantees: what the README says switches the guard on over the agent does, and two guards do not share a file.
func TestTheGuardIsSwitchedOnOverTheAgent(t *testing.T) {
	parallel(t)
	dir := t.TempDir()
	readme, err := os.ReadFile(filepath.Join(spawn.Root(t), "extension", "gpuguardextension", "README.md"))
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(readme), "## In Kubernetes")
	require.True(t, ok)
	_, block, ok := strings.Cut(section, "```yaml\n")
	require.True(t, ok)
	block, _, ok = strings.Cut(block, "```")
	require.True(t, ok)
	validate := func(text string) (string, error) {
		path := filepath.Join(dir, "guard.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		out, err := exec.Command(spawn.Binary(t), "validate", "--config", "builtin:agent", "--config", path).CombinedOutput()
		return string(out), err
	}
	out, err := validate(block)
	require.NoError(t, err, out)
	out, err = validate(strings.ReplaceAll(block, "victims: [{namespace: [batch]}]", "victims: []"))
	require.Error(t, err)
	assert.Contains(t, out, "policy::victims: is empty")

	config := spawn.WriteConfig(t, fmt.Sprintf("extensions: {gpu_guard: &g {audit: {file: %s/audit.jsonl}}, gpu_guard/two: *g}\n"+
		"receivers: {nop: }\nexporters: {nop: }\n"+
		"service: {extensions: [gpu_guard, gpu_guard/two], pipelines: {metrics: {receivers: [nop], exporters: [nop]}}, telemetry: {metrics: {level: none}}}\n", dir))
	c := spawn.Start(t, spawn.Options{Configs: []string{config}})
	c.WaitLog("another guard writes it: give each a file of its own", patience)
	assert.NotZero(t, c.Stop())
}

// Guarantees: a guard that is configured and not under service::extensions does nothing, and whoever counts on it is told.
func TestAGuardThatIsNotSwitchedOnIsAnError(t *testing.T) {
	parallel(t)
	dir := t.TempDir()
	_, err := fakegpu.Build(dir)
	require.NoError(t, err)
	config := spawn.WriteConfig(t, fmt.Sprintf(guardConfig, dir, spawn.FreeEndpoint(t), guardToken, spawn.FreeEndpoint(t), spawn.FreePort(t)))
	c := spawn.Start(t, spawn.Options{Configs: []string{config, "yaml:service::extensions: []"}})
	c.WaitLog(`extension \"gpu_guard\"`, patience)
	c.WaitLog("service::extensions", patience)
	assert.NotZero(t, c.Stop())
}
