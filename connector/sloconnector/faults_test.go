// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/frame"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
)

// Scenario: two points of one cumulative exponential histogram at different scales, far out and without a value.
// Guarantees: nothing crashes (it once did), and what comes after counts.
func TestEmptyBucketsFarOutAreHarmless(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	for i := range 2 {
		r.send(metricsOf("vllm:time_to_first_token_seconds", func(m pmetric.Metric) {
			m.SetEmptyExponentialHistogram().SetAggregationTemporality(cumulative)
			p := m.ExponentialHistogram().DataPoints().AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(t0.Add(time.Duration(i) * time.Second)))
			p.SetScale(int32(1 - i))
			p.Positive().SetOffset(math.MaxInt32)
			p.Positive().BucketCounts().FromRaw([]uint64{0, 0})
		}))
	}
	r.send(hour()[2])
	good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
	assert.InDelta(t, 100, good, 0)
}

// Scenario: one replica repeats its first timestamp, another one's clock is five minutes behind.
// Guarantees: the promise of the others is judged, and the two are counted.
func TestWrongClocksDoNotStopTheVerdict(t *testing.T) {
	r := newRig(t, ttftDocs, func(c *Config) { c.IdleTimeout = 2 * time.Minute })
	r.clock = t0
	for i, md := range hour(4, 5, 6, 7) {
		at := t0.Add(time.Duration(i) * time.Minute)
		for replica, when := range map[string]time.Time{"frozen": t0, "behind": at.Add(-10 * time.Minute)} {
			if i < 20 {
				continue // they come in when others are judged already
			}
			other, points := gaugeOf("vllm:time_to_first_token_seconds")
			other.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", replica)
			addNumber(points, time.Time{}, when, 0.1)
			r.send(other)
		}
		r.send(md)
		r.wait(time.Minute)
	}
	assert.Equal(t, []event{{violationOpened, 30}, {violationClosed, 40}}, r.events())
	waiting, ignored := r.intake.Watermark.Sources()
	assert.Equal(t, []int{1, 2}, []int{waiting, ignored})
}

func TestWhatNoConditionSelectsTakesNoRoom(t *testing.T) {
	docs := strings.Replace(ttftDocs, "metric: vllm:time_to_first_token_seconds", `metric: ttft, condition: 'datapoint.attributes["model_name"] == "qwen"'`, 1)
	r := newRig(t, docs, func(c *Config) { c.MaxInputSeries = 1 })
	for minute := range 2 {
		md, points := histogramOf("ttft", cumulative)
		for _, model := range []string{"llama", "mixtral", "qwen"} {
			p := points.AppendEmpty()
			p.Attributes().PutStr("model_name", model)
			fillHistogram(p, time.Time{}, t0.Add(time.Duration(minute)*time.Minute), ttftBounds, 0, 0, uint64(10*minute), 0, 0, 0, 0)
		}
		r.send(md)
	}
	good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
	assert.InDelta(t, 10, good, 0)
	assert.Equal(t, map[string]int64{"baseline": 1}, r.refused())
}

func TestAConditionThatCannotBeEvaluatedIsCounted(t *testing.T) {
	docs := strings.Replace(ttftDocs, "metric: vllm:time_to_first_token_seconds", `metric: ttft, condition: 'Int(datapoint.attributes["n"]) > 3 and IsMatch(datapoint.attributes["m"], datapoint.attributes["pattern"])'`, 1)
	r := newRig(t, docs, nil)
	md, points := gaugeOf("ttft")
	p := addNumber(points, time.Time{}, t0, 0.1)
	p.Attributes().PutInt("n", 5)
	p.Attributes().PutStr("m", "x")
	p.Attributes().PutStr("pattern", "(")
	r.send(md)
	assert.Equal(t, map[string]int64{"condition_error": 1}, r.refused())
}

func TestMoreDirtIsRefusedWithAReason(t *testing.T) {
	gauge := func(name string, v float64) pmetric.Metrics {
		md, points := gaugeOf(name)
		addNumber(points, time.Time{}, t0, v)
		return md
	}
	raw := strings.Split(ratioDocs, "ratioMetric:")[0] + `ratioMetric:
        rawType: success
        raw: {metricSource: {type: opentelemetry, spec: {metric: quality}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.9}]
`
	f := func(docs string, md pmetric.Metrics, want string) {
		t.Helper()
		r := newRig(t, docs, nil)
		r.send(md)
		assert.Equal(t, map[string]int64{want: 1}, r.refused())
	}
	f(raw, gauge("quality", 97), "out_of_range")
	f(raw, gauge("quality", -0.5), "out_of_range")
	f(fmt.Sprintf(ratioDocs, "good: {metricSource: {type: opentelemetry, spec: {metric: part}}}"), func() pmetric.Metrics {
		md, points := sumOf("part", deltas, true)
		addNumber(points, t0, t0.Add(time.Second), -5)
		return md
	}(), "negative")
	f(ttftDocs, func() pmetric.Metrics {
		md, points := gaugeOf("vllm:time_to_first_token_seconds")
		points.AppendEmpty().SetTimestamp(pcommon.NewTimestampFromTime(t0))
		return md
	}(), "no_value")
	f(ttftDocs, func() pmetric.Metrics { // adds up to nothing modulo 2^64
		md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
		p := points.AppendEmpty()
		fillHistogram(p, t0, t0.Add(time.Second), ttftBounds, 1<<63, 0, 0, 0, 0, 0, 1<<63)
		p.SetCount(0)
		return md
	}(), "bad_buckets")
	f(ttftDocs, func() pmetric.Metrics { // OTLP does not ask for a start time
		md, points := sumOf("vllm:time_to_first_token_seconds", deltas, true)
		addNumber(points, time.Time{}, t0, 5000).SetStartTimestamp(0)
		return md
	}(), "no_interval")

	r := newRig(t, ttftDocs, nil)
	for range 2 {
		md, points := sumOf("vllm:time_to_first_token_seconds", cumulative, true)
		addNumber(points, time.Time{}, t0, 5)
		r.send(md)
	}
	assert.Equal(t, map[string]int64{"baseline": 1, "stale": 1}, r.refused())

	r = newRig(t, ttftDocs, nil)
	for i := range 9 {
		md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
		fillHistogram(points.AppendEmpty(), t0, t0.Add(time.Duration(i+1)*time.Second), []float64{float64(i + 1)}, 1, 0)
		r.send(md)
	}
	assert.Equal(t, map[string]int64{"layout_limit": 1}, r.refused())
}

func TestEveryReasonIsTested(t *testing.T) {
	// Names in the tables of the tests above and in connector_test.go; a new reason has to join them.
	tested := "late future no_timestamp no_recorded_value baseline reset stale no_value not_finite sentinel negative out_of_range " +
		"bad_buckets count_mismatch no_temporality no_interval unsupported_shape condition_error layout_limit series_limit " +
		"duplicate excluded implausible unknown_slo untrusted"
	assert.ElementsMatch(t, strings.Fields(tested), intake.Reasons())
}

func TestAUnitThatChangesIsFollowed(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	for i, unit := range []string{"s", "ms"} {
		md, points := gaugeOf("vllm:time_to_first_token_seconds")
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetUnit(unit)
		addNumber(points, time.Time{}, t0.Add(time.Duration(i)*time.Second), map[string]float64{"s": 0.2, "ms": 200}[unit])
		r.send(md)
	}
	good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
	assert.InDelta(t, 2, good, 0)
}

// Scenario: one gauge is a threshold for one SLO and, by its spec, a counter for another.
// Guarantees: the order of the SLOs has no say.
func TestACounterIsOneForTheSLOThatSaysSo(t *testing.T) {
	threshold := strings.NewReplacer("vllm:time_to_first_token_seconds", "requests", "op: lte, value: 0.8", "op: lte, value: 1000000",
		"annotations: {", "annotations: {otelcol-llm.dev/unit: requests, otelcol-llm.dev/class: saturation, ").Replace(ttftDocs)
	count := fmt.Sprintf(ratioDocs, "good: {metricSource: {type: opentelemetry, spec: {metric: part}}}")
	for _, id := range []string{"llm:chat:a:x", "llm:chat:zzz:x"} { // before and after llm:chat:success:90
		r := newRig(t, strings.Replace(threshold, "llm:chat:ttft:p95", id, 1)+"---\n"+count, nil)
		for i := range 5 {
			for name, per := range map[string]float64{"requests": 10, "part": 8} {
				md, points := gaugeOf(name)
				addNumber(points, time.Time{}, t0.Add(time.Duration(i)*time.Minute), 1000+per*float64(i))
				r.send(md)
			}
		}
		good, _ := r.last("slo.sli.events", map[string]string{"slo_id": "llm:chat:success:90", "outcome": "good"})
		bad, _ := r.last("slo.sli.events", map[string]string{"slo_id": "llm:chat:success:90", "outcome": "bad"})
		assert.Equal(t, []float64{32, 8}, []float64{good, bad}, id)
		events, _ := r.last("slo.sli.events", map[string]string{"slo_id": id, "outcome": "good"})
		assert.InDelta(t, 5, events, 0, id)
	}
}

// Scenario: traffic as it comes, with windows closing, for one series after the other.
// Guarantees: a backend never sees time go back, nor two values of one series at one time, nor a counter's start move.
func TestABackendTakesEveryPoint(t *testing.T) {
	docs := strings.Replace(ttftDocs, "annotations: {", "annotations: {otelcol-llm.dev/group-by: pod, ", 1)
	r := newRig(t, docs, nil)
	r.clock = t0
	for i := range 200 {
		for pod := range 3 {
			md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
			md.ResourceMetrics().At(0).Resource().Attributes().PutInt("pod", int64(pod))
			for range 2 { // two replicas with the same time
				fillHistogram(points.AppendEmpty(), r.clock, r.clock, ttftBounds, 0, 0, 9, 0, 0, uint64(i/40%2), 0)
			}
			r.send(md)
		}
		r.wait(7 * time.Second)
	}
	r.wait(30 * time.Minute)
	type sample struct {
		at, start pcommon.Timestamp
		value     float64
	}
	seen := map[string]sample{}
	for _, md := range r.metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for _, p := range numbers(m).All() {
					id := fmt.Sprint(m.Name(), p.Attributes().AsRaw())
					now := sample{p.Timestamp(), p.StartTimestamp(), p.DoubleValue()}
					if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
						now.value = float64(p.IntValue())
					}
					if was, ok := seen[id]; ok {
						require.GreaterOrEqual(t, now.at, was.at, id)
						require.Equal(t, was.start, now.start, id)
						if now.at == was.at {
							require.InDelta(t, was.value, now.value, 0, "two values of %s at %s", id, now.at)
						}
					}
					require.LessOrEqual(t, now.start, now.at, id)
					seen[id] = now
				}
			}
		}
	}
	assert.Len(t, seen, 3*(2+1+4+1+2+1+2+len(burnWindows))+1, "and the lag, once")
}

func TestAtRiskIsSaidOnceWithTheMissingBoundary(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	for i := range 12 {
		md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
		at := t0.Add(time.Duration(i) * time.Minute)
		fillHistogram(points.AppendEmpty(), at, at, []float64{0.5, 0.75, 1}, 0, 80, 20, 0)
		r.send(md)
	}
	v, _ := r.last("slo.state", map[string]string{"state": "at_risk"})
	assert.InDelta(t, 1, v, 0)
	assert.Len(t, r.warned, 1)
	assert.Empty(t, r.events())
}

func TestKeysOfFileAndConfigurationThatBecomeOneLabelAreRefused(t *testing.T) {
	docs := strings.Replace(ttftDocs, "annotations: {", "annotations: {otelcol-llm.dev/group-by: model_name, ", 1)
	cfg := createDefaultConfig().(*Config)
	cfg.GroupBy = []string{"model.name"}
	c, _ := instances(t, cfg, new(consumertest.MetricsSink), new(consumertest.LogsSink))
	err := c.Start(t.Context(), newHost(t, docs))
	require.ErrorContains(t, err, `"model.name" and "model_name" become one label in Prometheus`)
	require.ErrorContains(t, err, "chat-ttft")
	require.NoError(t, c.Shutdown(t.Context()))
}

func TestOverflowIsMarked(t *testing.T) {
	docs := strings.Replace(ttftDocs, "annotations: {", "annotations: {otelcol-llm.dev/group-by: user, ", 1)
	r := newRig(t, docs, func(c *Config) { c.MaxSeries = 2 })
	md, points := gaugeOf("vllm:time_to_first_token_seconds")
	for i := range 10 {
		addNumber(points, time.Time{}, t0, 0.1).Attributes().PutInt("user", int64(i))
	}
	r.send(md)
	v, ok := r.last("slo.sli.events", map[string]string{"otel.metric.overflow": "true", "outcome": "good"})
	assert.True(t, ok)
	assert.InDelta(t, 8, v, 0)
}

func TestARefusedBatchIsToldAgain(t *testing.T) {
	r := newRig(t, ttftDocs, func(c *Config) { c.RefreshInterval = 0 })
	r.out.Metrics = consumertest.NewErr(errors.New("not now"))
	r.send(hour()[0])
	r.out.Metrics = r.metrics
	r.wait(time.Second)
	good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
	assert.InDelta(t, 100, good, 0)
}

func TestManyResultsLeaveInPortions(t *testing.T) {
	docs := strings.Replace(ttftDocs, "annotations: {", "annotations: {otelcol-llm.dev/group-by: pod, ", 1)
	r := newRig(t, docs, nil)
	md, points := gaugeOf("vllm:time_to_first_token_seconds")
	for i := range 5000 {
		addNumber(points, time.Time{}, t0, 0.1).Attributes().PutInt("pod", int64(i))
	}
	r.send(md)
	assert.Greater(t, len(r.metrics.AllMetrics()), 3)
	for _, md := range r.metrics.AllMetrics() {
		assert.LessOrEqual(t, md.DataPointCount(), emit.MaxBatchPoints+20)
	}
}

func TestEventsThatAreRefusedForGoodAreDroppedAndOthersWait(t *testing.T) {
	calls := 0
	answer := errors.New("not now")
	r := newRig(t, ttftDocs, nil)
	sink, err := consumer.NewLogs(func(context.Context, plog.Logs) error { calls++; return answer })
	require.NoError(t, err)
	r.out.Logs = sink
	for _, md := range hour(1, 2, 3, 4) {
		r.send(md)
	}
	for range 40 { // ten seconds of ticks
		r.wait(frame.Tick)
	}
	assert.Less(t, calls, 8, "it is asked at growing intervals")
	answer = consumererror.NewPermanent(errors.New("never"))
	r.wait(time.Minute)
	assert.NotEmpty(t, r.outbox.pending, "an expired token says so, too")
	r.wait(time.Hour)
	assert.Empty(t, r.outbox.pending)
	m, err := r.tel.GetMetric("otelcol_slo_events_dropped")
	require.NoError(t, err)
	assert.Equal(t, int64(2), sumInt(m))
}

// Scenario: the metrics consumer blocks for ever.
// Guarantees: input is taken, violations are told, and shutdown ends.
func TestABlockedConsumerHoldsNobodyElseUp(t *testing.T) {
	blocked, err := consumer.NewMetrics(func(ctx context.Context, _ pmetric.Metrics) error { <-ctx.Done(); return ctx.Err() })
	require.NoError(t, err)
	logs := new(consumertest.LogsSink)
	cfg := createDefaultConfig().(*Config)
	cfg.Lateness = 0
	toMetrics, toLogs := instances(t, cfg, new(consumertest.MetricsSink), logs)
	e := toMetrics.(*instance).Engine()
	e.out.Metrics = blocked
	h := newHost(t, ttftDocs)
	for _, c := range []connector.Metrics{toMetrics, toLogs} {
		require.NoError(t, c.Start(t.Context(), h))
	}
	for _, md := range hour(1, 2, 3, 4) {
		require.NoError(t, toMetrics.ConsumeMetrics(t.Context(), md))
	}
	assert.Eventually(t, func() bool { return logs.LogRecordCount() == 2 }, time.Minute, 10*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for _, c := range []connector.Metrics{toMetrics, toLogs} {
		_ = c.Shutdown(ctx) // what the blocked consumer did not take is lost; that shutdown ends is what counts
	}
}

// Scenario: many senders, a changing catalog, windows that close, and a shutdown in the middle of it; for the race detector.
func TestConcurrency(t *testing.T) {
	h := newHost(t, ttftDocs)
	versions := []*host{newHost(t, ttftDocs), newHost(t, strings.Replace(ttftDocs, "value: 0.8", "value: 0.5", 1))}
	var version atomic.Int64
	cfg := createDefaultConfig().(*Config)
	cfg.Lateness, cfg.RefreshInterval = 0, time.Millisecond
	m, l := new(consumertest.MetricsSink), new(consumertest.LogsSink)
	toMetrics, toLogs := instances(t, cfg, m, l)
	source := &swapping{host: h, pick: func() *host { return versions[version.Load()%2] }}
	for _, c := range []connector.Metrics{toMetrics, toLogs} {
		require.NoError(t, c.Start(t.Context(), source))
	}
	var senders sync.WaitGroup
	for range 4 {
		senders.Go(func() {
			for _, md := range hour(2, 3, 4) {
				_ = toMetrics.ConsumeMetrics(t.Context(), md)
				_ = toLogs.ConsumeMetrics(t.Context(), md)
				version.Add(1)
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	require.Eventually(t, func() bool { return m.DataPointCount() > 0 }, time.Minute, 10*time.Millisecond)
	for _, c := range []connector.Metrics{toMetrics, toLogs} {
		require.NoError(t, c.Shutdown(t.Context()))
	}
	senders.Wait()
}

func TestADeltaThatIsSentAgainCountsOnce(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	for range 3 {
		r.send(hour()[0])
	}
	r.send(hour()[1])
	r.send(hour()[0])
	good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
	assert.InDelta(t, 200, good, 0)
	assert.Equal(t, map[string]int64{"duplicate": 2, "late": 1}, r.refused(), "the last one comes after its minute has closed")
}

func TestWhatIsExcludedByMaintenanceCountsForNothing(t *testing.T) {
	r := newRig(t, ttftDocs+`---
apiVersion: otelcol-llm.dev/v1alpha1
kind: MaintenanceWindow
metadata: {name: upgrade}
spec: {slos: [chat-ttft], effect: exclude, startTime: `+t0.Add(2*time.Minute).Format("2006-01-02 15:04:05")+`, timeZone: UTC, duration: 1m}
`, nil)
	for _, md := range hour()[:5] {
		r.send(md)
	}
	good, _ := r.last("slo.sli.events", map[string]string{"outcome": "good"})
	assert.InDelta(t, 400, good, 0)
	assert.Equal(t, map[string]int64{"excluded": 1}, r.refused())
}

// Scenario: between sound points, a counter of events is absurd: it wrapped, or a bit flipped.
// Guarantees: it is refused, and the books, the counters and the verdicts go on as if it had not come.
func TestAnAbsurdCountIsRefused(t *testing.T) {
	docs := sloOf("failed", "llm:chat:failed:x", "", `{ratioMetric: {counter: true, bad: {metricSource: {type: opentelemetry, spec: {metric: bad_total}}}, total: {metricSource: {type: opentelemetry, spec: {metric: requests_total}}}}}`, `{target: 0.9}`)
	for _, absurd := range []float64{1e19, 1e300, math.MaxInt64} {
		for _, temporality := range []pmetric.AggregationTemporality{deltas, cumulative} {
			r := newRig(t, docs, nil)
			bad, total := 0.0, 0.0
			for m := range 12 {
				at := t0.Add(time.Duration(m) * time.Minute)
				for name, sum := range map[string]*float64{"bad_total": &bad, "requests_total": &total} {
					v := map[string]float64{"bad_total": 10, "requests_total": 100}[name]
					if *sum += v; temporality == cumulative {
						v = *sum
					}
					md, points := sumOf(name, temporality, true)
					addNumber(points, at.Add(-time.Minute), at.Add(time.Second), v)
					if m == 5 {
						addNumber(points, at.Add(-time.Minute), at.Add(2*time.Second), absurd)
					}
					r.send(md)
				}
			}
			assert.Equal(t, int64(2), r.refused()["implausible"])
			for outcome, least := range map[string]float64{"good": 900, "bad": 100} {
				v, _ := r.last("slo.sli.events", map[string]string{"outcome": outcome})
				assert.GreaterOrEqual(t, v, least)
				assert.LessOrEqual(t, v, 1.2*least)
			}
		}
	}
}

func TestAHistogramWithoutBoundariesIsNoMeasurement(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
	p := points.AppendEmpty()
	fillHistogram(p, t0, t0.Add(time.Minute), nil, 100)
	p.SetSum(10)
	r.send(md)
	assert.Equal(t, map[string]int64{"unsupported_shape": 1}, r.refused())
	_, told := r.last("slo.sli.events", map[string]string{"outcome": "bad"})
	assert.False(t, told, "what cannot be told is not booked as bad")
}

// Scenario: both consumers have refused, and take again when the Collector ends.
// Guarantees: what waits is told before it ends, however long the consumers were to be left alone.
func TestWhatWaitsIsToldAtTheEnd(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	r.out.Metrics, r.out.Logs = consumertest.NewErr(assert.AnError), consumertest.NewErr(assert.AnError)
	for _, md := range hour(1, 2, 3, 4) {
		r.send(md)
	}
	require.NotEmpty(t, r.outbox.pending)
	require.True(t, r.outbox.Paused(r.clock))
	require.True(t, r.untold.Paused(r.clock))
	r.out.Metrics, r.out.Logs = r.metrics, r.logs
	r.work.Start()
	require.NoError(t, r.Shutdown(t.Context()))
	assert.Equal(t, 2, r.logs.LogRecordCount())
	assert.Positive(t, r.metrics.DataPointCount())
}
