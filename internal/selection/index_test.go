// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

func index(t testing.TB, slos ...openslo.SLO) *Index {
	t.Helper()
	x, err := NewIndex(&openslo.Catalog{SLOs: slos}, componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	return x
}

// oneGauge is a metric with one point.
func oneGauge(name string) (pmetric.ResourceMetrics, pmetric.ScopeMetrics, pmetric.Metric, pmetric.NumberDataPoint) {
	rm := pmetric.NewMetrics().ResourceMetrics().AppendEmpty()
	sm := rm.ScopeMetrics().AppendEmpty()
	m := sm.Metrics().AppendEmpty()
	m.SetName(name)
	return rm, sm, m, m.SetEmptyGauge().DataPoints().AppendEmpty()
}

// Guarantees: the index finds for every name what comparing it with every SLO finds.
func TestTheIndexFindsWhatSameMetricFinds(t *testing.T) {
	bases := []string{"ttft", "gen_ai.server.duration", "vllm:tokens", "a_seconds", "x_tokens_per_second", "kv"}
	suffixes := []string{"", "_seconds", "_total", "_bytes", "_tokens_per_second", "_seconds_total", "_ratio", "_per_second", ".seconds"}
	var names []string
	for _, base := range bases {
		for _, suffix := range suffixes {
			names = append(names, base+suffix)
		}
	}
	var slos []openslo.SLO
	for _, name := range names {
		slos = append(slos, threshold(name, name, ""))
	}
	x := index(t, slos...)
	for _, name := range append(names, "gen_ai_server_duration_seconds", "other", "_", "_total", "") {
		var want []int
		for i, slo := range slos {
			if SameMetric(slo.Indicator.Threshold.Metric, name) {
				want = append(want, i)
			}
		}
		m := x.Of(name)
		if want == nil {
			assert.Nil(t, m, name)
			continue
		}
		require.NotNil(t, m, name)
		assert.Equal(t, want, m.always, name)
	}
}

func TestOnlyComparisonsAreReadAsSuch(t *testing.T) {
	f := func(condition string, want bool) {
		t.Helper()
		_, ok := comparisons(condition)
		assert.Equal(t, want, ok, condition)
	}
	f(`datapoint.attributes["a"] == "b"`, true)
	f(`datapoint.attributes["a"]=="b" and resource.attributes["c"] == ""`, true)
	f(`instrumentation_scope.attributes["a"] == "b"`, true)
	f(`datapoint.attributes["a"] == "b and c"`, false)
	f(`datapoint.attributes["a"] == "b\"c"`, false)
	f(`datapoint.attributes["a"] == "b" or datapoint.attributes["a"] == "c"`, false)
	f(`not datapoint.attributes["a"] == "b"`, false)
	f(`datapoint.attributes["a"]["b"] == "c"`, false)
	f(`datapoint.attributes["a"] != "b"`, false)
	f(`datapoint.attributes["a"] == 1`, false)
	f(`metric.name == "a"`, false)
}

// Scenario: conditions of every kind, points with attributes of every type in point, scope and resource.
// Guarantees: a point serves exactly the SLOs whose conditions OTTL finds to hold, in their order and each once.
func TestAPointServesTheSLOsThatOTTLSays(t *testing.T) {
	texts := []string{"a", "b", ""}
	var slos []openslo.SLO
	for _, context := range []string{"datapoint", "scope", "resource"} {
		for _, key := range []string{"k", "l"} {
			for _, text := range texts {
				slos = append(slos,
					threshold("s", "m", fmt.Sprintf(`%s.attributes[%q] == %q`, context, key, text)),
					threshold("s", "m", fmt.Sprintf(`%s.attributes[%q] == %q and datapoint.attributes["l"] == "a"`, context, key, text)),
					threshold("s", "m", fmt.Sprintf(`%s.attributes[%q] != %q`, context, key, text)))
			}
		}
	}
	slos = append(slos, threshold("s", "m", ""), threshold("s", "m", `IsMatch(datapoint.attributes["k"], "[ab]")`))
	x, all := index(t, slos...), compile(t, slos...)
	m := x.Of("m")
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		rm, sm, metric, p := oneGauge("m")
		for _, attributes := range []interface {
			PutStr(string, string)
			PutInt(string, int64)
		}{p.Attributes(), sm.Scope().Attributes(), rm.Resource().Attributes()} {
			for _, key := range []string{"k", "l"} {
				switch n := r.IntN(5); n {
				case 0, 1, 2:
					attributes.PutStr(key, texts[n])
				case 3:
					attributes.PutInt(key, 1)
				}
			}
		}
		var want []int
		for _, use := range all.Of("m") {
			if ok, err := use.Accepts(t.Context(), rm, sm, metric, p); ok && err == nil {
				want = append(want, use.SLO)
			}
		}
		got, _ := Match(t.Context(), m, nil, rm, sm, metric, p)
		require.Equal(t, want, got)
	}
}

// Guarantees: an SLO that names one metric twice (good and total) takes a point once.
func TestAnSLOTakesAPointOnce(t *testing.T) {
	sel := func(condition string) *openslo.Selector {
		return &openslo.Selector{Type: openslo.TypeOpenTelemetry, Signal: openslo.SignalMetrics, Metric: "requests", Condition: condition, Scale: 1}
	}
	x := index(t, openslo.SLO{Indicator: openslo.Indicator{Ratio: &openslo.Ratio{
		Bad: sel(`datapoint.attributes["code"] == "500"`), Total: sel("")}}})
	rm, sm, m, p := oneGauge("requests")
	p.Attributes().PutStr("code", "500")
	got, err := Match(t.Context(), x.Of("requests_total"), nil, rm, sm, m, p)
	require.NoError(t, err)
	assert.Equal(t, []int{0}, got)
}

func TestAConditionThatFailsDoesNotHold(t *testing.T) {
	x := index(t, threshold("a", "m", `ParseJSON(datapoint.attributes["k"]) == nil`), threshold("b", "m", ""))
	rm, sm, m, p := oneGauge("m")
	p.Attributes().PutStr("k", "{")
	got, err := Match(t.Context(), x.Of("m"), nil, rm, sm, m, p)
	require.Error(t, err)
	assert.Equal(t, []int{1}, got)
}

func TestAnIndexOfConditionsThatDoNotParseIsRefused(t *testing.T) {
	_, err := NewIndex(&openslo.Catalog{SLOs: []openslo.SLO{threshold("a", "m", "nonsense(1)")}}, componenttest.NewNopTelemetrySettings())
	require.ErrorContains(t, err, `slo.yaml:7: slo "a": condition:`)
}

// Guarantees: one index serves many goroutines (run with -race).
func TestTheIndexIsSafeForConcurrentUse(t *testing.T) {
	x := index(t, threshold("a", "m", `IsMatch(datapoint.attributes["k"], "[ab]")`), threshold("b", "m", `datapoint.attributes["k"] == "a"`))
	m := x.Of("m")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			rm, sm, metric, p := oneGauge("m")
			p.Attributes().PutStr("k", "a")
			for range 200 {
				x.Of("m_total")
				if got, err := Match(t.Context(), m, nil, rm, sm, metric, p); err != nil || len(got) != 2 {
					t.Error(got, err)
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkMatch has all SLOs on one metric, each for another model: the worst case of an index by name.
func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{1, 1_000, 10_000} {
		b.Run(fmt.Sprintf("%d_slos", n), func(b *testing.B) {
			var slos []openslo.SLO
			for i := range n {
				slos = append(slos, threshold("a", "m", fmt.Sprintf(`datapoint.attributes["model_name"] == "model-%d"`, i)))
			}
			m := index(b, slos...).Of("m")
			rm, sm, metric, p := oneGauge("m")
			p.Attributes().PutStr("model_name", "model-0")
			into := make([]int, 0, 8)
			b.ReportAllocs()
			for b.Loop() {
				if got, _ := Match(b.Context(), m, into, rm, sm, metric, p); len(got) != 1 {
					b.Fatal(got)
				}
			}
		})
	}
}
