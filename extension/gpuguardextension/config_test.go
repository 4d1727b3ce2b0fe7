// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
)

func defaults() *Config { return createDefaultConfig().(*Config) }

func TestByDefaultNobodyIsTouched(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "gpu_guard", defaults())
	require.NoError(t, err)
	assert.Equal(t, defaults(), cfg)
	assert.True(t, cfg.DryRun)
	assert.Empty(t, cfg.Policy.Victims)
	assert.False(t, cfg.OnLeak)
	assert.Empty(t, cfg.Admin.NetAddr.Endpoint)
	assert.InDelta(t, 0.85, cfg.Threshold, 0)
	assert.Equal(t, 3*time.Second, cfg.For)
	require.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
}

func TestConfigurationsAreReadAsWritten(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "gpu_guard/full", defaults())
	require.NoError(t, err)
	assert.Equal(t, "a-token-of-24-characters", string(cfg.Admin.Token))
	assert.Equal(t, "localhost:8687", cfg.Admin.NetAddr.Endpoint)
	assert.Equal(t, []string{"guard.example.com"}, cfg.Admin.AllowedHosts)
	cfg.Admin = AdminConfig{}
	assert.Equal(t, &Config{
		Threshold: 0.9, OnLeak: true, LeakWithin: 6 * time.Hour,
		Policy: PolicyConfig{
			Victims: []RuleConfig{
				{Name: "batch", Namespace: []string{"batch", "team-*"}, Executable: []string{"python3*"}},
				{Cgroup: []string{"/user.slice"}, UID: []int{1000}, Command: []string{`train\.py`}},
			},
			Protected: []RuleConfig{{Pod: []string{"chat-*"}, Container: []string{"vllm"}, ContainerID: []string{"0123456789ab"}}},
		},
		Order: []string{"newest", "live"}, MinShare: 0.1, GrowthWindow: time.Hour, Grace: 30 * time.Second, Method: "cgroup_kill",
		CgroupRoot: "/sys/fs/cgroup/unified", MaxActionsPerHour: 1, Cooldown: 5 * time.Minute, StaleAfter: 5 * time.Second, DeviceMemory: 80 << 30, DeviceCount: 1,
		HostNames: []string{"gpu-7"}, MaxProcesses: 100, MaxDevices: 8,
		Audit: AuditConfig{File: "/var/lib/otelcol-llm/gpu_guard.jsonl", MaxBytes: 1 << 20, Backups: 2},
	}, cfg)
}

func TestAWrongConfigurationNamesItsKeyAndTheCure(t *testing.T) {
	f := func(section string, messages ...string) {
		t.Helper()
		configtest.Refused(t, "testdata/config.bad.yaml", "gpu_guard/"+section, defaults(), messages...)
	}
	f("shares", "threshold: 85 is not in (0, 1]: write e.g. 0.85", "min_share: 0 is not in (0, 1]")
	f("times", "for: -1s must be at least 0s", "grace: -1s must be at least 0s", "cooldown: 0s must be at least 1s",
		"stale_after: 1ms must be at least 100ms", "growth_window: 0s must be at least 1s", "leak_within: -1s must be at least 0s")
	f("numbers", "max_actions_per_hour: -1 must be at least 0", "max_processes: 0 must be at least 1", "max_devices: 0 must be at least 1",
		"device_memory: -1 must be at least 0", "device_count: -1 must be at least 0", "audit::max_bytes: 1 must be at least 4096", "audit::backups: -1 must be at least 0")
	f("words", `method: "sigkill" is none of kill, cgroup_kill`, `order[1]: "size" is none of leak, growth, live, newest`, `order[2]: "growth" is there twice`)
	f("order", "order: is empty: write one or more of leak, growth, live, newest")
	f("paths", `cgroup_root: "" is no absolute path, e.g. /sys/fs/cgroup`, `kubelet_socket: "unix:///run/kubelet.sock" is no absolute path`,
		`kubelet_logs: "logs" is no absolute path, e.g. /var/log/containers`)
	f("armed", "audit::file: is required with dry_run: false", "policy::victims: is empty, so nobody would ever be ended")
	f("everybody", "policy: protected[1]: fits every process, so that no rule under victims could ever make one")
	f("everyline", "policy: protected[0]: fits every process")
	f("rules", `policy: victims[0]: says nothing: every process would fit; if that is meant, write executable: ["*"]`, "victims[1]: uid[0]: -1 is no user",
		`protected[0]: command[0]: "(" is no regular expression`, "protected[1]: pod[0]: is empty", `cgroup[0]: "user.slice" does not begin with /`)
	f("nobody", "admin: nobody would be asked who they are: set token, e.g. ${env:GPU_GUARD_TOKEN}, or auth")
	f("short", "admin::token: must have at least 16 characters")
	f("both", "admin: token and auth are both set: keep one")
	f("far", "admin::tls: is required, since 0.0.0.0:8687 can be reached from elsewhere; or listen on localhost")
	f("nowhere", "admin::endpoint: is empty, but there is a token: write e.g. localhost:8687")
	f("hosts", `admin::allowed_hosts[0]: "guard.example.com:8687" is no host name: write e.g. console.example.com, without port`)
	f("port", `admin::endpoint: "localhost" is no host:port, e.g. localhost:8687`, "admin::cors: no page may ask the guard: leave it out")
	f("null", "policy::protected: is null")
	f("unit", "for: 3 has no unit: write 3s, 3m or 3h")
	f("typo", "has invalid keys: victim")
}
