// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// Guarantees: who sends more than its limit is told to send again, and when, by HTTP and by gRPC; others, who send at the same
// time or even in the same request, are not.
func TestATenantOverItsLimitIsToldWhenToSendAgain(t *testing.T) {
	e := newEstate(t)
	g := startGateway(t, e, t.TempDir(), "    limits: {items_per_second: 0.01, burst: 100s}") // one item
	began := time.Now()
	// wait is what is left of the time in which one item may be sent, and a second for what is rounded.
	wait := func(told float64) {
		t.Helper()
		assert.LessOrEqual(t, told, 101.)
		assert.GreaterOrEqual(t, told, 99-time.Since(began).Seconds())
	}
	assert.Equal(t, http.StatusOK, g.sendMetrics(0, "noisy").StatusCode)
	resp := g.sendMetrics(1, "noisy")
	assert.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	require.NoError(t, err)
	wait(float64(seconds))

	conn, err := grpc.NewClient(g.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close()) }()
	_, err = pmetricotlp.NewGRPCClient(conn).Export(t.Context(), pmetricotlp.NewExportRequestFromMetrics(gauge(2, "noisy")))
	s := status.Convert(err)
	require.Equal(t, codes.ResourceExhausted, s.Code())
	require.Len(t, s.Details(), 1)
	wait(s.Details()[0].(*errdetails.RetryInfo).RetryDelay.AsDuration().Seconds())

	assert.Equal(t, http.StatusOK, g.sendMetrics(3, "noisy", "quiet").StatusCode)
	assert.Equal(t, http.StatusOK, g.sendLogs(4, "noisy").StatusCode, "each signal has its own")
	require.Eventually(t, func() bool { n, _ := e.items("quiet"); return n == 1 }, patience, 10*time.Millisecond)
	require.Eventually(t, func() bool { n, _ := e.items("noisy"); return n == 2 }, patience, 10*time.Millisecond)
	assert.Zero(t, g.Stop())
}

// startClient starts a Collector as it stands before a gateway, with an exporter of its own defaults, but that it does not send again
// because an answer was slow, and returns it with where it takes OTLP.
func startClient(t testing.TB, exporter, endpoint string) *gateway {
	t.Helper()
	c := &gateway{t: t, http: spawn.FreeEndpoint(t)}
	c.Collector = spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(`
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {%s: {endpoint: %q, timeout: 10m, tls: {insecure: true}}}
service:
  pipelines: {metrics: {receivers: [otlp], exporters: [%[2]s]}}
  telemetry: {metrics: {level: none}}
`, c.http, exporter, endpoint))}})
	c.WaitReady()
	return c
}

// sendPoints sends a request of points with ids of their own.
func (g *gateway) sendPoints(tenant string, first, n int) {
	g.t.Helper()
	md := gauge(first, tenant)
	points := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
	for id := first + 1; id < first+n; id++ {
		points.AppendEmpty().Attributes().PutInt("id", int64(id))
	}
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	require.NoError(g.t, err)
	require.Equal(g.t, http.StatusOK, g.post("/v1/metrics", body).StatusCode)
}

// Scenario: a tenant sends a thousand points at once, a hundred times its limit, beside another one, who keeps to it. Each has a Collector
// that sends on by OTLP, over gRPC or over HTTP.
// Guarantees: the exporter of the one understands that it is to send again, waits for as long as it is told, and loses nothing in the end;
// the other one's is never refused, and all it sent is there long before.
func TestExportersWaitWhenTheirTenantSendsAHundredTimesItsLimit(t *testing.T) {
	const perSecond, requests, points = 200, 20, 50
	for exporter, refusal := range map[string]string{"otlp_grpc": "code = ResourceExhausted", "otlp_http": "HTTP Status Code 429"} {
		t.Run(exporter, func(t *testing.T) {
			e := newEstate(t)
			g := startGateway(t, e, t.TempDir(), fmt.Sprintf("    limits: {items_per_second: %d, burst: 1s}", perSecond))
			at := map[string]string{"otlp_grpc": g.grpc, "otlp_http": "http://" + g.http}[exporter]
			noisy, quiet := startClient(t, exporter, at), startClient(t, exporter, at)
			began := time.Now()
			for i := range requests {
				noisy.sendPoints("noisy", i*points, points)
				quiet.sendPoints("quiet", i, 1)
			}
			t.Logf("sent at %.0f times the limit", requests*points/time.Since(began).Seconds()/perSecond)
			require.Eventually(t, func() bool { n, _ := e.items("quiet"); return n == requests }, patience, time.Millisecond)
			n, _ := e.items("noisy")
			assert.LessOrEqual(t, n, perSecond+int(time.Since(began).Seconds()*perSecond)+points)
			noisy.WaitLog("Will retry the request after interval", patience)
			assert.Contains(t, noisy.Logs(), refusal)

			require.Eventually(t, func() bool { n, _ := e.items("noisy"); return n == requests*points }, patience, 10*time.Millisecond)
			assert.GreaterOrEqual(t, time.Since(began), (requests*points-perSecond)*time.Second/perSecond, "as much as it may, and no more")
			for _, tenant := range []string{"noisy", "quiet"} {
				_, twice := e.items(tenant)
				assert.Zero(t, twice, tenant)
			}
			assert.NotContains(t, quiet.Logs(), "Exporting failed")
			assert.NotContains(t, noisy.Logs(), "Dropping data")
		})
	}
}

// limitedSLO is about the gauge that tenants send here, judged for each of them.
const limitedSLO = `
apiVersion: openslo/v1
kind: SLO
metadata: {name: load, annotations: {otelcol-llm.dev/slo-id: "llm:chat:load:p95", otelcol-llm.dev/group-by: tenant}}
spec:
  service: chat
  indicator: {metadata: {name: load}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: requests, unit: "1"}}}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 100, target: 0.95}]
`

// Guarantees: what a limit refuses or drops, slo does not count, and what is sent again counts once; what slo finds goes on as its
// tenant's. The wiring is that of the last example in the README of tenant_routing.
func TestLimitsActBeforeSLOCounts(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slo.yaml"), []byte(limitedSLO), 0o600))
	g := &gateway{t: t, http: spawn.FreeEndpoint(t)}
	g.Collector = spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(`
extensions:
  slo_catalog: {paths: [%[1]s/slo.yaml]}
receivers:
  otlp: {protocols: {http: {endpoint: %[2]q}}}
connectors:
  tenant_routing/limits:
    limits: {items_per_second: 0.01, burst: 1000s}
    sending_queue: {enabled: false}
  slo: {lateness: 0s}
  tenant_routing:
    trust_tenant: true
exporters:
  file: {path: %[1]s/metrics.jsonl, flush_interval: 50ms}
service:
  extensions: [slo_catalog]
  pipelines:
    metrics: {receivers: [otlp], exporters: [tenant_routing/limits]}
    metrics/limited: {receivers: [tenant_routing/limits], exporters: [slo, tenant_routing]}
    metrics/slo: {receivers: [slo], exporters: [tenant_routing]}
    metrics/tenants: {receivers: [tenant_routing], exporters: [file]}
  telemetry: {metrics: {level: none}}
`, dir, g.http))}})
	g.WaitReady()
	send := func(points int, tenants ...string) int {
		md := gauge(0, tenants...)
		for _, rm := range md.ResourceMetrics().All() {
			ps := rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
			ps.RemoveIf(func(pmetric.NumberDataPoint) bool { return true })
			for range points {
				p := ps.AppendEmpty()
				p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
				p.SetIntValue(1)
			}
		}
		body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
		require.NoError(t, err)
		return g.post("/v1/metrics", body).StatusCode
	}
	assert.Equal(t, http.StatusOK, send(7, "noisy"))
	for range 5 {
		assert.Equal(t, http.StatusTooManyRequests, send(7, "noisy"))
	}
	assert.Equal(t, http.StatusOK, send(7, "noisy", "quiet"))
	assert.Equal(t, http.StatusOK, send(3, "noisy"))

	j := &judge{t: t, dir: dir}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		for tenant, want := range map[string]float64{"noisy": 10, "quiet": 7} {
			p, _ := j.newest("slo.sli.events", map[string]string{"tenant": tenant, "outcome": "good"})
			assert.InDelta(c, want, p.value, 0, tenant)
		}
	}, patience, 50*time.Millisecond)
	owners := map[string]bool{}
	each(t, filepath.Join(dir, "metrics.jsonl"), func(line []byte) {
		md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(t, err)
		owner := ""
		for _, rm := range md.ResourceMetrics().All() {
			v, _ := rm.Resource().Attributes().Get("tenant")
			assert.True(t, owner == "" || owner == v.Str(), "a batch has one tenant")
			owner = v.Str()
			owners[owner] = true
		}
	})
	assert.True(t, owners["noisy"] && owners["quiet"], owners)
	assert.Zero(t, g.Stop())
}
