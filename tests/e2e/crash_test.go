// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// regionalSLOs are promises, for each region apart, on histograms and on counters. Half of the events of a window may be
// bad, and in the stories either none or all are: whatever share of a window a crash loses, or hands to the next one, its
// verdict stays.
const regionalSLOs = `
apiVersion: openslo/v1
kind: SLO
metadata:
  name: ttft
  annotations: {otelcol-llm.dev/slo-id: "llm:chat:ttft:p50", otelcol-llm.dev/class: latency, otelcol-llm.dev/group-by: cloud.region}
spec:
  service: chat
  indicator: {metadata: {name: ttft}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: "vllm:time_to_first_token_seconds"}}}}}
  timeWindow: [{duration: 1d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 0.8, target: 0.5}]
---
apiVersion: openslo/v1
kind: SLO
metadata:
  name: errors
  annotations: {otelcol-llm.dev/slo-id: "llm:chat:errors:50", otelcol-llm.dev/class: availability, otelcol-llm.dev/group-by: cloud.region}
spec:
  service: chat
  indicator:
    metadata: {name: errors}
    spec:
      ratioMetric:
        counter: true
        bad: {metricSource: {type: opentelemetry, spec: {metric: llm.requests.failed}}}
        total: {metricSource: {type: opentelemetry, spec: {metric: llm.requests}}}
  timeWindow: [{duration: 1d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{target: 0.5}]
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: ttft-2x30m}
spec: {window: 30m, consecutiveWindows: 2, when: {all: [{slo: ttft}]}}
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: errors-1x30m}
spec: {window: 30m, when: {all: [{slo: errors}]}}
`

// A day's quarter, told in steps.
const (
	stepLength  = 30 * time.Second
	steps       = int(6 * time.Hour / stepLength)
	windowSteps = int(30 * time.Minute / stepLength)
	perStep     = 10 // requests, of a replica or a gateway
	replicas    = 2  // of a region
)

// broken are the windows of half an hour, counted from 0, in which all requests of a region are bad.
var broken = map[string][]int{"eu": {2, 3, 4, 7, 8}, "us": {1, 2, 9, 10}, "ap": {5}}

var regions = []string{"ap", "eu", "us"}

func isBad(region string, step int) bool { return slices.Contains(broken[region], step/windowSteps) }

// The step beyond the story, in which nothing happens, tells that it is over. Where more follow, nothing in them is bad.
const afterwards = steps

// stepTime is the time of the points of a step, which holds what happened since that of the step before.
func stepTime(t0 time.Time, step int) time.Time {
	return t0.Add(time.Duration(step+1)*stepLength - time.Second)
}

// scrapes are the histograms of all replicas as of a step, cumulative since t0.
func scrapes(t0 time.Time, step int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, region := range regions {
		var fast, slow uint64
		for i := range step + 1 {
			if i == afterwards {
				continue
			}
			if isBad(region, i) {
				slow += perStep
			} else {
				fast += perStep
			}
		}
		for replica := range replicas {
			rm := md.ResourceMetrics().AppendEmpty()
			rm.Resource().Attributes().PutStr("cloud.region", region)
			rm.Resource().Attributes().PutStr("service.instance.id", "vllm-"+string(rune('a'+replica)))
			m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName("vllm:time_to_first_token_seconds")
			m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := m.Histogram().DataPoints().AppendEmpty()
			p.SetStartTimestamp(pcommon.NewTimestampFromTime(t0))
			p.SetTimestamp(pcommon.NewTimestampFromTime(stepTime(t0, step)))
			p.ExplicitBounds().FromRaw([]float64{0.1, 0.25, 0.5, 0.8, 1, 2.5})
			p.BucketCounts().FromRaw([]uint64{0, 0, fast, 0, 0, slow, 0})
			p.SetCount(fast + slow)
		}
	}
	return md
}

// increments are the counters of all gateways for a step, delta.
func increments(t0 time.Time, step int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, region := range regions {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("cloud.region", region)
		rm.Resource().Attributes().PutStr("service.name", "gateway")
		sm := rm.ScopeMetrics().AppendEmpty()
		put := func(name string, n int64) {
			m := sm.Metrics().AppendEmpty()
			m.SetName(name)
			m.SetEmptySum().SetIsMonotonic(true)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			p := m.Sum().DataPoints().AppendEmpty()
			p.SetStartTimestamp(pcommon.NewTimestampFromTime(stepTime(t0, step-1)))
			p.SetTimestamp(pcommon.NewTimestampFromTime(stepTime(t0, step)))
			p.SetIntValue(n)
		}
		all, failed := int64(0), int64(0)
		if step != afterwards {
			all = perStep
		}
		if isBad(region, step) {
			failed = all
		}
		put("llm.requests", all)
		put("llm.requests.failed", failed)
	}
	return md
}

// replay tells the story. A scrape that fails is over: the next one tells what it would have. Increments are sent until they
// are acknowledged.
type replay struct {
	mu   sync.Mutex
	acks []uint64 // by step: how many checkpoints the process had written when it was acknowledged
}

// run tells the story, and that it is over, at a pace. Where most is set, no more steps than that are told between two checkpoints: how
// much is lost with a process is a matter of the story then, and not of how fast a disk is.
func (r *replay) run(ctx context.Context, x *teller, t0 time.Time, pace time.Duration, most int) {
	written, since := uint64(0), 0
	for step := range afterwards + 1 {
		_ = post(ctx, x.otlp, scrapes(t0, step))
		for delta := increments(t0, step); post(ctx, x.otlp, delta) != nil; {
			if ctx.Err() != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		n, there := uint64(unknown), false
		for ask := most > 0; ask && ctx.Err() == nil; {
			if n, there = x.saves("slo"); there && n != written {
				written, since = n, step
			}
			if ask = step-since >= most; ask {
				time.Sleep(10 * time.Millisecond)
			}
		}
		if !there {
			n = unknown
		}
		r.mu.Lock()
		r.acks = append(r.acks, n)
		r.mu.Unlock()
		time.Sleep(pace)
	}
}

// unknown is a number of checkpoints that nobody told.
const unknown = math.MaxUint64

func (r *replay) step() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.acks)
}

// unsaved are how many of the steps from begin to end may be in no checkpoint, if so many were written in the end. When a step
// was acknowledged, the next checkpoint may have begun already; that after it has the step.
func (r *replay) unsaved(begin, end int, written uint64) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for step := end - 1; step >= begin; step-- {
		if n := r.acks[step]; n != unknown && n+2 <= written {
			return end - step
		}
	}
	return end - begin + 1 // with one that was acknowledged, of which the story does not know yet
}

var crashSeed = flag.Uint64("crash-seed", 4, "when the process is killed; 0 is another time with each run")

// Scenario: six hours of three regions are replayed in a minute, and meanwhile the Collector is killed ten times, at any
// moment. It writes a checkpoint each second, which is seven minutes of the story.
// Guarantees: of cumulative input every event is counted once, and the budget is that of a run that nobody disturbed; of delta
// input, that is sent until it is acknowledged, none is counted twice, and no more is lost than was acknowledged since the last
// checkpoint before a kill began; each violation is told, opened and closed, by the same id and as of the same time, and no other.
func TestTenCrashesLoseNoMoreThanACheckpointIntervalAndNoViolation(t *testing.T) {
	parallel(t)
	const (
		kills = 10
		pace  = 65 * time.Millisecond
		most  = 14 // steps between two checkpoints
	)
	t0 := time.Now().UTC().Truncate(time.Hour).Add(-8 * time.Hour)
	quietTo, to := newSink(t), newSink(t)
	quiet := startTeller(t, regionalSLOs, brisk, quietTo.URL, true)
	(&replay{}).run(t.Context(), quiet, t0, 0, 0)

	x := startTeller(t, regionalSLOs, kept, to.URL, true)
	began := time.Now()
	story, over := &replay{}, make(chan struct{})
	go func() {
		defer close(over)
		story.run(t.Context(), x, t0, pace, most)
	}()
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-crash-seed=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	canLose, begin := 0, 0
	for i := range kills {
		// One in each tenth of the story. The first checkpoint is a second after the start.
		at := i*steps/kills + steps/kills*15/100 + random.IntN(steps/kills*7/10)
		if i == 0 {
			at = steps / kills * 6 / 10
		}
		require.Eventually(t, func() bool { return story.step() >= at }, patience, time.Millisecond, "the story stands still")
		time.Sleep(time.Duration(random.IntN(int(pace))))
		written, _ := x.saves("slo")
		x.Kill()
		end := story.step()
		canLose += perStep * story.unsaved(begin, end, written)
		begin = end
		x.start()
	}
	<-over
	end := t0.Add(6 * time.Hour)
	quietTo.waitJudged(t, end, 2*len(regions))
	to.waitJudged(t, end, 2*len(regions))
	checkpoints := x.checkpoints()
	assert.Equal(t, 0, x.Stop())
	assert.Equal(t, 0, quiet.Stop())

	want, _ := quietTo.once()
	got, came := to.once()
	assert.Len(t, want, 8+10, "two windows in a row were broken four times, single ones five times: %v", want)
	assert.Equal(t, want, got)
	for _, region := range regions {
		bad := float64(perStep * windowSteps * len(broken[region]))
		all := float64(perStep * steps)
		count := func(s *sink, slo, outcome string) float64 {
			t.Helper()
			return s.last(t, "slo.sli.events", "slo_id", slo, "cloud.region", region, "outcome", outcome).value
		}
		gauge := func(s *sink, name, slo string) float64 {
			t.Helper()
			return s.last(t, name, "slo_id", slo, "cloud.region", region).value
		}
		const ttft, errors = "llm:chat:ttft:p50", "llm:chat:errors:50"
		for _, s := range []*sink{quietTo, to} {
			assert.InDelta(t, replicas*bad, count(s, ttft, "bad"), 0, region)
			assert.InDelta(t, replicas*(all-bad), count(s, ttft, "good"), 0, region)
			assert.InDelta(t, 1-bad/all/0.5, gauge(s, "slo.error_budget.remaining", ttft), 1e-9, region)
		}
		assert.InDelta(t, bad, count(quietTo, errors, "bad"), 0, region)
		assert.InDelta(t, all-bad, count(quietTo, errors, "good"), 0, region)
		for _, slo := range []string{ttft, errors} {
			assert.InDelta(t, gauge(quietTo, "slo.error_budget.coverage", slo), gauge(to, "slo.error_budget.coverage", slo), 0.005, "%s %s", slo, region)
			assert.InDelta(t, gauge(quietTo, "slo.violations", slo), gauge(to, "slo.violations", slo), 0, "%s %s", slo, region)
		}

		gotBad, gotGood := count(to, errors, "bad"), count(to, errors, "good")
		lost := all - gotBad - gotGood
		assert.LessOrEqual(t, gotBad, bad, region)
		assert.LessOrEqual(t, gotGood, all-bad, region)
		assert.LessOrEqual(t, lost, float64(canLose), region)
		assert.InDelta(t, 1-gotBad/(gotBad+gotGood)/0.5, gauge(to, "slo.error_budget.remaining", errors), 1e-9, "the books of %s and its counters agree", region)
		t.Logf("%s: of %g events that were sent as increments, %g were lost; %d were acknowledged since the last checkpoints before a kill began", region, all, lost, canLose)
	}
	t.Logf("%d kills in %s; %d events, of which %d were told again; checkpoints: %s", kills, time.Since(began).Round(time.Second), len(want), came-len(got), checkpoints)
}
