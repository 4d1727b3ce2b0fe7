// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// ttftSLO promises that 95 % of first tokens come within 800 ms; three missed windows of five minutes are a violation.
const ttftSLO = `
apiVersion: openslo/v1
kind: SLO
metadata:
  name: chat-ttft
  annotations: {otelcol-llm.dev/slo-id: "llm:chat:ttft:p95", otelcol-llm.dev/class: latency}
spec:
  service: chat
  indicator:
    metadata: {name: ttft}
    spec:
      thresholdMetric:
        metricSource: {type: opentelemetry, spec: {signal: metrics, metric: "vllm:time_to_first_token_seconds", unit: ms}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 800, target: 0.95}]
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: chat-ttft-3x5m}
spec: {window: 5m, consecutiveWindows: 3, when: {all: [{slo: chat-ttft}]}, onNoData: hold}
`

// origin is a full hour, well in the past: the tests send in seconds what happened in an hour.
func origin() time.Time { return time.Now().UTC().Truncate(time.Hour).Add(-3 * time.Hour) }

// ttftPoint is a histogram of requests of one moment.
type ttftPoint struct {
	at         time.Time
	fast, slow uint64 // 300 ms and 2 s
}

// hourOf spreads n points over an hour from t0. In the windows given (counted from 1), a tenth of the requests is slow.
func hourOf(t0 time.Time, n int, slow ...int) []ttftPoint {
	points := make([]ttftPoint, n)
	for i := range points {
		at := t0.Add(time.Duration(i) * time.Hour / time.Duration(n))
		points[i] = ttftPoint{at, 20, 0}
		if slices.Contains(slow, int(at.Sub(t0)/(5*time.Minute))+1) {
			points[i] = ttftPoint{at, 18, 2}
		}
	}
	return points
}

// batchOf makes one request of points.
func batchOf(points []ttftPoint) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("vllm:time_to_first_token_seconds")
	m.SetUnit("s")
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	for _, p := range points {
		dp := m.Histogram().DataPoints().AppendEmpty()
		dp.SetStartTimestamp(pcommon.NewTimestampFromTime(p.at.Add(-time.Second)))
		dp.SetTimestamp(pcommon.NewTimestampFromTime(p.at))
		dp.ExplicitBounds().FromRaw([]float64{0.1, 0.25, 0.5, 0.8, 1, 2.5})
		dp.BucketCounts().FromRaw([]uint64{0, 0, p.fast, 0, 0, p.slow, 0})
		dp.SetCount(p.fast + p.slow)
	}
	return md
}

// verdict is what a run of an hour ends in.
type verdict struct {
	events     []event
	good, bad  float64
	violations float64
}

// runHour sends points in batches of a size and returns the verdict once the whole hour is judged.
func runHour(t *testing.T, t0 time.Time, points []ttftPoint, size int) verdict {
	t.Helper()
	j := startJudge(t, ttftSLO)
	for batch := range slices.Chunk(points, size) {
		j.send(batchOf(batch))
	}
	j.send(batchOf([]ttftPoint{{at: t0.Add(time.Hour)}})) // nothing comes after the hour
	j.judged(t0.Add(time.Hour), "llm:chat:ttft:p95")
	v := verdict{events: j.events(t0)}
	for name, to := range map[string]*float64{"good": &v.good, "bad": &v.bad} {
		p, ok := j.newest("slo.sli.events", map[string]string{"outcome": name})
		require.True(t, ok)
		*to = p.value
	}
	p, ok := j.newest("slo.violations", map[string]string{"slo.policy": "chat-ttft-3x5m"})
	require.True(t, ok, "the counter is there from zero on")
	v.violations = p.value
	return v
}

// Scenario: an hour of histograms is sent in seconds; P95 is above 800 ms in the given windows of five minutes.
// Guarantees: three in a row open exactly one violation, when the third closes; it closes with the first good window.
func TestThreeMissedWindowsInARowAreOneViolation(t *testing.T) {
	t.Parallel()
	f := func(slow []int, want ...event) {
		t.Run(fmt.Sprint(slow), func(t *testing.T) {
			parallel(t)
			t0 := origin()
			v := runHour(t, t0, hourOf(t0, 120, slow...), 7)
			ids := map[string]bool{}
			for i := range v.events {
				assert.Equal(t, []any{"llm:chat:ttft:p95"}, v.events[i].slos)
				ids[v.events[i].id] = true
				v.events[i].slos, v.events[i].id = nil, ""
			}
			assert.Len(t, ids, len(want)/2, "what opens a violation and what closes it name the same one")
			assert.NotContains(t, ids, "")
			assert.Equal(t, want, v.events, "slow in %v", slow)
			assert.InDelta(t, float64(len(want)/2), v.violations, 0)
			assert.InDelta(t, 120*20, v.good+v.bad, 0)
		})
	}
	f([]int{4, 5, 6, 7}, event{name: "slo.violation.opened", minute: 30}, event{name: "slo.violation.closed", minute: 40})
	f([]int{4, 5})
	f([]int{3, 5, 7})
}

// Guarantees: how the input is cut into requests has no say in the verdict.
func TestOneBatchOrAThousandGiveTheSameVerdict(t *testing.T) {
	parallel(t)
	t0 := origin()
	points := hourOf(t0, 1000, 4, 5, 6, 7)
	one, thousand := runHour(t, t0, points, 1000), runHour(t, t0, points, 1)
	require.Len(t, one.events, 2)
	assert.Equal(t, one, thousand)
}

// qualitySLOs promise that at most 8 % of answers are refusals and at most 5 % hallucinations; only both together in the
// same hour are a violation.
const qualitySLOs = `
apiVersion: openslo/v1
kind: SLO
metadata:
  name: refusal
  annotations: {otelcol-llm.dev/slo-id: "llm:chat:refusal:92", otelcol-llm.dev/class: quality}
spec:
  service: chat
  indicator:
    metadata: {name: refusal}
    spec:
      ratioMetric:
        counter: true
        good: {metricSource: {type: opentelemetry, spec: {metric: llm.answers.accepted}}}
        total: {metricSource: {type: opentelemetry, spec: {metric: llm.answers}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.92}]
---
apiVersion: openslo/v1
kind: SLO
metadata:
  name: hallucination
  annotations: {otelcol-llm.dev/slo-id: "llm:chat:hallucination:95", otelcol-llm.dev/class: quality}
spec:
  service: chat
  indicator:
    metadata: {name: hallucination}
    spec:
      ratioMetric:
        counter: true
        bad: {metricSource: {type: opentelemetry, spec: {metric: llm.answers.hallucinated}}}
        total: {metricSource: {type: opentelemetry, spec: {metric: llm.answers}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.95}]
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: chat-quality}
spec: {window: 1h, when: {all: [{slo: refusal}, {slo: hallucination}]}}
`

// Scenario: counters of answers, of which a share is accepted and a share hallucinated, over one hour.
// Guarantees: a policy over two promises needs both to be broken in the same window.
func TestTwoPromisesBrokenTogetherAreOneViolation(t *testing.T) {
	t.Parallel()
	f := func(accepted, hallucinated float64, want int) {
		t.Run(fmt.Sprint(accepted, " ", hallucinated), func(t *testing.T) {
			parallel(t)
			t0 := origin()
			j := startJudge(t, qualitySLOs)
			for minute := range 62 { // one beyond the hour
				md := pmetric.NewMetrics()
				rm := md.ResourceMetrics().AppendEmpty()
				rm.Resource().Attributes().PutStr("service.name", "gateway")
				sm := rm.ScopeMetrics().AppendEmpty()
				for name, share := range map[string]float64{"llm.answers": 1, "llm.answers.accepted": accepted, "llm.answers.hallucinated": hallucinated} {
					m := sm.Metrics().AppendEmpty()
					m.SetName(name)
					m.SetEmptySum().SetIsMonotonic(true)
					m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
					dp := m.Sum().DataPoints().AppendEmpty()
					dp.SetTimestamp(pcommon.NewTimestampFromTime(t0.Add(time.Duration(minute)*time.Minute - time.Second)))
					dp.SetIntValue(int64(share * 1000 * float64(minute)))
				}
				j.send(md)
			}
			j.judged(t0.Add(time.Hour), "llm:chat:refusal:92", "llm:chat:hallucination:95")
			opened := 0
			for _, e := range j.events(t0) {
				if e.name == "slo.violation.opened" {
					opened++
					assert.Equal(t, []any{"llm:chat:refusal:92", "llm:chat:hallucination:95"}, e.slos)
				}
			}
			assert.Equal(t, want, opened, "accepted %v, hallucinated %v", accepted, hallucinated)
			p, ok := j.newest("slo.sli.value", map[string]string{"slo_id": "llm:chat:refusal:92", "target": "0.9200", "unit": "ratio"})
			require.True(t, ok)
			assert.InDelta(t, accepted, p.value, 1e-9)
		})
	}
	f(0.91, 0.01, 0)
	f(0.99, 0.06, 0)
	f(0.91, 0.06, 1)
}
