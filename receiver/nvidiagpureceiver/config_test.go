// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap/xconfmap"

	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

func TestConfigurationsAreReadAsWritten(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "nvidia_gpu", defaults())
	require.NoError(t, err)
	assert.Equal(t, createDefaultConfig(), cfg)
	for g := range gpu.Groups {
		assert.Equal(t, 10*time.Second, cfg.interval(g))
	}

	cfg, err = configtest.Read(t, "testdata/config.yaml", "nvidia_gpu/all", defaults())
	require.NoError(t, err)
	on := true
	assert.Equal(t, &Config{
		CollectionInterval: time.Second, ProcessInterval: 2 * time.Second, ExpensiveInterval: 30 * time.Second, RetryInterval: 5 * time.Second,
		Source: "auto", NVMLLibrary: "/opt/libnvidia-ml.so.1", DCGMLibrary: "/opt/libdcgm.so.4", DCGMEndpoint: "localhost:5555",
		KubeletSocket: "/run/kubelet.sock", KubeletLogs: "/logs", ProcRoot: "/host/proc", MaxProcesses: 7, ReleaseWindow: 30 * time.Second,
		DCGMExporterNames: true,
		Metrics:           emit.Settings{"nvidia.gpu.pipe.active": {Enabled: &on}},
	}, cfg)
	assert.Equal(t, time.Second, cfg.interval(gpu.Cheap))
	assert.Equal(t, 2*time.Second, cfg.interval(gpu.PerProcess))
	assert.Equal(t, 30*time.Second, cfg.interval(gpu.Expensive))

	_, err = configtest.Read(t, "testdata/config.yaml", "nvidia_gpu/socket", defaults())
	require.NoError(t, err)
}

func TestAWrongConfigurationNamesItsKeys(t *testing.T) {
	f := func(section string, want ...string) {
		t.Helper()
		configtest.Refused(t, "testdata/config.bad.yaml", section, defaults(), want...)
	}
	f("nvidia_gpu/values",
		"collection_interval: 10ms must be at least 100ms",
		"process_interval: -1s must be at least 100ms",
		"expensive_interval: 1ms must be at least 100ms",
		"retry_interval: 0s must be at least 100ms",
		`source: "cuda" is none of auto, nvml, dcgm`,
		`dcgm_endpoint: "localhost" is neither host:port, e.g. localhost:5555, nor unix:///path`,
		"max_processes: 0 must be at least 1",
		"release_window: -1s must not be negative",
		`metrics: unknown metric "hw_power": did you mean hw.power?`)
	f("nvidia_gpu/nvml", "source: nvml never asks DCGM: write auto or dcgm, or remove dcgm_library and dcgm_endpoint")
	f("nvidia_gpu/socket", `dcgm_endpoint: "unix://run/socket": "run/socket" is no absolute path`)
	f("nvidia_gpu/dcgm", `source: dcgm never asks NVML: write auto or nvml, or remove nvml_library, or set it to ""`)
	f("nvidia_gpu/port", `dcgm_endpoint: "localhost:abc": the port "abc" is not in 1…65535`)
	f("nvidia_gpu/large_port", `dcgm_endpoint: "localhost:99999": the port "99999" is not in 1…65535`)
	f("nvidia_gpu/no_port", `dcgm_endpoint: "localhost:0": the port "0" is not in 1…65535`)
	f("nvidia_gpu/half_a_scheme", `dcgm_endpoint: "unix:/run/x" is neither host:port, e.g. localhost:5555, nor unix:///path`)
	f("nvidia_gpu/paths",
		`kubelet_socket: "unix:///run/kubelet.sock" is no absolute path, e.g. /var/lib/kubelet/pod-resources/kubelet.sock`,
		`kubelet_logs: "logs" is no absolute path, e.g. /var/log/containers`,
		`proc_root: "proc" is no absolute path, e.g. /host/proc`)
	f("nvidia_gpu/null", "source: is null")
	f("nvidia_gpu/number", "collection_interval: 10 has no unit: write 10s, 10m or 10h")
	f("nvidia_gpu/typo", "nvml_lib")
}

func TestTheDefaultsAreValid(t *testing.T) {
	assert.NoError(t, componenttest.CheckConfigStruct(createDefaultConfig()))
	assert.NoError(t, xconfmap.Validate(createDefaultConfig()))
}
