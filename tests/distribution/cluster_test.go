// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// Scenario: no cluster, no Kafka, and none of the servers that things are sent to; only ports are moved.
// Guarantees: the halves of a cluster get ready in every way that they can be laid over each other, and end on SIGTERM; an agent on a node without a GPU is healthy.
func TestTheHalvesOfAClusterStart(t *testing.T) {
	for name, configs := range map[string][]string{
		"agent":          {"agent"},
		"gateway":        {"gateway"},
		"behind kafka":   {"gateway", "gateway-kafka"},
		"one of several": {"gateway", "gateway-kafka", "gateway-part"},
		"judge":          {"gateway", "judge"},
	} {
		t.Run(name, func(t *testing.T) {
			var uris []string
			for _, config := range configs {
				uris = append(uris, "builtin:"+config)
			}
			paths := []string{"receivers::otlp::protocols::grpc::endpoint", "receivers::otlp::protocols::http::endpoint"}
			if configs[0] == "gateway" {
				paths = append(paths, "extensions::console::endpoint")
			}
			for _, path := range paths {
				uris = append(uris, fmt.Sprintf("yaml:%s: %s", path, spawn.FreeEndpoint(t)))
			}
			health := spawn.FreeEndpoint(t)
			uris = append(uris, "yaml:extensions::health_check::endpoint: "+health, "yaml:service::telemetry::metrics::level: none")
			// Nobody is there, so nobody else's server on a default port is spoken to.
			env := []string{"KAFKA_BROKERS=" + spawn.FreeEndpoint(t), "LLM_METRICS_TARGETS=" + spawn.FreeEndpoint(t), "OTELCOL_LLM_GATEWAY=" + spawn.FreeEndpoint(t),
				"NVML_LIBRARY=/nonexistent/libnvidia-ml.so.1", "TRACES_ENDPOINT=" + spawn.FreeEndpoint(t), "METRICS_ENDPOINT=http://" + spawn.FreeEndpoint(t), "LOGS_ENDPOINT=http://" + spawn.FreeEndpoint(t)}
			c := spawn.Start(t, spawn.Options{Configs: uris, Env: env})
			c.WaitReady()
			if name == "agent" { // on a node without a GPU
				c.WaitLog("no GPU is read; it is tried again", patience)
				get(t, "http://"+health+"/")
			}
			assert.Zero(t, c.Stop())
			assert.NotContains(t, c.Logs(), "panic:")
		})
	}
}

// Scenario: an agent scrapes an engine at localhost and another one by its address, which is this machine's, too.
// Guarantees: the first is on the agent's node, as the node's GPUs are; of the second it is not said.
func TestAnEngineThatIsScrapedAtLocalhostIsOnTheNode(t *testing.T) {
	engine, err := net.Listen("tcp", ":0")
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# TYPE requests_running gauge\nrequests_running 1\n"))
	})}
	go func() { _ = server.Serve(engine) }()
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	port := engine.Addr().(*net.TCPAddr).Port
	name, err := os.Hostname()
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), "out.jsonl")
	c := spawn.Start(t, spawn.Options{
		Env: []string{"OTELCOL_LLM_EXPORTER=file", "K8S_NODE_NAME=node-7", "LLM_SCRAPE_INTERVAL=1s", fmt.Sprintf("LLM_METRICS_TARGETS=localhost:%[1]d,%[2]s:%[1]d", port, name)},
		Configs: []string{
			"builtin:agent", "yaml:receivers::otlp::protocols::http::endpoint: " + spawn.FreeEndpoint(t), "yaml:receivers::otlp::protocols::grpc::endpoint: " + spawn.FreeEndpoint(t),
			"yaml:extensions::health_check::endpoint: " + spawn.FreeEndpoint(t), "yaml:service::telemetry::metrics::level: none",
			fmt.Sprintf("yaml:exporters::file: {path: %q, flush_interval: 100ms}", out),
			// The file exporter is one for all signals, and ends with the first of them.
			"yaml:exporters::nop: {}", "yaml:service::pipelines::traces/out::exporters: [nop]", "yaml:service::pipelines::logs/out::exporters: [nop]",
		},
	})
	c.WaitReady()
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		nodes := map[string]string{}
		for _, md := range lines(t, out, (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics) {
			for _, rm := range md.ResourceMetrics().All() {
				of := rm.Resource().Attributes().AsRaw()
				host, _ := of["host.name"].(string)
				nodes[of["service.instance.id"].(string)] = host
			}
		}
		assert.Equal(t, map[string]string{fmt.Sprintf("localhost:%d", port): "node-7", fmt.Sprintf("%s:%d", name, port): ""}, nodes)
	}, patience, 200*time.Millisecond)
	assert.Zero(t, c.Stop())
}

// Scenario: a client writes on its own resource whose data it is. In a cluster, the API server is asked; here, nobody is.
// Guarantees: an agent forgets the tenant that it claims, and, where the API server is asked, what it says of k8s.* as well.
func TestAnAgentForgetsWhatClientsClaim(t *testing.T) {
	const record = `{"resourceLogs":[{"resource":{"attributes":[{"key":"tenant","value":{"stringValue":"claimed"}},
		{"key":"k8s.namespace.name","value":{"stringValue":"claimed"}},{"key":"service.name","value":{"stringValue":"chat"}}]},
		"scopeLogs":[{"logRecords":[{"body":{"stringValue":"hello"}}]}]}]}`
	for passthrough, claims := range map[string]int{"true": 1, "false": 0} {
		t.Run(passthrough, func(t *testing.T) {
			out, otlp := filepath.Join(t.TempDir(), "out.jsonl"), spawn.FreeEndpoint(t)
			c := spawn.Start(t, spawn.Options{Env: []string{"OTELCOL_LLM_K8S_PASSTHROUGH=" + passthrough, "OTELCOL_LLM_EXPORTER=file"}, Configs: []string{
				"builtin:agent", "yaml:receivers::otlp::protocols::http::endpoint: " + otlp, "yaml:receivers::otlp::protocols::grpc::endpoint: " + spawn.FreeEndpoint(t),
				"yaml:extensions::health_check::endpoint: " + spawn.FreeEndpoint(t), "yaml:service::telemetry::metrics::level: none",
				fmt.Sprintf("yaml:exporters::file: {path: %q, flush_interval: 100ms}", out), "yaml:service::pipelines::metrics/llm: null",
				"yaml:service::pipelines::metrics: null", "yaml:service::pipelines::metrics/gpu: null", "yaml:service::pipelines::traces: null",
				"yaml:service::pipelines::metrics/out: null", "yaml:service::pipelines::traces/out: null",
				// All but k8s_attributes, which does not start without an API server.
				"yaml:service::pipelines::logs::processors: [memory_limiter, transform/tenant, transform/claims]",
			}})
			c.WaitReady()
			resp, err := http.Post("http://"+otlp+"/v1/logs", "application/json", strings.NewReader(record))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusOK, resp.StatusCode)
			require.Eventually(t, func() bool {
				written, err := os.ReadFile(out)
				return err == nil && strings.Contains(string(written), `"chat"`) && strings.Count(string(written), `"claimed"`) == claims &&
					!strings.Contains(string(written), `"tenant"`)
			}, patience, 50*time.Millisecond)
		})
	}
}
