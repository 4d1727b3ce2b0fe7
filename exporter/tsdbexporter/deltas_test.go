// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Guarantees: deltas are added up, for all three shapes that can be deltas, and the batch stays as it was.
func TestDeltasAreAddedUp(t *testing.T) {
	r := newRig(t, settings(t))
	end := now()
	for i := range 5 {
		start := end.Add(time.Duration(i-5) * 10 * time.Second)
		at := start.Add(10 * time.Second)
		md := sum("tokens", "{token}", 100, start, at, pmetric.AggregationTemporalityDelta)
		ms := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
		m := ms.AppendEmpty()
		m.SetName("explicit")
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		e := m.Histogram().DataPoints().AppendEmpty()
		e.SetStartTimestamp(stamp(start))
		e.SetTimestamp(stamp(at))
		e.ExplicitBounds().FromRaw([]float64{1})
		e.BucketCounts().FromRaw([]uint64{1, 2})
		e.SetCount(3)
		e.SetSum(5)
		m = ms.AppendEmpty()
		m.SetName("exponential")
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		x := m.ExponentialHistogram().DataPoints().AppendEmpty()
		x.SetStartTimestamp(stamp(start))
		x.SetTimestamp(stamp(at))
		x.Positive().BucketCounts().FromRaw([]uint64{7})
		x.SetCount(7)
		x.SetSum(10)
		r.push(md)
	}
	assert.InDelta(t, 500, r.value("tokens_total", end), 0)
	assert.InDelta(t, 10, r.value("rate(tokens_total[30s])", end), 1e-9)
	assert.InDelta(t, 5, r.value(`explicit_bucket{le="1"}`, end), 0)
	assert.InDelta(t, 35, r.value("histogram_count(exponential)", end), 0)
	assert.Equal(t, map[string]float64{"": 3}, r.counted("otelcol_deltatocumulative_streams_tracked"))
}

// Scenario: a sender sends a batch again, of which it does not know that it was taken. Guarantees: nothing is added twice.
func TestDeltasThatComeTwiceAreAddedOnce(t *testing.T) {
	r := newRig(t, settings(t))
	end := now()
	for _, at := range []time.Time{end.Add(-10 * time.Second), end.Add(-10 * time.Second), end} {
		r.push(sum("tokens", "", 100, at.Add(-10*time.Second), at, pmetric.AggregationTemporalityDelta))
	}
	assert.InDelta(t, 200, r.value("tokens_total", end), 0)
}

// Scenario: of the deltas of a series one is of tomorrow, and one older than the retention. Guarantees: those are refused and counted, are in
// no sum, and end nothing: all others are added up.
func TestADeltaOfAnotherTimeEndsNoSeries(t *testing.T) {
	r := newRig(t, settings(t))
	end := now()
	add := func(value float64, at time.Time) {
		r.push(sum("tokens", "", value, at.Add(-time.Second), at, pmetric.AggregationTemporalityDelta))
	}
	add(1000, end.Add(-16*24*time.Hour))
	add(1, end.Add(-2*time.Second))
	add(1000, end.Add(24*time.Hour))
	add(2, end.Add(-time.Second))
	add(4, end)
	assert.InDelta(t, 7, r.value("tokens_total", end), 0)
	assert.Equal(t, map[string]float64{"reason=out_of_bounds": 1, "reason=in_future": 1}, r.counted("otelcol_tsdb_samples_refused"))
}

// Guarantees: sums that begin anew with the Collector are a reset of a counter, so that nothing is missing in what they increase by.
func TestDeltasGoOnAfterARestart(t *testing.T) {
	cfg := settings(t)
	end := now()
	r := newRig(t, cfg)
	for i := range 6 {
		if i == 3 {
			r.stop()
			r = newRig(t, cfg)
		}
		at := end.Add(time.Duration(i-5) * 10 * time.Second)
		r.push(sum("tokens", "", 100, at.Add(-10*time.Second), at, pmetric.AggregationTemporalityDelta))
	}
	assert.InDelta(t, 1, r.value("resets(tokens_total[1m])", end), 0)
	assert.InDelta(t, 500, r.value("tokens_total - tokens_total offset 50s + 300", end), 0, "600 by now, of which 100 were there 50 s ago")
	assert.InDelta(t, 10, r.value("rate(tokens_total[50s])", end), 1)
}

// Scenario: there is room for one series of deltas. Guarantees: the second is refused and counted; cumulative data passes.
func TestDeltaSeriesAreBounded(t *testing.T) {
	r := newRig(t, settings(t, func(c *Config) { c.MaxDeltaSeries = 1 }))
	at := now()
	r.push(sum("a", "", 1, at.Add(-time.Second), at, pmetric.AggregationTemporalityDelta))
	md := sum("b", "", 1, at.Add(-time.Second), at, pmetric.AggregationTemporalityDelta)
	addGauge(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics(), "c", 1, at, nil)
	r.push(md)
	names := slices.Sorted(maps.Keys(r.ask(`count by (__name__) ({__name__=~"a_total|b_total|c"})`, at)))
	assert.Equal(t, []string{"a_total", "c"}, names)
	assert.InDelta(t, 1, r.counted("otelcol_deltatocumulative_datapoints")["error=limit"], 0)
}
