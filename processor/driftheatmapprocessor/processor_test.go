// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// eu is the cell that most tests look at.
var eu = map[string]any{"cloud.region": "eu"}

// The numbers of the table that people know: 238 ms where 200 ms are promised, and so on.
func TestTheDeviationIsAShareOfThePromise(t *testing.T) {
	f := func(value, promised, want float64) {
		t.Helper()
		r := newRig(t, promise(promised), nil)
		r.send(constants(0, 400, value, eu))
		r.wait(2 * time.Minute) // the last window closes, as its source is idle
		assert.InDelta(t, value, r.last("slo.drift.observed", "cloud.region", "eu", "slo_id", "llm:chat:ttft:p95"), 1e-4)
		assert.InDelta(t, want, r.last("slo.drift.deviation", "cloud.region", "eu"), 0.0005)
		assert.InDelta(t, promised, r.last("slo.drift.baseline", "baseline", "static"), 0)
	}
	f(0.238, 0.2, 0.19)
	f(0.182, 0.2, -0.09)
}

// Scenario: a P95 of 286 ms is promised, and 392 ms are normal.
// Guarantees: static and dynamic baseline stand side by side, and so does what lies between them: +0.37.
func TestWhatIsNormalIsHeldAgainstWhatIsPromised(t *testing.T) {
	r := newRig(t, promise(0.286), nil)
	for n := range 3 {
		r.send(constants(n, 500, 0.392, eu))
	}
	r.wait(2 * time.Minute) // the last window closes, as its source is idle
	assert.InEpsilon(t, 0.392, r.last("slo.drift.baseline", "baseline", "dynamic"), 0.012)
	assert.InDelta(t, 0.37, r.last("slo.drift.ratio", "cloud.region", "eu"), 0.015)
	assert.Equal(t, "degraded", r.state("cloud.region", "eu"))
}

// Guarantees: the labels are the canonical ones and the dimensions, units are said by an attribute, points are stamped with the
// end of their window, and the resource is the tenant's and names the collector.
func TestResultsLookAsTheContractSays(t *testing.T) {
	r := newRig(t, promise(0.2), func(c *Config) {
		c.Dimensions = []Dimension{{Key: "tenant"}, {Key: "k8s.namespace.name"}, {Key: "none"}}
	})
	md := constants(0, 400, 0.238, nil)
	md.ResourceMetrics().At(0).Resource().Attributes().PutStr("k8s.namespace.name", "team-a")
	r.send(md)
	r.wait(2 * time.Minute) // the last window closes, as its source is idle
	all := r.metrics.AllMetrics()
	require.Len(t, all, 1)
	rm := all[0].ResourceMetrics().At(0)
	assert.Equal(t, map[string]any{"k8s.namespace.name": "team-a", "tenant": "team-a", "service.instance.id": "collector-1"}, rm.Resource().Attributes().AsRaw())
	want := map[string]any{
		"slo_id": "llm:chat:ttft:p95", "service": "chat", "slo_class": "latency", "target": "0.2000", "unit": "seconds",
		"tenant": "team-a", "k8s.namespace.name": "team-a",
	}
	units := map[string]string{}
	for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
		units[m.Name()] = m.Unit()
		for _, p := range m.Gauge().DataPoints().All() {
			assert.Equal(t, t0.Add(5*time.Minute), p.Timestamp().AsTime())
		}
	}
	assert.Equal(t, map[string]string{"slo.drift.observed": "", "slo.drift.deviation": "1", "slo.drift.baseline": "", "slo.drift.state": ""}, units,
		"what is not known yet is not told")
	assert.Equal(t, want, rm.ScopeMetrics().At(0).Metrics().At(2).Gauge().DataPoints().At(0).Attributes().AsRaw())
}

// Guarantees: no data is not good data, and nothing is concluded from a few values.
func TestAWindowThatSaysNothingIsInsufficient(t *testing.T) {
	r := newRig(t, promise(0.2), nil)
	r.send(constants(0, 400, 0.1, eu))
	r.send(constants(1, 20, 0.9, eu))
	r.send(constants(2, 1, 0.1, map[string]any{"cloud.region": "us"}))
	assert.Equal(t, "insufficient_data", r.state("cloud.region", "eu"), "few values")
	r.wait(10 * time.Minute)
	assert.Equal(t, "insufficient_data", r.state("cloud.region", "eu"), "none")
	assert.Equal(t, "insufficient_data", r.state("cloud.region", "us"))
}

// Guarantees: numbers become as many cells as there are buckets.
func TestANumberIsADimensionByItsBuckets(t *testing.T) {
	r := newRig(t, promise(0.2), func(c *Config) {
		c.Dimensions = []Dimension{{Key: "gen_ai.usage.input_tokens", Buckets: []float64{1000, 4000}}}
	})
	for _, v := range []any{int64(1), 1000.0, "1001", int64(4001), "many"} {
		r.send(constants(0, 1, 0.1, map[string]any{"gen_ai.usage.input_tokens": v}))
	}
	r.wait(10 * time.Minute)
	assert.Equal(t, 4, r.heat.Len(), "three buckets, and what is no number has none")
	for _, name := range []string{"<=1000", "1000-4000", ">4000"} {
		assert.Equal(t, "insufficient_data", r.state("gen_ai.usage.input_tokens", name), name)
	}
}

// Guarantees: promises on ratios, rates, spans and log records have cells like any other.
func TestEveryKindOfPromiseHasCells(t *testing.T) {
	docs := sloOf("errors", "llm:chat:errors:x", `ratioMetric: {counter: true, bad: {metricSource: {type: opentelemetry, spec: {metric: failed}}}, total: {metricSource: {type: opentelemetry, spec: {metric: requests}}}}`, "{target: 0.95}") +
		"---\n" + sloOf("tokens", "llm:chat:tokens:x", `thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: tokens, rate: 1s, unit: tokens}}}`, "{op: gte, value: 80, target: 0.95}") +
		"---\n" + sloOf("spans", "llm:chat:spans:x", `thresholdMetric: {metricSource: {type: opentelemetry, spec: {signal: traces, value: 'span.attributes["ttft"]', unit: s}}}`, "{op: lte, value: 0.8, target: 0.95}") +
		"---\n" + sloOf("scores", "llm:chat:scores:x", `thresholdMetric: {metricSource: {type: opentelemetry, spec: {signal: logs, value: 'log.attributes["score"]', unit: ratio}}}`, "{op: gte, value: 0.5, target: 0.95}")
	r := newRig(t, docs, func(c *Config) { c.Dimensions, c.MinSamples = nil, 100 })
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	sum := func(name string, start, at time.Time, v float64) {
		m := metrics.AppendEmpty()
		m.SetName(name)
		s := m.SetEmptySum()
		s.SetIsMonotonic(true)
		s.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		p := s.DataPoints().AppendEmpty()
		p.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.SetDoubleValue(v)
	}
	sum("requests", t0, at(0), 1000)
	sum("failed", t0, at(0), 20)
	for i := range 200 {
		second := t0.Add(time.Duration(i) * time.Second)
		sum("tokens", second, second.Add(500*time.Millisecond), 100)
	}
	r.send(md)
	td, ld := ptrace.NewTraces(), plog.NewLogs()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for i := range 200 {
		s := spans.AppendEmpty()
		s.SetSpanID([8]byte{1, byte(i)})
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(at(0)))
		s.Attributes().PutDouble("ttft", 0.4)
		l := records.AppendEmpty()
		l.SetTimestamp(pcommon.NewTimestampFromTime(at(0)))
		l.Attributes().PutDouble("score", 0.25)
	}
	r.consumeTraces(t.Context(), td)
	r.consumeTraces(t.Context(), td)
	r.consumeLogs(t.Context(), ld)
	r.wait(5 * time.Minute)
	assert.Equal(t, map[string]int64{"duplicate": 200}, r.counted("points_refused"))
	for id, want := range map[string]float64{"errors": 0.98, "tokens": 100, "spans": 0.4, "scores": 0.25} {
		assert.InEpsilon(t, want, r.last("slo.drift.observed", "slo_id", "llm:chat:"+id+":x"), 0.001, id)
	}
	assert.InEpsilon(t, 0.25, r.last("slo.drift.deviation", "slo_id", "llm:chat:tokens:x"), 0.001, "more than promised")
	assert.InEpsilon(t, -0.5, r.last("slo.drift.deviation", "slo_id", "llm:chat:scores:x"), 0.001)
}

// fleet is a window of two regions, two device types and two versions, of which one combination may be slower.
func fleet(r *rand.Rand, n int, slower func(region, device, version string) float64) pmetric.Metrics {
	var cells []cell
	for _, region := range []string{"eu", "us"} {
		for _, device := range []string{"h100", "a100"} {
			for _, version := range []string{"v1", "v2"} {
				values := traffic(r, 500, 0.2*slower(region, device, version))
				cells = append(cells, cell{map[string]any{"cloud.region": region, "device.type": device, "model.version": version}, values})
			}
		}
	}
	return windowOf(n, cells...)
}

func guilty(region, device, version string) bool {
	return region == "eu" && device == "h100" && version == "v2"
}

// withCanary compares version v2 with v1, in every region and device type.
func withCanary(c *Config) {
	c.Dimensions = []Dimension{{Key: "cloud.region"}, {Key: "device.type"}, {Key: "model.version"}}
	c.Canary.GetOrInsertDefault()
	canary := c.Canary.Get()
	canary.Attribute, canary.Baseline, canary.Candidate = "model.version", "v1", "v2"
}

// Scenario: for two hours all is well; then a canary becomes 15 % slower in one region and for one device type. Its P95 is still
// well within what is promised, as is that of everybody together.
// Guarantees: it is found within three windows, no other cell is accused, then or in the two hours after, and the SLO as a
// whole stays ok.
func TestACanaryThatDegradesInOneCellIsFoundAndNoOtherIsAccused(t *testing.T) {
	for seed := range uint64(5) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t, promise(0.8), withCanary)
		global := newRig(t, promise(0.8), func(c *Config) { c.Dimensions = nil })
		found := -1
		const fault, last = 24, 48
		for n := range last {
			md := fleet(random, n, func(region, device, version string) float64 {
				if n >= fault && guilty(region, device, version) {
					return 1.15
				}
				return 1
			})
			r.send(md)
			global.send(md)
			for _, region := range []string{"eu", "us"} {
				for _, device := range []string{"h100", "a100"} {
					for _, version := range []string{"v1", "v2"} {
						got := r.state("cloud.region", region, "device.type", device, "model.version", version)
						if guilty(region, device, version) && n > fault {
							if got == "degraded" && found < 0 {
								found = n - 1 // the window that has closed
							}
							continue
						}
						require.Contains(t, []string{"ok", ""}, got, "seed %d, window %d: %s %s %s", seed, n, region, device, version)
					}
				}
			}
			require.Contains(t, []string{"ok", ""}, global.state(), "window %d", n)
		}
		require.GreaterOrEqual(t, found, fault)
		assert.Less(t, found-fault, 3, "seed %d", seed)
		assert.Equal(t, "degraded", r.state("cloud.region", "eu", "device.type", "h100", "model.version", "v2"))
		assert.Less(t, global.last("slo.drift.deviation"), 0.0, "the promise is kept all the time")
	}
}

// Scenario: something is changed everywhere at once, and makes one region 20 % slower. A restart comes between.
// Guarantees: what is after the change is compared with what was before it, cell by cell; a cell that was not there before is judged by
// all else.
func TestAfterAChangeIsComparedWithBefore(t *testing.T) {
	d := newDisk()
	changed := func(c *Config) {
		c.Canary.GetOrInsertDefault()
		c.Canary.Get().ChangedAt = at(8).Add(-time.Minute)
	}
	r := on(t, d, promise(0.8), changed)
	random := rand.New(rand.NewPCG(1, 1))
	for n := range 20 {
		eu, us := 0.2, 0.2
		if n >= 8 {
			eu = 0.24
		}
		cells := []cell{
			{map[string]any{"cloud.region": "eu"}, traffic(random, 500, eu)}, {map[string]any{"cloud.region": "us"}, traffic(random, 500, us)},
		}
		if n >= 9 {
			cells = append(cells, cell{map[string]any{"cloud.region": "ap"}, traffic(random, 500, us)})
		}
		if n == 9 {
			r.save(t.Context())
			r = on(t, d, promise(0.8), changed)
		}
		r.send(windowOf(n, cells...))
		if n >= 1 && n <= 8 {
			require.Equal(t, "ok", r.state("cloud.region", "eu"), "window %d", n)
		}
	}
	assert.Equal(t, "degraded", r.state("cloud.region", "eu"))
	assert.Equal(t, "ok", r.state("cloud.region", "us"))
	assert.Equal(t, "ok", r.state("cloud.region", "ap"))
}

// Guarantees: a canary without enough values, or without a baseline beside it, does not pass.
func TestACanaryThatCannotBeComparedDoesNotPass(t *testing.T) {
	r := newRig(t, promise(0.8), func(c *Config) { withCanary(c); c.Dimensions = []Dimension{{Key: "cloud.region"}} })
	random := rand.New(rand.NewPCG(1, 1))
	for n := range 3 {
		r.send(windowOf(n, cell{map[string]any{"model.version": "v1", "cloud.region": "eu"}, traffic(random, 500, 0.2)},
			cell{map[string]any{"model.version": "v2", "cloud.region": "us"}, traffic(random, 500, 0.2)}))
	}
	assert.Equal(t, "ok", r.state("model.version", "v1"))
	assert.Equal(t, "insufficient_data", r.state("model.version", "v2"))
}

// Guarantees: a canary of a ratio is compared by its shares of bad events.
func TestACanaryOfARatioIsCompared(t *testing.T) {
	docs := sloOf("errors", "llm:chat:errors:x", `ratioMetric: {counter: true, good: {metricSource: {type: opentelemetry, spec: {metric: good}}}, total: {metricSource: {type: opentelemetry, spec: {metric: requests}}}}`, "{target: 0.9}")
	r := newRig(t, docs, withCanary)
	for n := range 4 {
		md := pmetric.NewMetrics()
		metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
		for name, counts := range map[string][3]float64{"good": {995, 970, 994}, "requests": {1000, 1000, 1000}} {
			m := metrics.AppendEmpty()
			m.SetName(name)
			s := m.SetEmptySum()
			s.SetIsMonotonic(true)
			s.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			for i, where := range [][2]string{{"v1", "eu"}, {"v2", "eu"}, {"v2", "us"}} {
				p := s.DataPoints().AppendEmpty()
				p.SetTimestamp(pcommon.NewTimestampFromTime(at(n)))
				p.SetDoubleValue(counts[i])
				p.Attributes().PutStr("model.version", where[0])
				p.Attributes().PutStr("cloud.region", where[1])
			}
		}
		r.send(md)
	}
	assert.Equal(t, "ok", r.state("model.version", "v1"))
	assert.Equal(t, "degraded", r.state("model.version", "v2", "cloud.region", "eu"))
	assert.Equal(t, "insufficient_data", r.state("model.version", "v2", "cloud.region", "us"))
}

// Guarantees: a composite has cells like its parts, with the canonical labels, and goes on after a restart.
func TestACompositeHasCells(t *testing.T) {
	docs := promise(0.8) + `---
apiVersion: openslo/v1
kind: SLI
metadata: {name: ttft}
spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: "vllm:time_to_first_token_seconds"}}}}
---
apiVersion: openslo/v1
kind: SLO
metadata: {name: both, annotations: {otelcol-llm.dev/slo-id: "llm:chat:both"}}
spec:
  service: chat
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives:
    - {displayName: fast, target: 0.5, indicatorRef: ttft, compositeWeight: 1, op: lte, value: 0.3}
    - {displayName: slow, target: 0.99, indicatorRef: ttft, compositeWeight: 3, op: lte, value: 0.6}
`
	d := newDisk()
	r := on(t, d, docs, nil)
	for n := range 4 {
		values := make([]float64, 400)
		for i := range values {
			values[i] = []float64{0.2, 0.4}[i%2]
		}
		r.send(windowOf(n, cell{eu, values}))
		if n == 2 {
			r.save(t.Context())
			r = on(t, d, docs, nil)
		}
	}
	composite := []string{"slo_id", "llm:chat:both:composite", "cloud.region", "eu"}
	assert.InDelta(t, (0.5+3)/4, r.last("slo.drift.observed", composite...), 0.01)
	assert.InDelta(t, (0.5+3)/4, r.last("slo.drift.baseline", append(composite, "baseline", "dynamic")...), 0.01)
	assert.InDelta(t, (0.5+3*0.99)/4, r.last("slo.drift.baseline", append(composite, "baseline", "static")...), 1e-4)
	assert.Equal(t, "ok", r.state(composite...))
	assert.InDelta(t, 1, r.last("slo.drift.state", append(composite, "unit", "ratio", "state", "ok")...), 0)
}

// Scenario: one region becomes slow.
// Guarantees: what explains it is told with its share, what does not is not, and the explanation ends with the deviation.
func TestADeviationIsExplained(t *testing.T) {
	r := newRig(t, promise(0.8), withCanary)
	random := rand.New(rand.NewPCG(3, 1))
	for n := range 40 {
		r.send(fleet(random, n, func(region, _, _ string) float64 {
			if n >= 13 && n < 24 && region == "us" {
				return 2.5
			}
			return 1
		}))
		if n == 12 {
			assert.NotContains(t, fmt.Sprint(r.told()), "slo.drift.explanation")
		}
		if n == 17 {
			assert.Greater(t, r.last("slo.drift.explanation", "dimension", "cloud.region", "value", "us"), 0.8)
			assert.NotContains(t, fmt.Sprint(r.told()), "value:h100")
		}
	}
	assert.NotContains(t, fmt.Sprint(r.told()), "slo.drift.explanation")
}

// Scenario: more combinations than there is room for, then silence.
// Guarantees: those beyond the limit share one cell that says so; what nothing is heard of makes room, and its series end.
func TestCellsAreBounded(t *testing.T) {
	r := newRig(t, promise(0.2), func(c *Config) { c.MaxCells, c.MaxInputSeries, c.CellTTL = 3, 8, 30*time.Minute })
	for i := range 10 {
		r.send(constants(0, 10, 0.1, map[string]any{"cloud.region": fmt.Sprint("r", i)}))
	}
	r.wait(10 * time.Minute)
	assert.Equal(t, map[string]int64{"": 4}, r.counted("cells"))
	assert.Equal(t, map[string]int64{"": 8}, r.counted("input_series"))
	assert.Equal(t, map[string]int64{"series_limit": 20}, r.counted("points_refused"))
	assert.Equal(t, "insufficient_data", r.state("otel.metric.overflow", "true"))
	r.wait(2 * time.Hour)
	assert.Equal(t, map[string]int64{"": 0}, r.counted("cells"))
	assert.Equal(t, map[string]int64{"": 12}, r.counted("evictions"))
	assert.Empty(t, r.told())
}

// Guarantees: windows are of event time. A replayed day is told window by window, and what comes late is counted.
func TestWindowsAreOfEventTime(t *testing.T) {
	r := newRig(t, promise(0.2), nil)
	for _, n := range []int{0, 1, 2, 1, 50} {
		r.send(constants(n, 10, 0.1, eu))
	}
	assert.Equal(t, map[string]int64{"late": 10}, r.counted("points_refused"))
	var ends []int
	r.each(func(m pmetric.Metric, p pmetric.NumberDataPoint) {
		if m.Name() == "slo.drift.state" && p.IntValue() == 1 {
			ends = append(ends, int(p.Timestamp().AsTime().Sub(t0)/(5*time.Minute)))
		}
	})
	assert.Equal(t, []int{1, 2, 3, 50}, ends, "and once that there was nothing")
}

// Guarantees: results are told again for backends that forget, all of them in every interval.
func TestResultsAreRepeated(t *testing.T) {
	r := newRig(t, promise(0.2), func(c *Config) { c.RefreshInterval = 10 * time.Second })
	for i := range 25 {
		r.send(constants(0, 1, 0.1, map[string]any{"cloud.region": fmt.Sprint(i)}))
	}
	r.wait(10 * time.Minute)
	before := r.told()
	r.metrics.Reset()
	for range 10 {
		r.wait(time.Second)
	}
	assert.Equal(t, before, r.told())
}

// Scenario: a window has values, then one has too few, or none: then there are values again.
// Guarantees: what a window does not say has ended, in the time of that window, so that no backend shows the last value on; only
// the verdict and what is promised stand.
func TestWhatAWindowDoesNotSayHasEnded(t *testing.T) {
	r := newRig(t, promise(0.2), func(c *Config) { c.ReferenceWindows, c.RefreshInterval = 1, time.Second })
	random := rand.New(rand.NewPCG(1, 1))
	known := func(name string, more ...string) bool {
		return !math.IsNaN(r.last(name, append([]string{"cloud.region", "eu"}, more...)...))
	}
	f := func(n int, values []float64, observed bool) {
		t.Helper()
		if values != nil {
			r.send(windowOf(n, cell{eu, values}))
		}
		r.send(windowOf(n+1, cell{map[string]any{"cloud.region": "us"}, []float64{0.1}}))
		r.wait(time.Second)
		assert.Equal(t, observed, known("slo.drift.observed"), n)
		assert.Equal(t, observed, known("slo.drift.deviation"), n)
		normal := n > 0 && values != nil
		assert.Equal(t, normal, known("slo.drift.ratio"), n)
		assert.Equal(t, normal, known("slo.drift.baseline", "baseline", "dynamic"), n)
		assert.Equal(t, normal, known("slo.drift.baseline", "baseline", "frozen"), n)
		assert.InDelta(t, 0.2, r.last("slo.drift.baseline", "cloud.region", "eu", "baseline", "static"), 1e-9)
		if !observed {
			assert.Equal(t, "insufficient_data", r.state("cloud.region", "eu"))
		}
	}
	f(0, traffic(random, 500, 0.1), true)
	f(1, traffic(random, 500, 0.1), true)
	f(2, []float64{0.1}, false)
	f(3, traffic(random, 500, 0.1), true)
	f(4, nil, false)
	end := t0.Add(5 * 5 * time.Minute)
	ends := map[string]time.Time{}
	r.each(func(m pmetric.Metric, p pmetric.NumberDataPoint) {
		if p.Flags().NoRecordedValue() && has(p.Attributes(), []string{"cloud.region", "eu"}) {
			ends[m.Name()] = p.Timestamp().AsTime()
		}
	})
	for _, name := range []string{"slo.drift.observed", "slo.drift.deviation", "slo.drift.ratio", "slo.drift.baseline"} {
		assert.Equal(t, end, ends[name], name)
	}
	f(5, traffic(random, 500, 0.1), true)
}

// Scenario: windows are hours, the events of a past hour come in minute by minute, and in the middle of it one source stands
// still.
// Guarantees: what is repeated until the next window closes carries the last whole minute that is complete, so that a backend
// which looks back for five minutes sees it all the time; never a time beyond the watermark, and never an earlier one than before.
func TestWhatIsRepeatedCarriesATimeThatGoesOn(t *testing.T) {
	r := newRig(t, promise(0.2), func(c *Config) {
		c.RefreshInterval, c.Window = time.Second, time.Hour
		withCoupling(c)
	})
	random := rand.New(rand.NewPCG(1, 1))
	hour := func(median float64, attributes map[string]any) cell {
		return cell{attributes, traffic(random, 500, median)}
	}
	send := func(minute int, cells ...cell) {
		md := windowOf(0, cells...)
		for _, p := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).ExponentialHistogram().DataPoints().All() {
			p.SetStartTimestamp(pcommon.NewTimestampFromTime(t0.Add(time.Duration(minute-1) * time.Minute)))
			p.SetTimestamp(pcommon.NewTimestampFromTime(t0.Add(time.Duration(minute) * time.Minute)))
		}
		r.clock = r.clock.Add(time.Second)
		r.send(md)
	}
	// One region misses its promise, and that explains the deviation.
	engine := &engineAt{at: t0}
	work := func(minute int) {
		engine.at = t0.Add(time.Duration(minute)*time.Minute - 15*time.Second)
		r.send(engine.scrape("a", 8, 100, 500, 0.5))
	}
	for minute := 10; minute <= 120; minute += 10 {
		send(minute, hour(0.05, eu), hour(0.4, map[string]any{"cloud.region": "us"}))
		work(minute)
	}
	newest := func(name string) (at time.Time) {
		r.each(func(m pmetric.Metric, p pmetric.NumberDataPoint) {
			if m.Name() == name && p.Timestamp().AsTime().After(at) {
				at = p.Timestamp().AsTime()
			}
		})
		return at
	}
	for minute := 121; minute < 175; minute++ {
		before := newest("slo.drift.state")
		send(minute, hour(0.05, eu), hour(0.4, map[string]any{"cloud.region": "us"}))
		r.clock = r.clock.Add(time.Second)
		work(minute)
		watermark := time.Unix(0, r.intake.Watermark.At()).UTC()
		for _, name := range []string{"slo.drift.state", "slo.drift.observed", "slo.drift.deviation", "slo.drift.explanation"} {
			got := newest(name)
			require.Equal(t, watermark.Truncate(time.Minute), got, "%s in minute %d", name, minute)
			require.False(t, got.Before(before), name)
		}
	}
	assert.Equal(t, newest("slo.drift.state"), newest("llm.throughput"))
	assert.Equal(t, "degraded", r.state("cloud.region", "us"))
	stood := newest("slo.drift.state")
	for range 20 { // within idle_timeout; then event time goes on at the pace of the wall clock
		r.clock = r.clock.Add(time.Second)
		send(174, hour(0.05, eu))
		require.Equal(t, stood, newest("slo.drift.state"))
	}
}

// Scenario: a cell is forgotten in a replay of the past, and comes again later in it.
// Guarantees: its series end in the time of the events, after what was told of them and before what is told again.
func TestSeriesEndInEventTime(t *testing.T) {
	r := newRig(t, promise(0.2), func(c *Config) { c.CellTTL = 10 * time.Minute })
	us := map[string]any{"cloud.region": "us"}
	for n := range 12 {
		r.send(constants(n, 400, 0.1, eu))
		if n < 2 || n > 8 {
			r.send(constants(n, 400, 0.1, us))
		}
	}
	var times []int
	r.each(func(m pmetric.Metric, p pmetric.NumberDataPoint) {
		if m.Name() == "slo.drift.observed" && has(p.Attributes(), []string{"cloud.region", "us"}) {
			times = append(times, int(p.Timestamp().AsTime().Sub(t0)/(5*time.Minute)))
			if p.Flags().NoRecordedValue() {
				times[len(times)-1] *= -1
			}
		}
	})
	assert.Equal(t, []int{1, 2, -3, -4, 10, 11}, times, "a window without input ends what it does not say, and one that is forgotten everything")
}

// Scenario: an objective is edited, then what is measured, then the SLO is gone.
func TestTheCatalogIsFollowed(t *testing.T) {
	r := newRig(t, promise(0.2), nil)
	for n := range 3 {
		r.send(constants(n, 400, 0.1, eu))
	}
	r.host.catalog = parse(t, promise(0.4))
	r.wait(0)
	r.send(constants(3, 400, 0.1, eu))
	r.send(constants(4, 400, 0.1, eu))
	assert.InDelta(t, -0.75, r.last("slo.drift.deviation", "target", "0.4000"), 0.001)
	assert.InEpsilon(t, 0.1, r.last("slo.drift.baseline", "target", "0.4000", "baseline", "dynamic"), 0.012, "what was normal stays known")

	r.host.catalog = parse(t, sloOf("chat-ttft", "llm:chat:ttft:p95", `thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: other}}}`, "{op: lte, value: 1, target: 0.95}"))
	r.wait(0)
	assert.Zero(t, r.heat.Len())
	assert.NotContains(t, fmt.Sprint(r.told()), "0.4000", "its series end")
}

// Scenario: the process is killed after a checkpoint, in any window of a story, and starts again.
// Guarantees: what is told from there on is what one that was never killed tells.
func TestARestartInTheMiddleOfAStoryChangesNothing(t *testing.T) {
	const windows = 24
	story := func(n int) pmetric.Metrics {
		return fleet(rand.New(rand.NewPCG(uint64(n), 2)), n, func(region, device, version string) float64 {
			if n >= 14 && n < 18 && guilty(region, device, version) {
				return 3
			}
			return 1
		})
	}
	told := func(r *rig) (all []string) {
		r.each(func(m pmetric.Metric, p pmetric.NumberDataPoint) {
			all = append(all, fmt.Sprint(m.Name(), p.Timestamp(), p.Attributes().AsRaw(), p.IntValue(), p.DoubleValue(), p.Flags()))
		})
		return all
	}
	whole := newRig(t, promise(0.8), withCanary)
	for n := range windows {
		whole.send(story(n))
	}
	want := told(whole)
	slices.Sort(want)
	require.Contains(t, fmt.Sprint(want), "slo.drift.explanation")
	for _, cut := range []int{1, 13, 15, 16, 19, 23} {
		d := newDisk()
		r := on(t, d, promise(0.8), withCanary)
		require.False(t, r.known)
		var got []string
		for n := range windows {
			if n == cut {
				r.save(t.Context())
				got = told(r)
				r = on(t, d, promise(0.8), withCanary)
				require.True(t, r.known)
				r.send(story(n - 1)) // again, by a client that has not heard that it was taken
			}
			r.send(story(n))
		}
		assert.Equal(t, map[string]int64{"duplicate": 8}, r.counted("points_refused"))
		got = append(got, told(r)...)
		slices.Sort(got)
		require.Equal(t, want, got, "cut at %d", cut)
	}
}

// Guarantees: a checkpoint that is damaged, or was made with other dimensions, begins empty and says so.
func TestACheckpointOfAnotherKindBeginsEmpty(t *testing.T) {
	d := newDisk()
	r := on(t, d, promise(0.2), nil)
	r.send(constants(0, 400, 0.1, eu))
	r.save(t.Context())
	r = on(t, d, promise(0.2), func(c *Config) { c.Dimensions = []Dimension{{Key: "device.type"}} })
	assert.Zero(t, r.heat.Len())
	r = on(t, d, promise(0.2), func(c *Config) { c.Window = time.Minute })
	assert.Zero(t, r.heat.Len())
	r = on(t, d, promise(0.2), nil)
	assert.Equal(t, 1, r.heat.Len())
	require.NoError(t, r.keeper.Store().Save(t.Context(), map[string][]byte{headPart: []byte("\x82\x01nonsense")}, nil))
	r = on(t, d, promise(0.2), nil)
	assert.False(t, r.known)
	assert.Zero(t, r.heat.Len())
	assert.Equal(t, map[string]int64{"": 1}, r.counted("checkpoints_damaged"))
}

// Guarantees: hearing costs no memory in the steady state.
func TestHearingAllocatesNothing(t *testing.T) {
	r := newRig(t, promise(0.2), nil)
	md := constants(0, 100, 0.1, eu)
	send := func() { r.consume(t.Context(), md) }
	send()
	assert.LessOrEqual(t, testing.AllocsPerRun(50, send), 5.0, "a batch of 100 points may cost a few allocations, a point none")
}

// Scenario: a duration is below zero, as clocks that disagree make it, in all shapes; and the same where the spec's range says that
// there is such a value.
// Guarantees: it is no good latency but counted; with the range it is a value as any other.
func TestADurationBelowZeroIsNone(t *testing.T) {
	ranged := strings.Replace(promise(0.8), `metric: "vllm:time_to_first_token_seconds"`, `metric: "vllm:time_to_first_token_seconds", range: [-60, 60]`, 1)
	f := func(want int64, md func() pmetric.Metrics) {
		t.Helper()
		r := newRig(t, promise(0.8), nil)
		r.send(md())
		assert.Equal(t, map[string]int64{"negative": want}, r.counted("points_refused"))
		r = newRig(t, ranged, nil)
		r.send(md())
		assert.Empty(t, r.counted("points_refused"))
	}
	f(400, func() pmetric.Metrics { return constants(0, 400, -5, eu) })
	distribution := func(fill func(pmetric.Metric)) func() pmetric.Metrics {
		return func() pmetric.Metrics {
			md := pmetric.NewMetrics()
			m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName(ttft)
			fill(m)
			return md
		}
	}
	f(1, distribution(func(m pmetric.Metric) {
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		p := m.Histogram().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at(0)))
		p.ExplicitBounds().FromRaw([]float64{-1, 0, 1})
		p.BucketCounts().FromRaw([]uint64{2, 0, 5, 0})
		p.SetCount(7)
	}))
	f(1, distribution(func(m pmetric.Metric) {
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		p := m.ExponentialHistogram().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at(0)))
		p.Positive().BucketCounts().FromRaw([]uint64{5})
		p.Negative().BucketCounts().FromRaw([]uint64{2})
		p.SetCount(7)
	}))
}

// Guarantees: a client that writes another tenant's name on its points has cells of its own, and what is found is its own.
func TestAPointCannotChooseItsTenant(t *testing.T) {
	for _, key := range []string{"tenant", "k8s.namespace.name", "service.namespace"} {
		r := newRig(t, promise(0.2), func(c *Config) { c.Dimensions = []Dimension{{Key: key}} })
		md := constants(0, 400, 0.238, map[string]any{key: "victim"})
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr("k8s.namespace.name", "evil")
		r.send(md)
		r.wait(2 * time.Minute)
		assert.InDelta(t, 0.19, r.last("slo.drift.deviation"), 0.0005, key)
		for _, md := range r.metrics.AllMetrics() {
			for _, rm := range md.ResourceMetrics().All() {
				for _, v := range rm.Resource().Attributes().All() {
					assert.NotEqual(t, "victim", v.AsString(), key)
				}
			}
		}
		assert.NotContains(t, fmt.Sprint(r.told()), "victim", key)
	}
}
