// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

var (
	gauge        = &Metric{Name: "g", Description: "a gauge", Unit: "s", Kind: Gauge, Default: true}
	counter      = &Metric{Name: "c", Unit: "{event}", Kind: Counter, Default: true, Attributes: []string{"`outcome` = good, bad"}}
	state        = &Metric{Name: "s", Kind: StateSet, Default: true, States: []string{"ok", "violated"}}
	histogram    = &Metric{Name: "h", Kind: Histogram, Default: true}
	exponential  = &Metric{Name: "e", Kind: ExponentialHistogram}
	distribution = &Metric{Name: "d", Kind: Distribution}
	table        = []*Metric{gauge, counter, state, histogram, exponential, distribution}
)

// settings reads what stands behind the key metrics.
func settings(t testing.TB, raw map[string]any) Settings {
	var s struct {
		Metrics Settings `mapstructure:"metrics"`
	}
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"metrics": raw}).Unmarshal(&s))
	return s.Metrics
}

var (
	on  = map[string]any{"enabled": true}
	off = map[string]any{"enabled": false}
)

func plain(b *Batch) Series {
	return b.Resource("", func(pcommon.Map) {}).Series(func(pcommon.Map) {})
}

func TestPointsOfOneMetricStandTogether(t *testing.T) {
	b := NewBatch("scope", Enabled{})
	for _, tenant := range []string{"a", "b", "a"} {
		to := b.Resource(tenant, func(m pcommon.Map) { m.PutStr("tenant", tenant) }).Series(func(m pcommon.Map) { m.PutStr("k", "v") })
		to.Gauge(gauge, 5, 0.5)
		to.Counter(counter, 1, 5, 7, "outcome", "good")
		to.StateSet(state, 5, 1)
	}
	assert.Equal(t, 12, b.Points())
	md := b.Metrics()
	assert.Equal(t, 2, md.ResourceMetrics().Len())
	assert.Equal(t, map[string]any{"tenant": "b"}, md.ResourceMetrics().At(1).Resource().Attributes().AsRaw())
	assert.Equal(t, 12, md.DataPointCount())
	sm := md.ResourceMetrics().At(0).ScopeMetrics().At(0)
	assert.Equal(t, "scope", sm.Scope().Name())
	assert.Equal(t, 3, sm.Metrics().Len())

	assert.Equal(t, 2, sm.Metrics().At(0).Gauge().DataPoints().Len())
	assert.Equal(t, map[string]any{"k": "v"}, sm.Metrics().At(0).Gauge().DataPoints().At(0).Attributes().AsRaw())
	sum := sm.Metrics().At(1).Sum()
	assert.True(t, sum.IsMonotonic())
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, sum.AggregationTemporality())
	assert.Equal(t, pcommon.Timestamp(1), sum.DataPoints().At(0).StartTimestamp())
	assert.Equal(t, map[string]any{"k": "v", "outcome": "good"}, sum.DataPoints().At(0).Attributes().AsRaw())

	states := sm.Metrics().At(2).Gauge().DataPoints()
	assert.Equal(t, 4, states.Len())
	assert.Equal(t, int64(0), states.At(0).IntValue())
	assert.Equal(t, int64(1), states.At(1).IntValue())
	assert.Equal(t, map[string]any{"k": "v", "state": "violated"}, states.At(1).Attributes().AsRaw())
}

func TestStalePointsHaveNoValue(t *testing.T) {
	b := NewBatch("scope", settings(t, map[string]any{"d": on}).Enabled(table))
	to := plain(b)
	to.Stale(counter, 5, "k", "v")
	to.Stale(state, 5)
	to.Stale(histogram, 5)
	to.Stale(distribution, 5)
	assert.Equal(t, 3, b.Points(), "of a delta there is nothing to end")
	metrics := b.Metrics().ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	p := metrics.At(0).Sum().DataPoints().At(0)
	assert.True(t, p.Flags().NoRecordedValue())
	assert.Equal(t, pmetric.NumberDataPointValueTypeEmpty, p.ValueType())
	assert.Equal(t, map[string]any{"k": "v"}, p.Attributes().AsRaw())
	assert.Equal(t, map[string]any{"state": "ok"}, metrics.At(1).Gauge().DataPoints().At(0).Attributes().AsRaw())
	assert.Equal(t, map[string]any{"state": "violated"}, metrics.At(2).Gauge().DataPoints().At(0).Attributes().AsRaw())
}

// Scenario: series of a metric end, go on and begin in one batch.
// Guarantees: no point stands behind one that ends a series, in the same pmetric.Metric, where the Prometheus exporter does not
// see it; and the order is kept, so that a series that has begun again is not taken for ended.
func TestNothingStandsBehindAnEnd(t *testing.T) {
	b := NewBatch("scope", Enabled{})
	to := plain(b)
	to.Counter(counter, 1, 5, 7, "k", "lives")
	to.Stale(counter, 5, "k", "gone")
	to.Stale(counter, 5, "k", "back")
	to.Counter(counter, 1, 6, 8, "k", "back")
	to.Counter(counter, 1, 6, 8, "k", "lives")
	to.Stale(state, 6)
	to.StateSet(state, 7, 0)
	assert.Equal(t, 9, b.Points())
	require.Equal(t, 1, b.Metrics().ResourceMetrics().Len())
	var got []string
	for _, m := range b.Metrics().ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		line := m.Name()
		points := pmetric.NumberDataPointSlice{}
		if m.Type() == pmetric.MetricTypeSum {
			points = m.Sum().DataPoints()
		} else {
			points = m.Gauge().DataPoints()
		}
		for i, p := range points.All() {
			for _, v := range p.Attributes().All() {
				line += " " + v.Str()
			}
			if p.Flags().NoRecordedValue() {
				line += "†"
				assert.Equal(t, points.Len()-1, i, line)
			}
		}
		got = append(got, line)
	}
	assert.Equal(t, []string{"c lives gone†", "c back†", "c back lives", "s ok†", "s violated†", "s ok violated"}, got)
}

func TestDistributionsAreDelta(t *testing.T) {
	b := NewBatch("scope", settings(t, map[string]any{"d": on}).Enabled(table))
	to := plain(b)
	to.Histogram(distribution, 1, 5, []float64{0.5, 1}, []uint64{3, 2, 1}, 4.5, "k", "v")
	e := &sketch.Exponential{Scale: 3, ZeroThreshold: 1e-9, ZeroCount: 4, Positive: sketch.Buckets{Offset: -2, Counts: []uint64{1, 0, 2}},
		Negative: sketch.Buckets{Offset: 5, Counts: []uint64{6}}}
	to.Exponential(distribution, 1, 5, e, math.NaN(), "k", "v")
	to.Histogram(distribution, 1, 5, nil, []uint64{7}, math.NaN())
	metrics := b.Metrics().ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	require.Equal(t, 2, metrics.Len(), "one a shape")

	explicit := metrics.At(0).Histogram()
	assert.Equal(t, pmetric.AggregationTemporalityDelta, explicit.AggregationTemporality())
	require.Equal(t, 2, explicit.DataPoints().Len())
	p := explicit.DataPoints().At(0)
	assert.Equal(t, []float64{0.5, 1}, p.ExplicitBounds().AsRaw())
	assert.Equal(t, []uint64{3, 2, 1}, p.BucketCounts().AsRaw())
	assert.Equal(t, uint64(6), p.Count())
	assert.InDelta(t, 4.5, p.Sum(), 0)
	assert.Equal(t, [2]pcommon.Timestamp{1, 5}, [2]pcommon.Timestamp{p.StartTimestamp(), p.Timestamp()})
	assert.Equal(t, map[string]any{"k": "v"}, p.Attributes().AsRaw())
	assert.False(t, explicit.DataPoints().At(1).HasSum())

	assert.Equal(t, "d", metrics.At(1).Name())
	assert.Equal(t, pmetric.AggregationTemporalityDelta, metrics.At(1).ExponentialHistogram().AggregationTemporality())
	x := metrics.At(1).ExponentialHistogram().DataPoints().At(0)
	assert.Equal(t, int32(3), x.Scale())
	assert.Equal(t, uint64(13), x.Count())
	assert.Equal(t, uint64(4), x.ZeroCount())
	assert.InDelta(t, 1e-9, x.ZeroThreshold(), 0)
	assert.Equal(t, int32(-2), x.Positive().Offset())
	assert.Equal(t, []uint64{1, 0, 2}, x.Positive().BucketCounts().AsRaw())
	assert.Equal(t, int32(5), x.Negative().Offset())
	assert.Equal(t, []uint64{6}, x.Negative().BucketCounts().AsRaw())
	assert.False(t, x.HasSum())
	assert.Equal(t, [2]pcommon.Timestamp{1, 5}, [2]pcommon.Timestamp{x.StartTimestamp(), x.Timestamp()})
}

func TestAPointShowsTheRequestBehindIt(t *testing.T) {
	b := NewBatch("scope", Enabled{})
	plain(b).Counter(counter, 1, 5, 7).Exemplar(Exemplar{TraceID: [16]byte{1}, SpanID: [8]byte{2}, Value: 0.9, Time: 4})
	plain(b).Histogram(exponential, 1, 5, nil, []uint64{7}, 0).Exemplar(Exemplar{Value: 1}) // off
	all := b.Metrics().ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).Exemplars()
	require.Equal(t, 1, all.Len())
	assert.Equal(t, pcommon.TraceID{1}, all.At(0).TraceID())
	assert.Equal(t, pcommon.SpanID{2}, all.At(0).SpanID())
	assert.InDelta(t, 0.9, all.At(0).DoubleValue(), 0)
	assert.Equal(t, pcommon.Timestamp(4), all.At(0).Timestamp())
}

func TestWhatOpensIsAnErrorAndWhatClosesIsInformation(t *testing.T) {
	f := func(opened bool, severity plog.SeverityNumber, text string) {
		t.Helper()
		r := plog.NewLogRecord()
		Event(r, "slo.violation.x", opened, 5, "why")
		assert.Equal(t, "slo.violation.x", r.EventName())
		assert.Equal(t, pcommon.Timestamp(5), r.Timestamp())
		assert.Equal(t, "why", r.Body().Str())
		assert.Equal(t, severity, r.SeverityNumber())
		assert.Equal(t, text, r.SeverityText())
	}
	f(true, plog.SeverityNumberError, "ERROR")
	f(false, plog.SeverityNumberInfo, "INFO")
}

func TestOnlyWhatIsOnIsWritten(t *testing.T) {
	f := func(raw map[string]any, want ...string) {
		t.Helper()
		s := settings(t, raw)
		require.NoError(t, s.Check(table))
		b := NewBatch("scope", s.Enabled(table))
		to := plain(b)
		to.Gauge(gauge, 1, 1)
		to.Counter(counter, 1, 1, 1)
		to.StateSet(state, 1, 0)
		to.Histogram(histogram, 1, 1, nil, []uint64{1}, 1)
		to.Exponential(exponential, 1, 1, &sketch.Exponential{}, 1)
		to.Stale(gauge, 1)
		to.Stale(state, 1)
		var got []string
		for _, rm := range b.Metrics().ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if !slices.Contains(got, m.Name()) {
					got = append(got, m.Name())
				}
			}
		}
		assert.Equal(t, want, got)
		assert.Equal(t, b.Metrics().DataPointCount(), b.Points())
		assert.Equal(t, len(want) == 0, b.Metrics().ResourceMetrics().Len() == 0, "nothing empty is sent")
	}
	f(nil, "g", "c", "s", "h")
	f(map[string]any{"e": on, "g": off, "c": on}, "c", "s", "h", "e")
	f(map[string]any{"s": off, "g": off, "c": off, "h": off})
}

func TestSettingsThatMeanNothingAreRefused(t *testing.T) {
	names := []*Metric{{Name: "slo.sli.value"}, {Name: "slo.sli.events"}, {Name: "slo.state"}}
	f := func(want string, raw map[string]any) {
		t.Helper()
		assert.EqualError(t, settings(t, raw).Check(names), want)
	}
	f(`metrics: unknown metric "slo.sli.vale": did you mean slo.sli.value?`, map[string]any{"slo.sli.vale": on})
	f(`metrics: unknown metric "slo.sli.vlaue": did you mean slo.sli.value?`, map[string]any{"slo.sli.vlaue": on})
	f(`metrics: unknown metric "slo_sli_events_total": did you mean slo.sli.events?`, map[string]any{"slo_sli_events_total": on})
	f(`metrics: unknown metric "SLO.State": did you mean slo.state?`, map[string]any{"SLO.State": on})
	f(`metrics: unknown metric "burn": write one of slo.sli.value, slo.sli.events, slo.state`, map[string]any{"burn": on})
	f("metrics: unknown metric \"a\": write one of slo.sli.value, slo.sli.events, slo.state\n"+
		"metrics::slo.state: says nothing: write enabled: true or enabled: false", map[string]any{"slo.state": map[string]any{}, "a": on})
}

func TestDocument(t *testing.T) {
	assert.Equal(t, "# title\n\nGenerated from the table in the code; do not edit.\n\n"+
		"| metric | kind | unit | attributes | default | meaning |\n|---|---|---|---|---|---|\n"+
		"| `g` | gauge | s |  | on | a gauge |\n| `c` | counter | {event} | `outcome` = good, bad | on |  |\n"+
		"| `s` | state set |  | `state` = ok, violated | on |  |\n| `h` | histogram, delta |  |  | on |  |\n"+
		"| `e` | exponential histogram, delta |  |  | off |  |\n"+
		"| `d` | histogram or exponential histogram, delta |  |  | off |  |\n", Document("title", table))
}

// BenchmarkSeries is what the results of a thousand groups cost: 18 points each with seven labels.
func BenchmarkSeries(b *testing.B) {
	states := &Metric{Name: "state", Kind: StateSet, Default: true, States: []string{"ok", "at_risk", "violated", "no_data"}}
	var gauges []*Metric
	for i := range 12 {
		gauges = append(gauges, &Metric{Name: fmt.Sprint("g", i), Kind: Gauge, Default: true})
	}
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = fmt.Sprintf("llm:chat-%d:ttft:p95", i)
	}
	for _, c := range []struct {
		name    string
		enabled bool
	}{{"on", true}, {"off", false}} {
		b.Run(c.name, func(b *testing.B) {
			for _, m := range append(gauges, states, counter) {
				m.Default = c.enabled
			}
			defer func() { counter.Default = true }()
			b.ReportAllocs()
			for b.Loop() {
				batch := NewBatch("scope", Enabled{})
				for _, id := range ids {
					to := batch.Resource("", func(pcommon.Map) {}).Series(func(m pcommon.Map) {
						m.EnsureCapacity(8)
						m.PutStr("slo_id", id)
						m.PutStr("service", "chat")
						m.PutStr("slo_class", "latency")
						m.PutStr("target", "0.8000")
						m.PutStr("unit", "seconds")
						m.PutStr("tenant", "team-a")
						m.PutStr("cloud.region", "eu")
					})
					for _, m := range gauges {
						to.Gauge(m, 5, 0.5)
					}
					to.StateSet(states, 5, 1)
					to.Counter(counter, 1, 5, 7, "outcome", "good")
					to.Counter(counter, 1, 5, 7, "outcome", "bad")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*18*len(ids)), "ns/point")
		})
	}
}
