// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottldatapoint"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

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
	x := forMetrics(t, slos...)
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
		assert.Equal(t, want, m.root.uses, name)
	}
}

func TestOnlyComparisonsAreReadAsSuch(t *testing.T) {
	f := func(condition string, want int, wantAll bool) {
		t.Helper()
		list, all := pointPaths.comparisons(condition)
		assert.Len(t, list, want, condition)
		assert.Equal(t, wantAll, all, condition)
	}
	f(``, 0, true)
	f(`datapoint.attributes["a"] == "b"`, 1, true)
	f(`datapoint.attributes["a"]=="b" and resource.attributes["c"] == ""`, 2, true)
	f(`instrumentation_scope.attributes["a"] == "b"`, 1, true)
	f(`metric.name == "a"`, 1, true)
	f(`datapoint.attributes["a"] == "b" and IsMatch(datapoint.attributes["c"], "x")`, 1, false)
	f(`datapoint.attributes["a"] == "b" and not datapoint.attributes["c"] == "d"`, 1, false)
	f(`datapoint.attributes["a"] == "b" and `, 0, false)
	f(`datapoint.attributes["a"] == "b and c"`, 0, false)
	f(`datapoint.attributes["a"] == "b\"c"`, 0, false)
	f(`datapoint.attributes["a"] == "b" or datapoint.attributes["a"] == "c"`, 0, false)
	f(`datapoint.attributes["a"] == "b" and datapoint.attributes["a"] == "c" or metric.name == "a"`, 0, false)
	f(`datapoint.attributes["a"] == "b" and (metric.name == "a")or(metric.name == "b")`, 0, false)
	f(`not datapoint.attributes["a"] == "b"`, 0, false)
	f(`datapoint.attributes["a"]["b"] == "c"`, 0, false)
	f(`datapoint.attributes["a"] != "b"`, 0, false)
	f(`datapoint.attributes["a"] == 1`, 0, false)
	f(`metric.unit == "a"`, 0, false)
	f(`span.attributes["a"] == "b"`, 0, false)
}

// Scenario: conditions of every kind, points with attributes of every type in point, scope and resource.
// Guarantees: a point serves exactly the uses whose conditions OTTL finds to hold, in their order.
func TestAPointServesTheUsesThatOTTLSays(t *testing.T) {
	conditions := []string{`true`, `IsMatch(datapoint.attributes["k"], "[ab]")`, `metric.name == "m"`, `metric.name == "n"`}
	texts := []string{"a", "b", ""}
	for _, context := range []string{"datapoint", "scope", "resource"} {
		for _, key := range []string{"k", "l"} {
			for _, text := range texts {
				equal := fmt.Sprintf(`%s.attributes[%q] == %q`, context, key, text)
				conditions = append(conditions, equal,
					equal+` and datapoint.attributes["l"] == "a"`,
					equal+` and metric.name == "m" and scope.attributes["k"] == "b"`,
					equal+` and IsMatch(datapoint.attributes["l"], "[ab]")`,
					equal+` and datapoint.attributes["l"] == "b" or resource.attributes["k"] == "a"`,
					equal+` or resource.attributes["k"] == "a" and datapoint.attributes["l"] == "b"`,
					`not `+equal,
					fmt.Sprintf(`%s.attributes[%q] != %q`, context, key, text))
			}
		}
	}
	parser := points(t)
	compiled, err := parser.ParseConditions(conditions)
	require.NoError(t, err)
	var slos []openslo.SLO
	for _, condition := range conditions {
		slos = append(slos, threshold("s", "m", condition))
	}
	slos = append(slos, threshold("s", "m", ""))
	m := forMetrics(t, slos...).Of("m")
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
		tc := ottldatapoint.NewTransformContextPtr(rm, sm, metric, p)
		for i, condition := range compiled {
			if ok, err := condition.Eval(t.Context(), tc); ok && err == nil {
				want = append(want, i)
			}
		}
		tc.Close()
		got, _ := Match(t.Context(), m, nil, rm, sm, metric, p)
		require.Equal(t, append(want, len(conditions)), got)
	}
}

func TestAPointMayServeAnSLOTwice(t *testing.T) {
	sel := func(condition string) *openslo.Selector {
		return &openslo.Selector{Type: openslo.TypeOpenTelemetry, Signal: openslo.SignalMetrics, Metric: "requests", Condition: condition, Scale: 1}
	}
	x := forMetrics(t, openslo.SLO{Indicator: openslo.Indicator{Ratio: &openslo.Ratio{
		Bad: sel(`datapoint.attributes["code"] == "500"`), Total: sel("")}}})
	rm, sm, m, p := oneGauge("requests")
	p.Attributes().PutStr("code", "500")
	got, err := Match(t.Context(), x.Of("requests_total"), nil, rm, sm, m, p)
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.Equal(t, Bad, x.Uses()[got[0]].Role)
	assert.Equal(t, Total, x.Uses()[got[1]].Role)
}

// Guarantees: what says how many values there should be is selected as the values are, and counts.
func TestAThresholdMayNameWhatIsExpected(t *testing.T) {
	slo := threshold("a", "ttft", `datapoint.attributes["model_name"] == "qwen"`)
	slo.Indicator.Threshold.Expected = "requests"
	slo.Indicator.Threshold.Range = &openslo.Range{Max: 10}
	slo.Indicator.Threshold.Scale = 0.001
	x := forMetrics(t, slo)
	rm, sm, m, p := oneGauge("requests_total")
	p.Attributes().PutStr("model_name", "qwen")
	got, err := Match(t.Context(), x.Of("requests_total"), nil, rm, sm, m, p)
	require.NoError(t, err)
	require.Len(t, got, 1)
	use := &x.Uses()[got[0]]
	assert.Equal(t, Expected, use.Role)
	assert.True(t, use.Counter)
	assert.Nil(t, use.Range)
	assert.InDelta(t, 1, use.Scale("requests_total", ""), 0)
	assert.Equal(t, Value, x.find("ttft")[0].Role)
	assert.InDelta(t, 10, x.find("ttft")[0].Range.Max, 0)
	p.Attributes().PutStr("model_name", "llama")
	got, err = Match(t.Context(), x.Of("requests_total"), nil, rm, sm, m, p)
	require.NoError(t, err)
	assert.Empty(t, got)
}

func TestWhatIsSelectedNeedNotCount(t *testing.T) {
	slo := threshold("a", "tokens", "")
	slo.Indicator.Threshold.Rate = time.Minute
	slo.Indicator.Threshold.Counted = `datapoint.attributes["finish"] != "error"`
	x := forMetrics(t, slo, threshold("b", "tokens", ""))
	assert.Equal(t, time.Minute, x.Uses()[0].Rate)
	rm, sm, m, p := oneGauge("tokens")
	f := func(use int, want bool) {
		t.Helper()
		counts, err := Counts(t.Context(), x.Of("tokens"), use, rm, sm, m, p)
		require.NoError(t, err)
		assert.Equal(t, want, counts)
	}
	f(0, true)
	p.Attributes().PutStr("finish", "error")
	f(0, false)
	f(1, true)
	x.programs[0].counted, _ = newLanguage(points(t), pointPaths).condition(`ParseJSON(datapoint.attributes["finish"]) == nil`)
	_, err := Counts(t.Context(), x.Of("tokens"), 0, rm, sm, m, p)
	var of *Error
	require.ErrorAs(t, err, &of)
	assert.Equal(t, "counted", of.Key)
}

func points(t *testing.T) ottl.Parser[*ottldatapoint.TransformContext] {
	p, err := pointParser(componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	return p
}

func TestAConditionThatFailsDoesNotHold(t *testing.T) {
	x := forMetrics(t, threshold("a", "m", `ParseJSON(datapoint.attributes["k"]) == nil`), threshold("b", "m", ""))
	rm, sm, m, p := oneGauge("m")
	p.Attributes().PutStr("k", "{")
	got, err := Match(t.Context(), x.Of("m"), nil, rm, sm, m, p)
	require.Error(t, err)
	assert.Equal(t, []int{1}, got)
}

// Guarantees: one index serves many goroutines (run with -race).
func TestTheIndexIsSafeForConcurrentUse(t *testing.T) {
	x := forMetrics(t, threshold("a", "m", `IsMatch(datapoint.attributes["k"], "[ab]")`), threshold("b", "m", `datapoint.attributes["k"] == "a"`))
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

// BenchmarkMatch has all SLOs on one metric, each for another model: the worst case of finding uses by name.
func BenchmarkMatch(b *testing.B) {
	for _, form := range []struct{ name, condition string }{
		{"comparison", `datapoint.attributes["model_name"] == "model-%d"`},
		{"two_comparisons", `resource.attributes["service.name"] == "chat" and datapoint.attributes["model_name"] == "model-%d"`},
		{"comparison_and_ottl", `datapoint.attributes["model_name"] == "model-%d" and datapoint.attributes["tokens"] != nil`},
		{"ottl", `IsMatch(datapoint.attributes["model_name"], "^model-%d$")`},
	} {
		for _, n := range []int{1, 50, 1_000, 10_000} {
			if form.name == "ottl" && n > 1_000 {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d_slos", form.name, n), func(b *testing.B) {
				var slos []openslo.SLO
				for i := range n {
					slos = append(slos, threshold("a", "m", fmt.Sprintf(form.condition, i)))
				}
				m := forMetrics(b, slos...).Of("m")
				rm, sm, metric, p := oneGauge("m")
				rm.Resource().Attributes().PutStr("service.name", "chat")
				p.Attributes().PutStr("model_name", "model-0")
				p.Attributes().PutInt("tokens", 1)
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
}
