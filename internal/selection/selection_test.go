// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

func TestSameMetricInEitherSpelling(t *testing.T) {
	f := func(spec, data string, want bool) {
		t.Helper()
		assert.Equal(t, want, SameMetric(spec, data), "%s and %s", spec, data)
		assert.Equal(t, want, SameMetric(data, spec), "%s and %s", data, spec)
	}
	f("vllm:time_to_first_token_seconds", "vllm:time_to_first_token_seconds", true)
	f("gen_ai.server.time_to_first_token", "gen_ai_server_time_to_first_token_seconds", true)
	f("gen_ai.server.time_to_first_token", "gen_ai_server_time_to_first_token", true)
	f("http.server.request.duration", "http_server_request_duration_seconds", true)
	f("vllm:num_preemptions", "vllm:num_preemptions_total", true)
	f("hw.energy", "hw_energy_joules_total", true)
	f("kv.use", "kv_use_ratio", true)
	f("foo_seconds", "foo_bytes", false)
	f("foo", "foo_waiting", false)
	f("vllm:num_requests", "vllm:num_requests_running", false)
	f("foo_total", "foo_seconds_total", false)
	f("inflight", "inflight_requests", false)
	f("vllm:prompt", "vllm:prompt_tokens_total", false)
	f("foo", "bar", false)
}

func threshold(name, metric, condition string) openslo.SLO {
	return openslo.SLO{Name: name, Unit: "seconds", Position: openslo.Position{File: "slo.yaml", Line: 7},
		Indicator: openslo.Indicator{Threshold: &openslo.Selector{
			Type: openslo.TypeOpenTelemetry, Signal: openslo.SignalMetrics, Metric: metric, Condition: condition, Scale: 1}}}
}

func forMetrics(t testing.TB, slos ...openslo.SLO) *Metrics {
	m, err := ForMetrics(&openslo.Catalog{SLOs: slos}, componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	return m
}

// slosOf are the SLOs of the uses of a metric.
func slosOf(m *Metrics, name string) (slos []int) {
	for _, u := range m.find(name) {
		slos = append(slos, u.SLO)
	}
	return slos
}

func TestAMetricServesEverySLOThatNamesIt(t *testing.T) {
	other := threshold("c", "ttft", "")
	other.Indicator.Threshold.Type = "prometheus"
	m := forMetrics(t, threshold("a", "ttft", ""), threshold("b", "tpot", ""), other, threshold("d", "ttft.seconds", ""))
	assert.Equal(t, []int{0, 3}, slosOf(m, "ttft"), "an SLO that another tool measures is not ours")
	assert.Nil(t, m.Of("unknown"))
}

func TestRolesOfARatio(t *testing.T) {
	sel := func(metric string) *openslo.Selector {
		return &openslo.Selector{Type: openslo.TypeOpenTelemetry, Signal: openslo.SignalMetrics, Metric: metric, Scale: 1}
	}
	m := forMetrics(t,
		openslo.SLO{Indicator: openslo.Indicator{Ratio: &openslo.Ratio{Bad: sel("failed"), Total: sel("all")}}},
		openslo.SLO{Indicator: openslo.Indicator{Ratio: &openslo.Ratio{Raw: sel("raw"), RawType: openslo.RawFailure}}})
	assert.Equal(t, Bad, m.find("failed")[0].Role)
	assert.Equal(t, Total, m.find("all")[0].Role)
	assert.Equal(t, RawFailure, m.find("raw")[0].Role)
}

func TestTheUnitOfTheDataIsBelieved(t *testing.T) {
	u := forMetrics(t, threshold("a", "ttft", "")).find("ttft")[0]
	u.scale = 0.001 // the spec says ms
	f := func(unit string, want float64) {
		t.Helper()
		assert.InDelta(t, want, u.Scale("ttft", unit), 0)
	}
	f("", 0.001)
	f("ms", 0.001)
	f("s", 1)
	f("us", 1e-6)
	f("By", 0.001)
	f("nonsense", 0.001)
	assert.InDelta(t, 1e-3, u.Scale("ttft_milliseconds", ""), 0)
	assert.InDelta(t, 1, u.Scale("ttft_seconds", ""), 0)
	assert.InDelta(t, 1e-6, u.Scale("ttft_seconds", "us"), 0, "the unit is believed before the name")
}

func TestConditionsSeePointScopeAndResource(t *testing.T) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("cloud.region", "eu")
	sm := rm.ScopeMetrics().AppendEmpty()
	metric := sm.Metrics().AppendEmpty()
	metric.SetName("ttft")
	dp := metric.SetEmptyGauge().DataPoints().AppendEmpty()
	dp.Attributes().PutStr("model_name", "qwen2-72b")
	f := func(condition string, want bool) {
		t.Helper()
		got, err := Match(t.Context(), forMetrics(t, threshold("a", "ttft", condition)).Of("ttft"), nil, rm, sm, metric, dp)
		require.NoError(t, err)
		assert.Equal(t, want, len(got) == 1, condition)
	}
	f("", true)
	f(`datapoint.attributes["model_name"] == "qwen2-72b"`, true)
	f(`datapoint.attributes["model_name"] == "llama"`, false)
	f(`resource.attributes["cloud.region"] == "eu" and IsMatch(datapoint.attributes["model_name"], "^qwen")`, true)
}

func TestAConditionThatDoesNotParseNamesItsPlace(t *testing.T) {
	_, err := ForMetrics(&openslo.Catalog{SLOs: []openslo.SLO{threshold("a", "m", `datapoint.attributes["x"] =`), threshold("b", "m", `nonsense(1)`)}},
		componenttest.NewNopTelemetrySettings())
	require.Error(t, err)
	assert.Contains(t, err.Error(), `slo.yaml:7: slo "a": condition:`)
	assert.Contains(t, err.Error(), `slo "b"`)
}

func TestNamesThatAreRememberedAreBounded(t *testing.T) {
	m := forMetrics(t, threshold("a", "ttft", ""))
	for i := range maxKnownNames + 100 {
		m.Of(fmt.Sprint(i))
	}
	assert.Equal(t, maxKnownNames, m.known.Len())
	assert.NotNil(t, m.Of("ttft"))
}

func BenchmarkOf(b *testing.B) {
	var slos []openslo.SLO
	for i := range 1000 {
		slos = append(slos, threshold("a", fmt.Sprintf("metric_%d", i), ""))
	}
	m := forMetrics(b, slos...)
	b.ReportAllocs()
	for b.Loop() {
		m.Of("metric_500")
		m.Of("unknown")
	}
}
