// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// ofQuants are promises that are kept by one quantization of a model and missed by another.
const ofQuants = `
apiVersion: openslo/v1
kind: SLO
metadata:
  name: first-token
  annotations: {otelcol-llm.dev/slo-id: "llm:chat:first_token:p95", otelcol-llm.dev/class: latency, otelcol-llm.dev/group-by: "model,quant"}
spec:
  service: chat
  indicator: {metadata: {name: first-token}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: llm.first_token.latency}}}}}
  timeWindow: [{duration: 1d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 0.8, target: 0.95}]
---
apiVersion: openslo/v1
kind: SLO
metadata:
  name: fidelity
  annotations: {otelcol-llm.dev/slo-id: "llm:chat:fidelity:p90", otelcol-llm.dev/class: quality, otelcol-llm.dev/group-by: "model,quant"}
spec:
  service: chat
  indicator: {metadata: {name: fidelity}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: llm.context.fidelity.score}}}}}
  timeWindow: [{duration: 1d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: gte, value: 0.9, target: 0.9}]
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: first-token-2s}
spec: {window: 2s, when: {all: [{slo: first-token}]}}
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: fidelity-2s}
spec: {window: 2s, when: {all: [{slo: fidelity}]}}
`

// startQuantGateway runs a gateway that judges them within seconds.
func startQuantGateway(t *testing.T) *gateway {
	t.Helper()
	slos := filepath.Join(t.TempDir(), "slo.yaml")
	require.NoError(t, os.WriteFile(slos, []byte(ofQuants), 0o600))
	return startGateway(t, startDestinations(t), "gateway-0", "", []string{"SLO_CATALOG=" + slos, "TRACE_URL=http://traces.example.com/trace/"},
		"yaml:connectors::slo: {lateness: 0s, idle_timeout: 2s, checkpoint_interval: 1s}")
}

// judged requires that of a tenant's quantizations, one keeps both promises and the other one misses both.
func (g *gateway) judged(t *testing.T, tenant string) {
	t.Helper()
	for _, id := range []string{"llm:chat:first_token:p95", "llm:chat:fidelity:p90"} {
		for quant, state := range map[string]string{"fp8": "ok", "awq": "violated"} {
			// At some time: when the client has ended, nothing is judged.
			query := fmt.Sprintf(`max_over_time(slo_state{slo_id=%q, tenant=%q, model="qwen2-72b", quant=%q, state=%q}[5m])`, id, tenant, quant, state)
			require.Eventually(t, func() bool {
				all := g.metrics.samples(t, query, time.Now())
				return len(all) == 1 && all[0].value == 1
			}, arrives, 500*time.Millisecond, query)
			other := map[string]string{"ok": "violated", "violated": "ok"}[state]
			query = strings.Replace(query, fmt.Sprintf("state=%q", state), fmt.Sprintf("state=%q", other), 1)
			for _, s := range g.metrics.samples(t, query, time.Now()) {
				assert.Zero(t, s.value, query)
			}
		}
	}
}

// told waits until the spans and log records of all requests are there, and returns the spans' trace ids and the records by theirs.
func (g *gateway) told(t *testing.T, tenant, service string, requests int) (traces []string, records map[string]string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		traces, records = nil, map[string]string{}
		for _, s := range g.traces.spans(t, tenant, service) {
			traces = append(traces, s.TraceID)
		}
		for _, r := range g.logs.records(t, tenant, `_msg:~"^request"`) {
			records[r["trace_id"]] = r["_msg"]
		}
		assert.Len(c, traces, requests)
		assert.Len(c, records, requests)
	}, arrives, 500*time.Millisecond)
	return traces, records
}

// patient are settings by which an SDK waits longer for an answer than a busy machine lets it. Its variable for that has
// milliseconds in JavaScript, and seconds in Python.
func patient(client *exec.Cmd, timeout string) *exec.Cmd {
	client.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_TIMEOUT="+timeout, "OTEL_BSP_EXPORT_TIMEOUT=60000")
	return client
}

// javascriptClient sends so many requests to a gateway.
func javascriptClient(t *testing.T, g *gateway, requests int) *exec.Cmd {
	t.Helper()
	return patient(exec.Command("node", filepath.Join(spawn.Root(t), "tests", "sdk", "js", "client.mjs"), g.otlp, fmt.Sprint(requests)), "60000")
}

// pythonClient is the same in Python.
func pythonClient(t *testing.T, g *gateway, requests int) *exec.Cmd {
	t.Helper()
	folder := filepath.Join(spawn.Root(t), "tests", "sdk", "python")
	interpreter := filepath.Join(folder, "venv", "bin", "python")
	_, err := os.Stat(interpreter)
	require.NoError(t, err, "the OpenTelemetry SDK for Python is missing: `make test-backends` installs it")
	return patient(exec.Command(interpreter, filepath.Join(folder, "client.py"), g.grpc, fmt.Sprint(requests)), "60")
}

// Scenario: a service that is instrumented with the OpenTelemetry SDK for JavaScript, which tells a histogram in milliseconds and a
// gauge, with the attributes model and quant.
// Guarantees: the promises on them are judged in their base units, for each quantization apart.
func TestAServiceInJavaScriptIsJudged(t *testing.T) {
	g := startQuantGateway(t)
	out, err := javascriptClient(t, g, 60).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Empty(t, string(out))
	g.judged(t, "team-js")
	g.told(t, "team-js", "chat-js", 60)
}

// Scenario: a service that is instrumented with the OpenTelemetry SDK for Python answers requests, half of them slowly.
// Guarantees: its promises are judged; and of a slow request, the span in Jaeger, the log record in VictoriaLogs, and the exemplars in
// Prometheus, of the histogram and of the judged events, and the violation's own record, have the trace id that the client knew;
// the console links to it.
func TestTheSignalsOfARequestStayJoined(t *testing.T) {
	g := startQuantGateway(t)
	out, err := pythonClient(t, g, 60).Output()
	require.NoError(t, err)
	slow := strings.Fields(string(out))
	require.Len(t, slow, 30)
	g.judged(t, "team-py")

	traces, logged := g.told(t, "team-py", "chat-py", 60)
	for i, id := range slow {
		assert.Contains(t, traces, id)
		assert.Equal(t, fmt.Sprintf("request %d", 2*i+1), logged[id])
	}

	for _, query := range []string{
		`llm_first_token_latency_milliseconds_bucket{quant="awq"}`,
		`slo_sli_events_total{slo_id="llm:chat:first_token:p95", quant="awq", outcome="bad"}`,
	} {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			var answer struct {
				Data []struct {
					Exemplars []struct {
						Labels map[string]string `json:"labels"`
					} `json:"exemplars"`
				} `json:"data"`
			}
			now := time.Now().Unix()
			fetch(t, fmt.Sprintf("%s/api/v1/query_exemplars?query=%s&start=%d&end=%d", g.metrics.ask, url.QueryEscape(query), now-300, now+1), nil, &answer)
			found := 0
			for _, series := range answer.Data {
				for _, x := range series.Exemplars {
					assert.Contains(c, slow, x.Labels["trace_id"], query)
					found++
				}
			}
			assert.Positive(c, found, query)
		}, arrives, 500*time.Millisecond)
	}
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(g.logs.records(t, "team-py", `event_name:="slo.violation.opened"`), func(r map[string]string) bool {
			return slices.Contains(slow, r["trace_id"]) && r["slo_id"] == "llm:chat:first_token:p95"
		})
	}, arrives, 500*time.Millisecond, "no violation names the trace of a slow request")

	var console map[string]string
	fetch(t, "http://"+g.console+"/config.json", nil, &console)
	assert.Equal(t, "http://traces.example.com/trace/{trace_id}", console["trace_url"])
}

// Scenario: a tenant has just sent 14 seconds' worth beyond its limit when a service of its that is instrumented with the SDK for
// JavaScript, over HTTP, or for Python, over gRPC, sends what it has.
// Guarantees: the SDK is refused, understands that it is to wait, and all of it is there in the end, once.
func TestSDKsWaitWhenTheirTenantIsOverItsLimit(t *testing.T) {
	const requests = 10
	to := startDestinations(t)
	for name, client := range map[string]func(*testing.T, *gateway, int) *exec.Cmd{"js": javascriptClient, "py": pythonClient} {
		t.Run(name, func(t *testing.T) {
			g := startGateway(t, to, "gateway-0", "", nil, "yaml:connectors::tenant_routing/in::limits: {items_per_second: 20, burst: 1s}")
			tenant := "team-" + name
			c := claiming{t, g.otlp, ""}
			c.spans([]string{tenant}, numbers{0, 300}, time.Now()) // 20 that it may, and a debt of 280: the client is up before that is paid, and then tries long enough
			out, err := client(t, g, requests).CombinedOutput()
			require.NoError(t, err, "%s", out)
			g.told(t, tenant, "chat-"+name, requests)
			assert.Zero(t, g.Stop())
			assert.Regexp(t, `items of tenants were not taken.*"reason": "items_per_second", "items": \d+, "signal": "traces", "example": "`+tenant+`"`, g.Logs())
		})
	}
}
