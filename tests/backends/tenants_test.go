// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

var items = flag.Int("items", 20_000, "how many spans, log records and data points go through the gateway to real servers")

const (
	namespaces = 50
	inTrace    = 10 // spans
	requests   = 20 // of each signal
)

// claiming is a client that claims, in every way it can, to be another tenant.
type claiming struct {
	t    testing.TB
	otlp string
	to   string // whom it claims to be
}

func (c claiming) post(path string, body []byte, err error) {
	c.t.Helper()
	require.NoError(c.t, err)
	req, err := http.NewRequest(http.MethodPost, c.otlp+path, bytes.NewReader(body))
	require.NoError(c.t, err)
	req.Header.Set("Content-Type", "application/x-protobuf")
	if c.to != "" {
		req.Header.Set("X-Scope-OrgID", c.to)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(c.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	require.Equal(c.t, http.StatusOK, resp.StatusCode, "%s: %s", path, answer)
	require.LessOrEqual(c.t, len(answer), 2, "it was taken in part only: %q", answer)
}

func (c claiming) resource(r pcommon.Resource, namespace string) {
	r.Attributes().PutStr("k8s.namespace.name", namespace)
	r.Attributes().PutStr("service.name", "chat") // the same in every namespace
	if c.to != "" {
		r.Attributes().PutStr("tenant", c.to)
	}
}

// item is the name of an item, which no other one has.
func item(namespace string, i int) string { return fmt.Sprintf("%s/%d", namespace, i) }

// numbers of the items of a request: those from, until.
type numbers struct{ from, until int }

func (c claiming) spans(names []string, n numbers, at time.Time) {
	td := ptrace.NewTraces()
	for k, namespace := range names {
		rs := td.ResourceSpans().AppendEmpty()
		c.resource(rs.Resource(), namespace)
		ss := rs.ScopeSpans().AppendEmpty()
		for i := n.from; i < n.until; i++ {
			s := ss.Spans().AppendEmpty()
			s.SetName(item(namespace, i))
			s.SetTraceID(traceOf(namespace, k, i/inTrace))
			s.SetSpanID(pcommon.SpanID{1, byte(k), byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)})
			s.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
			s.SetEndTimestamp(pcommon.NewTimestampFromTime(at.Add(time.Millisecond)))
		}
	}
	body, err := ptraceotlp.NewExportRequestFromTraces(td).MarshalProto()
	c.post("/v1/traces", body, err)
}

func traceOf(namespace string, k, i int) pcommon.TraceID {
	return pcommon.TraceID{1, byte(k), byte(len(namespace)), byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)}
}

func (c claiming) records(names []string, n numbers, at time.Time) {
	ld := plog.NewLogs()
	for _, namespace := range names {
		rl := ld.ResourceLogs().AppendEmpty()
		c.resource(rl.Resource(), namespace)
		sl := rl.ScopeLogs().AppendEmpty()
		for i := n.from; i < n.until; i++ {
			r := sl.LogRecords().AppendEmpty()
			r.SetTimestamp(pcommon.NewTimestampFromTime(at.Add(time.Duration(i))))
			r.Body().SetStr(item(namespace, i))
		}
	}
	body, err := plogotlp.NewExportRequestFromLogs(ld).MarshalProto()
	c.post("/v1/logs", body, err)
}

func (c claiming) points(names []string, n numbers, at time.Time) {
	md := pmetric.NewMetrics()
	for _, namespace := range names {
		rm := md.ResourceMetrics().AppendEmpty()
		c.resource(rm.Resource(), namespace)
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("item")
		points := m.SetEmptyGauge().DataPoints()
		for i := n.from; i < n.until; i++ {
			p := points.AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(at))
			p.SetIntValue(int64(i))
			p.Attributes().PutStr("number", fmt.Sprint(i)) // the series of all namespaces have the same attributes
			p.Attributes().PutStr("job", "batch")          // which Prometheus writes itself
		}
	}
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	c.post("/v1/metrics", body, err)
}

// census is how often a tenant has each item.
type census map[string]int

// spansOf counts the spans that the servers have of a tenant.
func (d destinations) spansOf(t testing.TB, tenant string) census {
	t.Helper()
	spans := census{}
	for _, s := range d.traces.spans(t, tenant, "chat") {
		spans[s.Operation]++
	}
	return spans
}

// recordsOf counts the log records that the servers have of a tenant.
func (d destinations) recordsOf(t testing.TB, tenant string) census {
	t.Helper()
	records := census{}
	for _, r := range d.logs.records(t, tenant, "*") {
		records[r["_msg"]]++
	}
	return records
}

// take counts what the servers have of a tenant, by signal.
func (g *gateway) take(t testing.TB, tenant string, at time.Time) (spans, records, points census) {
	t.Helper()
	spans, records = g.spansOf(t, tenant), g.recordsOf(t, tenant)
	points = census{}
	for _, s := range g.metrics.samples(t, fmt.Sprintf(`item{tenant=%q}`, tenant), at.Add(time.Second)) {
		assert.Equal(t, s.labels["number"], fmt.Sprint(s.value))
		points[item(s.labels["k8s_namespace_name"], int(s.value))]++
	}
	return spans, records, points
}

// expect waits until the servers have n items of each signal of a tenant, and requires that these are its own, each once.
func (g *gateway) expect(t testing.TB, tenant string, n int, at, deadline time.Time) {
	t.Helper()
	var spans, records, points census
	for {
		spans, records, points = g.take(t, tenant, at)
		if len(spans) >= n && len(records) >= n && len(points) >= n || time.Now().After(deadline) {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	for signal, got := range map[string]census{"spans": spans, "log records": records, "data points": points} {
		twice := got.complete(t, signal, tenant, n)
		assert.Zero(t, twice, "%s of %s are there twice", signal, tenant)
	}
}

// complete requires that what a tenant has is its own n items, and returns how many of them are there more than once.
func (c census) complete(t testing.TB, signal, tenant string, n int) (twice int) {
	t.Helper()
	lost := 0
	for i := range n {
		switch c[item(tenant, i)] {
		case 0:
			lost++
		case 1:
		default:
			twice++
		}
		delete(c, item(tenant, i))
	}
	assert.Zero(t, lost, "%s of %s are lost", signal, tenant)
	assert.Empty(t, c, "%s that %s has and should not", signal, tenant)
	return twice
}

// Scenario: fifty namespaces, in each a service of the same name, send spans, log records and data points through one gateway in
// common requests, in which every client claims to be ns-00, by header and by attribute. Then a namespace appears that nobody
// has heard of.
// Guarantees: each tenant of a real Jaeger, VictoriaLogs and Prometheus has its own items, each once, and no other; what claims
// to be ns-00 is not; the new namespace is routed with its first batch.
func TestFiftyNamespacesHaveTheirOwnAndNothingElse(t *testing.T) {
	g := startGateway(t, startDestinations(t), "gateway-0", "", nil)
	names := make([]string, namespaces)
	for k := range names {
		names[k] = fmt.Sprintf("ns-%02d", k)
	}
	const share = 3 * namespaces * requests
	each := (*items + share - 1) / share * requests // of each signal and namespace
	c, at := claiming{t, g.otlp, names[0]}, time.Now()
	begin := time.Now()
	for r := range requests {
		n := numbers{r * each / requests, (r + 1) * each / requests}
		c.spans(names, n, at)
		c.records(names, n, at)
		c.points(names, n, at)
	}
	sent := time.Since(begin)
	deadline := time.Now().Add(arrives + time.Duration(*items)*200*time.Microsecond)
	for _, namespace := range names {
		g.expect(t, namespace, each, at, deadline)
	}
	t.Logf("%d items sent in %s, there after %s", 3*each*namespaces, sent.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))

	const late = "ns-that-appears"
	begin = time.Now()
	c.spans([]string{late}, numbers{0, 10}, at)
	c.records([]string{late}, numbers{0, 10}, at)
	c.points([]string{late}, numbers{0, 10}, at)
	g.expect(t, late, 10, at, time.Now().Add(arrives))
	t.Logf("a new namespace is there after %s", time.Since(begin).Round(time.Millisecond))
	assert.Zero(t, g.Stop())
}
