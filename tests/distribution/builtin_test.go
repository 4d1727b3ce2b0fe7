// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/confmap/provider/builtinprovider"
	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// patience is how long anything is waited for that has to come. How long that takes is not judged here.
const patience = 2 * time.Minute

// over are the configurations that one is laid over.
var over = map[string][]string{
	"gateway-kafka": {"gateway"},
	"gateway-part":  {"gateway", "gateway-kafka"},
	"judge":         {"gateway"},
}

func TestBuiltinConfigurationsAreValid(t *testing.T) {
	for _, name := range builtinprovider.Names() {
		t.Run(name, func(t *testing.T) {
			args := []string{"validate"}
			for _, config := range append(over[name], name) {
				args = append(args, "--config", "builtin:"+config)
			}
			out, code := spawn.Run(t, args...)
			assert.Zero(t, code, out)
		})
	}
}

// Guarantees: a later configuration can take a pipeline away, and one in which tenants would overwrite each other is refused before
// anything starts.
func TestConverters(t *testing.T) {
	out, code := spawn.Run(t, "validate", "--config", "builtin:all-in-one", "--config", "yaml:service::pipelines::traces: null")
	assert.Zero(t, code, out)
	out, code = spawn.Run(t, "validate", "--config", "builtin:gateway", "--config", "yaml:exporters::prometheus::endpoint: localhost:9464",
		"--config", "yaml:service::pipelines::metrics/out: {processors: [], exporters: [prometheus]}")
	assert.NotZero(t, code)
	assert.Contains(t, out, "exporters::prometheus: pipeline metrics/out brings it the series of several tenants")
}

func TestUnknownBuiltinListsTheKnownOnes(t *testing.T) {
	out, code := spawn.Run(t, "validate", "--config", "builtin:nope")
	assert.NotZero(t, code)
	assert.Contains(t, out, `"builtin:nope" is not a built-in configuration; known: builtin:agent, builtin:all-in-one, `)
}

// Scenario: no GPU, no cluster, no engine and no other server, only ports moved so that tests do not collide.
// Guarantees: builtin:all-in-one gets ready, is healthy, serves the console, its database, Prometheus and
// its own telemetry, and a later configuration overrides it.
func TestAllInOneStarts(t *testing.T) {
	ports, configs := allInOne(t)
	dir := t.TempDir()
	started := time.Now()
	c := spawn.Start(t, spawn.Options{Configs: configs, Dir: dir})
	c.WaitReady()
	t.Logf("ready after %s", time.Since(started).Round(time.Millisecond))

	assert.Contains(t, c.Logs(), "using a built-in configuration")
	for name, url := range map[string]string{
		"health":     "http://localhost:%d/",
		"prometheus": "http://localhost:%d/metrics",
		"telemetry":  "http://localhost:%d/metrics",
		"tsdb":       "http://localhost:%d/-/ready",
		"console":    "http://localhost:%d/",
	} {
		get(t, fmt.Sprintf(url, ports[name]))
	}
	for _, folder := range []string{"state", "tsdb"} {
		assert.DirExists(t, filepath.Join(dir, "otelcol-llm-data", folder))
	}
	assertSeriesStayApart(t, ports)
	assert.Zero(t, c.Stop())
	assert.NotContains(t, c.Logs(), "panic:")
}

// allInOne is builtin:all-in-one with its ports moved.
func allInOne(t *testing.T) (ports map[string]int, configs []string) {
	t.Helper()
	ports, configs = map[string]int{}, []string{"builtin:all-in-one"}
	move := func(name, path string) {
		ports[name] = spawn.FreePort(t)
		configs = append(configs, fmt.Sprintf("yaml:%s: localhost:%d", path, ports[name]))
	}
	move("grpc", "receivers::otlp::protocols::grpc::endpoint")
	move("http", "receivers::otlp::protocols::http::endpoint")
	move("prometheus", "exporters::prometheus::endpoint")
	move("tsdb", "exporters::tsdb::endpoint")
	move("console", "extensions::console::endpoint")
	configs = append(configs, fmt.Sprintf("yaml:extensions::console::query_url: http://localhost:%d", ports["tsdb"]))
	move("health", "extensions::health_check::endpoint")
	ports["telemetry"] = spawn.FreePort(t)
	return ports, append(configs, fmt.Sprintf(
		"yaml:service::telemetry::metrics::readers: [{pull: {exporter: {prometheus: {host: localhost, port: %d}}}}]", ports["telemetry"]))
}

// ofRequests are promises on spans and on log records.
const ofRequests = `
apiVersion: openslo/v1
kind: SLO
metadata: {name: answered}
spec:
  service: chat
  indicator:
    metadata: {name: answered}
    spec:
      ratioMetric:
        good: {metricSource: {type: opentelemetry, spec: {signal: traces, condition: span.name == "llm_request" and span.status.code != 2}}}
        total: {metricSource: {type: opentelemetry, spec: {signal: traces, condition: span.name == "llm_request"}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.9}]
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: relevance, annotations: {otelcol-llm.dev/class: quality}}
spec:
  service: chat
  indicator:
    metadata: {name: relevance}
    spec:
      thresholdMetric:
        metricSource:
          type: opentelemetry
          spec: {signal: logs, value: 'log.attributes["gen_ai.evaluation.score.value"]', range: [0, 1]}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: gte, value: 0.7, target: 0.9}]
`

// Scenario: spans and log records of requests come by OTLP; the Collector is ended, started again in the same folder, and
// more of them come. Guarantees: builtin:all-in-one judges both signals, and its counters and error budgets go on.
func TestAllInOneJudgesRequestsAndKeepsItsBooks(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slo.yaml"), []byte(ofRequests), 0o600))
	send := func(port, n int, path, body string) {
		t.Helper()
		for range n {
			url, item := fmt.Sprintf("http://localhost:%d/v1/%s", port, path), fmt.Sprintf(body, time.Now().UnixNano())
			resp, err := http.Post(url, "application/json", strings.NewReader(item))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusOK, resp.StatusCode)
		}
	}
	const span = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"llm_request","endTimeUnixNano":"%[1]d","startTimeUnixNano":"%[1]d",
		"traceId":"0123456789abcdef0123456789abcdef","spanId":"%016[1]x"}]}]}]}`
	const record = `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"%[1]d",
		"attributes":[{"key":"gen_ai.evaluation.score.value","value":{"doubleValue":0.8}}]}]}]}]}`

	for run, want := range []string{"3", "6"} {
		ports, configs := allInOne(t)
		configs = append(configs, "yaml:connectors::slo::checkpoint_interval: 1s") // counters tell what the last checkpoint holds
		c := spawn.Start(t, spawn.Options{Configs: configs, Dir: dir, Env: []string{"SLO_CATALOG=slo.yaml"}})
		c.WaitReady()
		if run > 0 {
			assert.Contains(t, c.Logs(), "the state is that of the last checkpoint")
		}
		send(ports["http"], 3, "traces", span)
		send(ports["http"], 3, "logs", record)
		good := regexp.MustCompile(`(?m)^slo_sli_events_total\{.*outcome="good".*slo_id="([^"]+)".*\} (\d+)`)
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			shown := map[string]string{}
			for _, m := range good.FindAllStringSubmatch(get(t, fmt.Sprintf("http://localhost:%d/metrics", ports["prometheus"])), -1) {
				shown[m[1]] = m[2]
			}
			assert.Equal(c, map[string]string{"llm:chat:answered:90": want, "llm:chat:relevance:p90": want}, shown)
		}, patience, 100*time.Millisecond)
		assert.Zero(t, c.Stop())
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", url, body)
	return string(body)
}

// Scenario: two tenants run a service of the same name, and points have an attribute that is called job.
// Guarantees: the Prometheus endpoint and the database, asked through the console, have one series for each; neither
// overwrites the other or disappears.
func assertSeriesStayApart(t *testing.T, ports map[string]int) {
	t.Helper()
	const resource = `{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"chat"}},
		{"key":"k8s.namespace.name","value":{"stringValue":"%s"}}]},"scopeMetrics":[{"metrics":[{"name":"queue.depth","gauge":{
		"dataPoints":[{"asInt":"%d","timeUnixNano":"%d","attributes":[{"key":"job","value":{"stringValue":"batch"}}]}]}}]}]}`
	now := time.Now().UnixNano()
	body := `{"resourceMetrics":[` + fmt.Sprintf(resource, "acme", 1, now) + "," + fmt.Sprintf(resource, "beta", 2, now) + "]}"
	resp, err := http.Post(fmt.Sprintf("http://localhost:%d/v1/metrics", ports["http"]), "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)

	for url, series := range map[string]*regexp.Regexp{
		fmt.Sprintf("http://localhost:%d/metrics", ports["prometheus"]): regexp.MustCompile(
			`(?m)^queue_depth\{.*exported_job="batch".*k8s_namespace_name="(\w+)".*\} (\d)`),
		fmt.Sprintf("http://localhost:%d/api/v1/query?query=queue_depth", ports["console"]): regexp.MustCompile(
			`"exported_job":"batch",[^}]*"job":"chat","k8s_namespace_name":"(\w+)"[^}]*\},"value":\[[0-9.]+,"(\d)"\]`),
	} {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			shown := map[string]string{}
			for _, m := range series.FindAllStringSubmatch(get(t, url), -1) {
				shown[m[1]] = m[2]
			}
			assert.Equal(c, map[string]string{"acme": "1", "beta": "2"}, shown)
		}, patience, 100*time.Millisecond, url)
	}
}
