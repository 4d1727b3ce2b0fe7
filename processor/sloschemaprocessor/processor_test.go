// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// send processes a batch.
func (r *rig) send(md pmetric.Metrics) pmetric.Metrics {
	r.t.Helper()
	got, err := r.process(r.t.Context(), md)
	require.NoError(r.t, err)
	return got
}

// one is what becomes of one gauge point.
func (r *rig) one(name string, value float64, attributes map[string]any) map[string]any {
	r.t.Helper()
	md := pmetric.NewMetrics()
	gauges(md, name, value, attributes)
	return attributesOf(r.send(md), name)[0]
}

func slothLabels(id string) map[string]any {
	return map[string]any{"sloth_id": id, "sloth_service": "chat"}
}

func TestEveryShapeOfPointIsLabelled(t *testing.T) {
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	for range 5 {
		metrics.AppendEmpty().SetName("metric_0")
	}
	metrics.At(0).SetEmptyGauge().DataPoints().AppendEmpty()
	metrics.At(1).SetEmptySum().DataPoints().AppendEmpty()
	metrics.At(2).SetEmptyHistogram().DataPoints().AppendEmpty()
	metrics.At(3).SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
	metrics.At(4).SetEmptySummary().DataPoints().AppendEmpty()
	r := newRig(t, catalogOf(1, false), nil)
	want := map[string]any{"slo_id": "llm:chat:ttft-00000:p95", "service": "chat", "slo_class": "latency", "target": "0.8000", "unit": "seconds"}
	assert.Equal(t, []map[string]any{want, want, want, want, want}, attributesOf(r.send(md), "metric_0"))
	assert.Equal(t, map[string]int64{"catalog": 5}, r.counted("points_labelled"))
}

// Guarantees: an SLO that names one metric twice (bad and total) labels a point once.
func TestAnSLOTakesAPointOnce(t *testing.T) {
	source := func(condition string) *openslo.Selector {
		return &openslo.Selector{Type: openslo.TypeOpenTelemetry, Signal: openslo.SignalMetrics, Metric: "requests", Condition: condition, Scale: 1}
	}
	r := newRig(t, &openslo.Catalog{SLOs: []openslo.SLO{{ID: "llm:chat:errors:x", Indicator: openslo.Indicator{Ratio: &openslo.Ratio{
		Bad: source(`datapoint.attributes["code"] == "500"`), Total: source("")}}}}}, nil)
	got := r.one("requests_total", 1, map[string]any{"code": "500"})
	assert.Equal(t, "llm:chat:errors:x", got["slo_id"])
	assert.NotContains(t, got, "slo.ids")
}

// Scenario: points pass two processors, as from an agent to a gateway whose catalog says something else.
// Guarantees: the second leaves the labels of the first as they are.
func TestWhatIsLabelledStaysAsItIs(t *testing.T) {
	agent := newRig(t, parse(t, chatDocs), nil)
	changed := parse(t, chatDocs)
	for i := range changed.SLOs {
		changed.SLOs[i].Objective.Value = 7
	}
	gateway := newRig(t, changed, nil)
	for name, value := range map[string]float64{"vllm:time_to_first_token_seconds": 0.3, "slo:objective:ratio": 0.95} {
		first := agent.one(name, value, map[string]any{"model_name": "qwen2-72b", "sloth_id": "a", "sloth_service": "b", "service": "c"})
		assert.Equal(t, first, gateway.one(name, value, first))
	}
	assert.Equal(t, map[string]int64{"before": 2}, gateway.counted("points_labelled"))
}

func TestAnEmptyIDIsNone(t *testing.T) {
	r := newRig(t, catalogOf(1, false), func(c *Config) { c.OnUnknown = Drop })
	assert.Equal(t, "llm:chat:ttft-00000:p95", r.one("metric_0", 0.3, map[string]any{"slo_id": ""})["slo_id"])
}

// Scenario: a recording rule of somebody's has lost the label that tells which SLO of Sloth it is of.
// Guarantees: what is known all the same is put, and the tag lists the rest.
func TestASeriesThatDoesNotSayWhichSLOItIsOfKeepsWhatIsKnown(t *testing.T) {
	r := newRig(t, &openslo.Catalog{}, func(c *Config) { c.OnUnknown = Tag })
	assert.Equal(t, map[string]any{"sloth_service": "chat", "service": "chat", "unit": "ratio", "slo.missing": "slo_id,slo_class,target"},
		r.one("slo:sli_error:ratio_rate5m", 0.1, map[string]any{"sloth_service": "chat"}))
}

// Guarantees: the catalog completes what an agent could not, and takes its tag away.
func TestWhatLacksLabelsIsCompleted(t *testing.T) {
	agent := newRig(t, &openslo.Catalog{}, func(c *Config) { c.OnUnknown = Tag })
	gateway := newRig(t, parse(t, chatDocs), nil)
	tagged := agent.one("slo.sli.value", 1, map[string]any{"slo_id": "llm:chat:ttft:p95", "target": "0.7000"})
	assert.Equal(t, "service,slo_class,unit", tagged["slo.missing"])
	assert.Equal(t, map[string]any{"slo_id": "llm:chat:ttft:p95", "service": "chat", "slo_class": "latency", "target": "0.7000",
		"unit": "seconds"}, gateway.one("slo.sli.value", 1, tagged))
}

// Guarantees: a point that several SLOs are made of stays one point.
func TestAPointOfSeveralSLOsIsNotDoubled(t *testing.T) {
	r := newRig(t, parse(t, chatDocs), nil)
	md := pmetric.NewMetrics()
	gauges(md, "vllm:time_to_first_token_seconds", 1, map[string]any{"model_name": "qwen2-72b"}, map[string]any{"model_name": "llama"})
	assert.Equal(t, 2, r.send(md).DataPointCount())
	assert.Equal(t, map[string]int64{"catalog": 2}, r.counted("points_labelled"))
}

func TestTheTenantIsTakenFromTheNearest(t *testing.T) {
	f := func(point, scope, resource any, want any) {
		t.Helper()
		md := pmetric.NewMetrics()
		gauges(md, "metric_0", 1, map[string]any{})
		rm := md.ResourceMetrics().At(0)
		put := func(m pcommon.Map, v any) {
			if v != nil {
				require.NoError(t, m.FromRaw(map[string]any{"tenant": v}))
			}
		}
		put(rm.Resource().Attributes(), resource)
		put(rm.ScopeMetrics().At(0).Scope().Attributes(), scope)
		put(rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes(), point)
		assert.Equal(t, want, attributesOf(newRig(t, catalogOf(1, false), nil).send(md), "metric_0")[0]["tenant"])
	}
	f(nil, nil, nil, nil)
	f(nil, nil, "r", "r")
	f(nil, "s", "r", "s")
	f("p", "s", "r", "p")
	f(nil, nil, 7, "7")
}

// Guarantees: a staleness marker carries the labels of its series, and is no target.
func TestAStalenessMarkerIsLabelledAsItsSeries(t *testing.T) {
	r := newRig(t, &openslo.Catalog{}, nil)
	before := r.one("slo:objective:ratio", 0.95, slothLabels("a"))
	md := pmetric.NewMetrics()
	gauges(md, "slo:objective:ratio", 0, slothLabels("a"))
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).
		SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	assert.Equal(t, before, attributesOf(r.send(md), "slo:objective:ratio")[0])
}

func TestANewTargetIsTaken(t *testing.T) {
	r := newRig(t, &openslo.Catalog{}, nil)
	assert.NotContains(t, r.one("slo:current_burn_rate:ratio", 2, slothLabels("a")), "target")
	assert.Equal(t, map[string]int64{"no_target": 1}, r.counted("points_unknown"))
	assert.Equal(t, "0.9500", r.one("slo:objective:ratio", 0.95, slothLabels("a"))["target"])
	assert.Equal(t, "0.9900", r.one("slo:objective:ratio", 0.99, slothLabels("a"))["target"])
	assert.Equal(t, "0.9900", r.one("slo:current_burn_rate:ratio", 2, slothLabels("a"))["target"])
	assert.Equal(t, "0.9900", r.one("slo:objective:ratio", 99, slothLabels("a"))["target"], "no target: the last good one stays")
	assert.NotContains(t, r.one("slo:objective:ratio", -1, slothLabels("b")), "target")
	assert.Equal(t, map[string]int64{"no_target": 1, "bad_target": 1}, r.counted("points_unknown"))
}

// Guarantees: the SLOs of different tools are not confused, whatever they are called.
func TestEachDialectHasItsOwnSLOs(t *testing.T) {
	r := newRig(t, &openslo.Catalog{}, nil)
	r.one("slo:objective:ratio", 0.95, slothLabels("a"))
	assert.NotContains(t, r.one("pyrra_availability", 1, map[string]any{"slo": "a", "service": "chat"}), "target")
}

// Scenario: more SLOs than there is room for, then silence.
// Guarantees: those beyond the limit are passed on as unknown and counted, the others are not disturbed; what nothing is
// heard of makes room.
func TestTheMemoryOfSLOsIsBounded(t *testing.T) {
	r := newRig(t, &openslo.Catalog{}, func(c *Config) { c.MaxDialectSLOs = 3; c.OnUnknown = Tag })
	for i := range 5 {
		got := r.one("slo:objective:ratio", 0.95, slothLabels(fmt.Sprint(i)))
		if i < 3 {
			assert.Equal(t, "0.9500", got["target"])
		} else {
			assert.Equal(t, map[string]any{"sloth_id": fmt.Sprint(i), "sloth_service": "chat", "slo_id": fmt.Sprint(i), "service": "chat",
				"slo_class": "availability", "unit": "ratio", "slo.missing": "target"}, got)
		}
	}
	assert.Equal(t, map[string]int64{"slo_limit": 2}, r.counted("points_unknown"))
	assert.Equal(t, map[string]int64{"": 3}, r.counted("dialect_slos"))

	r.clock = r.clock.Add(50 * time.Minute)
	assert.Equal(t, "0.9500", r.one("slo:current_burn_rate:ratio", 1, slothLabels("0"))["target"])
	r.clock = r.clock.Add(50 * time.Minute)
	assert.Equal(t, "0.9500", r.one("slo:objective:ratio", 0.95, slothLabels("4"))["target"])
	assert.Equal(t, map[string]int64{"": 2}, r.counted("dialect_slos"))
	assert.Equal(t, map[string]int64{"": 2}, r.counted("evictions"))
}

func TestAConditionThatFailsIsCountedAndLosesNothing(t *testing.T) {
	c := catalogOf(1, true)
	c.SLOs[0].Indicator.Threshold.Condition = `ParseJSON(datapoint.attributes["k"]) == nil`
	r := newRig(t, c, func(c *Config) { c.OnUnknown = Drop })
	assert.Equal(t, map[string]any{"k": "{"}, r.one("metric_0", 1, map[string]any{"k": "{"}))
	assert.Equal(t, map[string]int64{"": 1}, r.counted("condition_errors"))
}

// Guarantees: a changed catalog is used from the next batch on; one whose conditions do not compile is refused once, with
// a line in the log, and the one before stays in use.
func TestAChangedCatalogIsTaken(t *testing.T) {
	r := newRig(t, catalogOf(1, false), nil)
	target := func() any { return r.one("metric_0", 1, map[string]any{})["target"] }
	assert.Equal(t, "0.8000", target())

	c := catalogOf(1, false)
	c.SLOs[0].Objective.Value = 0.9
	r.host.catalog.Store(c)
	assert.Equal(t, "0.9000", target())

	c = catalogOf(1, true)
	c.SLOs[0].Indicator.Threshold.Condition = "nonsense(1)"
	r.host.catalog.Store(c)
	assert.Equal(t, "0.9000", target())
	assert.Equal(t, "0.9000", target())
	assert.Equal(t, map[string]int64{"": 1}, r.counted("catalogs_refused"))
	refusals := r.logs.FilterMessageSnippet("do not compile").All()
	if assert.Len(t, refusals, 1) {
		assert.Contains(t, fmt.Sprint(refusals[0].ContextMap()["error"]), `slo "chat": condition:`)
	}

	r.host.catalog.Store(&openslo.Catalog{})
	assert.Nil(t, target())
}

// Scenario: several receivers send at once while the catalog changes and SLOs are learned and forgotten (run with -race).
// Guarantees: no point is lost or left half labelled.
func TestBatchesMayComeAtOnce(t *testing.T) {
	catalogs := []*openslo.Catalog{catalogOf(3, false), catalogOf(5, true)}
	r := newRig(t, catalogs[0], func(c *Config) { c.MaxDialectSLOs = 50; c.DialectTTL = time.Second })
	r.now = time.Now
	stop := make(chan struct{})
	var senders, changer sync.WaitGroup
	changer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				r.host.catalog.Store(catalogs[i%2])
				time.Sleep(time.Millisecond)
			}
		}
	})
	for n := range 4 {
		senders.Go(func() {
			for i := range 200 {
				md := points(20)
				gauges(md, "slo:objective:ratio", 0.95, slothLabels(fmt.Sprint(i%(60+n))))
				gauges(md, fmt.Sprint("metric_", i+1), 1, map[string]any{"model_name": "model-1"})
				before := md.DataPointCount()
				got, err := r.process(t.Context(), md)
				if err != nil || got.DataPointCount() != before {
					t.Error("lost points", err)
				}
				for _, a := range attributesOf(got, "metric_0") {
					if a["slo_id"] != "llm:chat:ttft-00000:p95" || a["target"] != "0.8000" || a["unit"] != "seconds" {
						t.Error(a)
					}
				}
			}
		})
	}
	senders.Wait()
	close(stop)
	changer.Wait()
}

// Guarantees: passing a point costs no memory beyond what its five new labels need, and none where it has them already.
func TestPassingAllocatesNothingOfItsOwn(t *testing.T) {
	r := newRig(t, catalogOf(100, false), nil)
	f := func(name string, md pmetric.Metrics) {
		t.Helper()
		r.send(md)
		allocs := testing.AllocsPerRun(100, func() { r.send(md) })
		assert.LessOrEqual(t, allocs, 4.0, name) // a batch, not a point
	}
	f("labelled before", points(1000))
	unselected := points(1000)
	unselected.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetName("something.else")
	f("unselected", unselected)
}
