// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// overAllTenants are promises of the platform.
const overAllTenants = `
apiVersion: openslo/v1
kind: SLO
metadata: {name: answered, annotations: {otelcol-llm.dev/slo-id: "llm:platform:answered:99"}}
spec:
  service: platform
  indicator:
    metadata: {name: answered}
    spec:
      ratioMetric:
        counter: true
        good: {metricSource: {type: opentelemetry, spec: {metric: requests.good}}}
        total: {metricSource: {type: opentelemetry, spec: {metric: requests}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.99}]
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: memory, annotations: {otelcol-llm.dev/slo-id: "llm:platform:memory:request", otelcol-llm.dev/class: cost}}
spec:
  service: platform
  indicator:
    metadata: {name: memory}
    spec:
      thresholdMetric:
        metricSource: {type: opentelemetry, spec: {metric: gpu.memory.per_request, unit: bytes}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 8589934592, target: 0.99}]
`

// Scenario: builtin:gateway with promises over all tenants hears requests of two tenants, and a node's GPU on which a process leaks.
// Guarantees: each tenant has what it sent; the promises, that on the memory of a request included, the lag of verdicts, and the leak, as metrics
// and as an event, are of the tenant that runs the gateway; nothing of a leak is told twice, as it would be if results came back as input.
func TestWhatIsOfNoTenantIsOfThoseWhoRunTheGateway(t *testing.T) {
	dir, otlp := t.TempDir(), spawn.FreeEndpoint(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slo.yaml"), []byte(overAllTenants), 0o600))
	metrics, logs := filepath.Join(dir, "metrics.jsonl"), filepath.Join(dir, "logs.jsonl")
	configs := []string{
		"builtin:gateway", "yaml:receivers::otlp::protocols::http::endpoint: " + otlp, "yaml:receivers::otlp::protocols::grpc::endpoint: " + spawn.FreeEndpoint(t),
		"yaml:extensions::health_check::endpoint: " + spawn.FreeEndpoint(t), "yaml:extensions::console::endpoint: " + spawn.FreeEndpoint(t),
		"yaml:service::telemetry::metrics::level: none", "yaml:connectors::slo::group_by: []", "yaml:connectors::slo/cost::group_by: []",
		"yaml:connectors::gpu_leak: {min_duration: 1m, lateness: 1s, checkpoint_interval: 1s}",
		fmt.Sprintf("yaml:exporters::file/metrics: {path: %q, flush_interval: 100ms}", metrics), "yaml:service::pipelines::metrics/out::exporters: [file/metrics]",
		fmt.Sprintf("yaml:exporters::file/logs: {path: %q, flush_interval: 100ms}", logs), "yaml:service::pipelines::logs/out::exporters: [file/logs]",
	}
	c := spawn.Start(t, spawn.Options{Dir: dir, Configs: configs, Env: []string{"SLO_CATALOG=slo.yaml", "TRACES_ENDPOINT=" + spawn.FreeEndpoint(t)}})
	c.WaitReady()
	body, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(requestsAndALeak(time.Now()))
	require.NoError(t, err)
	resp, err := http.Post("http://"+otlp+"/v1/metrics", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)

	require.EventuallyWithT(t, func(t *assert.CollectT) {
		told, leaks, judged := map[string]map[string]int{}, map[string]int{}, map[string]bool{} // points by metric and tenant; those of leaks by all that they say; slo_ids
		for _, md := range lines(t, metrics, (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics) {
			for _, rm := range md.ResourceMetrics().All() {
				tenant, _ := rm.Resource().Attributes().Get("tenant")
				for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
					if told[m.Name()] == nil {
						told[m.Name()] = map[string]int{}
					}
					told[m.Name()][tenant.Str()]++
					if strings.HasPrefix(m.Name(), "gpu.leak.") {
						for _, p := range m.Gauge().DataPoints().All() {
							leaks[fmt.Sprint(m.Name(), p.Attributes().AsRaw(), p.Timestamp())]++
						}
					}
					if m.Name() == "slo.sli.events" {
						for _, p := range m.Sum().DataPoints().All() {
							id, _ := p.Attributes().Get("slo_id")
							judged[id.Str()] = true
						}
					}
				}
			}
		}
		for point, n := range leaks {
			assert.Equal(t, 1, n, point)
		}
		assert.Equal(t, map[string]int{"acme": 1, "beta": 1}, told["requests"])
		for _, name := range []string{"slo.sli.events", "slo.evaluation.lag", "gpu.leak.state", "gpu.leak.rate", "gpu.leak.cause"} {
			require.Len(t, told[name], 1, name)
			assert.Positive(t, told[name]["_otelcol-llm"], name)
		}
		assert.Equal(t, map[string]bool{"llm:platform:answered:99": true, "llm:platform:memory:request": true}, judged)
		opened := 0
		for _, ld := range lines(t, logs, (&plog.JSONUnmarshaler{}).UnmarshalLogs) {
			for _, rl := range ld.ResourceLogs().All() {
				tenant, _ := rl.Resource().Attributes().Get("tenant")
				assert.Equal(t, "_otelcol-llm", tenant.Str())
				for _, r := range rl.ScopeLogs().At(0).LogRecords().All() {
					assert.Equal(t, "gpu.leak.opened", r.EventName())
					opened++
				}
			}
		}
		assert.Equal(t, 1, opened)
	}, patience, 200*time.Millisecond)
	assert.Zero(t, c.Stop())
}

// lines are what a file exporter has written.
func lines[T any](t *assert.CollectT, file string, read func([]byte) (T, error)) (all []T) {
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range bytes.Lines(written) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		one, err := read(line)
		require.NoError(t, err)
		all = append(all, one)
	}
	return all
}

// requestsAndALeak are requests of acme and beta, and two and a half minutes of a GPU as an agent tells them, a process on which takes 10 MiB
// more each second.
func requestsAndALeak(now time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	resource := func(attributes map[string]any) pmetric.MetricSlice {
		rm := md.ResourceMetrics().AppendEmpty()
		_ = rm.Resource().Attributes().FromRaw(attributes) // of strings only
		return rm.ScopeMetrics().AppendEmpty().Metrics()
	}
	for _, tenant := range []string{"acme", "beta"} {
		of := resource(map[string]any{"service.namespace": tenant, "service.name": "chat"})
		for name, n := range map[string]int64{"requests": 10, "requests.good": 9} {
			m := of.AppendEmpty()
			m.SetName(name)
			s := m.SetEmptySum()
			s.SetIsMonotonic(true)
			s.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			p := s.DataPoints().AppendEmpty()
			p.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-10 * time.Second)))
			p.SetTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Second)))
			p.SetIntValue(n)
		}
	}
	of := resource(map[string]any{"service.namespace": "_otelcol-llm", "host.name": "node-7", "hw.id": "GPU-7"})
	gauge := func(name string, value func(second int64) int64, attributes map[string]any) {
		m := of.AppendEmpty()
		m.SetName(name)
		g := m.SetEmptyGauge()
		for second := range int64(150) {
			p := g.DataPoints().AppendEmpty()
			_ = p.Attributes().FromRaw(attributes) // of strings and integers only
			p.SetTimestamp(pcommon.NewTimestampFromTime(now.Add(time.Duration(second-151) * time.Second)))
			p.SetIntValue(value(second))
		}
	}
	leaks := func(second int64) int64 { return 20<<30 + second*10<<20 }
	gauge("hw.gpu.memory.limit", func(int64) int64 { return 80 << 30 }, map[string]any{"hw.id": "GPU-7"})
	gauge("hw.gpu.memory.usage", leaks, map[string]any{"hw.id": "GPU-7"})
	gauge("nvidia.gpu.process.memory.usage", leaks, map[string]any{"hw.id": "GPU-7", "process.pid": 4711, "process.executable.name": "vllm"})
	gauge("vllm:num_requests_running", func(int64) int64 { return 4 }, map[string]any{"process.pid": 4711})
	return md
}
