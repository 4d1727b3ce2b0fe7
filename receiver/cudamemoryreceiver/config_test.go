// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/xconfmap"

	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
)

func TestConfigurationsAreReadAsWritten(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "cuda_memory", defaults())
	require.NoError(t, err)
	assert.Equal(t, createDefaultConfig(), cfg)

	cfg, err = configtest.Read(t, "testdata/config.yaml", "cuda_memory/all", defaults())
	require.NoError(t, err)
	off, guard := false, component.MustNewIDWithName("gpu_guard", "a")
	assert.Equal(t, &Config{
		CollectionInterval: time.Second, ScanInterval: 2 * time.Second, RetryInterval: 5 * time.Second, MaxEntries: 1_000_000, MaxProcesses: 7,
		Libraries: []string{"libtorch_cuda.so*", "/opt/*/libengine.so"}, Events: Events{Launches: true},
		KubeletSocket: "/run/kubelet.sock", KubeletLogs: "/logs", ProcRoot: "/host/proc", AllowUnsafeKernel: true, Guard: &guard,
		Metrics: emit.Settings{"cuda.memory.failures": {Enabled: &off}},
	}, cfg)
}

func TestAWrongConfigurationNamesItsKeys(t *testing.T) {
	f := func(section string, want ...string) {
		t.Helper()
		configtest.Refused(t, "testdata/config.bad.yaml", section, defaults(), want...)
	}
	f("cuda_memory/values",
		"collection_interval: 10ms must be at least 100ms",
		"scan_interval: 0s must be at least 100ms",
		"retry_interval: -1s must be at least 100ms",
		"max_entries: 0 must be at least 1",
		"max_processes: 0 must be at least 1",
		`libraries[0]: "lib[" is no pattern, e.g. libtorch_cuda.so* or /opt/*/libengine.so`,
		`libraries[1]: "" is no pattern`,
		`metrics: unknown metric "cuda_memory_live": did you mean cuda.memory.live?`)
	f("cuda_memory/huge", "max_entries: 4294967295 must be at most 10000000, which take 3.5 GB of the kernel's memory")
	f("cuda_memory/paths",
		`kubelet_socket: "unix:///run/kubelet.sock" is no absolute path, e.g. /var/lib/kubelet/pod-resources/kubelet.sock`,
		`kubelet_logs: "logs" is no absolute path, e.g. /var/log/containers`,
		`proc_root: "proc" is no absolute path, e.g. /host/proc`)
	f("cuda_memory/launches", "metrics::cuda.kernel.launches: is switched on, and nothing counts it: write events: {launches: true}, too")
	f("cuda_memory/null", "libraries: is null")
	f("cuda_memory/number", "collection_interval: 10 has no unit: write 10s, 10m or 10h")
	f("cuda_memory/negative", "max_entries")
	f("cuda_memory/typo", "max_entry")
	f("cuda_memory/guard", "guard")
}

func TestTheDefaultsAreValid(t *testing.T) {
	assert.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	assert.NoError(t, xconfmap.Validate(createDefaultConfig()))
}
