// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/store"
	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
)

func TestLifecycle(t *testing.T) {
	cfg := settings(t)
	lifecycletest.Test(t, componenttest.NewNopHost(),
		func(t testing.TB) exporter.Metrics { return create(t, cfg).Metrics },
		func(t testing.TB, e exporter.Metrics) {
			assert.False(t, e.Capabilities().MutatesData)
			md := gauge("lifecycle", 1, now(), nil)
			md.MarkReadOnly()
			require.NoError(t, e.ConsumeMetrics(t.Context(), md))
		})
}

// Guarantees: names are those of a Prometheus server: underscores, unit and type as suffixes; job and instance come from the
// resource, and what tells a tenant stays on the series.
func TestNamesAndLabelsAreThoseOfPrometheus(t *testing.T) {
	r := newRig(t, settings(t))
	at := now()
	f := func(name, unit string, counter bool, want string) {
		t.Helper()
		md, ms := batch(resource)
		m := ms.AppendEmpty()
		m.SetName(name)
		m.SetUnit(unit)
		var p pmetric.NumberDataPoint
		if counter {
			s := m.SetEmptySum()
			s.SetIsMonotonic(true)
			s.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p = s.DataPoints().AppendEmpty()
		} else {
			p = m.SetEmptyGauge().DataPoints().AppendEmpty()
		}
		p.SetDoubleValue(1)
		p.SetTimestamp(stamp(at))
		require.NoError(t, p.Attributes().FromRaw(map[string]any{"slo_id": "llm:chat:ttft:p95", "cloud.region": "eu-2"}))
		r.push(md)
		labels := `cloud_region="eu-2", instance="i-1", job="shop/chat", k8s_namespace_name="team-a", service_name="chat", service_namespace="shop", slo_id="llm:chat:ttft:p95"`
		assert.Equal(t, map[string]string{want + "{" + labels + "}": "1"}, r.ask(`{__name__="`+want+`"}`, at))
	}
	f("slo.sli.value", "", false, "slo_sli_value")
	f("slo.sli.events", "{event}", true, "slo_sli_events_total")
	f("slo.burn_rate", "1", false, "slo_burn_rate_ratio")
	f("slo.evaluation.lag", "s", false, "slo_evaluation_lag_seconds")
	f("gpu.leak.rate", "By/s", false, "gpu_leak_rate_bytes_per_second")
	f("vllm:num_requests_running", "", false, "vllm:num_requests_running")
	f("vllm:request_success_total", "", true, "vllm:request_success_total")
	f("seen_total", "", false, "seen_total")
	f("kv.cache.ratio", "1", false, "kv_cache_ratio")
	f("1st", "", false, "_1st")
	assert.Equal(t, map[string]string{
		`target_info{cloud_region="eu-1", instance="i-1", job="shop/chat", k8s_namespace_name="team-a"}`: "1",
	}, r.ask("target_info", at))
}

// Guarantees: a tenant in the resource tells series apart that nothing else does.
func TestTwoTenantsOfOneServiceAreTwoSeries(t *testing.T) {
	r := newRig(t, settings(t))
	at := now()
	for i, tenant := range []string{"a", "b"} {
		md, ms := batch(map[string]any{"service.name": "chat", "tenant": tenant})
		addGauge(ms, "queue", float64(i), at, nil)
		r.push(md)
	}
	assert.Equal(t, map[string]string{
		`queue{job="chat", service_name="chat", tenant="a"}`: "0",
		`queue{job="chat", service_name="chat", tenant="b"}`: "1",
	}, r.ask("queue", at))
}

func TestEveryShapeIsStored(t *testing.T) {
	r := newRig(t, settings(t))
	at := now()
	md, ms := batch(map[string]any{"service.name": "chat"})

	m := ms.AppendEmpty()
	m.SetName("explicit")
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	e := m.Histogram().DataPoints().AppendEmpty()
	e.SetTimestamp(stamp(at))
	e.ExplicitBounds().FromRaw([]float64{0.1, 1})
	e.BucketCounts().FromRaw([]uint64{2, 3, 5})
	e.SetCount(10)
	e.SetSum(20)

	m = ms.AppendEmpty()
	m.SetName("exponential")
	m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	x := m.ExponentialHistogram().DataPoints().AppendEmpty()
	x.SetTimestamp(stamp(at))
	x.SetScale(0)
	x.Positive().SetOffset(0)
	x.Positive().BucketCounts().FromRaw([]uint64{4, 6})
	x.SetZeroCount(1)
	x.SetCount(11)
	x.SetSum(22)

	m = ms.AppendEmpty()
	m.SetName("summary")
	s := m.SetEmptySummary().DataPoints().AppendEmpty()
	s.SetTimestamp(stamp(at))
	s.SetCount(3)
	s.SetSum(6)
	q := s.QuantileValues().AppendEmpty()
	q.SetQuantile(0.99)
	q.SetValue(4)
	r.push(md)

	assert.Equal(t, map[string]string{
		`{le="0.1"}`: "2", `{le="1"}`: "5", `{le="+Inf"}`: "10",
	}, r.ask("sum by (le) (explicit_bucket)", at))
	assert.InDelta(t, 2, r.value("histogram_avg(exponential)", at), 0)
	assert.InDelta(t, 11, r.value("histogram_count(exponential)", at), 0)
	assert.InDelta(t, 4./11, r.value("histogram_fraction(1, 2, exponential)", at), 1e-9)
	assert.Equal(t, map[string]string{`summary{job="chat", quantile="0.99", service_name="chat"}`: "4"}, r.ask("summary", at))
	assert.InDelta(t, 2, r.value("summary_sum / summary_count", at), 0)
}

// Guarantees: an exemplar is found by its series, with trace and span.
func TestExemplarsAreKept(t *testing.T) {
	r := newRig(t, settings(t))
	at := now()
	md := sum("requests", "{request}", 5, at.Add(-time.Minute), at, pmetric.AggregationTemporalityCumulative)
	ex := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).Exemplars().AppendEmpty()
	ex.SetDoubleValue(0.7)
	ex.SetTimestamp(stamp(at))
	ex.SetTraceID(pcommon.TraceID{1})
	ex.SetSpanID(pcommon.SpanID{2})
	require.NoError(t, ex.FilteredAttributes().FromRaw(map[string]any{"region": "eu"}))
	r.push(md)
	found, err := r.QueryExemplars(t.Context(), "rate(requests_total[5m])", at.Add(-time.Minute), at.Add(time.Minute))
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, []promv1.Exemplar{{
		Labels: model.LabelSet{"trace_id": "01000000000000000000000000000000", "span_id": "0200000000000000", "region": "eu"},
		Value:  0.7, Timestamp: model.TimeFromUnix(at.Unix()),
	}}, found[0].Exemplars)
}

// Guarantees: a series that has ended is gone at once, not only after the lookback.
func TestAStalenessMarkerEndsASeries(t *testing.T) {
	r := newRig(t, settings(t))
	at := now()
	r.push(gauge("up", 1, at.Add(-10*time.Second), nil))
	md := gauge("up", 0, at, nil)
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	r.push(md)
	assert.Len(t, r.ask("up", at.Add(-time.Second)), 1)
	assert.Empty(t, r.ask("up", at))
}

// Scenario: a histogram ends, as the prometheus receiver says it: with its boundaries and without a sum. Guarantees: all of its
// series end, _sum too.
func TestAHistogramThatEndsEndsWhole(t *testing.T) {
	r := newRig(t, settings(t))
	at := now()
	push := func(at time.Time, ended bool) {
		md, ms := batch(resource)
		m := ms.AppendEmpty()
		m.SetName("wait")
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := m.Histogram().DataPoints().AppendEmpty()
		p.SetTimestamp(stamp(at))
		p.ExplicitBounds().FromRaw([]float64{1})
		if ended {
			p.BucketCounts().FromRaw([]uint64{0, 0})
			p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		} else {
			p.BucketCounts().FromRaw([]uint64{1, 2})
			p.SetCount(3)
			p.SetSum(4)
		}
		r.push(md)
	}
	push(at.Add(-10*time.Second), false)
	push(at, true)
	assert.Len(t, r.ask(`{__name__=~"wait_.*"}`, at.Add(-time.Second)), 4)
	assert.Empty(t, r.ask(`{__name__=~"wait_.*"}`, at))
}

// Scenario: a late batch comes again, as senders do that have not heard that it was taken. Guarantees: nothing is refused, and each
// sample is there once.
func TestALateBatchThatComesTwiceIsThereOnce(t *testing.T) {
	r := newRig(t, settings(t))
	end := now()
	for _, at := range []time.Time{end, end.Add(-time.Minute), end.Add(-time.Minute), end} {
		r.push(gauge("g", float64(at.Unix()), at, nil))
	}
	assert.InDelta(t, 2, r.value("count_over_time(g[5m])", end), 0)
	assert.Empty(t, r.counted("otelcol_tsdb_samples_refused"))
}

// Scenario: no exemplars are kept. Guarantees: the samples that have some are.
func TestWithoutExemplarsSamplesAreKept(t *testing.T) {
	r := newRig(t, settings(t, func(c *Config) { c.MaxExemplars = 0 }))
	at := now()
	md := sum("requests", "", 5, at.Add(-time.Minute), at, pmetric.AggregationTemporalityCumulative)
	ex := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).Exemplars().AppendEmpty()
	ex.SetDoubleValue(0.7)
	ex.SetTimestamp(stamp(at))
	r.push(md)
	assert.InDelta(t, 5, r.value("requests_total", at), 0)
	assert.Empty(t, r.counted("otelcol_tsdb_samples_refused"))
	found, err := r.QueryExemplars(t.Context(), "requests_total", at.Add(-time.Minute), at)
	require.NoError(t, err)
	assert.Empty(t, found)
}

// Guarantees: keys that become one label keep both values, and zero keeps its sign.
func TestWhatFallsTogetherIsKept(t *testing.T) {
	r := newRig(t, settings(t))
	at := now()
	md, ms := batch(map[string]any{"service.name": "chat"})
	addGauge(ms, "g", math.Copysign(0, -1), at, map[string]any{"a.b": "dot", "a_b": "line", "a/b": "slash", "service.name": "of the point"})
	r.push(md)
	assert.Equal(t, map[string]string{`g{a_b="dot;slash;line", job="chat", service_name="of the point"}`: "-0"}, r.ask("g", at))
	assert.Equal(t, map[string]string{`{a_b="dot;slash;line", job="chat", service_name="of the point"}`: "-Inf"}, r.ask("1 / g", at))
}

// Scenario: a clock was wrong by a day when the newest sample came. Guarantees: the next start says what follows from that, and what to do.
func TestANewestSampleAheadOfTheClockIsSaid(t *testing.T) {
	cfg := settings(t)
	r := newRig(t, cfg)
	r.stop()
	s, err := store.Open(store.Options{Directory: cfg.Directory, Retention: 24 * time.Hour, MaxSeries: 5}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	app := s.Append(t.Context())
	_, err = app.Append(0, labels.FromStrings("__name__", "g"), 0, time.Now().Add(24*time.Hour).UnixMilli(), 1, nil, nil, storage.AOptions{})
	require.NoError(t, err)
	require.NoError(t, app.Commit())
	require.NoError(t, s.Close())

	r = newRig(t, cfg)
	assert.Equal(t, 1, r.logs.FilterMessageSnippet("the newest sample is ahead of the clock").Len())
	r.push(gauge("g", 1, now(), nil))
	assert.Positive(t, r.counted("otelcol_tsdb_samples_refused")["reason=too_old"]+r.counted("otelcol_tsdb_samples_refused")["reason=out_of_bounds"])
}

// Guarantees: senders and askers do not wait for each other, and each sample is there once.
func TestManySendAndAskAtOnce(t *testing.T) {
	r := newRig(t, settings(t))
	end := now()
	var all sync.WaitGroup
	for sender := range 4 {
		all.Go(func() {
			for n := range 50 {
				md := gauge("g", float64(n), end.Add(time.Duration(n-50)*time.Second), map[string]any{"sender": sender})
				ms := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
				for i := range 20 {
					addGauge(ms, fmt.Sprintf("family_%d", i), 1, end.Add(time.Duration(n-50)*time.Second), map[string]any{"sender": sender})
				}
				assert.NoError(t, r.ConsumeMetrics(t.Context(), md))
			}
		})
		all.Go(func() {
			for range 10 {
				_, _, err := r.Query(t.Context(), "sum(count_over_time(g[1m]))", end)
				assert.NoError(t, err)
				_, err = r.Metadata(t.Context(), "", "")
				assert.NoError(t, err)
			}
		})
	}
	all.Wait()
	assert.InDelta(t, 200, r.value("sum(count_over_time(g[1m]))", end), 0)
}

// Scenario: the disk has less room than is asked to stay free. Guarantees: the sender is told to try again, and is taken when
// there is room.
func TestAFullDiskRefusesForNow(t *testing.T) {
	r := newRig(t, settings(t, func(c *Config) { c.MinFreeBytes = 1 << 60 }))
	err := r.ConsumeMetrics(t.Context(), gauge("g", 1, now(), nil))
	require.ErrorContains(t, err, "min_free_bytes is 1152921504606846976")
	assert.False(t, consumererror.IsPermanent(err))
}

// statuses is a host that is told how an exporter is.
type statuses struct {
	component.Host
	told chan componentstatus.Status
}

func (s statuses) Report(e *componentstatus.Event) { s.told <- e.Status() }

// Scenario: the disk has no room for what reading the log may write, by what the last process has left to know; then it has.
// Guarantees: the exporter starts; senders are told to try again, queries that there is no answer yet, the Collector how it is; then it
// goes on by itself, with what was taken before. One that is not yet open can be ended.
func TestADiskThatIsTooFullToOpenIsWaitedFor(t *testing.T) {
	cfg := settings(t)
	at := now()
	r := newRig(t, cfg)
	r.push(gauge("g", 1, at, nil))
	r.stop()
	leave := func(bytes int64) {
		require.NoError(t, os.WriteFile(filepath.Join(cfg.Directory, "unwritten"), fmt.Appendf(nil, "%20d\n", bytes), 0o600))
	}
	leave(1 << 62)
	newRig(t, cfg).stop()

	r = create(t, cfg)
	host := statuses{componenttest.NewNopHost(), make(chan componentstatus.Status, 10)}
	require.NoError(t, r.Start(t.Context(), host))
	assert.Equal(t, componentstatus.StatusRecoverableError, <-host.told)
	assert.Equal(t, 1, r.logs.FilterMessageSnippet("the database is not open").Len())
	err := r.ConsumeMetrics(t.Context(), gauge("g", 2, at, nil))
	require.ErrorContains(t, err, "the disk is too full to read its write-ahead log")
	assert.False(t, consumererror.IsPermanent(err))
	resp, err := r.client.Get(r.url("/api/v1/query?query=g"))
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, errors.Join(err, resp.Body.Close()))
	assert.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
	assert.JSONEq(t, `{"status": "error", "errorType": "unavailable", "error": "`+errNotOpen.Error()+`"}`, string(body))
	assert.Empty(t, r.counted("otelcol_tsdb_series"))

	leave(0)
	assert.Equal(t, componentstatus.StatusOK, <-host.told)
	assert.InDelta(t, 1, r.value("g", at), 0)
	r.push(gauge("g", 2, at.Add(time.Second), nil))
	assert.InDelta(t, 2, r.value("g", at.Add(time.Second)), 0)
	assert.Equal(t, map[string]float64{"": 2}, r.counted("otelcol_tsdb_series"))
}

// Guarantees: after a restart everything is there, and series go on.
func TestARestartForgetsNothing(t *testing.T) {
	cfg := settings(t)
	at := now()
	r := newRig(t, cfg)
	r.push(gauge("g", 1, at.Add(-time.Minute), nil))
	r.stop()
	r = newRig(t, cfg)
	r.push(gauge("g", 2, at, nil))
	assert.InDelta(t, 3, r.value("sum_over_time(g[2m])", at), 0)
	assert.Empty(t, r.logs.All(), "nothing to complain of")
}

func TestADirectoryBelongsToOneExporter(t *testing.T) {
	cfg := settings(t)
	newRig(t, cfg)
	other := settings(t, func(c *Config) { c.Directory = cfg.Directory })
	require.ErrorContains(t, create(t, other).Start(t.Context(), componenttest.NewNopHost()),
		"directory "+cfg.Directory+": another process, or another tsdb exporter, uses it: give each its own")
}

func TestAnEndpointThatIsTakenIsNamed(t *testing.T) {
	cfg := settings(t)
	newRig(t, cfg)
	other := settings(t, func(c *Config) { c.HTTP.NetAddr.Endpoint = cfg.HTTP.NetAddr.Endpoint })
	require.ErrorContains(t, create(t, other).Start(t.Context(), componenttest.NewNopHost()), "endpoint "+cfg.HTTP.NetAddr.Endpoint+": ")
}
