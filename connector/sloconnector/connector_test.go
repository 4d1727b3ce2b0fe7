// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/lifecycletest"
)

const (
	deltas     = pmetric.AggregationTemporalityDelta
	cumulative = pmetric.AggregationTemporalityCumulative
)

// ttftDocs promises a P95 of 800 ms, judged in windows of 5 minutes, three in a row.
const ttftDocs = `
apiVersion: openslo/v1
kind: SLO
metadata:
  name: chat-ttft
  annotations: {otelcol-llm.dev/slo-id: "llm:chat:ttft:p95"}
spec:
  service: chat
  indicator:
    metadata: {name: ttft}
    spec:
      thresholdMetric:
        metricSource: {type: opentelemetry, spec: {metric: vllm:time_to_first_token_seconds}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 0.8, target: 0.95}]
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: chat-ttft-3x5m}
spec: {window: 5m, consecutiveWindows: 3, when: {all: [{slo: chat-ttft}]}}
`

const ratioDocs = `
apiVersion: openslo/v1
kind: SLO
metadata: {name: success}
spec:
  service: chat
  indicator:
    metadata: {name: success}
    spec:
      ratioMetric:
        counter: true
        %s
        total: {metricSource: {type: opentelemetry, spec: {metric: requests}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.9}]
`

// hour makes an hour of minutes of 100 requests; those of the given 5-minute windows (from 1) are slow by a tenth.
func hour(slow ...int) []pmetric.Metrics {
	var all []pmetric.Metrics
	for minute := range 60 {
		md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
		counts := []uint64{0, 0, 100, 0, 0, 0, 0}
		for _, w := range slow {
			if minute/5+1 == w {
				counts = []uint64{0, 0, 90, 0, 0, 10, 0}
			}
		}
		at := t0.Add(time.Duration(minute)*time.Minute + 30*time.Second)
		fillHistogram(points.AppendEmpty(), at.Add(-time.Minute), at, ttftBounds, counts...)
		all = append(all, md)
	}
	return all
}

// story sends the hours one batch at a time and lets the input end.
func story(t *testing.T, batches []pmetric.Metrics) *rig {
	t.Helper()
	r := newRig(t, ttftDocs, nil)
	for _, md := range batches {
		r.send(md)
	}
	r.wait(time.Minute)
	return r
}

// Guarantees: the last window of a replay closes when its input ends, not at the pace of the wall clock.
func TestTheLastWindowOfAReplayCloses(t *testing.T) {
	r := newRig(t, ttftDocs, func(c *Config) { c.IdleTimeout = time.Second })
	r.send(hour()[0])
	r.wait(time.Second)
	ok, _ := r.last("slo.state", map[string]string{"state": "ok"})
	assert.InDelta(t, 1, ok, 0)
}

func TestThreeMissedWindowsInARowOpenOneViolation(t *testing.T) {
	f := func(slow []int, want ...event) {
		t.Helper()
		assert.Equal(t, want, story(t, hour(slow...)).events())
	}
	f([]int{4, 5, 6, 7}, event{violationOpened, 30}, event{violationClosed, 40})
	f([]int{4, 5})
	f([]int{2, 4, 6})
	f(nil)
}

func TestOneBatchOrSixtyGiveTheSameVerdict(t *testing.T) {
	whole := pmetric.NewMetrics()
	for _, md := range hour(4, 5, 6, 7) {
		md.ResourceMetrics().MoveAndAppendTo(whole.ResourceMetrics())
	}
	a, b := story(t, []pmetric.Metrics{whole}), story(t, hour(4, 5, 6, 7))
	assert.Equal(t, b.events(), a.events())
	for _, outcome := range []string{"good", "bad"} {
		va, _ := a.last("slo.sli.events", map[string]string{"outcome": outcome})
		vb, _ := b.last("slo.sli.events", map[string]string{"outcome": outcome})
		assert.InDelta(t, vb, va, 0)
	}
	va, _ := a.lastRecord().Attributes().Get("slo.violation.id")
	vb, _ := b.lastRecord().Attributes().Get("slo.violation.id")
	assert.Equal(t, vb.Str(), va.Str())
}

func TestResultsCarryTheVocabulary(t *testing.T) {
	r := story(t, hour(4, 5, 6))
	labels := map[string]string{"slo_id": "llm:chat:ttft:p95", "service": "chat", "slo_class": "latency", "target": "0.8000", "unit": "seconds"}
	f := func(name string, extra map[string]string, want float64) {
		t.Helper()
		all := map[string]string{}
		for k, v := range labels {
			all[k] = v
		}
		for k, v := range extra {
			all[k] = v
		}
		got, ok := r.last(name, all)
		require.True(t, ok, "%s %v", name, extra)
		assert.InDelta(t, want, got, 1e-9, "%s %v", name, extra)
	}
	f("slo.objective", nil, 0.8)
	f("slo.sli.value", nil, 0.4875) // the last windows are good: all in (0.25, 0.5]
	f("slo.sli.bound", map[string]string{"bound": "lower"}, 0.25)
	f("slo.sli.bound", map[string]string{"bound": "upper"}, 0.5)
	f("slo.sli.events", map[string]string{"outcome": "good"}, 6000-150)
	f("slo.sli.events", map[string]string{"outcome": "bad"}, 150)
	f("slo.state", map[string]string{"state": "ok"}, 1)
	f("slo.state", map[string]string{"state": "violated"}, 0)
	f("slo.state", map[string]string{"state": "at_risk"}, 0)
	f("slo.state", map[string]string{"state": "no_data"}, 0)
	f("slo.violations", map[string]string{"slo.policy": "chat-ttft-3x5m"}, 1)

	rec := r.lastRecord()
	assert.Equal(t, violationClosed, rec.EventName())
	for _, key := range []string{"slo.violation.id", "slo.policy", "slo.ids", "slo.observed", "slo.windows", "slo.reason"} {
		_, ok := rec.Attributes().Get(key)
		assert.True(t, ok, key)
	}
	assert.True(t, contains(rec.Attributes(), labels))
	id, _ := r.metrics.AllMetrics()[0].ResourceMetrics().At(0).Resource().Attributes().Get("service.instance.id")
	assert.Equal(t, "collector-1", id.Str())
}

func TestEveryResultIsInEventTime(t *testing.T) {
	r := story(t, hour())
	for _, md := range r.metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() == lag.Name {
					continue // is about the wall clock
				}
				for _, p := range numbers(m).All() {
					at := p.Timestamp().AsTime()
					assert.False(t, at.Before(t0) || at.After(t0.Add(time.Hour)), "%s at %s", m.Name(), at)
				}
			}
		}
	}
}

func TestGroupsComeFromPointScopeAndResource(t *testing.T) {
	docs := strings.Replace(ttftDocs, "annotations: {", "annotations: {otelcol-llm.dev/group-by: 'service.namespace,model_name', ", 1)
	r := newRig(t, docs, func(c *Config) { c.GroupBy = []string{"cloud.region"} })
	md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
	md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.namespace", "team-a")
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().Attributes().PutStr("cloud.region", "eu")
	for _, model := range []string{"qwen", "llama"} {
		p := points.AppendEmpty()
		p.Attributes().PutStr("model_name", model)
		fillHistogram(p, t0, t0.Add(time.Minute), ttftBounds, 0, 0, 5, 0, 0, 0, 0)
	}
	r.send(md)
	for _, model := range []string{"qwen", "llama"} {
		v, ok := r.last("slo.sli.events", map[string]string{
			"outcome": "good", "service.namespace": "team-a", "cloud.region": "eu", "model_name": model})
		assert.True(t, ok)
		assert.InDelta(t, 5, v, 0)
	}
	tenant, ok := r.metrics.AllMetrics()[0].ResourceMetrics().At(0).Resource().Attributes().Get("service.namespace")
	assert.True(t, ok, "the resource keeps what decides the tenant")
	assert.Equal(t, "team-a", tenant.Str())
}

func TestConditionsSelectPoints(t *testing.T) {
	docs := strings.Replace(ttftDocs, "metric: vllm:time_to_first_token_seconds", `metric: ttft, condition: 'datapoint.attributes["model_name"] == "qwen"'`, 1)
	r := newRig(t, docs, nil)
	md, points := histogramOf("ttft", deltas)
	for i, model := range []string{"qwen", "llama"} {
		p := points.AppendEmpty()
		p.Attributes().PutStr("model_name", model)
		fillHistogram(p, t0, t0.Add(time.Minute), ttftBounds, 0, 0, uint64(5+i), 0, 0, 0, 0)
	}
	r.send(md)
	v, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
	assert.InDelta(t, 5, v, 0)
	assert.Empty(t, r.refused(), "what a condition excludes is not refused")
}

// Scenario: conditions that look at more than attributes, so that the points of one series serve now this SLO, now that.
// Guarantees: each point counts for the SLOs that select it, whatever the points before it served.
func TestAConditionMayChangeFromPointToPoint(t *testing.T) {
	slo := func(name, condition string) string {
		docs := strings.Replace(strings.Split(ttftDocs, "---")[0], "chat-ttft", name, 1)
		docs = strings.Replace(docs, "llm:chat:ttft:p95", "llm:chat:"+name+":p95", 1)
		return strings.Replace(docs, "metric: vllm:time_to_first_token_seconds", fmt.Sprintf("metric: ttft, condition: '%s'", condition), 1)
	}
	r := newRig(t, slo("small", "datapoint.value_double < 0.5")+"---"+slo("all", "true")+"---"+slo("large", "datapoint.value_double > 0.5"), nil)
	md, points := gaugeOf("ttft")
	for i, v := range []float64{0.7, 0.1, 0.6, 0.2, 0.5} {
		addNumber(points, time.Time{}, t0.Add(time.Duration(i)*time.Second), v)
	}
	r.send(md)
	for name, want := range map[string]float64{"small": 2, "all": 5, "large": 2} {
		v, _ := r.last("slo.sli.events", map[string]string{"slo_id": "llm:chat:" + name + ":p95", "outcome": "good"})
		assert.InDelta(t, want, v, 0, name)
	}
	assert.Empty(t, r.refused())
}

func TestRatioOfCounters(t *testing.T) {
	source := func(role, metric string) string {
		return fmt.Sprintf("%s: {metricSource: {type: opentelemetry, spec: {metric: %s}}}", role, metric)
	}
	for _, role := range []string{"good", "bad"} {
		for _, temporality := range []pmetric.AggregationTemporality{deltas, cumulative} {
			r := newRig(t, fmt.Sprintf(ratioDocs, source(role, "part")), nil)
			part, all := 0.0, 0.0
			for minute := range 6 {
				at := t0.Add(time.Duration(minute) * time.Minute)
				if temporality == cumulative {
					part, all = part+8, all+10
				} else {
					part, all = 8, 10
				}
				for _, m := range []struct {
					name  string
					value float64
				}{{"part", part}, {"requests", all}} {
					md, points := sumOf(m.name, temporality, true)
					addNumber(points, t0.Add(-time.Minute), at, m.value)
					r.send(md)
				}
			}
			want := map[string]float64{"good": 0.8, "bad": 0.2}[role]
			v, ok := r.last("slo.sli.value", nil)
			require.True(t, ok)
			assert.InDelta(t, want, v, 1e-9, "%s %s", role, temporality)
			violated, _ := r.last("slo.state", map[string]string{"state": "violated"})
			assert.InDelta(t, 1, violated, 0)
			events := map[string]float64{}
			for _, outcome := range []string{"good", "bad"} {
				events[outcome], _ = r.last("slo.sli.events", map[string]string{"outcome": outcome})
			}
			n := 60.0 // six minutes; a cumulative series needs its first point as a baseline
			if temporality == cumulative {
				n = 50
			}
			assert.InDelta(t, n*want, events["good"], 1e-9)
			assert.InDelta(t, n, events["good"]+events["bad"], 1e-9)
		}
	}
}

func TestEveryShapeCountsForAThreshold(t *testing.T) {
	minutes := func(r *rig, one func(minute int, start, at time.Time) pmetric.Metrics) {
		for minute := range 6 {
			at := t0.Add(time.Duration(minute) * time.Minute)
			r.send(one(minute, at.Add(-time.Minute), at))
		}
	}
	for name, one := range map[string]func(minute int, start, at time.Time) pmetric.Metrics{
		"delta histogram": func(_ int, start, at time.Time) pmetric.Metrics {
			md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
			fillHistogram(points.AppendEmpty(), start, at, ttftBounds, 0, 0, 9, 0, 0, 1, 0)
			return md
		},
		"cumulative histogram": func(minute int, _, at time.Time) pmetric.Metrics {
			md, points := histogramOf("vllm:time_to_first_token_seconds", cumulative)
			n := uint64(minute + 1)
			fillHistogram(points.AppendEmpty(), t0.Add(-time.Hour), at, ttftBounds, 0, 0, 9*n, 0, 0, n, 0)
			return md
		},
		"milliseconds": func(_ int, start, at time.Time) pmetric.Metrics {
			md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
			md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetUnit("ms")
			fillHistogram(points.AppendEmpty(), start, at, []float64{100, 500, 800, 2500}, 0, 9, 0, 1, 0)
			return md
		},
		"delta exponential histogram": func(_ int, start, at time.Time) pmetric.Metrics {
			return exponentialOf(deltas, start, at, 1)
		},
		"cumulative exponential histogram": func(minute int, _, at time.Time) pmetric.Metrics {
			return exponentialOf(cumulative, t0.Add(-time.Hour), at, uint64(minute+1))
		},
		"gauge": func(_ int, _, at time.Time) pmetric.Metrics {
			md, points := gaugeOf("vllm:time_to_first_token_seconds")
			for i := range 10 {
				v := 0.3
				if i == 9 {
					v = 2
				}
				addNumber(points, time.Time{}, at, v).Attributes().PutInt("i", int64(i))
			}
			return md
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, ttftDocs, nil)
			minutes(r, one)
			violated, _ := r.last("slo.state", map[string]string{"state": "violated"})
			assert.InDelta(t, 1, violated, 0)
			v, _ := r.last("slo.sli.value", nil)
			assert.True(t, v > 0.8 && v <= 2.5, "P95 is %v", v)
			good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
			bad, _ := r.last("slo.sli.events", map[string]string{"outcome": "bad"})
			assert.InDelta(t, 9, good/bad, 0)
		})
	}
}

func exponentialOf(temporality pmetric.AggregationTemporality, start, at time.Time, n uint64) pmetric.Metrics {
	return metricsOf("vllm:time_to_first_token_seconds", func(m pmetric.Metric) {
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(temporality)
		p := m.ExponentialHistogram().DataPoints().AppendEmpty()
		p.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.SetScale(0)
		p.Positive().SetOffset(-2) // (0.25, 0.5], (0.5, 1], (1, 2]
		p.Positive().BucketCounts().FromRaw([]uint64{9 * n, 0, n})
		p.SetCount(10 * n)
	})
}

// Scenario: the objective is written in milliseconds, the metric is in seconds as its name says, and the data has no unit.
// Guarantees: a second is not taken for a millisecond.
func TestAnObjectiveInMillisecondsOnAMetricInSeconds(t *testing.T) {
	docs := strings.NewReplacer("metric: vllm:time_to_first_token_seconds", `unit: ms, metric: "vllm:time_to_first_token_seconds"`, "value: 0.8", "value: 800").Replace(ttftDocs)
	r := newRig(t, docs, nil)
	for _, md := range hour(1) {
		r.send(md)
	}
	bad, _ := r.last("slo.sli.events", map[string]string{"outcome": "bad", "target": "0.8000"})
	assert.InDelta(t, 50, bad, 0)
}

func TestRateOfACounterIsAThroughput(t *testing.T) {
	docs := strings.NewReplacer("vllm:time_to_first_token_seconds", "vllm:generation_tokens_total", "op: lte, value: 0.8", "op: gte, value: 80",
		`annotations: {otelcol-llm.dev/slo-id: "llm:chat:ttft:p95"}`, "annotations: {otelcol-llm.dev/unit: tokens_per_second}").Replace(ttftDocs)
	r := newRig(t, docs, nil)
	for minute := range 7 {
		md, points := sumOf("vllm:generation_tokens_total", cumulative, true)
		addNumber(points, time.Time{}, t0.Add(time.Duration(minute)*time.Minute), float64(minute*60*50))
		r.send(md)
	}
	v, ok := r.last("slo.sli.value", map[string]string{"unit": "tokens_per_second"})
	require.True(t, ok)
	assert.InDelta(t, 50, v, 0.01)
	violated, _ := r.last("slo.state", map[string]string{"state": "violated"})
	assert.InDelta(t, 1, violated, 0)
}

func TestDirtyPointsAreRefusedWithAReason(t *testing.T) {
	histogram := func(change func(p pmetric.HistogramDataPoint)) func() pmetric.Metrics {
		return func() pmetric.Metrics {
			md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
			p := points.AppendEmpty()
			fillHistogram(p, t0, t0.Add(time.Minute), ttftBounds, 0, 0, 1, 0, 0, 0, 0)
			change(p)
			return md
		}
	}
	gauge := func(v float64) func() pmetric.Metrics {
		return func() pmetric.Metrics {
			md, points := gaugeOf("vllm:time_to_first_token_seconds")
			addNumber(points, time.Time{}, t0.Add(time.Minute), v)
			return md
		}
	}
	for reason, make := range map[string]func() pmetric.Metrics{
		"no_timestamp": histogram(func(p pmetric.HistogramDataPoint) { p.SetTimestamp(0) }),
		"future": histogram(func(p pmetric.HistogramDataPoint) {
			p.SetTimestamp(pcommon.NewTimestampFromTime(t0.Add(25 * time.Hour)))
		}),
		"no_recorded_value": histogram(func(p pmetric.HistogramDataPoint) {
			p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}),
		"count_mismatch": histogram(func(p pmetric.HistogramDataPoint) { p.SetCount(7) }),
		"bad_buckets":    histogram(func(p pmetric.HistogramDataPoint) { p.ExplicitBounds().FromRaw([]float64{5, 4, 3, 2, 1, 0}) }),
		"not_finite":     gauge(math.NaN()),
		"sentinel":       gauge(-1),
		"no_temporality": func() pmetric.Metrics {
			md, points := histogramOf("vllm:time_to_first_token_seconds", pmetric.AggregationTemporalityUnspecified)
			fillHistogram(points.AppendEmpty(), t0, t0.Add(time.Minute), ttftBounds, 0, 0, 1, 0, 0, 0, 0)
			return md
		},
		"baseline": func() pmetric.Metrics {
			md, points := histogramOf("vllm:time_to_first_token_seconds", cumulative)
			fillHistogram(points.AppendEmpty(), time.Time{}, t0.Add(time.Minute), ttftBounds, 0, 0, 1, 0, 0, 0, 0)
			return md
		},
		"negative": func() pmetric.Metrics {
			md, points := sumOf("vllm:time_to_first_token_seconds", deltas, true)
			addNumber(points, t0, t0.Add(time.Minute), -5)
			return md
		},
		"no_interval": func() pmetric.Metrics {
			md, points := sumOf("vllm:time_to_first_token_seconds", deltas, true)
			addNumber(points, t0.Add(time.Minute), t0.Add(time.Minute), 5)
			return md
		},
		"unsupported_shape": func() pmetric.Metrics {
			return metricsOf("vllm:time_to_first_token_seconds", func(m pmetric.Metric) {
				m.SetEmptySummary().DataPoints().AppendEmpty().SetTimestamp(pcommon.NewTimestampFromTime(t0.Add(time.Minute)))
			})
		},
		"implausible": histogram(func(p pmetric.HistogramDataPoint) { p.SetSum(100) }),
		"unknown_slo": func() pmetric.Metrics {
			md, points := histogramOf("slo.sli.distribution", deltas)
			fillHistogram(points.AppendEmpty(), t0, t0.Add(time.Minute), ttftBounds, 0, 0, 1, 0, 0, 0, 0)
			return md
		},
	} {
		t.Run(reason, func(t *testing.T) {
			r := newRig(t, ttftDocs, trusting)
			r.send(make())
			assert.Equal(t, map[string]int64{reason: 1}, r.refused())
			good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
			assert.Zero(t, good)
			r.send(hour()[2]) // and nothing else is lost
			good, _ = r.last("slo.sli.events", map[string]string{"outcome": "good"})
			assert.InDelta(t, 100, good, 0)
		})
	}
}

func TestLateDataIsCountedNotMerged(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	minutes := hour()
	r.send(minutes[0])
	r.send(minutes[10])
	r.send(minutes[1])
	assert.Equal(t, map[string]int64{"late": 1}, r.refused())
}

func TestAResetDropsOnePointAndMakesNoSpike(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	for i, n := range []uint64{1000, 1010, 3, 13} {
		md, points := histogramOf("vllm:time_to_first_token_seconds", cumulative)
		fillHistogram(points.AppendEmpty(), time.Time{}, t0.Add(time.Duration(i)*time.Minute), ttftBounds, 0, 0, n, 0, 0, 0, 0)
		r.send(md)
	}
	good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
	assert.InDelta(t, 20, good, 0)
	assert.Equal(t, map[string]int64{"baseline": 1, "reset": 1}, r.refused())
}

func TestTheTraceOfAViolationIsOfItsWindow(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	for i, md := range hour(1, 2, 3, 4) {
		p := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Histogram().DataPoints().At(0)
		for n, at := range []time.Time{t0.Add(-time.Hour), p.Timestamp().AsTime()} { // the first is left from before
			x := p.Exemplars().AppendEmpty()
			x.SetTimestamp(pcommon.NewTimestampFromTime(at))
			x.SetTraceID([16]byte{byte(n), byte(i + 1)})
			x.SetDoubleValue(2 - float64(n))
		}
		r.send(md)
		if len(r.events()) == 1 {
			break
		}
	}
	require.Equal(t, []event{{violationOpened, 15}}, r.events())
	id := r.lastRecord().TraceID()
	assert.Equal(t, byte(1), id[0])
	assert.True(t, id[1] >= 11 && id[1] <= 15, "minute %d is in the third window", id[1])
}

// Scenario: slo_schema stands before the connector, and the objective that it writes on the points is edited.
// Guarantees: the series is the same all the same: no point becomes a new baseline.
func TestLabelsOfSLOSchemaAreNoIdentity(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	for i, target := range []string{"0.8000", "0.8000", "0.5000", "0.5000"} {
		md, points := histogramOf("vllm:time_to_first_token_seconds", cumulative)
		p := points.AppendEmpty()
		p.Attributes().PutStr("slo_id", "llm:chat:ttft:p95")
		p.Attributes().PutStr("target", target)
		fillHistogram(p, time.Time{}, t0.Add(time.Duration(i)*time.Minute), ttftBounds, 0, 0, uint64(10*i), 0, 0, 0, 0)
		r.send(md)
	}
	good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
	assert.InDelta(t, 30, good, 0)
}

func TestInputSeriesAreBounded(t *testing.T) {
	r := newRig(t, ttftDocs, func(c *Config) { c.MaxInputSeries = 3 })
	md, points := gaugeOf("vllm:time_to_first_token_seconds")
	for i := range 10 {
		addNumber(points, time.Time{}, t0, 0.1).Attributes().PutInt("i", int64(i))
	}
	r.send(md)
	assert.Equal(t, map[string]int64{"series_limit": 7}, r.refused())
	r.wait(2 * time.Hour)
	inputs, _ := r.intake.Sizes()
	assert.Zero(t, inputs, "idle series expire")
}

func TestUnchangedResultsAreRepeated(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	r.send(hour()[0])
	r.metrics.Reset()
	r.wait(500 * time.Millisecond)
	assert.Zero(t, r.metrics.DataPointCount())
	for range 15 { // each result has its turn once in refresh_interval
		r.wait(time.Second)
	}
	assert.Equal(t, 7+1, r.metrics.DataPointCount(), "the series, and the lag")
}

func TestEventsAreKeptUntilTheyAreTaken(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	r.logs = new(consumertest.LogsSink)
	r.out.Logs = consumertest.NewErr(assert.AnError)
	for _, md := range hour(1, 2, 3, 4) {
		r.send(md)
	}
	assert.Len(t, r.outbox.pending, 2)
	r.out.Logs = r.logs
	r.wait(time.Second)
	assert.Equal(t, []event{{violationOpened, 15}, {violationClosed, 25}}, r.events())
	r.wait(time.Second)
	assert.Len(t, r.events(), 2)
}

func TestAPromiseWithoutDataIsShown(t *testing.T) {
	second := strings.NewReplacer("chat-ttft", "other", "llm:chat:ttft:p95", "llm:chat:other:p95", "vllm:time_to_first_token_seconds", "nobody.sends.this").Replace(ttftDocs)
	r := newRig(t, ttftDocs+"---\n"+second, nil)
	for _, md := range hour() {
		r.send(md)
	}
	v, ok := r.last("slo.state", map[string]string{"slo_id": "llm:chat:other:p95", "state": "no_data"})
	assert.True(t, ok)
	assert.InDelta(t, 1, v, 0)
}

func TestTwoInstancesHearEachBatchOnce(t *testing.T) {
	m, l := new(consumertest.MetricsSink), new(consumertest.LogsSink)
	cfg := createDefaultConfig().(*Config)
	toMetrics, toLogs := instances(t, cfg, m, l)
	h := newHost(t, ttftDocs)
	for _, c := range []connector.Metrics{toMetrics, toLogs} {
		require.NoError(t, c.Start(t.Context(), h))
	}
	md := hour()[0]
	md.MarkReadOnly()
	for _, c := range []connector.Metrics{toMetrics, toLogs} {
		assert.False(t, c.Capabilities().MutatesData)
		require.NoError(t, c.ConsumeMetrics(t.Context(), md))
	}
	for _, c := range []connector.Metrics{toMetrics, toLogs} {
		require.NoError(t, c.Shutdown(t.Context()))
	}
	r := &rig{metrics: m}
	good, ok := r.last("slo.sli.events", map[string]string{"outcome": "good"})
	assert.True(t, ok, "shutdown tells what is left to tell")
	assert.InDelta(t, 100, good, 0)
}

func TestLifecycle(t *testing.T) {
	lifecycletest.Test(t, newHost(t, ttftDocs),
		func(t testing.TB) connector.Metrics {
			c, _ := instances(t, createDefaultConfig().(*Config), new(consumertest.MetricsSink), new(consumertest.LogsSink))
			return c
		},
		func(t testing.TB, c connector.Metrics) {
			md := hour()[0]
			md.MarkReadOnly()
			require.NoError(t, c.ConsumeMetrics(t.Context(), md))
		})
}

func TestStartWithoutCatalogSaysWhatToDo(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Catalog.UnmarshalText([]byte("slo_catalog/other")) //nolint:errcheck // a literal
	c, _ := instances(t, cfg, new(consumertest.MetricsSink), new(consumertest.LogsSink))
	err := c.Start(t.Context(), newHost(t, ttftDocs))
	require.ErrorContains(t, err, "add it under extensions and service.extensions")
	require.NoError(t, c.Shutdown(t.Context()))
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	md, points := histogramOf("vllm:time_to_first_token_seconds", cumulative)
	for i := range 100 {
		p := points.AppendEmpty()
		p.Attributes().PutInt("i", int64(i))
		fillHistogram(p, time.Time{}, t0, ttftBounds, 0, 0, 1, 0, 0, 0, 0)
	}
	at := t0
	send := func() {
		at = at.Add(time.Millisecond)
		for _, p := range points.All() {
			p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		}
		r.consume(t.Context(), md)
	}
	send()
	send()
	assert.LessOrEqual(t, testing.AllocsPerRun(50, send), 5.0, "a batch of 100 points may cost a few allocations, a point none")
}

// Scenario: the catalog changes while traffic comes in: another SLO appears, changes and goes.
// Guarantees: no point of the SLO that did not change is lost, and its verdict is the same.
func TestAChangingCatalogLeavesTheOthersAlone(t *testing.T) {
	h := newHost(t, ttftDocs)
	other := strings.NewReplacer("chat-ttft", "other", "llm:chat:ttft:p95", "llm:chat:other:p95").Replace(ttftDocs)
	versions := []*host{h, newHost(t, ttftDocs+"---\n"+other), newHost(t, ttftDocs+"---\n"+strings.Replace(other, "value: 0.8", "value: 0.5", 1))}
	r := newRig(t, ttftDocs, nil)
	require.NoError(t, r.prepare(h))
	for i, md := range hour(4, 5, 6, 7) {
		h.catalog = versions[i%len(versions)].catalog
		r.follow()
		r.send(md)
	}
	r.wait(time.Minute)
	for _, outcome := range []struct {
		name string
		want float64
	}{{"good", 6000 - 200}, {"bad", 200}} {
		v, _ := r.last("slo.sli.events", map[string]string{"slo_id": "llm:chat:ttft:p95", "outcome": outcome.name})
		assert.InDelta(t, outcome.want, v, 0)
	}
	var own []event
	for _, ld := range r.logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, rec := range rl.ScopeLogs().At(0).LogRecords().All() {
				if contains(rec.Attributes(), map[string]string{"slo.policy": "chat-ttft-3x5m"}) {
					own = append(own, event{rec.EventName(), int(rec.Timestamp().AsTime().Sub(t0).Minutes())})
				}
			}
		}
	}
	assert.Equal(t, []event{{violationOpened, 30}, {violationClosed, 40}}, own)
}

// Scenario: an SLO is deleted while it is violated.
// Guarantees: every series that was told of it is ended, so that no alert goes on.
func TestWhatIsDeletedIsEnded(t *testing.T) {
	h := newHost(t, ttftDocs)
	r := newRig(t, ttftDocs, nil)
	require.NoError(t, r.prepare(h))
	for _, md := range hour(1, 2, 3, 4, 5)[:24] {
		r.send(md)
	}
	h.catalog = newHost(t, strings.NewReplacer("chat-ttft", "other", "llm:chat:ttft:p95", "llm:chat:other:p95").Replace(ttftDocs)).catalog
	r.wait(time.Second)
	assert.Equal(t, "deleted", r.lastRecord().Body().Str())
	open := map[string]bool{}
	for _, md := range r.metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for _, p := range numbers(m).All() {
					if contains(p.Attributes(), map[string]string{"slo_id": "llm:chat:ttft:p95"}) {
						open[fmt.Sprint(m.Name(), p.Attributes().AsRaw())] = !p.Flags().NoRecordedValue()
					}
				}
			}
		}
	}
	assert.Len(t, open, 2+1+4+1+2+1+2+len(burnWindows))
	for id, is := range open {
		assert.False(t, is, id)
	}
}

func TestACatalogThatDoesNotCompileChangesNothing(t *testing.T) {
	h := newHost(t, ttftDocs)
	r := newRig(t, ttftDocs, nil)
	require.NoError(t, r.prepare(h))
	h.catalog = newHost(t, strings.Replace(ttftDocs, "metric: vllm", `condition: 'nonsense(', metric: vllm`, 1)).catalog
	r.follow()
	r.send(hour()[0])
	good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
	assert.InDelta(t, 100, good, 0)
}
