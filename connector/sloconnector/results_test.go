// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/frame"
)

// names are the metrics that were told.
func (r *rig) names() map[string]bool {
	all := map[string]bool{}
	for _, md := range r.metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				all[m.Name()] = true
			}
		}
	}
	return all
}

func TestMetricsAreSwitchedOneByOne(t *testing.T) {
	all := map[string]bool{}
	for _, m := range table {
		all[m.Name] = m.Default
	}
	f := func(name string, on bool) {
		t.Helper()
		want := map[string]bool{}
		for name, on := range all {
			if on {
				want[name] = true
			}
		}
		configure := func(*Config) {}
		if name != "" {
			configure = func(c *Config) { c.Metrics = switched(t, name, on) }
			if delete(want, name); on {
				want[name] = true
			}
		}
		delete(want, sliIncomplete.Name) // nobody tells it anything: there are no parts
		r := newRig(t, ttftDocs, configure)
		for _, md := range hour(1, 2, 3, 4) {
			r.send(md)
		}
		r.wait(2 * time.Minute)
		assert.Equal(t, want, r.names(), name)
	}
	f("", false)
	for name, on := range all {
		f(name, !on)
	}
}

// Guarantees: the dead man's signal is there before any input, grows while the source is stuck, and does not need the repetition
// of what has not changed.
func TestTheLagIsTheDeadMansSignal(t *testing.T) {
	for _, refresh := range []time.Duration{15 * time.Second, 0} {
		r := newRig(t, ttftDocs, func(c *Config) { c.RefreshInterval = refresh })
		r.clock = t0
		r.begun = t0
		wait := func() float64 {
			r.metrics.Reset()
			for range 30 {
				r.wait(time.Second)
			}
			v, ok := r.last("slo.evaluation.lag", nil)
			require.True(t, ok)
			return v
		}
		before := wait()
		assert.Greater(t, before, 0.0)
		assert.Greater(t, wait(), before)

		for range 5 { // the source lives
			md, points := gaugeOf("vllm:time_to_first_token_seconds")
			addNumber(points, time.Time{}, r.clock, 0.1)
			r.send(md)
			r.wait(time.Second)
		}
		alive := wait()
		assert.Less(t, alive, 31.0)
		for range 5 { // one source is stuck, and the other one repeats itself
			md, points := gaugeOf("vllm:time_to_first_token_seconds")
			addNumber(points, time.Time{}, t0.Add(time.Minute), 0.1)
			r.send(md)
		}
		stuck := wait()
		assert.Greater(t, stuck, alive-1)
	}
}

// Scenario: 6,000 requests in an hour, 200 of which were slow, with a target of 95 %.
// Guarantees: the numbers are those that one gets by hand.
func TestBudgetAndBurnRateByHand(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	for _, md := range hour(9, 10, 11, 12) {
		r.send(md)
	}
	r.wait(2 * time.Minute)
	// Four windows of 450 good and 50 bad events in the last 20 minutes of the hour.
	assert.Equal(t, [2]float64{5800, 200}, r.outcomes(ttftID))
	assert.InDelta(t, 1-200.0/(0.05*6000), r.result("slo.error_budget.remaining", ttftID), 1e-9)
	assert.InDelta(t, 200.0/6000/0.05, r.result("slo.burn_rate", ttftID, "window", "1d"), 1e-9)
	assert.InDelta(t, 0.1/0.05, r.result("slo.burn_rate", ttftID, "window", "5m"), 0.5)
	// An hour in 28 days, from the first input's minute to the last.
	assert.InDelta(t, 60.0/(28*24*60), r.result("slo.error_budget.coverage", ttftID), 2e-5)
}

// Scenario: SLOs that are never told all that a result can have: a short time window, no time window, a composite.
// Guarantees: what ends them ends what was told, and invents no series.
func TestOnlyWhatWasToldIsEnded(t *testing.T) {
	short := strings.Replace(ttftDocs, "duration: 28d", "duration: 1d", 1)
	composite := ttftDocs + "---\n" + `
apiVersion: openslo/v1
kind: SLO
metadata: {name: both}
spec:
  service: chat
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives:
    - {displayName: one, target: 0.9, indicatorRef: a, compositeWeight: 1, op: lte, value: 0.8}
    - {displayName: two, target: 0.9, indicatorRef: b, compositeWeight: 1, op: lte, value: 0.8}
---
apiVersion: openslo/v1
kind: SLI
metadata: {name: a}
spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: "vllm:time_to_first_token_seconds"}}}}
---
apiVersion: openslo/v1
kind: SLI
metadata: {name: b}
spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: "vllm:time_to_first_token_seconds"}}}}
`
	for _, docs := range []string{ttftDocs, short, composite} {
		h := newHost(t, docs)
		r := newRigOn(t, h, nil)
		for _, md := range hour(1, 2, 3, 4, 5)[:24] {
			r.send(md)
		}
		r.wait(2 * time.Minute)
		h.catalog = newHost(t, strings.NewReplacer("chat-ttft", "other", ttftID, "llm:chat:other:p95").Replace(ttftDocs)).catalog
		told, ended := map[string]bool{}, map[string]bool{}
		collect := func(into map[string]bool, stale bool) {
			for _, md := range r.metrics.AllMetrics() {
				for _, rm := range md.ResourceMetrics().All() {
					for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
						for _, p := range numbers(m).All() {
							if id, ok := p.Attributes().Get("slo_id"); ok && id.Str() != "llm:chat:other:p95" && p.Flags().NoRecordedValue() == stale {
								into[fmt.Sprint(m.Name(), p.Attributes().AsRaw())] = true
							}
						}
					}
				}
			}
		}
		collect(told, false)
		r.wait(time.Second)
		collect(ended, true)
		assert.Equal(t, told, ended)
	}
}

// Scenario: the consumer refuses the end of a series.
func TestAnEndThatWasNotTakenIsToldAgain(t *testing.T) {
	h := newHost(t, ttftDocs)
	r := newRigOn(t, h, nil)
	for _, md := range hour()[:7] {
		r.send(md)
	}
	r.out.Metrics = consumertest.NewErr(errors.New("not now"))
	h.catalog = newHost(t, strings.NewReplacer("chat-ttft", "other", ttftID, "llm:chat:other:p95").Replace(ttftDocs)).catalog
	r.wait(time.Second)
	r.out.Metrics = r.metrics
	r.metrics.Reset()
	r.wait(2 * time.Second)
	ended := 0
	for _, md := range r.metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for _, p := range numbers(m).All() {
					if p.Flags().NoRecordedValue() {
						ended++
					}
				}
			}
		}
	}
	assert.Positive(t, ended)
}

// Guarantees: a consumer that refuses is asked less and less often, and not four times a second.
func TestAConsumerThatRefusesIsLeftAlone(t *testing.T) {
	r := newRig(t, ttftDocs, nil)
	asked := 0
	refusing, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { asked++; return errors.New("not now") })
	require.NoError(t, err)
	r.out.Metrics = refusing
	for i := range 60 {
		md, points := gaugeOf("vllm:time_to_first_token_seconds")
		addNumber(points, time.Time{}, t0.Add(time.Duration(i)*time.Second), 0.1)
		r.consume(t.Context(), md)
		for range 4 {
			r.wait(frame.Tick)
		}
	}
	assert.LessOrEqual(t, asked, 7)
}

// Guarantees: a score of -1 counts where the range says that there can be one.
func TestMinusOneIsAValueWhereTheRangeSaysSo(t *testing.T) {
	f := func(spec string, want [2]float64, refused map[string]int64) {
		t.Helper()
		docs := sloOf("mood", "llm:chat:mood:x", ", otelcol-llm.dev/class: quality", thresholdOf(`metric: mood, unit: ratio`+spec), `{op: gte, value: 0, target: 0.5}`)
		r := newRig(t, docs, nil)
		md, points := gaugeOf("mood")
		for i, v := range []float64{-1, 0.5} {
			addNumber(points, time.Time{}, t0.Add(time.Duration(i)*time.Second), v)
		}
		r.send(md)
		assert.Equal(t, want, r.outcomes("llm:chat:mood:x"))
		assert.Equal(t, refused, r.refused())
	}
	f("", [2]float64{1, 0}, map[string]int64{"sentinel": 1})
	f(", range: [-1, 1]", [2]float64{1, 1}, map[string]int64{})
	f(", range: [0, 1]", [2]float64{1, 0}, map[string]int64{"sentinel": 1})
}

// Scenario: delta points that all have the start of their process, or of time, as their start.
// Guarantees: they count, and do not claim that somebody has watched since then.
func TestAStartLongAgoIsNoCoverage(t *testing.T) {
	for _, start := range []time.Time{time.Unix(0, 1), t0.Add(-20 * 24 * time.Hour)} {
		for name, one := range map[string]func(at time.Time) pmetric.Metrics{
			"explicit": func(at time.Time) pmetric.Metrics {
				md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
				fillHistogram(points.AppendEmpty(), start, at, ttftBounds, 0, 0, 10, 0, 0, 0, 0)
				return md
			},
			"exponential": func(at time.Time) pmetric.Metrics { return exponentialOf(deltas, start, at, 1) },
			"sum": func(at time.Time) pmetric.Metrics {
				md, points := sumOf("vllm:time_to_first_token_seconds", deltas, true)
				addNumber(points, start, at, 10)
				return md
			},
		} {
			r := newRig(t, ttftDocs, nil)
			for minute := range 5 {
				r.send(one(t0.Add(time.Duration(minute) * time.Minute)))
			}
			r.wait(2 * time.Minute)
			assert.InDelta(t, 4.0/(28*24*60), r.result("slo.error_budget.coverage", ttftID), 2.0/(28*24*60), name)
			assert.Empty(t, r.refused(), name)
		}
	}
}

// Scenario: a window of five minutes, a lateness of half a minute, a backend that looks back for five minutes.
// Guarantees: while input comes, the verdict is never older than a minute and the lateness, and its time never goes back.
func TestAVerdictIsNeverStale(t *testing.T) {
	r := newRig(t, ttftDocs, func(c *Config) { c.Lateness = 30 * time.Second })
	r.clock = t0
	var newest time.Time
	for i, md := range hour()[:20] {
		r.clock = t0.Add(time.Duration(i)*time.Minute + 30*time.Second)
		r.send(md)
		for range 4 {
			r.wait(15 * time.Second)
		}
		for _, md := range r.metrics.AllMetrics() {
			for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
				if m.Name() == state.Name {
					at := m.Gauge().DataPoints().At(0).Timestamp().AsTime()
					assert.False(t, at.Before(newest), "%s after %s", at, newest)
					newest = at
				}
			}
		}
		r.metrics.Reset()
		if i > 6 {
			assert.LessOrEqual(t, r.clock.Sub(newest), 2*time.Minute+30*time.Second, "minute %d", i)
		}
	}
}
