// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

const spansConfig = `
receivers:
  otlp: {protocols: {http: {endpoint: %q}}}
exporters:
  file: {path: %s/spans.jsonl, flush_interval: 100ms}
service:
  pipelines:
    traces: {receivers: [otlp], exporters: [file]}
  telemetry: {metrics: {level: none}}
`

// Scenario: the simulator sends its spans over OTLP/HTTP to the shipped Collector.
// Guarantees: a span of each request arrives, named and described as vLLM does it, on a resource that says which replica
// it was.
func TestSpansOfTheSimulatorReachTheCollector(t *testing.T) {
	parallel(t)
	dir, endpoint := t.TempDir(), spawn.FreeEndpoint(t)
	c := spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(spansConfig, endpoint, dir))}})
	c.WaitReady()
	sim := exec.Command(filepath.Join(spawn.Root(t), "bin", "llmsim"), "-scenario", filepath.Join(spawn.Root(t), "demo", "scenario.yaml"),
		"-speed", "30", "-duration", "10s", "-listen", "127.0.0.1:0", "-control", "127.0.0.1:0", "-otlp-endpoint", "http://"+endpoint)
	out, err := sim.CombinedOutput()
	require.NoError(t, err, string(out))

	var spans, traces = 0, map[string]bool{}
	require.Eventually(t, func() bool {
		spans = 0
		each(t, filepath.Join(dir, "spans.jsonl"), func(line []byte) {
			td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
			require.NoError(t, err)
			for _, rs := range td.ResourceSpans().All() {
				for _, key := range []string{"cloud.region", "device.type", "model.version", "tenant", "service.instance.id"} {
					_, ok := rs.Resource().Attributes().Get(key)
					require.True(t, ok, key)
				}
				for _, ss := range rs.ScopeSpans().All() {
					for _, s := range ss.Spans().All() {
						spans++
						traces[s.TraceID().String()] = true
						require.Equal(t, "llm_request", s.Name())
						require.Equal(t, ptrace.SpanKindServer, s.Kind())
						ttft, ok := s.Attributes().Get("gen_ai.latency.time_to_first_token")
						require.True(t, ok)
						e2e, ok := s.Attributes().Get("gen_ai.latency.e2e")
						require.True(t, ok)
						require.True(t, 0 < ttft.Double() && ttft.Double() <= e2e.Double(), "%v of %v", ttft.Double(), e2e.Double())
						require.InDelta(t, e2e.Double(), s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()).Seconds(), 1e-3)
					}
				}
			}
		})
		return spans > 100
	}, patience, 200*time.Millisecond)
	assert.Len(t, traces, spans, "each request has a trace of its own")
	t.Logf("%d spans", spans)
	assert.Equal(t, 0, c.Stop())
}
