// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlspan"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/ottlfuncs"

	"github.com/otelcol-llm/otelcol-llm/extension/slocatalogextension/samples"
	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
)

func TestEverySampleIsRightAndMeasuredHere(t *testing.T) {
	require.NotEmpty(t, samples.Names())
	for _, name := range samples.Names() {
		c, err := load([]string{samples.Scheme + name})
		require.NoError(t, err)
		assert.NotEmpty(t, c.SLOs)
		assert.NotEmpty(t, c.Policies)
		assert.Equal(t, []string{"builtin:" + name}, c.Files)
		for _, s := range c.SLOs {
			assert.True(t, s.Evaluated(), s.ID)
		}
	}
}

func TestTheVLLMSampleSaysWhatItMeans(t *testing.T) {
	c, err := load([]string{"builtin:vllm"})
	require.NoError(t, err)
	var got []string
	for _, s := range c.SLOs {
		got = append(got, strings.Join([]string{s.ID, string(s.Class), s.Target(), s.Unit, strings.Join(s.GroupBy, ",")}, " "))
	}
	assert.Equal(t, []string{
		"llm:vllm:availability:99.9 availability 0.9990 ratio model_name",
		"llm:vllm:e2e:p95 latency 30.0000 seconds model_name",
		"llm:vllm:kv-cache:p99 saturation 0.9500 ratio model_name",
		"llm:vllm:queue:p95 latency 0.5000 seconds model_name",
		"llm:vllm:tpot:p95 latency 0.1000 seconds model_name",
		"llm:vllm:ttft:p95 latency 1.0000 seconds model_name",
		"llm:vllm:ttft:p99 latency 2.5000 seconds model_name",
	}, got)
}

// Scenario: MLPerf's table of p99 latency limits. Guarantees: the sample says the same, model by model, and nothing else.
func TestTheMLPerfSampleSaysWhatMLPerfAsks(t *testing.T) {
	table := map[string][4]string{ // Server TTFT and TPOT, Interactive TTFT and TPOT; seconds
		"llama2-70b":    {"2.0000", "0.2000", "0.4500", "0.0400"},
		"llama3-1-8b":   {"2.0000", "0.1000", "0.5000", "0.0300"},
		"llama3-1-405b": {"6.0000", "0.1750", "4.5000", "0.0800"},
		"mixtral-8x7b":  {"2.0000", "0.2000"},
		"deepseek-r1":   {"2.0000", "0.0800", "1.5000", "0.0150"},
		"gpt-oss-120b":  {"3.0000", "0.0800", "2.0000", "0.0200"},
	}
	want := map[string]string{}
	for model, limits := range table {
		for i, name := range []string{"ttft:server", "tpot:server", "ttft:interactive", "tpot:interactive"} {
			if limits[i] != "" {
				want["llm:mlperf:"+model+"-"+name+"-p99"] = limits[i]
			}
		}
	}
	c, err := load([]string{"builtin:mlperf"})
	require.NoError(t, err)
	got := map[string]string{}
	for _, s := range c.SLOs {
		got[s.ID] = s.Target()
		assert.InDelta(t, 0.99, s.Objective.Target, 0, s.ID)
		assert.Equal(t, openslo.OpLTE, s.Objective.Op, s.ID)
		assert.Equal(t, []string{"model_name"}, s.GroupBy, s.ID)
	}
	assert.Equal(t, want, got)
	assert.Len(t, c.Policies, len(table))
}

// Scenario: the names under which people serve MLPerf's models. Guarantees: each is judged by its own limits, and a
// distilled or other model by none.
func TestTheMLPerfSampleTellsModelsByTheirNames(t *testing.T) {
	c, err := load([]string{"builtin:mlperf"})
	require.NoError(t, err)
	uses, err := selection.ForMetrics(c, componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	sm := rm.ScopeMetrics().AppendEmpty()
	metric := sm.Metrics().AppendEmpty()
	metric.SetName("vllm:time_to_first_token_seconds")
	point := metric.SetEmptyHistogram().DataPoints().AppendEmpty()
	f := func(model string, want ...string) {
		t.Helper()
		point.Attributes().PutStr("model_name", model)
		var got []string
		found, err := selection.Match(t.Context(), uses.Of(metric.Name()), nil, rm, sm, metric, point)
		require.NoError(t, err)
		for _, use := range found {
			got = append(got, c.SLOs[uses.Uses()[use].SLO].ID)
		}
		assert.Equal(t, want, got, model)
	}
	both := func(model string) []string {
		return []string{"llm:mlperf:" + model + "-ttft:interactive-p99", "llm:mlperf:" + model + "-ttft:server-p99"}
	}
	f("meta-llama/Llama-2-70b-chat-hf", both("llama2-70b")...)
	f("meta-llama/Llama-3.1-8B-Instruct", both("llama3-1-8b")...)
	f("RedHatAI/Meta-Llama-3.1-405B-Instruct-FP8", both("llama3-1-405b")...)
	f("mistralai/Mixtral-8x7B-Instruct-v0.1", "llm:mlperf:mixtral-8x7b-ttft:server-p99")
	f("deepseek-ai/DeepSeek-R1", both("deepseek-r1")...)
	f("deepseek-ai/DeepSeek-R1-0528", both("deepseek-r1")...)
	f("deepseek-ai/DeepSeek-R1-Distill-Llama-70B")
	f("openai/gpt-oss-120b", both("gpt-oss-120b")...)
	f("openai/gpt-oss-20b")
	f("Qwen/Qwen2.5-7B-Instruct")
}

func TestTheGoodputSampleSaysWhatItMeans(t *testing.T) {
	c, err := load([]string{"builtin:goodput"})
	require.NoError(t, err)
	var got []string
	for _, s := range c.SLOs {
		got = append(got, strings.Join([]string{s.ID, string(s.Class), s.Target(), s.Unit, strings.Join(s.GroupBy, ",")}, " "))
	}
	assert.Equal(t, []string{
		"llm:goodput:rate:p95 throughput 1.0000 requests_per_second gen_ai.response.model",
		"llm:goodput:ratio:99 availability 0.9900 ratio gen_ai.response.model",
		"llm:goodput:tokens:p99 throughput 10.0000 tokens_per_second gen_ai.response.model",
	}, got)
	assert.Equal(t, "span.name == \"llm_request\" and "+c.SLOs[0].Indicator.Threshold.Counted, c.SLOs[1].Indicator.Ratio.Good.Condition,
		"a good request is the same one in both")
}

// Scenario: spans as vLLM writes them, of requests that keep both limits, one of them, and none; of one token, and without
// any. Guarantees: good is who keeps both, and everybody counts; the rate of tokens is that after the first.
func TestTheGoodputSampleTellsGoodRequests(t *testing.T) {
	c, err := load([]string{"builtin:goodput"})
	require.NoError(t, err)
	parser, err := ottlspan.NewParser(ottlfuncs.StandardConverters[*ottlspan.TransformContext](),
		componenttest.NewNopTelemetrySettings(), ottlspan.EnablePathContextNames())
	require.NoError(t, err)
	ratio, tokens := c.SLOs[1].Indicator.Ratio, c.SLOs[2].Indicator.Threshold
	good, err := parser.ParseCondition(ratio.Good.Condition)
	require.NoError(t, err)
	total, err := parser.ParseCondition(ratio.Total.Condition)
	require.NoError(t, err)
	several, err := parser.ParseCondition(tokens.Condition)
	require.NoError(t, err)
	rate, err := parser.ParseValueExpression(tokens.Value)
	require.NoError(t, err)

	spans := ptrace.NewTraces().ResourceSpans().AppendEmpty()
	scope := spans.ScopeSpans().AppendEmpty()
	f := func(attributes map[string]any, wantGood bool, wantRate float64) {
		t.Helper()
		span := scope.Spans().AppendEmpty()
		span.SetName("llm_request")
		require.NoError(t, span.Attributes().FromRaw(attributes))
		tc := ottlspan.NewTransformContextPtr(spans, scope, span)
		defer tc.Close()
		ok, err := good.Eval(t.Context(), tc)
		require.NoError(t, err)
		assert.Equal(t, wantGood, ok, attributes)
		ok, err = total.Eval(t.Context(), tc)
		require.NoError(t, err)
		assert.True(t, ok)
		ok, err = several.Eval(t.Context(), tc)
		require.NoError(t, err)
		require.Equal(t, wantRate > 0, ok)
		if ok {
			v, err := rate.Eval(t.Context(), tc)
			require.NoError(t, err)
			assert.InDelta(t, wantRate, v, 1e-9)
		}
	}
	request := func(ttft, decode float64, tokens int64) map[string]any {
		return map[string]any{"gen_ai.latency.time_to_first_token": ttft, "gen_ai.latency.time_in_model_decode": decode,
			"gen_ai.usage.completion_tokens": tokens}
	}
	f(request(0.5, 5, 101), true, 20)
	f(request(2, 12.5, 126), true, 10) // both at their limits
	f(request(2.1, 5, 101), false, 20) // too late
	f(request(0.5, 20, 101), false, 5) // too slow
	f(request(3, 20, 101), false, 5)
	f(request(0.5, 0, 1), true, 0)    // one token
	f(request(-1, -1, 101), false, 0) // not known
	f(map[string]any{"gen_ai.usage.completion_tokens": int64(0)}, false, 0)
	f(nil, false, 0)
}

// Scenario: a threshold between two bucket boundaries could only be judged by interpolation. Guarantees: those of
// the sample stand on the boundaries that vLLM 0.30 publishes.
func TestTheVLLMSampleStandsOnBucketBoundaries(t *testing.T) {
	short := []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5}
	long := []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120}
	boundaries := map[string][]float64{
		"vllm:time_to_first_token_seconds":           {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10},
		"vllm:request_time_per_output_token_seconds": short,
		"vllm:e2e_request_latency_seconds":           long,
		"vllm:request_queue_time_seconds":            long,
	}
	c, err := load([]string{"builtin:vllm"})
	require.NoError(t, err)
	for _, s := range c.SLOs {
		if s.Class != openslo.ClassLatency {
			continue
		}
		on := slices.ContainsFunc(boundaries[s.Indicator.Threshold.Metric], func(le float64) bool {
			return math.Abs(le-s.Objective.Value) == 0
		})
		assert.True(t, on, "%s: %s", s.ID, s.Target())
	}
}

// Scenario: a reader copies an example of the README. Guarantees: it is valid.
func TestEveryExampleOfTheReadmeIsValid(t *testing.T) {
	assert.Equal(t, 2, doctest.Examples(t, "extensions", NewFactory()))
	_, err := openslo.Parse(openslo.Source{Name: "README.md", Data: []byte(document(t))})
	require.NoError(t, err)
}

// document is the README's example of an SLO file.
func document(t *testing.T) string {
	t.Helper()
	blocks := doctest.Blocks(t)
	i := slices.IndexFunc(blocks, func(b string) bool { return strings.HasPrefix(b, "apiVersion:") })
	require.GreaterOrEqual(t, i, 0)
	return blocks[i]
}

// Scenario: a problem in a file, as the README shows it. Guarantees: the README shows what is really said.
func TestTheReadmesProblemsAreReal(t *testing.T) {
	doc := strings.NewReplacer("target: 0.95", "target: 95", "{slo: chat-ttft}", "{slo: chat-tttf}").Replace(document(t))
	_, err := openslo.Parse(openslo.Source{Name: "chat.yaml", Data: []byte(doc)})
	require.Error(t, err)
	assert.Contains(t, doctest.README(t), "\n"+explain(err).Error()+"\n```")
}
