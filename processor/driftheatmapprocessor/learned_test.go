// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/frame"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/metadata"
)

// Scenario: the share of a promise is edited, from 99 % to 95 % of requests, while it runs or across a restart, and the service becomes
// slower than it was. Guarantees: its baselines go on, and the drift is seen as if it had always been 95 %.
func TestAnEditedTargetStillSeesDrift(t *testing.T) {
	f := func(edit func(r *rig, docs string) *rig, from string) {
		t.Helper()
		of := func(target string) string {
			return sloOf("chat-ttft", "llm:chat:ttft:x", `thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: "vllm:time_to_first_token_seconds"}}}`, "{op: lte, value: 2, target: "+target+"}")
		}
		r := on(t, newDisk(), of(from), func(c *Config) { c.ReferenceWindows = 12 })
		random := rand.New(rand.NewPCG(1, 1))
		for n := range 40 {
			median := 0.08
			if n >= 25 {
				median = 0.1 // whose P95 is below what was the P99
			}
			if n == 15 {
				r = edit(r, of("0.95"))
			}
			r.send(windowOf(n, cell{eu, traffic(random, 2000, median)}))
			r.wait(0)
			switch {
			case n >= 3 && n <= 25:
				require.Equal(t, "ok", r.state("cloud.region", "eu"), "window %d", n)
			case n >= 28:
				require.Equal(t, "drifting", r.state("cloud.region", "eu"), "window %d", n)
			}
		}
		assert.InEpsilon(t, 0.08*1.93, r.last("slo.drift.baseline", "baseline", "frozen"), 0.05)
	}
	f(func(r *rig, _ string) *rig { return r }, "0.95")
	f(func(r *rig, docs string) *rig {
		r.host.catalog = parse(r.t, docs)
		return r
	}, "0.99")
	f(func(r *rig, docs string) *rig {
		r.save(r.t.Context())
		disk := r.host.others[diskID].(*disk)
		return on(r.t, disk, docs, func(c *Config) { c.ReferenceWindows = 12 })
	}, "0.99")
}

// Scenario: what a promise was about is not in a checkpoint, as it was not at first. Guarantees: it is taken up.
func TestACheckpointWithoutWhatWasPromisedIsTakenUp(t *testing.T) {
	d := newDisk()
	r := on(t, d, promise(0.2), nil)
	r.send(constants(0, 400, 0.1, eu))
	require.NoError(t, r.keeper.Store().Save(t.Context(), without(t, r.Take(), promisedPart), nil))
	r = on(t, d, promise(0.2), nil)
	assert.True(t, r.known)
	assert.Equal(t, 1, r.heat.Len())
}

func without(t *testing.T, s frame.Snapshot, part string) map[string][]byte {
	parts, err := frame.Encode(s)
	require.NoError(t, err)
	require.Contains(t, parts, part)
	delete(parts, part)
	return parts
}

// Scenario: a canary is slower from its first window on, and then rolled back. Guarantees: what was degraded is no part of what was
// normal once; its baseline version's reference is complete meanwhile.
func TestADegradedCanaryIsNotWhatWasNormalOnce(t *testing.T) {
	r := newRig(t, promise(0.8), func(c *Config) { withCanary(c); c.ReferenceWindows = 6 })
	random := rand.New(rand.NewPCG(1, 1))
	frozen := func(version string) float64 {
		return r.last("slo.drift.baseline", "baseline", "frozen", "model.version", version)
	}
	for n := range 20 {
		r.send(windowOf(n, cell{map[string]any{"cloud.region": "eu", "model.version": "v1"}, traffic(random, 1000, 0.08)},
			cell{map[string]any{"cloud.region": "eu", "model.version": "v2"}, traffic(random, 1000, 0.1)}))
	}
	require.Equal(t, "degraded", r.state("model.version", "v2"))
	assert.InEpsilon(t, 0.08*1.93, frozen("v1"), 0.05)
	assert.True(t, math.IsNaN(frozen("v2")), "%v", frozen("v2"))
	for n := 20; n < 45; n++ {
		r.send(windowOf(n, cell{map[string]any{"cloud.region": "eu", "model.version": "v1"}, traffic(random, 1000, 0.08)},
			cell{map[string]any{"cloud.region": "eu", "model.version": "v2"}, traffic(random, 1000, 0.08)}))
	}
	assert.Equal(t, "ok", r.state("model.version", "v2"))
	assert.InEpsilon(t, 0.08*1.93, frozen("v2"), 0.05)
}

// Scenario: a client sends requests with points of a gauge again that were taken already, also after a restart. Guarantees: each counts
// once, whatever the order and however many there are in one request; another number at the same time is another value.
func TestAGaugeThatIsSentAgainCountsOnce(t *testing.T) {
	d := newDisk()
	r := on(t, d, promise(0.2), nil)
	batch := func(from, to int) pmetric.Metrics {
		md := constants(0, 0, 0, eu)
		points := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
		for i := from; i < to; i++ {
			p := points.AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(at(0).Add(time.Duration(i) * time.Second)))
			p.SetDoubleValue(0.1)
			_ = p.Attributes().FromRaw(eu)
		}
		return md
	}
	r.send(batch(20, 40))
	r.send(batch(0, 20)) // overtaken
	r.send(batch(20, 40))
	r.send(batch(0, 40))
	assert.Equal(t, map[string]int64{"": 40}, r.counted("points_accepted"))
	assert.Equal(t, map[string]int64{"duplicate": 60}, r.counted("points_refused"))
	r.save(t.Context())
	r = on(t, d, promise(0.2), nil)
	r.send(batch(0, 140))
	r.send(batch(0, 140))
	assert.Equal(t, map[string]int64{"": 100}, r.counted("points_accepted"))
	assert.Equal(t, map[string]int64{"duplicate": 40 + 64, "stale": 140 - 64}, r.counted("points_refused"))
	other := batch(139, 140)
	other.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).SetDoubleValue(0.15)
	r.send(other)
	assert.Equal(t, map[string]int64{"": 101}, r.counted("points_accepted"))
}

// Guarantees: results of a processor with a name carry it, so that two that are set up in another way do not write the same series.
func TestResultsOfANamedProcessorCarryItsName(t *testing.T) {
	f := func(want any, name string) {
		t.Helper()
		r := newRig(t, promise(0.2), nil)
		r.id = component.NewIDWithName(metadata.Type, name)
		r.send(constants(0, 400, 0.1, eu))
		r.wait(10 * time.Minute)
		seen := 0
		r.each(func(_ pmetric.Metric, p pmetric.NumberDataPoint) {
			seen++
			assert.Equal(t, want, p.Attributes().AsRaw()[componentKey])
		})
		assert.Positive(t, seen)
	}
	f(nil, "")
	f("drift_heatmap/slow", "slow")
}

// Guarantees: a promise of less than nothing keeps its baselines while it is one: they hold what lies on the objective's side of zero.
func TestAPromiseThatCrossesZeroBeginsAnew(t *testing.T) {
	of := func(objective string) string {
		return sloOf("margin", "llm:chat:margin:p95", `thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: "vllm:time_to_first_token_seconds", range: [-1000, 1000]}}}`,
			"{op: gte, value: "+objective+", target: 0.95}")
	}
	r := newRig(t, of("-10"), nil)
	f := func(cells int, objective string) {
		t.Helper()
		r.host.catalog = parse(t, of(objective))
		r.wait(0)
		assert.Equal(t, cells, r.heat.Len())
	}
	for n := range 3 {
		r.send(constants(n, 400, -50, eu))
	}
	assert.Equal(t, "degraded", r.state("cloud.region", "eu"))
	assert.InEpsilon(t, -50, r.last("slo.drift.baseline", "baseline", "dynamic"), 0.022)
	f(1, "-20")
	f(0, "20")
}
