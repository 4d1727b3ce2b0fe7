// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/internal/frame"
)

// logged is what the rig says in its log from now on.
func (r *rig) logged() *observer.ObservedLogs {
	core, logs := observer.New(zapcore.WarnLevel)
	r.set.Logger = zap.New(core)
	return logs
}

// explicit is a window of n values in a bucket of vLLM's that ends at a boundary, or in the last, which has no end.
func explicit(window int, n uint64, upTo float64, attributes map[string]any) pmetric.Metrics {
	bounds := []float64{0.1, 0.25, 0.5, 0.75, 1, 2.5}
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(ttft)
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	p := m.Histogram().DataPoints().AppendEmpty()
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(at(window).Add(-time.Minute)))
	p.SetTimestamp(pcommon.NewTimestampFromTime(at(window)))
	p.SetCount(n)
	p.ExplicitBounds().FromRaw(bounds)
	counts := make([]uint64, len(bounds)+1)
	for i := range counts {
		if i == len(bounds) || bounds[i] >= upTo {
			counts[i] = n
			break
		}
	}
	p.BucketCounts().FromRaw(counts)
	_ = p.Attributes().FromRaw(attributes)
	return md
}

// Scenario: an engine's buckets are too wide for the promise, or do not go so far. Guarantees: it is neither degraded nor ok, how far
// from the promise it is is not told, also after a restart, and the log says once which boundaries there are.
func TestWhatBucketsLeaveOpenIsSaidOnce(t *testing.T) {
	f := func(promised, upTo, above, to float64) {
		t.Helper()
		d := newDisk()
		r := on(t, d, promise(promised), nil)
		logs := r.logged()
		for n := range 6 {
			r.send(explicit(n, 1000, upTo, eu))
			r.wait(0)
		}
		r.wait(2 * time.Minute)
		require.Equal(t, "insufficient_data", r.state("cloud.region", "eu"))
		require.Equal(t, 1, logs.FilterField(zap.Float64("above", above)).FilterField(zap.Float64("up_to", to)).FilterField(zap.String("slo_id", "llm:chat:ttft:p95")).Len())
		require.Len(t, logs.All(), 1)
		assert.NotContains(t, fmt.Sprint(r.told()), "slo.drift.deviation")
		r.save(t.Context())
		r = on(t, d, promise(promised), func(c *Config) { c.RefreshInterval = time.Second })
		r.wait(0)
		assert.NotContains(t, fmt.Sprint(r.told()), "slo.drift.deviation")
	}
	f(0.6, 0.75, 0.5, 0.75)
	f(5, 100, 2.5, math.Inf(1))
}

// Scenario: one tenant has more combinations than there is room for; another one comes later, and breaks its promise. Guarantees: the
// later one has a cell of its own; what shares a cell is never ok, is counted, and is said once a minute.
func TestATenantDoesNotTakeAllCells(t *testing.T) {
	r := newRig(t, promise(0.2), func(c *Config) {
		c.MaxCells, c.Dimensions, c.MinSamples = 10, []Dimension{{Key: "tenant"}, {Key: "cloud.region"}}, 60
		c.TenantFrom = []string{"point:tenant"}
	})
	logs := r.logged()
	said := func() int {
		return logs.FilterMessageSnippet("there is no room for more cells").FilterField(zap.Int("max_cells", 10)).Len()
	}
	for n := range 4 {
		for i := range 20 {
			r.send(explicit(n, 60, 0.1, map[string]any{"tenant": "noisy", "cloud.region": fmt.Sprint("r", i)}))
		}
		r.send(explicit(n, 60, 0.5, map[string]any{"tenant": "quiet", "cloud.region": "eu"}))
		r.wait(frame.Tick)
	}
	require.Equal(t, 1, said(), "%v", logs.All())
	r.wait(2 * time.Minute)
	assert.Equal(t, 2, said())
	assert.Equal(t, "degraded", r.state("tenant", "quiet"))
	assert.Equal(t, "ok", r.state("tenant", "noisy", "cloud.region", "r0"))
	assert.Equal(t, "insufficient_data", r.state("otel.metric.overflow", "true"))
	assert.Equal(t, map[string]int64{"": 4 * 11}, r.counted("points_overflowed"))
	assert.Equal(t, map[string]int64{"": 11}, r.counted("cells"), "nine, one and what they share")
	r.wait(2 * time.Minute)
	assert.Equal(t, 2, said(), "nothing came since")
}

// Scenario: a change is told of after it was made, so that nothing is known of before. Guarantees: the cells are judged by all else, and
// the log says once that nothing is compared.
func TestAChangeThatIsToldTooLateIsSaid(t *testing.T) {
	r := newRig(t, promise(0.8), func(c *Config) { c.Canary.GetOrInsertDefault().ChangedAt = at(-1) })
	logs := r.logged()
	random := rand.New(rand.NewPCG(1, 1))
	for n := range 5 {
		r.send(windowOf(n, cell{eu, traffic(random, 500, 0.2)}))
		r.wait(0)
	}
	assert.Equal(t, "ok", r.state("cloud.region", "eu"))
	assert.Equal(t, 1, logs.FilterMessageSnippet("canary: changed_at: no cell").Len())
	assert.Len(t, logs.All(), 1)
}

// Guarantees: a promise of a quantile that takes more values than min_samples is named at the start and when the catalog changes, and only
// such.
func TestAQuantileThatTakesMoreThanMinSamplesIsSaid(t *testing.T) {
	of := func(target string) string {
		return sloOf("chat-ttft", "llm:chat:ttft:x", `thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: "vllm:time_to_first_token_seconds"}}}`, "{op: lte, value: 1, target: "+target+"}")
	}
	f := func(least int, docs string) {
		t.Helper()
		r := newRig(t, docs, nil)
		logs := r.logged()
		r.warnOfQuantiles(r.slos)
		r.host.catalog = parse(t, docs)
		r.wait(0)
		if least == 0 {
			assert.Empty(t, logs.All())
			return
		}
		assert.Len(t, logs.All(), 2)
		assert.Equal(t, 2, logs.FilterField(zap.Int("takes", least)).FilterField(zap.Int("min_samples", 300)).Len())
	}
	f(2995, of("0.999"))
	f(0, of("0.99"))
	f(0, of("0.05"))
}
