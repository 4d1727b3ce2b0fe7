// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// What users of other tools report, and what is right instead.

const ttftID = "llm:chat:ttft:p95"

// minuteOf is a minute of a delta histogram.
func minuteOf(minute int, bounds []float64, counts ...uint64) pmetric.Metrics {
	md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
	at := t0.Add(time.Duration(minute)*time.Minute + 30*time.Second)
	fillHistogram(points.AppendEmpty(), at.Add(-time.Minute), at, bounds, counts...)
	return md
}

// cumulativeOf is a point of a cumulative histogram.
func cumulativeOf(minute int, start time.Time, bounds []float64, counts ...uint64) pmetric.Metrics {
	md, points := histogramOf("vllm:time_to_first_token_seconds", cumulative)
	fillHistogram(points.AppendEmpty(), start, t0.Add(time.Duration(minute)*time.Minute), bounds, counts...)
	return md
}

// Report: https://github.com/slok/sloth/issues/241: an average of the ratios of 5 minutes understates errors.
func TestReport01UnevenTrafficIsWeightedByEvents(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	for minute := range 60 {
		counts := []uint64{0, 0, 1, 0, 0, 0, 0}
		if minute/5 == 6 { // one window has nearly all of the traffic, and half of it is slow
			counts = []uint64{0, 0, 500, 0, 0, 500, 0}
		}
		r.send(minuteOf(minute, ttftBounds, counts...))
	}
	r.wait(2 * time.Minute)
	share := 2500.0 / 5055 // an average of the windows would be 1/24
	assert.InDelta(t, share/0.05, r.result("slo.burn_rate", ttftID, "window", "1h"), 0.01)
	assert.InDelta(t, 1-share/0.05, r.result("slo.error_budget.remaining", ttftID), 0.01)
}

// Report: https://github.com/slok/sloth/issues/341: with a low objective, an alert on a burn rate can never fire.
func TestReport02ABurnRateThatCannotBeReachedIsRejected(t *testing.T) {
	docs := strings.Replace(strings.Replace(ttftDocs, "target: 0.95", "target: 0.5", 1), "budgetingMethod", `alertPolicies:
    - kind: AlertPolicy
      metadata: {name: fast}
      spec:
        alertWhenBreaching: true
        conditions:
          - {kind: AlertCondition, metadata: {name: fast}, spec: {severity: page, condition: {kind: burnrate, op: gte, threshold: 14.4, lookbackWindow: 1h, alertAfter: 0m}}}
        notificationTargets: [{kind: AlertNotificationTarget, metadata: {name: on-call}, spec: {target: pager}}]
  budgetingMethod`, 1)
	_, err := openslo.Parse(openslo.Source{Name: "slo.yaml", Data: []byte(docs)})
	require.ErrorContains(t, err, "a burn rate of 14.4 can never be reached: with the target 0.5 it is at most 2")

	// General burn rates are for whom they can reach.
	r := newRig(t, strings.Replace(ttftDocs, "target: 0.95", "target: 0.5", 1), func(c *Config) {
		c.BurnRates = []BurnRate{{Long: 10 * time.Minute, Short: 5 * time.Minute, Factor: 14.4, Severity: "page"}, {Long: 10 * time.Minute, Short: 5 * time.Minute, Factor: 1.5, Severity: "page"}}
	})
	for minute := range 12 {
		r.send(minuteOf(minute, ttftBounds, 0, 0, 0, 0, 0, 10, 0))
	}
	opened := 0
	for _, e := range r.events() {
		if e.name == burnOpened {
			opened++
		}
	}
	assert.Equal(t, 1, opened)
}

// Report: https://github.com/slok/sloth/issues/220: an SLI of several series is NaN.
func TestReport03SeveralSeriesAreGroupsOrOne(t *testing.T) {
	batch := func(minute int) pmetric.Metrics {
		md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
		at := t0.Add(time.Duration(minute) * time.Minute)
		for i, name := range []string{"qwen", "llama"} {
			p := points.AppendEmpty()
			p.Attributes().PutStr("model_name", name)
			fillHistogram(p, at.Add(-time.Minute), at, ttftBounds, 0, 0, 10, 0, 0, uint64(10*i), 0)
		}
		return md
	}
	grouped := newRig(t, strings.Replace(ttftDocs, "annotations: {", "annotations: {otelcol-llm.dev/group-by: model_name, ", 1), nil)
	whole := newRig(t, ttftDocs, nil)
	for minute := range 7 {
		grouped.send(batch(minute))
		whole.send(batch(minute))
	}
	assert.InDelta(t, 1, grouped.result("slo.state", ttftID, "model_name", "qwen", "state", "ok"), 0)
	assert.InDelta(t, 1, grouped.result("slo.state", ttftID, "model_name", "llama", "state", "violated"), 0)
	assert.Equal(t, [2]float64{140, 70}, whole.outcomes(ttftID))
	for id, v := range grouped.told() {
		assert.False(t, math.IsNaN(v), id)
	}
}

// Report: https://github.com/slok/sloth/issues/504, https://github.com/pyrra-dev/pyrra/issues/1440: long windows over 8,800
// series time out.
// Guarantees: what a minute costs has nothing to do with how long the window is: only what has changed is told, and the state of
// a series does not grow with its history.
func TestReport04LongWindowsOverManySeriesAreIncremental(t *testing.T) {
	docs := strings.Replace(ttftDocs, "annotations: {", "annotations: {otelcol-llm.dev/group-by: pod, ", 1)
	r := newRig(t, docs, func(c *Config) { c.RefreshInterval, c.BurnRates = 0, workbook() })
	md, points := gaugeOf("vllm:time_to_first_token_seconds")
	for i := range 8800 {
		addNumber(points, time.Time{}, t0, 0.1).Attributes().PutInt("pod", int64(i))
	}
	r.send(md)
	for minute := 1; minute <= 3; minute++ { // in the middle of a window
		r.metrics.Reset()
		one, points := gaugeOf("vllm:time_to_first_token_seconds")
		addNumber(points, time.Time{}, t0.Add(time.Duration(minute)*time.Minute), 0.1).Attributes().PutInt("pod", 7)
		r.send(one)
		if minute > 1 {
			assert.LessOrEqual(t, r.metrics.DataPointCount(), 20, "one of 8,800 series has news")
		}
	}

	size := func(days int) int {
		r := newRig(t, ttftDocs, func(c *Config) { c.BurnRates = workbook() })
		r.clock = t0.Add(366 * 24 * time.Hour)
		for minute := range days * 24 * 60 {
			md, points := gaugeOf("vllm:time_to_first_token_seconds")
			addNumber(points, time.Time{}, t0.Add(time.Duration(minute)*time.Minute), 0.1)
			r.consume(t.Context(), md)
		}
		parts := r.checkpoint()
		n := 0
		for _, part := range parts {
			n += len(part)
		}
		return n
	}
	four, eight := size(28), size(56)
	assert.InDelta(t, four, eight, 200)
	assert.Less(t, eight, 4<<10)
}

// Report: https://github.com/pyrra-dev/pyrra/issues/1502: le="1" and le="1.0" are two labels.
// Guarantees: boundaries are numbers. The text is parsed here by Prometheus's own parser; the Prometheus receiver makes a float64
// of each le, too, so both spellings are one OTLP boundary.
func TestReport05BoundariesAreComparedAsNumbers(t *testing.T) {
	scrape := func(minute int, le string, n int) pmetric.Metrics {
		text := fmt.Sprintf("# TYPE ttft histogram\nttft_bucket{le=\"0.8\"} %d\nttft_bucket{le=%q} %d\nttft_bucket{le=\"+Inf\"} %d\nttft_sum 0\nttft_count %d\n", n, le, n+1, n+1, n+1)
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text))
		require.NoError(t, err)
		h := families["ttft"].GetMetric()[0].GetHistogram()
		var bounds []float64
		var counts []uint64
		before := uint64(0)
		for _, b := range h.GetBucket() {
			if !math.IsInf(b.GetUpperBound(), 1) {
				bounds = append(bounds, b.GetUpperBound())
			}
			counts = append(counts, b.GetCumulativeCount()-before)
			before = b.GetCumulativeCount()
		}
		return cumulativeOf(minute, time.Time{}, bounds, counts...)
	}
	r := newRig(t, strings.Replace(ttftDocs, "value: 0.8", "value: 1.0", 1), nil)
	for minute, le := range []string{"1", "1.0", "1", "1.00"} {
		r.send(scrape(minute, le, 10*minute))
	}
	assert.Equal(t, map[string]int64{"baseline": 1}, r.refused(), "a new spelling is no new layout, and no reset")
	assert.Equal(t, [2]float64{30, 0}, r.outcomes(ttftID))
}

// Report: https://github.com/elastic/kibana/issues/181577, 197064: an empty slice was counted as good, then as bad.
func TestReport06NoDataIsAThirdState(t *testing.T) {
	slices := strings.Replace(strings.Replace(ttftDocs, "budgetingMethod: Occurrences", "budgetingMethod: Timeslices", 1), "target: 0.95", "target: 0.9, timeSliceTarget: 0.95, timeSliceWindow: 5m", 1)
	r := newRig(t, slices, nil)
	other := func(minute int) { // of another promise's source, so that time goes on
		md, points := gaugeOf("vllm:time_to_first_token_seconds")
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", "x")
		addNumber(points, time.Time{}, t0.Add(time.Duration(minute)*time.Minute), math.NaN())
		r.send(md)
	}
	for minute := range 5 {
		r.send(minuteOf(minute, ttftBounds, 0, 0, 10, 0, 0, 0, 0))
	}
	other(5)
	r.wait(time.Minute)
	assert.InDelta(t, 1, r.result("slo.state", ttftID, "state", "ok"), 0)
	r.wait(6 * time.Minute)
	for range 16 {
		r.wait(time.Second)
	}
	assert.InDelta(t, 1, r.result("slo.state", ttftID, "state", "no_data"), 0)
	assert.InDelta(t, 1, r.result("slo.error_budget.remaining", ttftID), 0, "one slice, and it was good")
	r.send(minuteOf(15, ttftBounds, 0, 0, 5, 0, 0, 5, 0))
	r.wait(8 * time.Minute)
	for range 16 {
		r.wait(time.Second)
	}
	assert.InDelta(t, 1-0.5/0.1, r.result("slo.error_budget.remaining", ttftID), 1e-9, "two slices, one of them bad; the empty ones are neither")
}

// Report: https://github.com/vllm-project/vllm/issues/55634, 31503: aborted requests are missing in the histograms.
func TestReport07AbortedRequestsAreReconciled(t *testing.T) {
	docs := strings.Replace(ttftDocs, "metric: vllm:time_to_first_token_seconds", `metric: "vllm:time_to_first_token_seconds", expected: "vllm:request_success_total"`, 1)
	core, logs := observer.New(zapcore.WarnLevel)
	r := newLoggedRig(t, newHost(t, docs), zap.New(core), nil)
	for minute := range 7 {
		r.send(minuteOf(minute, ttftBounds, 0, 0, 90, 0, 0, 0, 0))
		md, points := sumOf("vllm:request_success_total", deltas, true)
		at := t0.Add(time.Duration(minute)*time.Minute + 30*time.Second)
		for reason, n := range map[string]float64{"stop": 90, "abort": 10} {
			addNumber(points, at.Add(-time.Minute), at, n).Attributes().PutStr("finished_reason", reason)
		}
		r.send(md)
	}
	assert.InDelta(t, 1, r.result("slo.state", ttftID, "state", "at_risk"), 0, "the tenth that nobody measured may have been slow")
	assert.True(t, math.IsInf(r.result("slo.sli.bound", ttftID, "bound", "upper"), 1))
	assert.Equal(t, 1, logs.FilterMessageSnippet("not all events of an SLO were measured").Len())
}

// Report: https://github.com/vllm-project/vllm/issues/8115: 8,060 first tokens took 0.59 s together.
// Guarantees: a sum that the buckets cannot have is refused; where they agree with it, since both are wrong, the range of what
// there can be refuses it.
func TestReport08WhatCannotBeIsImplausible(t *testing.T) {
	point := func(counts ...uint64) pmetric.Metrics {
		md := minuteOf(1, []float64{0.001, 0.1, 1}, counts...)
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Histogram().DataPoints().At(0).SetSum(0.59)
		return md
	}
	ranged := strings.Replace(ttftDocs, "metric: vllm:time_to_first_token_seconds", `metric: "vllm:time_to_first_token_seconds", range: [0.001, 3600]`, 1)
	for _, docs := range []string{ttftDocs, ranged} {
		r := newRig(t, docs, nil)
		r.send(point(60, 8000, 0, 0))
		assert.Equal(t, map[string]int64{"implausible": 1}, r.refused())
	}
	r := newRig(t, ranged, nil)
	r.send(point(8060, 0, 0, 0))
	assert.Equal(t, map[string]int64{"implausible": 1}, r.refused())
}

// Report: https://github.com/vllm-project/vllm/issues/6337: all buckets have the same number, since all times were 0.
// Guarantees: the range of the spec refuses it. Without one it is taken: a queue in which nobody waits looks the same, and is fine.
func TestReport09ADegenerateHistogramIsRefusedByItsRange(t *testing.T) {
	point := func(minute int, n uint64, sum float64) pmetric.Metrics { // le="0.001" to le="+Inf" are 208 each
		md := cumulativeOf(minute, time.Time{}, []float64{0.001, 0.005, 0.01, 0.8}, n, 0, 0, 0, 0)
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Histogram().DataPoints().At(0).SetSum(sum)
		return md
	}
	ranged := strings.Replace(ttftDocs, "metric: vllm:time_to_first_token_seconds", `metric: "vllm:time_to_first_token_seconds", range: [0.001, 3600]`, 1)
	r := newRig(t, ranged, nil)
	r.send(point(0, 200, 0.0019))
	r.send(point(1, 208, 0.0020))
	assert.Equal(t, map[string]int64{"baseline": 1, "implausible": 1}, r.refused())
	r = newRig(t, ttftDocs, nil)
	r.send(point(0, 200, 0.0019))
	r.send(point(1, 208, 0.0020))
	assert.Equal(t, [2]float64{8, 0}, r.outcomes(ttftID))
}

// Report: https://github.com/vllm-project/vllm/issues/15167: a P99 that stands at the last finite boundary.
func TestReport10AnOpenEndIsToldAsAtLeast(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	for minute := range 16 {
		r.send(minuteOf(minute, ttftBounds, 0, 0, 50, 0, 0, 0, 50))
	}
	assert.InDelta(t, 2.5, r.result("slo.sli.bound", ttftID, "bound", "lower"), 0)
	assert.True(t, math.IsInf(r.result("slo.sli.bound", ttftID, "bound", "upper"), 1))
	require.Equal(t, []event{{violationOpened, 15}}, r.events())
	assert.Contains(t, r.lastRecord().Body().Str(), "was at least 2.5 seconds")
}

// Report: https://github.com/vllm-project/vllm/issues/47382, 52853: with speculative decoding, the inter-token latency is of chunks.
// Guarantees: it is never taken for a time per output token; that `slo explain` warns of an SLO on it is tested in cmd/slo.
func TestReport11InterTokenLatencyIsNoTimePerOutputToken(t *testing.T) {
	docs := strings.Replace(ttftDocs, "vllm:time_to_first_token_seconds", "vllm:request_time_per_output_token_seconds", 1)
	r := newRig(t, docs, nil)
	for _, name := range []string{"vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds", "vllm:request_time_per_output_token_seconds"} {
		md := minuteOf(0, ttftBounds, 0, 0, 10, 0, 0, 0, 0)
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetName(name)
		r.send(md)
	}
	assert.Equal(t, [2]float64{10, 0}, r.outcomes(ttftID))
}

// Report: https://github.com/prometheus/prometheus/issues/4264, 13020, 6897: buckets that are not monotone, spikes to the last
// boundary, empty histograms.
func TestReport12BrokenHistogramsAreWithheld(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	r.send(cumulativeOf(0, time.Time{}, ttftBounds, 0, 0, 100, 0, 0, 0, 0))
	// Of le="0.5" there are 110, and of le="0.8" 108: the difference, without a sign, is a huge number.
	r.send(cumulativeOf(1, time.Time{}, ttftBounds, 0, 0, 110, math.MaxUint64-1, 0, 0, 0))
	assert.Equal(t, map[string]int64{"baseline": 1, "bad_buckets": 1}, r.refused())
	r.send(cumulativeOf(2, time.Time{}, ttftBounds, 0, 0, 120, 0, 0, 0, 0))
	assert.Equal(t, [2]float64{20, 0}, r.outcomes(ttftID), "the next point tells of both minutes: no spike, and nothing lost")
	r.send(cumulativeOf(5, time.Time{}, ttftBounds, 0, 0, 120, 0, 0, 0, 0))
	for minute := 6; minute <= 11; minute++ { // empty: nothing was added
		r.send(cumulativeOf(minute, time.Time{}, ttftBounds, 0, 0, 120, 0, 0, 0, 0))
	}
	assert.InDelta(t, 1, r.result("slo.state", ttftID, "state", "no_data"), 0)
	for id, v := range r.told() {
		assert.False(t, math.IsNaN(v), id)
	}
}

// Report: https://github.com/prometheus/prometheus/issues/16578: a native histogram has counted a value that is not a number.
// Guarantees: it could have been anything, so it widens the bounds, and it is said; with cumulative points only once.
func TestReport13ValuesThatAreNotANumberAreUnknown(t *testing.T) {
	for _, temporality := range []pmetric.AggregationTemporality{deltas, cumulative} {
		core, logs := observer.New(zapcore.WarnLevel)
		r := newLoggedRig(t, newHost(t, ttftDocs), zap.New(core), nil)
		send := func(at time.Time, n, unknown uint64) {
			md := exponentialOf(temporality, t0.Add(-time.Hour), at, 1)
			p := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).ExponentialHistogram().DataPoints().At(0)
			if temporality == deltas {
				p.SetStartTimestamp(p.Timestamp() - 1e9)
			}
			p.Positive().BucketCounts().FromRaw([]uint64{n})
			p.SetCount(n + unknown)
			if unknown > 0 {
				p.SetSum(math.NaN())
			}
			r.send(md)
		}
		for minute := range 12 {
			at, m := t0.Add(time.Duration(minute)*time.Minute), uint64(minute)
			switch {
			case temporality == deltas && minute == 7:
				send(at, 100, 10)
			case temporality == deltas:
				send(at, 100, 0)
			case minute < 7:
				send(at, 100*(m+1), 0)
			default:
				send(at, 100*(m+1), 10)
				send(at, 100*(m+1), 0) // stale: it is not newer, and does not make the ten new again
			}
		}
		assert.InDelta(t, 1, r.result("slo.state", ttftID, "state", "ok"), 0)
		assert.Equal(t, 0.0, r.outcomes(ttftID)[1])
		assert.Equal(t, 1, logs.FilterMessageSnippet("some values of an SLO are not a number").Len())
		r.wait(10 * time.Minute)
		said := logs.FilterMessageSnippet("not all events of an SLO were measured").All()
		require.Len(t, said, 1, temporality)
		assert.EqualValues(t, 10, said[0].ContextMap()["unmeasured"])
	}
}

// Report: https://github.com/open-telemetry/opentelemetry-collector-contrib/issues/48278, 50828, 49869, 38582: resets.
func TestReport14AResetIsABaseline(t *testing.T) {
	f := func(name string, good float64, points ...pmetric.Metrics) {
		t.Helper()
		r := newRig(t, ttftDocs, nil)
		for _, md := range points {
			r.send(md)
		}
		assert.Equal(t, [2]float64{good, 0}, r.outcomes(ttftID), name)
		assert.Equal(t, int64(1), r.refused()["reset"], name)
	}
	begin := t0.Add(-time.Hour)
	f("by start", 20,
		cumulativeOf(0, begin, ttftBounds, 100, 0, 0, 0, 0, 0, 0), cumulativeOf(1, begin, ttftBounds, 110, 0, 0, 0, 0, 0, 0),
		cumulativeOf(2, t0.Add(90*time.Second), ttftBounds, 500, 0, 0, 0, 0, 0, 0), cumulativeOf(3, t0.Add(90*time.Second), ttftBounds, 510, 0, 0, 0, 0, 0, 0))
	f("by value", 20,
		cumulativeOf(0, time.Time{}, ttftBounds, 100, 0, 0, 0, 0, 0, 0), cumulativeOf(1, time.Time{}, ttftBounds, 110, 0, 0, 0, 0, 0, 0),
		cumulativeOf(2, time.Time{}, ttftBounds, 5, 0, 0, 0, 0, 0, 0), cumulativeOf(3, time.Time{}, ttftBounds, 15, 0, 0, 0, 0, 0, 0))
	f("of one bucket, though the count grows", 20,
		cumulativeOf(0, time.Time{}, ttftBounds, 100, 50, 0, 0, 0, 0, 0), cumulativeOf(1, time.Time{}, ttftBounds, 110, 50, 0, 0, 0, 0, 0),
		cumulativeOf(2, time.Time{}, ttftBounds, 300, 2, 0, 0, 0, 0, 0), cumulativeOf(3, time.Time{}, ttftBounds, 310, 2, 0, 0, 0, 0, 0))
}

// Report: https://github.com/GoogleCloudPlatform/monitoring-dashboard-samples/issues/1188: percent were summed over pods.
func TestReport15SharesOfPodsAreNotSummed(t *testing.T) {
	docs := strings.NewReplacer("vllm:time_to_first_token_seconds", "vllm:kv_cache_usage_perc", "value: 0.8", "value: 0.9", "annotations: {", "annotations: {otelcol-llm.dev/unit: ratio, otelcol-llm.dev/class: saturation, ").Replace(ttftDocs)
	for _, sum := range []bool{false, true} { // some exporters send it as a sum that may fall
		r := newRig(t, docs, nil)
		for minute := range 7 {
			for pod, v := range []float64{0.6, 0.7, 0.5} {
				md, points := gaugeOf("vllm:kv_cache_usage_perc")
				if sum {
					md, points = sumOf("vllm:kv_cache_usage_perc", cumulative, false)
				}
				md.ResourceMetrics().At(0).Resource().Attributes().PutInt("pod", int64(pod))
				addNumber(points, time.Time{}, t0.Add(time.Duration(minute)*time.Minute), v)
				r.send(md)
			}
		}
		assert.InDelta(t, 1, r.result("slo.state", ttftID, "state", "ok"), 0)
		assert.LessOrEqual(t, r.result("slo.sli.value", ttftID), 0.71, "within the resolution")
		assert.Equal(t, [2]float64{21, 0}, r.outcomes(ttftID))
	}
}

// Report: https://github.com/slok/sloth/issues/428, 526: low traffic, and none.
// Guarantees: a window with fewer events than min-events is without data; they count in the budget all the same.
func TestReport16LowTrafficHasAMeaning(t *testing.T) {
	docs := strings.Replace(ttftDocs, "annotations: {", `annotations: {otelcol-llm.dev/min-events: "20", `, 1)
	r := newRig(t, docs, nil)
	for minute := range 20 {
		r.send(minuteOf(minute, ttftBounds, 0, 0, 0, 0, 0, 3, 0)) // 15 a window, all of them slow
	}
	r.wait(2 * time.Minute)
	for range 15 {
		r.wait(time.Second)
	}
	assert.InDelta(t, 1, r.result("slo.state", ttftID, "state", "no_data"), 0)
	assert.Empty(t, r.events())
	assert.Equal(t, [2]float64{0, 60}, r.outcomes(ttftID))
	assert.InDelta(t, 1-1/0.05, r.result("slo.error_budget.remaining", ttftID), 1e-6)
}
