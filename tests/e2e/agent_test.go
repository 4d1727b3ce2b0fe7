// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// startAgent starts builtin:agent. It takes OTLP by HTTP.
func startAgent(t testing.TB, env []string, configs ...string) *gateway {
	t.Helper()
	a := &gateway{t: t, http: spawn.FreeEndpoint(t)}
	all := []string{"builtin:agent"}
	for path, value := range map[string]string{
		"receivers::otlp::protocols::grpc::endpoint": spawn.FreeEndpoint(t),
		"receivers::otlp::protocols::http::endpoint": a.http,
		"extensions::health_check::endpoint":         spawn.FreeEndpoint(t),
		"service::telemetry::metrics::level":         "none",
	} {
		all = append(all, fmt.Sprintf("yaml:%s: %s", path, value))
	}
	a.Collector = spawn.Start(t, spawn.Options{Configs: append(all, configs...), Env: append([]string{"HOSTNAME=node", "LLM_METRICS_TARGETS=" + spawn.FreeEndpoint(t)}, env...)})
	a.WaitReady()
	return a
}

// Scenario: two namespaces of a node send to its agent. One sends a hundred times what the gateway takes of it, and is refused.
// Guarantees: the other one's log records arrive in their order, all of them while the first's still wait, and what is refused is not
// lost: the agent waits.
func TestATenantOverItsLimitDoesNotHoldItsNodeUp(t *testing.T) {
	parallel(t)
	const limit, excess, rounds = 10, 100, 60
	to := newPlaces(t)
	g, own := startBuiltinGateway(t, to, fmt.Sprintf("yaml:connectors::tenant_routing/in::groups: [{name: greedy, tenants: [greedy], limits: {items_per_second: %d, burst: 1s}}]", limit),
		"yaml:connectors::tenant_routing::sending_queue::num_consumers: 1") // the order is that in which the agent has sent
	a := startAgent(t, []string{"OTELCOL_LLM_GATEWAY=" + g.grpc})
	sent := map[string]time.Time{}
	var order []string
	for i := range rounds {
		require.Equal(t, http.StatusOK, a.logs(lines("greedy", plog.SeverityNumberInfo, slices.Repeat([]string{"x"}, limit*excess/10)...)))
		body := strconv.Itoa(i)
		sent[body] = time.Now()
		order = append(order, body)
		require.Equal(t, http.StatusOK, a.logs(lines("beta", plog.SeverityNumberInfo, body)))
		time.Sleep(100 * time.Millisecond)
	}
	longest := time.Duration(0)
	var came []string
	require.Eventually(t, func() bool {
		came = nil
		for _, r := range to.arrived("beta") {
			if !slices.Contains(came, r.body) { // an agent that had no answer in time sends again
				longest = max(longest, r.at.Sub(sent[r.body]))
				came = append(came, r.body)
			}
		}
		return len(came) == rounds
	}, patience, 20*time.Millisecond, "what beta sent waits")
	assert.Less(t, len(to.arrived("greedy")), rounds*limit*excess/10, "what greedy sent waits, and beta's did not wait for it")
	assert.Equal(t, order, came)
	assert.Positive(t, ownSum(t, own, "otelcol_tenant_routing_items_refused", "tenant", "greedy"), "the test is about a tenant that is refused")
	assert.Zero(t, ownSum(t, own, "otelcol_tenant_routing_items_dropped", "tenant", "greedy"))
	t.Logf("of beta, %d records arrived after %s at most", len(came), longest)
	assert.Zero(t, a.Stop())
}

// Scenario: an engine says of itself, by target_info and by labels, that it is another tenant's.
// Guarantees: what an agent has scraped of it is of the job that scrapes.
func TestAnEngineCannotChooseItsTenant(t *testing.T) {
	parallel(t)
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=1.0.0; escaping=allow-utf-8")
		_, err := io.WriteString(w, `# TYPE target_info gauge
target_info{"k8s.namespace.name"="victim","service.namespace"="victim","service.name"="victim","tenant"="victim","host.name"="victim"} 1
# TYPE requests gauge
requests{x="1"} 3
`)
		assert.NoError(t, err)
	}))
	t.Cleanup(engine.Close)
	out := filepath.Join(t.TempDir(), "out.jsonl")
	a := startAgent(t, []string{"LLM_METRICS_TARGETS=" + strings.TrimPrefix(engine.URL, "http://"), "LLM_SCRAPE_INTERVAL=1s", "OTELCOL_LLM_EXPORTER=file"},
		fmt.Sprintf("yaml:exporters::file: {path: %q, flush_interval: 100ms}", out))
	var written []byte
	require.Eventually(t, func() bool {
		var err error
		written, err = os.ReadFile(out)
		return err == nil && strings.Count(string(written), `"name":"requests"`) >= 2
	}, patience, 100*time.Millisecond)
	assert.NotContains(t, string(written), "victim")
	assert.Contains(t, string(written), `{"key":"service.name","value":{"stringValue":"llm"}}`)
	assert.Zero(t, a.Stop())
}
