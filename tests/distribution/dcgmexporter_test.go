// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// divided is what the real dump has not: a GPU with MIG instances, one of which a pod uses, and a utilization that cannot be.
const divided = `
# HELP DCGM_FI_PROF_SM_ACTIVE The ratio of cycles an SM has at least 1 warp assigned.
# TYPE DCGM_FI_PROF_SM_ACTIVE gauge
DCGM_FI_PROF_SM_ACTIVE{gpu="3",UUID="GPU-3",pci_bus_id="00000000:3B:00.0",device="nvidia3",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",Hostname="node-1",container="vllm",namespace="llm",pod="chat-0"} 0.25
DCGM_FI_PROF_SM_ACTIVE{gpu="3",UUID="GPU-3",pci_bus_id="00000000:3B:00.0",device="nvidia3",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="8",Hostname="node-1",container="",namespace="",pod=""} 0.5
# HELP DCGM_FI_DEV_ECC_DBE_AGG_TOTAL Total number of double-bit persistent ECC errors.
# TYPE DCGM_FI_DEV_ECC_DBE_AGG_TOTAL counter
DCGM_FI_DEV_ECC_DBE_AGG_TOTAL{gpu="3",UUID="GPU-3",pci_bus_id="00000000:3B:00.0",device="nvidia3",modelName="NVIDIA H100 80GB HBM3",Hostname="node-1"} 2
DCGM_FI_DEV_GPU_UTIL{gpu="3",UUID="GPU-3",pci_bus_id="00000000:3B:00.0",device="nvidia3",modelName="NVIDIA H100 80GB HBM3",Hostname="node-1"} 101
`

// Labels that every series of the dump's first and second machine, and of the divided GPU, has.
const (
	first     = `host_name="424773df46e0",hw_driver_version="460.106.00",hw_id="GPU-20c56d28-0da5-6d26-a36a-e7af1ce2586e",hw_model="Tesla T4",hw_name="GPU 0",hw_vendor="NVIDIA"`
	second    = `host_name="551bdf382151",hw_driver_version="470.182.03",hw_id="GPU-9ef1b6d0-3643-5dd7-b823-c0ec20dcf2d5",hw_model="Tesla T4",hw_name="GPU 0",hw_vendor="NVIDIA"`
	undivided = `host_name="node-1",hw_id="GPU-3",hw_model="NVIDIA H100 80GB HBM3",hw_name="GPU 3",hw_vendor="NVIDIA",nvidia_pci_bus_id="0000:3b:00.0"`
	part      = `host_name="node-1",hw_id="GPU-3/%[1]d",hw_model="NVIDIA H100 80GB HBM3",hw_name="GPU 3 GI %[1]d",hw_parent="GPU-3",hw_vendor="NVIDIA",nvidia_mig_profile="1g.10gb",nvidia_pci_bus_id="0000:3b:00.0"`
)

// conventional is the dump under the names of the conventions: each series, its own labels before those of the device.
func conventional() map[string]float64 {
	return map[string]float64{
		`hw_temperature_celsius{hw_sensor_location="gpu",hw_type="gpu",` + first + `}`:                                                      25,
		`hw_temperature_limit_celsius{hw_limit_type="throttled",hw_type="gpu",` + second + `}`:                                              93,
		`hw_power_watts{hw_type="gpu",` + first + `}`:                                                                                       8.969,
		`nvidia_gpu_power_limit_watts{` + second + `}`:                                                                                      70,
		`hw_energy_joules_total{hw_type="gpu",` + first + `}`:                                                                               128996.013,
		`hw_gpu_utilization_ratio{hw_gpu_task="general",` + first + `}`:                                                                     0,
		`hw_gpu_utilization_ratio{hw_gpu_task="encoder",` + first + `}`:                                                                     0,
		`hw_gpu_utilization_ratio{hw_gpu_task="decoder",` + first + `}`:                                                                     0,
		`nvidia_gpu_memory_controller_utilization_ratio{` + first + `}`:                                                                     0,
		`hw_gpu_memory_limit_bytes{` + second + `}`:                                                                                         15109 << 20,
		`hw_gpu_memory_usage_bytes{` + first + `}`:                                                                                          0,
		`hw_gpu_memory_utilization_ratio{` + second + `}`:                                                                                   0.000008,
		`nvidia_gpu_memory_reserved_bytes{` + second + `}`:                                                                                  15109 << 20,
		`nvidia_gpu_clock_frequency_hertz{nvidia_gpu_clock="sm",` + first + `}`:                                                             300e6,
		`nvidia_gpu_clock_frequency_hertz{nvidia_gpu_clock="memory",` + first + `}`:                                                         405e6,
		`hw_errors_total{error_type="pcie_replay",hw_type="gpu",` + first + `}`:                                                             0,
		`hw_errors_total{error_type="ecc_uncorrected",hw_type="gpu",` + undivided + `}`:                                                     2,
		`nvidia_gpu_sm_active_ratio{` + fmt.Sprintf(part, 8) + `}`:                                                                          0.5,
		`nvidia_gpu_sm_active_ratio{k8s_container_name="vllm",k8s_namespace_name="llm",k8s_pod_name="chat-0",` + fmt.Sprintf(part, 7) + `}`: 0.25,
	}
}

// exporter serves what a real dcgm-exporter has served.
func exporter(t *testing.T) (content, target string) {
	dump, err := os.ReadFile(filepath.Join(spawn.Root(t), "testdata", "gpu", "dcgm_exporter_t4.prom.txt"))
	require.NoError(t, err)
	content = string(dump) + divided
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write([]byte(content)) // a Collector that hangs up fails the test elsewhere
	}))
	t.Cleanup(server.Close)
	return content, strings.TrimPrefix(server.URL, "http://")
}

// Scenario: a Prometheus scrapes builtin:dcgm-exporter in place of the exporter itself.
// Guarantees: each series is there as it came, under its own name, labels and value, though counters are gauges; and all that
// the conventions have a name for under that, in its unit.
func TestDcgmExportersSeriesKeepTheirNamesAndGetThoseOfTheConventions(t *testing.T) {
	content, target := exporter(t)
	out := spawn.FreePort(t)
	c := spawn.Start(t, spawn.Options{
		Env: []string{"DCGM_EXPORTER_TARGETS=" + target, "DCGM_EXPORTER_INTERVAL=1s"},
		Configs: []string{"builtin:dcgm-exporter",
			fmt.Sprintf("yaml:exporters::prometheus::endpoint: localhost:%d", out),
			fmt.Sprintf("yaml:service::telemetry::metrics::readers: [{pull: {exporter: {prometheus: {host: localhost, port: %d}}}}]", spawn.FreePort(t))},
	})
	c.WaitReady()
	// All of it at once: not while a scrape is taken up, nor after one that had no answer in time.
	require.EventuallyWithT(t, func(page *assert.CollectT) {
		got := series(t, get(t, fmt.Sprintf("http://localhost:%d/metrics", out)))
		for name, want := range series(t, content) {
			value, there := got[name]
			assert.True(page, there, name)
			assert.Equal(page, want, value, name)
			delete(got, name)
		}
		for name, want := range conventional() {
			value, there := got[ordered(name)]
			assert.True(page, there, ordered(name))
			assert.InDelta(page, want, value, 1e-9*max(1, want), name)
			delete(got, ordered(name))
		}
		for name := range got {
			assert.Regexp(page, `^(up|scrape_|target_info)`, name, "nothing else comes")
		}
	}, patience, 200*time.Millisecond)
	assert.Zero(t, c.Stop())
}

// Scenario: builtin:dcgm-exporter before builtin:all-in-one.
// Guarantees: both names of a series are in the database that the console asks, and in what Prometheus scrapes.
func TestDcgmExporterBesideAllInOne(t *testing.T) {
	_, target := exporter(t)
	ports, configs := allInOne(t)
	c := spawn.Start(t, spawn.Options{
		Env:     []string{"DCGM_EXPORTER_TARGETS=" + target, "DCGM_EXPORTER_INTERVAL=1s"},
		Configs: append([]string{"builtin:dcgm-exporter"}, configs...),
	})
	c.WaitReady()
	for _, name := range []string{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "hw_energy_joules_total", "nvidia_gpu_sm_active_ratio"} {
		assert.Eventually(t, func() bool {
			return strings.Contains(get(t, fmt.Sprintf("http://localhost:%d/metrics", ports["prometheus"])), "\n"+name+"{") &&
				strings.Contains(get(t, fmt.Sprintf("http://localhost:%d/api/v1/query?query=%s", ports["console"], name)), `"__name__":"`+name+`"`)
		}, patience, 200*time.Millisecond, name)
	}
	assert.Zero(t, c.Stop())
}

var (
	// target is what the Collector says of where a series came from.
	ofTarget = regexp.MustCompile(`^(job|instance|server_.*|url_scheme|service_.*|otel_scope_.*|http_scheme)$`)
	label    = regexp.MustCompile(`[a-z0-9_]+="[^"]*"`)
)

// series are the values of a text in Prometheus's format, by names with their labels in order.
func series(t *testing.T, text string) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text + "\n"))
	require.NoError(t, err)
	all := map[string]float64{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if !ofTarget.MatchString(l.GetName()) && l.GetValue() != "" {
					labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
			}
			slices.Sort(labels)
			all[name+"{"+strings.Join(labels, ",")+"}"] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return all
}

// ordered is a series of this file as series calls it.
func ordered(name string) string {
	metric, labels, _ := strings.Cut(name, "{")
	all := label.FindAllString(labels, -1)
	slices.Sort(all)
	return metric + "{" + strings.Join(all, ",") + "}"
}
