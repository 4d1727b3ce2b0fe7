// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// questions are asked of both stores, at several times and over a range.
var questions = []string{
	// selectors
	`requests_total`, `requests_total{cloud_region="eu-1"}`, `requests_total{cloud_region=~"eu-.*", code!="500"}`,
	`{__name__=~"queue.*"}`, `{tenant="b", __name__!=""}`, `requests_total offset 5m`, `requests_total @ end()`, `target_info`,
	`absent(nothing)`, `up`,
	// rates and resets
	`rate(requests_total[5m])`, `irate(requests_total[2m])`, `increase(requests_total[10m])`, `resets(requests_total[30m])`,
	`sum by (cloud_region) (rate(requests_total[5m]))`, `sum without (instance, job) (rate(requests_total{code="500"}[5m])) / ignoring (code) group_left sum without (code, instance, job) (rate(requests_total[5m]))`,
	`topk(2, sum by (cloud_region, tenant) (rate(requests_total[5m])))`, `changes(queue_depth_ratio[10m])`, `deriv(queue_depth_ratio[10m])`,
	`predict_linear(queue_depth_ratio[10m], 600)`, `delta(queue_depth_ratio[10m])`,
	// over time, subqueries, late samples
	`avg_over_time(queue_depth_ratio[10m])`, `quantile_over_time(0.9, queue_depth_ratio[10m])`, `stddev_over_time(queue_depth_ratio[10m])`,
	`count_over_time(late[10m])`, `sum_over_time(late[10m])`, `last_over_time(ended[10m])`, `ended`, `count_over_time(ended[30m])`,
	`max_over_time(sum(rate(requests_total[2m]))[10m:1m])`, `absent_over_time(ended[1m])`,
	// explicit histograms
	`histogram_quantile(0.95, sum by (le) (rate(ttft_seconds_bucket[5m])))`, `histogram_quantile(0.5, sum by (le, cloud_region) (rate(ttft_seconds_bucket[5m])))`,
	`ttft_seconds_sum / ttft_seconds_count`, `sum(rate(ttft_seconds_bucket{le="0.5"}[5m])) / sum(rate(ttft_seconds_count[5m]))`,
	// native histograms
	`tpot_seconds`, `rate(tpot_seconds[5m])`, `sum by (cloud_region) (rate(tpot_seconds[5m]))`, `histogram_quantile(0.99, sum(rate(tpot_seconds[5m])))`,
	`histogram_count(rate(tpot_seconds[5m]))`, `histogram_sum(tpot_seconds)`, `histogram_avg(increase(tpot_seconds[10m]))`,
	`histogram_fraction(0, 0.05, sum(rate(tpot_seconds[5m])))`, `histogram_stddev(tpot_seconds)`, `avg(tpot_seconds)`,
	// deltas
	`tokens_total`, `rate(tokens_total[5m])`, `histogram_quantile(0.9, sum by (le) (rate(wait_seconds_bucket[5m])))`, `histogram_quantile(0.9, rate(batch[5m]))`,
	// summaries, odd values, arithmetic
	`gc_seconds`, `gc_seconds_sum / gc_seconds_count`, `odd`, `clamp_max(odd, 10)`, `odd == bool odd`,
	`label_replace(queue_depth_ratio, "region", "$1", "cloud_region", "(.*)-1")`, `count by (__name__) ({__name__=~".+"})`,
	`queue_depth_ratio * on (cloud_region, tenant) group_right requests_total`, `sort_desc(queue_depth_ratio)`,
	`vector(time())`, `scalar(sum(queue_depth_ratio))`,
}

const storing = `
receivers:
  otlp: {protocols: {http: {endpoint: %q}}}
exporters:
  tsdb: {endpoint: %q, directory: %q, promote_resource_attributes: [tenant], min_free_bytes: 0}
service:
  pipelines:
    metrics: {receivers: [otlp], exporters: [tsdb]}
  telemetry: {metrics: {level: none}}
`

// startStores runs a Prometheus and a Collector with the tsdb exporter, both of which take OTLP, and returns where each takes it
// and where each is asked.
func startStores(t testing.TB, directory string) (theirs, mine store, c *spawn.Collector) {
	t.Helper()
	address := spawn.FreeEndpoint(t)
	config := spawn.WriteConfig(t, "storage: {tsdb: {out_of_order_time_window: 1h}}\notlp: {promote_resource_attributes: [tenant]}\n")
	keep(t, prometheus(t), "--config.file="+config, "--web.listen-address="+address, "--storage.tsdb.path="+t.TempDir(),
		"--web.enable-otlp-receiver", "--enable-feature=exemplar-storage,otlp-deltatocumulative")
	theirs = store{push: "http://" + address + "/api/v1/otlp/v1/metrics", ask: "http://" + address}
	mine, c = startCollector(t, directory)
	require.Eventually(t, theirs.ready, arrives, 100*time.Millisecond, "Prometheus is not ready")
	return theirs, mine, c
}

func startCollector(t testing.TB, directory string) (store, *spawn.Collector) {
	t.Helper()
	push, ask := spawn.FreeEndpoint(t), spawn.FreeEndpoint(t)
	c := spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(storing, push, ask, directory))}})
	c.WaitReady()
	s := store{push: "http://" + push + "/v1/metrics", ask: "http://" + ask}
	require.True(t, s.ready())
	return s, c
}

// store is a server that takes OTLP and answers PromQL.
type store struct {
	push, ask string
	server    *process // nil where the test does not need to stop it
}

func (s store) ready() bool {
	resp, err := http.Get(s.ask + "/-/ready")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (s store) send(t testing.TB, md pmetric.Metrics) {
	t.Helper()
	body, err := pmetricotlp.NewExportRequestFromMetrics(md).MarshalProto()
	require.NoError(t, err)
	resp, err := http.Post(s.push, "application/x-protobuf", bytes.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", s.push, text)
}

// get is the data of an answer of the API, or its error, with what has no order in one.
func (s store) get(t testing.TB, path string, form url.Values) (data any, raw string) {
	t.Helper()
	a, raw := s.answer(t, path, form)
	if a.Status != "success" {
		return a.Error, raw
	}
	a.inOrder()
	return a.Data, raw
}

// answer asks by POST, where Prometheus has that, else by GET.
func (s store) answer(t testing.TB, path string, form url.Values) (a answer, raw string) {
	t.Helper()
	resp, err := http.PostForm(s.ask+"/api/v1/"+path, form)
	if strings.HasPrefix(path, "label/") || path == "metadata" {
		resp, err = http.Get(s.ask + "/api/v1/" + path + "?" + form.Encode())
	}
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &a), "%s", text)
	a.code, a.contentType = resp.StatusCode, resp.Header.Get("Content-Type")
	return a, string(text)
}

func inOrder(list []any) {
	text := func(v any) string {
		b, _ := json.Marshal(v) // it was JSON before
		return string(b)
	}
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(text(a), text(b)) })
}

// history is what both stores are sent: half an hour of two tenants in two regions, a batch every 15 s, with a restart in the
// middle, a series that ends, and samples that come late.
func history(end time.Time) (batches []pmetric.Metrics) {
	const step = 15 * time.Second
	const steps = 120
	begin := end.Add(-steps * step)
	for n := 1; n <= steps; n++ {
		at, since := begin.Add(time.Duration(n)*step), begin
		count := uint64(n)
		if n > steps/2 { // the counters begin anew
			since, count = begin.Add(steps/2*step), uint64(n-steps/2)
		}
		md := pmetric.NewMetrics()
		for i, tenant := range []string{"a", "b"} {
			w := newWriter(md, map[string]any{
				"service.name": "chat", "service.namespace": "shop", "service.instance.id": "i-" + tenant, "tenant": tenant, "os.type": "linux",
			}, at)
			for j, region := range []string{"eu-1", "us-1"} {
				w.attributes = map[string]any{"cloud.region": region}
				k := count * uint64(1+i+2*j)
				for _, code := range []string{"200", "500"} {
					w.attributes["code"] = code
					w.sum("requests", "{request}", float64(k)*10+float64(len(code)), since, pmetric.AggregationTemporalityCumulative)
				}
				delete(w.attributes, "code")
				w.gauge("queue.depth", "1", 10*math.Sin(float64(n)/10+float64(i))+float64(j))
				w.explicit("ttft", "s", []uint64{k, 2 * k, k / 2, k / 7}, since, pmetric.AggregationTemporalityCumulative)
				w.exponential("tpot", "s", 3-int32(n%2), []uint64{k, 3 * k, k / 3, 0, 0, k}, k/5, since, pmetric.AggregationTemporalityCumulative)
				w.sum("tokens", "{token}", float64(100+n%7), at.Add(-step), pmetric.AggregationTemporalityDelta)
				w.explicit("wait", "s", []uint64{uint64(n % 5), 3, uint64(n % 3), 1}, at.Add(-step), pmetric.AggregationTemporalityDelta)
				w.exponential("batch", "", 1, []uint64{uint64(n % 4), 2, 7}, 1, at.Add(-step), pmetric.AggregationTemporalityDelta)
			}
			w.attributes = nil
			w.summary("gc", "s", float64(n))
			if n < steps*3/4 {
				w.gauge("ended", "", float64(n))
			} else if n == steps*3/4 {
				w.gauge("ended", "", 0)
				w.last.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
			}
			for name, value := range map[string]float64{"nan": math.NaN(), "inf": math.Inf(-1), "negative": -1.5, "tiny": 5e-324} {
				w.attributes = map[string]any{"is": name, "a.b-c/d": "escaped", "ünïcode": "ß"}
				w.gauge("odd", "", value)
			}
			w.attributes = nil
			if n%4 != 0 {
				w.gauge("late", "", float64(n))
			}
		}
		batches = append(batches, md)
	}
	// Every fourth sample of one series comes at the end, the newest first.
	for n := steps - steps%4; n > 0; n -= 4 {
		md := pmetric.NewMetrics()
		for _, tenant := range []string{"a", "b"} {
			newWriter(md, map[string]any{
				"service.name": "chat", "service.namespace": "shop", "service.instance.id": "i-" + tenant, "tenant": tenant, "os.type": "linux",
			}, begin.Add(time.Duration(n)*step)).gauge("late", "", float64(n))
		}
		batches = append(batches, md)
	}
	return batches
}

// writer adds metrics of one resource and time.
type writer struct {
	pmetric.MetricSlice
	at         pcommon.Timestamp
	attributes map[string]any
	last       pmetric.NumberDataPoint
}

func newWriter(md pmetric.Metrics, resource map[string]any, at time.Time) *writer {
	rm := md.ResourceMetrics().AppendEmpty()
	if err := rm.Resource().Attributes().FromRaw(resource); err != nil {
		panic(err)
	}
	return &writer{MetricSlice: rm.ScopeMetrics().AppendEmpty().Metrics(), at: pcommon.NewTimestampFromTime(at)}
}

func (w *writer) metric(name, unit string) pmetric.Metric {
	m := w.AppendEmpty()
	m.SetName(name)
	m.SetUnit(unit)
	m.SetDescription("What " + name + " is.")
	return m
}

type dataPoint interface {
	SetTimestamp(pcommon.Timestamp)
	Attributes() pcommon.Map
}

func (w *writer) common(p dataPoint) {
	p.SetTimestamp(w.at)
	if err := p.Attributes().FromRaw(w.attributes); err != nil {
		panic(err)
	}
}

func (w *writer) gauge(name, unit string, value float64) {
	w.last = w.metric(name, unit).SetEmptyGauge().DataPoints().AppendEmpty()
	w.common(w.last)
	w.last.SetDoubleValue(value)
}

func (w *writer) sum(name, unit string, value float64, since time.Time, temporality pmetric.AggregationTemporality) {
	s := w.metric(name, unit).SetEmptySum()
	s.SetIsMonotonic(true)
	s.SetAggregationTemporality(temporality)
	p := s.DataPoints().AppendEmpty()
	w.common(p)
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(since))
	p.SetDoubleValue(value)
}

func (w *writer) explicit(name, unit string, counts []uint64, since time.Time, temporality pmetric.AggregationTemporality) {
	h := w.metric(name, unit).SetEmptyHistogram()
	h.SetAggregationTemporality(temporality)
	p := h.DataPoints().AppendEmpty()
	w.common(p)
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(since))
	p.ExplicitBounds().FromRaw([]float64{0.1, 0.5, 2})
	p.BucketCounts().FromRaw(counts)
	p.SetCount(total(counts))
	p.SetSum(float64(total(counts)) * 0.3)
	if temporality == pmetric.AggregationTemporalityCumulative {
		ex := p.Exemplars().AppendEmpty()
		ex.SetTimestamp(w.at)
		ex.SetDoubleValue(0.4)
		ex.SetTraceID(pcommon.TraceID{byte(w.at >> 32), 7})
	}
}

func (w *writer) exponential(name, unit string, scale int32, counts []uint64, zero uint64, since time.Time, temporality pmetric.AggregationTemporality) {
	h := w.metric(name, unit).SetEmptyExponentialHistogram()
	h.SetAggregationTemporality(temporality)
	p := h.DataPoints().AppendEmpty()
	w.common(p)
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(since))
	p.SetScale(scale)
	p.SetZeroCount(zero)
	p.Positive().SetOffset(-20)
	p.Positive().BucketCounts().FromRaw(counts)
	p.Negative().SetOffset(2)
	p.Negative().BucketCounts().FromRaw(counts[:1])
	p.SetCount(total(counts) + counts[0] + zero)
	p.SetSum(float64(total(counts)) * 0.2)
}

func (w *writer) summary(name, unit string, n float64) {
	p := w.metric(name, unit).SetEmptySummary().DataPoints().AppendEmpty()
	w.common(p)
	p.SetCount(uint64(n))
	p.SetSum(n * 2)
	for _, quantile := range []float64{0.5, 0.99} {
		q := p.QuantileValues().AppendEmpty()
		q.SetQuantile(quantile)
		q.SetValue(quantile * n)
	}
}

func total(counts []uint64) (sum uint64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// Scenario: a Prometheus server and the Collector's tsdb exporter are sent the same OTLP, of all shapes and both temporalities.
// Guarantees: whatever is asked of the two, the answer is the same.
func TestTheTSDBAnswersAsPrometheusDoes(t *testing.T) {
	theirs, mine, c := startStores(t, t.TempDir())
	end := time.Now().Truncate(time.Minute)
	for _, md := range history(end) {
		theirs.send(t, md)
		mine.send(t, md)
	}
	unix := func(at time.Time) string { return fmt.Sprint(at.Unix()) }
	require.GreaterOrEqual(t, len(questions), 50)
	same := func(path string, form url.Values) (empty bool) {
		t.Helper()
		want, raw := theirs.get(t, path, form)
		got, _ := mine.get(t, path, form)
		assert.Equal(t, want, got, "%s %s", path, form)
		return strings.Contains(raw, `"result":[]`)
	}
	answered := 0
	for _, q := range questions {
		for _, at := range []time.Time{end, end.Add(-8 * time.Minute), end.Add(-17*time.Minute - 7*time.Second)} {
			same("query", url.Values{"query": {q}, "time": {unix(at)}})
		}
		if !same("query_range", url.Values{"query": {q}, "start": {unix(end.Add(-25 * time.Minute))}, "end": {unix(end.Add(2 * time.Minute))}, "step": {"37"}}) {
			answered++
		}
	}
	assert.GreaterOrEqual(t, answered, len(questions)-1, "only up has no answer: nothing is scraped")

	window := url.Values{"start": {unix(end.Add(-time.Hour))}, "end": {unix(end)}}
	with := func(more ...string) url.Values {
		form := url.Values{}
		for k, v := range window {
			form[k] = v
		}
		for i := 0; i+1 < len(more); i += 2 {
			form.Add(more[i], more[i+1])
		}
		return form
	}
	same("series", with("match[]", `{__name__=~".+"}`))
	same("series", with("match[]", `requests_total`, "match[]", `{is="nan"}`, "limit", "2"))
	same("labels", window)
	same("labels", with("match[]", "odd"))
	same("query_exemplars", with("query", `histogram_quantile(0.95, rate(ttft_seconds_bucket[5m]))`))
	same("format_query", url.Values{"query": {"sum(rate( requests_total [5m]))"}})
	same("query", url.Values{"query": {"sum("}})
	same("query_range", url.Values{"query": {"up"}, "start": {"0"}, "end": {"1000000"}, "step": {"1"}})
	assert.Equal(t, 0, c.Stop())
}

// Guarantees: promtool works against the API, and on the directory.
func TestPromtoolWorksOnTheTSDB(t *testing.T) {
	directory := t.TempDir()
	mine, c := startCollector(t, directory)
	end := time.Now().Truncate(time.Minute)
	for _, md := range history(end) {
		mine.send(t, md)
	}
	at := fmt.Sprint(end.Unix())
	f := func(want string, args ...string) {
		t.Helper()
		assert.Contains(t, run(t, promtool(t), args...), want)
	}
	f(`{cloud_region="eu-1"}`, "query", "instant", "--time="+at, mine.ask, "sum by (cloud_region) (rate(requests_total[5m]))")
	f(`tenant="a"`, "query", "range", "--end="+at, "--start="+fmt.Sprint(end.Add(-10*time.Minute).Unix()), mine.ask, "rate(tpot_seconds[5m])")
	f(`__name__="tokens_total"`, "query", "series", "--match=tokens_total", "--start="+fmt.Sprint(end.Add(-time.Hour).Unix()), mine.ask)
	f("ttft_seconds_bucket", "query", "labels", mine.ask, "__name__")
	f("SUCCESS", "check", "healthy", "--url="+mine.ask)
	f("SUCCESS", "check", "ready", "--url="+mine.ask)
	require.Equal(t, 0, c.Stop())
	f("requests_total", "tsdb", "dump", "--match={__name__=\"requests_total\"}", directory)
}
