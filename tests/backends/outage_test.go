// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

var outage = flag.Duration("outage", 20*time.Second, "how long the servers of one tenant are gone")

const (
	beat      = 500 * time.Millisecond // between two requests of each signal
	inRequest = 5                      // spans, and log records, of each tenant
	inFlight  = 2 * 100_000 / 500      // requests of a tenant's queue that may be on their way: two batches of min_size, and how large a request is
	// The longest wait of gRPC between two attempts to connect, and of the retry, each with its jitter.
	waitMax = 144*time.Second + 45*time.Second
)

// estate is a gateway with servers for all, and others that are acme's own.
type estate struct {
	t             testing.TB
	shared, acmes destinations
	valve         *valve // before acme's Jaeger, which keeps its traces in memory
	dir           string
	g             *gateway
	begin         time.Time
	sent          int // requests of each signal
	took          []time.Duration
}

var estateTenants = []string{"acme", "beta", "gamma"}

func startEstate(t testing.TB) *estate {
	t.Helper()
	e := &estate{t: t, shared: startDestinations(t), acmes: startDestinations(t), dir: t.TempDir(), begin: time.Now()}
	e.valve = newValve(t, e.acmes.traces.otlp)
	e.startGateway()
	return e
}

// startGateway starts it, again after a Kill, on the same volume.
func (e *estate) startGateway() {
	e.t.Helper()
	e.g = startGateway(e.t, e.shared, "gateway-0", e.dir, nil, spawn.WriteConfig(e.t, documented(e.t, "own-servers.yaml",
		"http://prometheus.acme:9090", e.acmes.metrics.ask, "http://loki.acme:3100/otlp", e.acmes.logs.otlp, "tempo.acme:4317", e.valve.at)),
		"yaml:exporters::otlp_grpc/traces-acme::timeout: 2m")
}

// send sends a request of each signal, in which all tenants tell something, claiming to be beta.
func (e *estate) send() {
	e.t.Helper()
	c, n, now := claiming{e.t, e.g.otlp, "beta"}, numbers{e.sent * inRequest, (e.sent + 1) * inRequest}, time.Now()
	c.spans(estateTenants, n, now)
	c.records(estateTenants, n, now)
	c.count(estateTenants, e.sent+1, e.begin, now)
	e.took = append(e.took, time.Since(now)/3)
	e.sent++
}

// sendFor sends on and on.
func (e *estate) sendFor(span time.Duration) {
	e.t.Helper()
	for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(beat) {
		e.send()
	}
}

// median is how long a request took since the last call.
func (e *estate) median() time.Duration {
	slices.Sort(e.took)
	m := e.took[len(e.took)/2]
	e.took = nil
	return m.Round(10 * time.Microsecond)
}

// count sends a cumulative counter of each tenant, which has come to n.
func (c claiming) count(names []string, n int, begin, at time.Time) {
	md := pmetric.NewMetrics()
	for _, namespace := range names {
		rm := md.ResourceMetrics().AppendEmpty()
		c.resource(rm.Resource(), namespace)
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("answers")
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := m.Sum().DataPoints().AppendEmpty()
		p.SetStartTimestamp(pcommon.NewTimestampFromTime(begin))
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.SetIntValue(int64(n))
	}
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	c.post("/v1/metrics", body, err)
}

// counted is how many points of a tenant's counter a Prometheus has, and its newest value.
func (e *estate) counted(at store, tenant string) (points, value int) {
	e.t.Helper()
	span := fmt.Sprintf("[%ds]", int(time.Since(e.begin).Seconds())+10)
	for _, s := range at.samples(e.t, fmt.Sprintf("count_over_time(answers_total{tenant=%q}%s)", tenant, span), time.Now()) {
		points += int(s.value)
	}
	for _, s := range at.samples(e.t, fmt.Sprintf("max_over_time(answers_total{tenant=%q}%s)", tenant, span), time.Now()) {
		value += int(s.value)
	}
	return points, value
}

// of are the servers of a tenant, and those that must not know it.
func (e *estate) of(tenant string) (its, others destinations) {
	if tenant == "acme" {
		return e.acmes, e.shared
	}
	return e.shared, e.acmes
}

// arrive waits until all that was sent of a tenant is with its servers, and requires that it is. It returns how many spans and log records
// are there more than once.
func (e *estate) arrive(tenant string, within time.Duration) (spans, records int) {
	e.t.Helper()
	its, _ := e.of(tenant)
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		points, _ := e.counted(its.metrics, tenant)
		if len(its.spansOf(e.t, tenant)) == e.sent*inRequest && len(its.recordsOf(e.t, tenant)) == e.sent*inRequest && points == e.sent {
			break
		}
	}
	points, value := e.counted(its.metrics, tenant)
	assert.Equal(e.t, e.sent, points, "points of %s", tenant)
	assert.Equal(e.t, e.sent, value, "the counter of %s", tenant)
	return its.spansOf(e.t, tenant).complete(e.t, "spans", tenant, e.sent*inRequest),
		its.recordsOf(e.t, tenant).complete(e.t, "log records", tenant, e.sent*inRequest)
}

// apart requires that nothing of a tenant is with others' servers.
func (e *estate) apart(tenant string) {
	e.t.Helper()
	_, others := e.of(tenant)
	assert.Empty(e.t, others.spansOf(e.t, tenant))
	points, _ := e.counted(others.metrics, tenant)
	assert.Zero(e.t, points)
	assert.False(e.t, others.logs.heardOf(tenant), "log records of %s", tenant)
}

// Scenario: acme has servers of its own, and they are gone: its Prometheus and VictoriaLogs have ended, and its Jaeger refuses
// connections. All the time acme sends in the same requests as two others, who claim to be each other. The gateway is killed with SIGKILL
// meanwhile, twice, and comes back on the same volume. Then the servers are back. Later they are gone once more, and this time the gateway is
// killed in the middle of sending what waited.
// Guarantees: what the others send is with their servers all the time. What acme sent is with its own in the end: every span, record and
// point, none with anybody else's servers, and none twice; nor after the last kill, but for the batches that were on their way right then.
func TestATenantWhoseServersAreGone(t *testing.T) {
	e := startEstate(t)
	e.sendFor(5 * time.Second)
	for _, tenant := range estateTenants {
		e.arrive(tenant, arrives)
	}
	// That it is there does not mean that the gateway has heard so: only what it has is not sent again.
	require.Eventually(t, func() bool {
		return int(e.g.counted(t, "otelcol_tenant_routing_items_sent_total", "acme")) == e.sent*(2*inRequest+1)
	}, arrives, often, "the gateway has not heard that acme has all")
	well, before := e.median(), e.sent

	e.gone()
	e.sendFor(*outage / 2)
	e.g.Kill()
	e.startGateway()
	e.g.Kill() // a crash at once
	e.startGateway()
	e.sendFor(*outage - *outage/2)
	sick := e.median()
	for _, tenant := range []string{"beta", "gamma"} {
		spans, records := e.arrive(tenant, arrives)
		// At most what was on its way when the gateway was killed.
		assert.LessOrEqual(t, spans, inFlight*inRequest)
		assert.LessOrEqual(t, records, inFlight*inRequest)
	}
	assert.Len(t, e.acmes.spansOf(t, "acme"), before*inRequest, "nothing came to acme meanwhile")
	e.back()
	returned := time.Now()
	spans, records := e.arrive("acme", waitMax+arrives)
	assert.Zero(t, spans, "spans of acme are there twice")
	assert.Zero(t, records, "log records of acme are there twice")
	t.Logf("gone for %s, gateway killed twice: %d spans, %d log records, %d points of each tenant, none lost or twice; all of acme's there %s after its servers; a request took %s while all was well, %s in the outage",
		*outage, e.sent*inRequest, e.sent*inRequest, e.sent, time.Since(returned).Round(100*time.Millisecond), well, sick)

	e.gone()
	for range 1500 {
		e.send()
		time.Sleep(2 * time.Millisecond) // Prometheus has one sample in a millisecond
	}
	passing := e.back()
	select {
	case <-passing:
	case <-time.After(waitMax + arrives):
		t.Fatal("nothing is sent to acme's servers, though they are back")
	}
	e.g.Kill()
	e.startGateway()
	for _, tenant := range estateTenants {
		spans, records := e.arrive(tenant, arrives)
		assert.LessOrEqual(t, spans, inFlight*inRequest, tenant)
		assert.LessOrEqual(t, records, inFlight*inRequest, tenant)
		e.apart(tenant)
		t.Logf("killed while it sent: %d spans and %d log records of %s are there twice", spans, records, tenant)
	}
	assert.Zero(t, e.g.Stop())
}

// gone ends acme's servers.
func (e *estate) gone() {
	e.valve.shut()
	e.acmes.metrics.server.stop()
	e.acmes.logs.server.stop()
}

// back starts them again, and returns a channel that is closed in the middle of the traces that waited.
func (e *estate) back() (passing <-chan struct{}) {
	e.acmes.metrics.server.start()
	e.acmes.logs.server.start()
	waitHTTP(e.t, e.acmes.metrics.ask+"/-/ready")
	waitHTTP(e.t, e.acmes.logs.ask+"/health")
	return e.valve.open()
}
