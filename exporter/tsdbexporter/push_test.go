// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Guarantees: each sample that is refused is counted with its reason, keeps no other out, and is not sent again.
func TestWhatIsRefusedIsCountedAndLosesNothingElse(t *testing.T) {
	r := newRig(t, settings(t))
	at := now()
	r.push(gauge("g", 1, at, nil))
	md, ms := batch(resource)
	addGauge(ms, "g", 2, at, nil)                       // another value at the same time
	addGauge(ms, "g", 3, at.Add(-2*time.Hour), nil)     // beyond the out-of-order window
	addGauge(ms, "g", 4, at.Add(-30*time.Minute), nil)  // within
	addGauge(ms, "g", 5, at.Add(-16*24*time.Hour), nil) // beyond the retention
	addGauge(ms, "g", 6, at.Add(11*time.Minute), nil)   // not yet
	addGauge(ms, "g", 7, time.Unix(0, 0), nil)          // no time at all
	addGauge(ms, "g", 8, at.Add(time.Second), nil)      // and this is right
	r.push(md)
	got := r.counted("otelcol_tsdb_samples_refused")
	// Besides, target_info has a sample for the earliest time in the batch, and one every 150 s up to the latest.
	got["reason=too_old"] -= 24
	assert.Equal(t, map[string]float64{"reason=duplicate": 1, "reason=too_old": 1, "reason=out_of_bounds": 2, "reason=in_future": 1}, got)
	value, _, err := r.Query(t.Context(), "g[1h]", at.Add(time.Second))
	require.NoError(t, err)
	require.Len(t, value, 1)
	var values []float64
	for _, v := range value.(model.Matrix)[0].Values {
		values = append(values, float64(v.Value))
	}
	assert.Equal(t, []float64{4, 1, 8}, values)
	assert.Equal(t, 1, r.logs.FilterMessageSnippet("samples are refused").Len(), "the log tells of the first")
}

// Guarantees: the log names a point that was refused for its time, as it came.
func TestAPointOfAnotherTimeIsNamed(t *testing.T) {
	r := newRig(t, settings(t))
	at := now().Add(time.Hour)
	r.push(gauge("gpu.temperature", 1, at, map[string]any{"hw.id": "gpu-1"}))
	logged := r.logs.FilterMessageSnippet("samples are refused").All()
	require.Len(t, logged, 1)
	fields := logged[0].ContextMap()
	assert.Equal(t, "gpu.temperature{hw.id=\"gpu-1\"}", fields["example"])
	assert.Equal(t, at.UTC(), fields["time"].(time.Time).UTC())
	assert.Equal(t, "more than 10 minutes ahead of the clock", fields["error"])
}

// Scenario: one request has two values of a series at one time: of a gauge, of one that comes late, of an exponential histogram, and of
// gauges whose keys are told apart by nothing that a label can have; others it has twice alike.
// Guarantees: the first stays, the other is counted with its reason, and what is alike is nobody's fault.
func TestTwoValuesAtOneTimeInOneRequestAreToldApart(t *testing.T) {
	r := newRig(t, settings(t))
	at := now()
	r.push(gauge("late", 1, at, nil))
	md, ms := batch(resource)
	addGauge(ms, "g", 1, at, nil)
	addGauge(ms, "g", 2, at, nil)
	addGauge(ms, "g", 1, at, nil)
	addGauge(ms, "late", 1, at.Add(-time.Minute), nil)
	addGauge(ms, "late", 2, at.Add(-time.Minute), nil)
	addGauge(ms, "keys", 1, at, map[string]any{"größe": "x"})
	addGauge(ms, "keys", 2, at, map[string]any{"gräße": "x"})
	addGauge(ms, "x", 1, at, nil)
	for _, count := range []uint64{3, 3, 4} {
		m := ms.AppendEmpty()
		m.SetName("x.native")
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := m.ExponentialHistogram().DataPoints().AppendEmpty()
		p.SetTimestamp(stamp(at))
		p.SetCount(count)
		p.SetZeroCount(count)
	}
	r.push(md)
	assert.Equal(t, map[string]float64{"reason=duplicate": 4}, r.counted("otelcol_tsdb_samples_refused"))
	assert.InDelta(t, 1, r.value("g", at), 0)
	assert.InDelta(t, 1, r.value("late", at.Add(-time.Minute)), 0)
	assert.InDelta(t, 1, r.value("keys", at), 0)
	assert.InDelta(t, 3, r.value("histogram_count(x_native)", at), 0)

	r.push(gauge("g", 3, at.Add(time.Second), nil))
	assert.InDelta(t, 3, r.value("g", at.Add(time.Second)), 0, "the next request begins anew")
}

// Guarantees: keys of one point that become one label are that label, with all their values, in the order of the keys, as
// OpenTelemetry's specification has it: none is lost, and none decides alone.
func TestKeysThatBecomeOneLabelAreJoined(t *testing.T) {
	r := newRig(t, settings(t))
	at := now()
	r.push(gauge("g", 1, at, map[string]any{"größe": "b", "gräße": "a", "gr.-e": "0", "other": "o"}))
	assert.Equal(t, map[string]string{`{gr__e="0;a;b", other="o"}`: "1"}, r.ask("sum by (gr__e, other) (g)", at))
	assert.Empty(t, r.counted("otelcol_tsdb_points_unreadable"))
}

// Scenario: one point of a batch is of 1970, and one of 2200. Guarantees: the translator does not fill the time between.
func TestATimeThatIsWrongCostsNothing(t *testing.T) {
	r := newRig(t, settings(t))
	md, ms := batch(resource)
	addGauge(ms, "g", 1, time.Unix(0, 0), nil)
	addGauge(ms, "g", 2, time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), nil)
	addGauge(ms, "g", 3, now(), nil)
	r.push(md)
	assert.Equal(t, map[string]float64{"": 2}, r.counted("otelcol_tsdb_samples_appended"), "one of g, one of target_info")
}

// Scenario: of the points of one metric, one has a key that no label can have, one an exemplar without a value.
// Guarantees: only those two are lost.
func TestAPointThatCannotBeReadLosesNothingElse(t *testing.T) {
	r := newRig(t, settings(t))
	at := now()
	md := sum("requests", "", 1, at.Add(-time.Minute), at, pmetric.AggregationTemporalityCumulative)
	points := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints()
	for i := range 4 {
		p := points.AppendEmpty()
		points.At(0).CopyTo(p)
		p.Attributes().PutInt("n", int64(i))
	}
	points.At(1).Attributes().PutStr("", "no key")
	points.At(2).Exemplars().AppendEmpty()
	x := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
	x.SetName("scaled")
	x.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for _, scale := range []int32{-9, 2} {
		p := x.ExponentialHistogram().DataPoints().AppendEmpty()
		p.SetScale(scale)
		p.SetTimestamp(stamp(at))
		p.Attributes().PutInt("scale", int64(scale))
	}
	r.push(md)
	assert.Equal(t, map[string]string{`{n="2"}`: "1", `{n="3"}`: "1", "{}": "1"}, r.ask("sum by (n) (requests_total)", at))
	assert.Len(t, r.ask("scaled", at), 1)
	assert.Equal(t, map[string]float64{"": 3}, r.counted("otelcol_tsdb_points_unreadable"))
}

// Scenario: a label is longer than any label can be, at which the translator panics: of a point, of a metric with others, of a resource.
// Guarantees: only what has it is lost, and counted; what comes after it is taken, and the exporter ends.
func TestALabelThatNoLabelCanBeKeepsNobodyWaiting(t *testing.T) {
	r := newRig(t, settings(t))
	at := now()
	long := strings.Repeat("x", 17<<20)
	md, ms := batch(resource)
	addGauge(ms, "g", 1, at, map[string]any{"n": 1})
	addGauge(ms, "g", 2, at, map[string]any{"n": long})
	addGauge(ms, "g", 3, at, map[string]any{"n": 3})
	r.push(md)
	assert.Equal(t, map[string]string{`{n="1"}`: "1", `{n="3"}`: "3"}, r.ask("sum by (n) (g)", at))
	assert.Equal(t, map[string]float64{"": 1}, r.counted("otelcol_tsdb_points_unreadable"))

	md, ms = batch(map[string]any{"service.name": long})
	addGauge(ms, "lost", 1, at, nil)
	r.push(md)
	md, ms = batch(resource)
	addGauge(ms, "after", 1, at, nil)
	r.push(md)
	assert.Len(t, r.ask("after", at), 1)
	assert.Empty(t, r.ask("lost", at))
}

// Guarantees: with no room left, new series are refused and counted, and those that there are go on. A lower limit at the next
// start costs nothing that is there.
func TestSeriesAreBounded(t *testing.T) {
	cfg := settings(t, func(c *Config) { c.MaxSeries = 3 })
	r := newRig(t, cfg)
	at := now()
	for i := range 5 {
		md, ms := batch(map[string]any{"service.name": "chat"})
		addGauge(ms, "g", 1, at.Add(-time.Minute), map[string]any{"i": i})
		r.push(md)
	}
	assert.Len(t, r.ask("g", at), 3)
	assert.Equal(t, map[string]float64{"reason=series_limit": 2}, r.counted("otelcol_tsdb_samples_refused"))
	assert.Equal(t, map[string]float64{"": 3}, r.counted("otelcol_tsdb_series"))
	r.stop()

	lower := *cfg
	lower.MaxSeries = 1
	r = newRig(t, &lower)
	assert.Len(t, r.ask("g", at), 3)
	md, ms := batch(map[string]any{"service.name": "chat"})
	addGauge(ms, "g", 2, at, map[string]any{"i": 0})
	r.push(md)
	assert.InDelta(t, 2, r.value(`g{i="0"}`, at), 0)
}
