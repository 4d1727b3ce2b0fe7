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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// linesSLO promises that 95 % of a tenant's log records are no errors.
const linesSLO = `
apiVersion: openslo/v1
kind: SLO
metadata: {name: lines, annotations: {otelcol-llm.dev/slo-id: "llm:chat:lines:errors"}}
spec:
  service: chat
  indicator:
    metadata: {name: lines}
    spec:
      ratioMetric:
        counter: true
        good: {metricSource: {type: opentelemetry, spec: {signal: logs, condition: 'log.severity_number < 17'}}}
        total: {metricSource: {type: opentelemetry, spec: {signal: logs}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.95}]
`

// places are where a gateway sends everything: metrics to a sink, log records to a list. They refuse what they are told to.
type places struct {
	metrics *sink
	logs    *httptest.Server

	mu      sync.Mutex
	gone    string // the tenant whose log records are not taken
	records []arrival
}

// arrival is a log record that came.
type arrival struct {
	tenant, body string
	at           time.Time
}

func newPlaces(t testing.TB) *places {
	t.Helper()
	p := &places{metrics: newSink(t)}
	p.logs = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		req := plogotlp.NewExportRequest()
		assert.NoError(t, req.UnmarshalProto(body))
		tenant := r.Header.Get("X-Scope-OrgID")
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.gone != "" && tenant == p.gone {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		for _, rl := range req.Logs().ResourceLogs().All() {
			for _, rec := range rl.ScopeLogs().At(0).LogRecords().All() {
				p.records = append(p.records, arrival{tenant, rec.Body().Str(), time.Now()})
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(p.logs.Close)
	return p
}

// arrived are the log records of a tenant.
func (p *places) arrived(tenant string) []arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.records), func(a arrival) bool { return a.tenant != tenant })
}

// startBuiltinGateway starts builtin:gateway with the SLO of this file, and a gateway's own telemetry at a URL. Of the configs, those
// that begin with -- are arguments.
func startBuiltinGateway(t testing.TB, to *places, configs ...string) (g *gateway, own string) {
	t.Helper()
	slos := filepath.Join(t.TempDir(), "slo.yaml")
	require.NoError(t, os.WriteFile(slos, []byte(linesSLO), 0o600))
	g = &gateway{t: t, http: spawn.FreeEndpoint(t), grpc: spawn.FreeEndpoint(t)}
	port := spawn.FreePort(t)
	all := []string{"builtin:gateway"}
	for path, value := range map[string]string{
		"receivers::otlp::protocols::grpc::endpoint":   g.grpc,
		"receivers::otlp::protocols::http::endpoint":   g.http,
		"extensions::health_check::endpoint":           spawn.FreeEndpoint(t),
		"extensions::console::endpoint":                spawn.FreeEndpoint(t),
		"exporters::otlp_http/metrics::compression":    "none",
		"exporters::otlp_http/logs::compression":       "none",
		"connectors::slo::lateness":                    "0s",
		"connectors::tenant_routing::retry_on_failure": "{initial_interval: 100ms, max_interval: 200ms}",
		"service::telemetry::metrics::readers":         fmt.Sprintf("[{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %d}}}}]", port),
	} {
		all = append(all, fmt.Sprintf("yaml:%s: %s", path, value))
	}
	var args []string
	for _, c := range configs {
		if strings.HasPrefix(c, "--") {
			args = append(args, c)
		} else {
			all = append(all, c)
		}
	}
	g.Collector = spawn.Start(t, spawn.Options{Configs: all, Args: args, Env: []string{
		"HOSTNAME=gateway", "SLO_CATALOG=" + slos, "METRICS_ENDPOINT=" + to.metrics.URL, "LOGS_ENDPOINT=" + to.logs.URL,
		"METRICS_QUERY=http://" + spawn.FreeEndpoint(t), "TRACES_ENDPOINT=" + spawn.FreeEndpoint(t),
	}})
	g.WaitReady()
	return g, fmt.Sprintf("http://127.0.0.1:%d/metrics", port)
}

// lines are log records of a namespace.
func lines(namespace string, severity plog.SeverityNumber, bodies ...string) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("k8s.namespace.name", namespace)
	sl := rl.ScopeLogs().AppendEmpty()
	for _, body := range bodies {
		r := sl.LogRecords().AppendEmpty()
		r.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		r.SetSeverityNumber(severity)
		r.Body().SetStr(body)
	}
	return ld
}

func (g *gateway) logs(ld plog.Logs) int {
	g.t.Helper()
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	require.NoError(g.t, err)
	return g.post("/v1/logs", body).StatusCode
}

func (g *gateway) metrics(md pmetric.Metrics) int {
	g.t.Helper()
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	require.NoError(g.t, err)
	return g.post("/v1/metrics", body).StatusCode
}

// ownSum adds up one of a Collector's own counters, of the series that have a label.
func ownSum(t *testing.T, url, name, label, value string) (sum float64) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	for of, f := range families(t, resp.Body) {
		if !strings.HasPrefix(of, name) {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label && l.GetValue() == value {
					sum += m.GetCounter().GetValue()
				}
			}
		}
	}
	return sum
}

// Scenario: a client of one namespace sends a distribution of another tenant's promise, as a gateway of several tells it, with the
// word that a part is there; verdicts; and log records that bear the other tenant's name.
// Guarantees: the other tenant's verdicts are of what it sent itself, complete; and what the client sent is the client's.
func TestAClientCannotWriteIntoAnothersVerdicts(t *testing.T) {
	parallel(t)
	to := newPlaces(t)
	g, own := startBuiltinGateway(t, to)
	require.Equal(t, http.StatusOK, g.logs(lines("victim", plog.SeverityNumberInfo, "1", "2", "3")))
	lie := lines("evil", plog.SeverityNumberError, "x")
	record := lie.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	for _, key := range []string{"tenant", "k8s.namespace.name", "service.namespace"} {
		record.Attributes().PutStr(key, "victim")
		lie.ResourceLogs().At(0).ScopeLogs().At(0).Scope().Attributes().PutStr(key, "victim")
	}
	require.Equal(t, http.StatusOK, g.logs(lie))

	md := gauge(1, "evil")
	rm := md.ResourceMetrics().At(0)
	rm.Resource().Attributes().PutStr("service.instance.id", "ghost")
	rm.Resource().Attributes().PutStr("otelcol.component.id", "slo")
	sm := rm.ScopeMetrics().At(0)
	minute := time.Now().Truncate(time.Minute)
	for _, of := range []map[string]any{{"slo_id": "llm:chat:lines:errors", "tenant": "victim"}, {}} {
		for _, name := range []string{"slo.sli.distribution", "slo_sli_distribution"} {
			m := sm.Metrics().AppendEmpty()
			m.SetName(name)
			m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			p := m.Histogram().DataPoints().AppendEmpty()
			require.NoError(t, p.Attributes().FromRaw(of))
			n := uint64(500 * len(of))
			p.SetStartTimestamp(pcommon.NewTimestampFromTime(minute.Add(-time.Minute)))
			p.SetTimestamp(pcommon.NewTimestampFromTime(minute))
			p.BucketCounts().FromRaw([]uint64{n})
			p.SetCount(n)
			p.SetSum(0)
		}
	}
	// Each is what Prometheus calls slo_state, slo_sli_incomplete and so on.
	for _, name := range [][2]string{
		{"slo.state"}, {"slo_sli_incomplete"}, {"slo-state"}, {"slo/sli.value"}, {"slo error_budget remaining"}, {"slo", "objective"}, {"gpu.leak.state"}, {"gpu leak", "rate"},
	} {
		m := sm.Metrics().AppendEmpty()
		m.SetName(name[0])
		m.SetUnit(name[1])
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		p.Attributes().PutStr("slo_id", "claimed")
		p.Attributes().PutStr("tenant", "victim")
	}
	require.Equal(t, http.StatusOK, g.metrics(md))
	require.Equal(t, http.StatusOK, g.logs(lines("victim", plog.SeverityNumberInfo, "4")))

	last := func(tenant, outcome string) float64 {
		for _, h := range to.metrics.all("slo.sli.events", "tenant", tenant, "outcome", outcome) {
			return h.last().value
		}
		return -1
	}
	require.Eventually(t, func() bool {
		return last("victim", "good") == 4 && last("evil", "bad") == 1 && len(to.metrics.all("requests", "tenant", "evil")) == 1
	}, patience, 50*time.Millisecond, "%v", to.metrics.all("slo.sli.events"))
	time.Sleep(2 * time.Second)
	assert.InDelta(t, 0, last("victim", "bad"), 0)
	assert.InDelta(t, 4, last("victim", "good"), 0)
	assert.Empty(t, to.metrics.all("slo.sli.incomplete"), "no part is known")
	assert.Empty(t, to.metrics.all("slo.state", "slo_id", "claimed"))
	assert.Empty(t, to.metrics.all("slo_sli_incomplete"))
	assert.InDelta(t, 4+8, ownSum(t, own, "otelcol_processor_filter_datapoints_filtered", "filter", "filter/claims"), 0)
	assert.Zero(t, g.Stop())
}

// Scenario: the destination of a tenant's log records is gone, its queue gets full, and its client sends every record again that is
// not taken. Guarantees: each record that was taken is judged once, and so is each that was not.
func TestWhatIsSentAgainIsNotJudgedAgain(t *testing.T) {
	parallel(t)
	to := newPlaces(t)
	to.gone = "acme"
	g, own := startBuiltinGateway(t, to, "yaml:connectors::tenant_routing::sending_queue: {sizer: requests, queue_size: 2, num_consumers: 1}")
	const records = 12
	for i := range records {
		ld := lines("acme", plog.SeverityNumberError, fmt.Sprint(i))
		for try := 0; g.logs(ld) != http.StatusOK && try < 3; try++ {
			time.Sleep(50 * time.Millisecond)
		}
	}
	require.Eventually(t, func() bool {
		for _, h := range to.metrics.all("slo.sli.events", "tenant", "acme", "outcome", "bad") {
			return h.last().value >= records
		}
		return false
	}, patience, 50*time.Millisecond)
	time.Sleep(time.Second)
	assert.InDelta(t, records, to.metrics.last(t, "slo.sli.events", "tenant", "acme", "outcome", "bad").value, 0)
	lost := ownSum(t, own, "otelcol_tenant_routing_items_dropped", "reason", "queue_full")
	assert.Positive(t, lost, "what the queue did not take is counted")
	to.mu.Lock()
	to.gone = ""
	to.mu.Unlock()
	require.Eventually(t, func() bool { return len(to.arrived("acme")) == records-int(lost) }, patience, 50*time.Millisecond)
	assert.Zero(t, g.Stop())
}

// Scenario: something of a gateway does not start, while other parts of it have.
// Guarantees: it says what is wrong, and ends, without a panic.
func TestAGatewayThatDoesNotStartSaysWhy(t *testing.T) {
	parallel(t)
	for range 4 { // in which order things start is left to chance
		var configs []string
		for _, path := range []string{"receivers::otlp::protocols::grpc::endpoint", "receivers::otlp::protocols::http::endpoint", "extensions::health_check::endpoint", "extensions::console::endpoint"} {
			configs = append(configs, fmt.Sprintf("yaml:%s: %s", path, spawn.FreeEndpoint(t)))
		}
		c := spawn.Start(t, spawn.Options{Configs: append(append([]string{"builtin:gateway"}, configs...),
			"yaml:exporters::otlp_http/metrics::tls: {ca_file: /nonexistent.crt}", "yaml:service::telemetry::metrics::level: none")})
		require.Eventually(t, func() bool { return !c.Running() }, patience, 50*time.Millisecond)
		assert.Contains(t, c.Logs(), "/nonexistent.crt")
		assert.NotContains(t, c.Logs(), "panic:")
	}
}
