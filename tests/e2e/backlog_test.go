// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// bodies are different texts of a kB each.
func bodies(from, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%06d ", from+i) + strings.Repeat("x", 1000)
	}
	return all
}

// Scenario: a gateway is away while clients send its agent 12 MB in many requests, of which one is larger than a gateway takes by gRPC
// where nobody says otherwise. Guarantees: all that the agent has taken arrives once the gateway is there, each once.
func TestWhatWaitedForAGatewayArrives(t *testing.T) {
	parallel(t)
	const requests, records, large = 60, 100, 6000
	at := spawn.FreeEndpoint(t)
	a := startAgent(t, []string{"OTELCOL_LLM_GATEWAY=" + at}, "yaml:connectors::tenant_routing::retry_on_failure: {initial_interval: 100ms, max_interval: 1s}")
	for i := range requests {
		require.Equal(t, http.StatusOK, a.logs(lines("beta", plog.SeverityNumberInfo, bodies(i*records, records)...)))
	}
	require.Equal(t, http.StatusOK, a.logs(lines("beta", plog.SeverityNumberInfo, bodies(requests*records, large)...)))
	to := newPlaces(t)
	g, _ := startBuiltinGateway(t, to, "yaml:receivers::otlp::protocols::grpc::endpoint: "+at)
	const all = requests*records + large
	require.Eventually(t, func() bool { return len(to.arrived("beta")) >= all }, patience, 100*time.Millisecond, "%d of %d records are there", len(to.arrived("beta")), all)
	var came []string
	for _, r := range to.arrived("beta") {
		came = append(came, r.body)
	}
	slices.Sort(came)
	assert.Equal(t, bodies(0, all), slices.Compact(came))
	assert.Len(t, to.arrived("beta"), all)
	assert.Zero(t, a.Stop())
	assert.Zero(t, g.Stop())
}

// Scenario: a Mimir that limits a tenant's rate answers remote write with 429 for a while.
// Guarantees: with what docs/destinations.md says of it, nothing is lost.
func TestRemoteWriteWaitsWhereATenantIsLimited(t *testing.T) {
	parallel(t)
	var refused, taken atomic.Int64
	mimir := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Scope-OrgID") != "acme":
		case refused.Load() < 3:
			refused.Add(1)
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			taken.Add(1)
		}
	}))
	t.Cleanup(mimir.Close)
	g, own := startBuiltinGateway(t, newPlaces(t), "--feature-gates=exporter.prometheusremotewritexporter.RetryOn429", `yaml:
exporters:
  prometheusremotewrite:
    endpoint: `+mimir.URL+`/api/v1/push
    auth: {authenticator: tenant_headers}
    resource_to_telemetry_conversion: {enabled: true}
    remote_write_queue: {enabled: false}
    retry_on_failure: {initial_interval: 10ms, max_elapsed_time: 0s}
service: {pipelines: {metrics/out: {exporters: [prometheusremotewrite]}}}
`)
	require.Equal(t, http.StatusOK, g.metrics(gauge(1, "acme")))
	require.Eventually(t, func() bool { return taken.Load() > 0 }, patience, 20*time.Millisecond)
	assert.Equal(t, int64(3), refused.Load())
	assert.Zero(t, ownSum(t, own, "otelcol_tenant_routing_items_dropped", "tenant", "acme"))
	assert.Zero(t, g.Stop())
}
