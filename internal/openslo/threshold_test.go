// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// one is the selector of an SLO of one threshold objective, and the SLO.
func one(t *testing.T, selector, value string, annotations ...string) (*Selector, SLO) {
	t.Helper()
	c, err := Parse(Source{Name: "f", Data: []byte(threshold("a", "a", selector, "gte", value, annotations...))})
	require.NoError(t, err, selector)
	return c.SLOs[0].Indicator.Threshold, c.SLOs[0]
}

func TestTheUnitOfARateIsASecond(t *testing.T) {
	f := func(selector, value, wantUnit, wantTarget string, annotations ...string) {
		t.Helper()
		s, slo := one(t, selector, value, annotations...)
		assert.Equal(t, time.Minute, s.Rate)
		assert.Equal(t, []string{wantUnit, wantTarget, "throughput"}, []string{slo.Unit, slo.Target(), string(slo.Class)}, selector)
	}
	const tokens = `signal: traces, rate: 1m, value: 'span.attributes["gen_ai.usage.output_tokens"]'`
	// what is summed, by its unit
	f("metric: a, rate: 1m, unit: tokens", "80", "tokens_per_second", "80.0000")
	f("metric: a, rate: 1m, unit: '{answer}'", "80", "answers_per_second", "80.0000")
	f("metric: a, rate: 1m, unit: MiBy", "2", "bytes_per_second", "2097152.0000")
	f("signal: traces, rate: 1m, unit: requests", "5", "requests_per_second", "5.0000")
	// by its name
	f("metric: vllm:generation_tokens_total, rate: 1m", "80", "tokens_per_second", "80.0000")
	f("metric: http_requests, rate: 1m", "80", "requests_per_second", "80.0000")
	f("metric: sent_kilobytes_total, rate: 1m", "2", "bytes_per_second", "2000.0000")
	f("metric: a_total, rate: 1m", "80", "events_per_second", "80.0000")
	f(tokens, "80", "tokens_per_second", "80.0000")
	// without a value each counts 1
	f("signal: traces, rate: 1m", "5", "events_per_second", "5.0000")
	f("signal: logs, rate: 60s, counted: 'log.body == \"x\"'", "5", "events_per_second", "5.0000")
	// a person knows better
	f("signal: traces, rate: 1m", "5", "requests_per_second", "5.0000", "otelcol-llm.dev/unit: requests_per_second")
	f(tokens, "80", "words_per_second", "80.0000", "otelcol-llm.dev/unit: words_per_second")
}

func TestARateCountsWhatFulfilsItsCondition(t *testing.T) {
	s, _ := one(t, `signal: traces, condition: 'span.name == "llm_request"', rate: 1m, counted: 'span.attributes["x"] < 2'`, "5")
	assert.Equal(t, &Selector{Type: TypeOpenTelemetry, Signal: SignalTraces, Condition: `span.name == "llm_request"`,
		Scale: 1, Rate: time.Minute, Counted: `span.attributes["x"] < 2`}, s)
}

func TestTheRangeIsInTheBaseUnit(t *testing.T) {
	f := func(selector, value string, want Range, annotations ...string) {
		t.Helper()
		s, _ := one(t, selector, value, annotations...)
		assert.Equal(t, &want, s.Range, selector)
	}
	f("metric: a_seconds, range: [0, 3600]", "1", Range{0, 3600})
	f("metric: a_seconds, range: [0, 3600000], unit: ms", "1000", Range{0, 3600})
	f("metric: a_milliseconds, range: [0, .inf]", "1", Range{0, math.Inf(1)})
	f("metric: a_milliseconds, range: [-.inf, 1000]", "1", Range{math.Inf(-1), 1})
	f("metric: a_milliseconds, range: [0, 1000]", "1", Range{0, 1000}, "otelcol-llm.dev/unit: points", "otelcol-llm.dev/class: quality")
	f("metric: score, range: [1, 5]", "4", Range{1, 5}, "otelcol-llm.dev/unit: points", "otelcol-llm.dev/class: quality")
	f("metric: sent_kilobytes, range: [0, 10], rate: 1m", "100", Range{0, 10_000}) // of each, not of their sum
}

func TestExpectedNamesAMetric(t *testing.T) {
	s, _ := one(t, "metric: 'vllm:time_to_first_token_seconds', expected: 'vllm:request_success_total'", "1")
	assert.Equal(t, "vllm:request_success_total", s.Expected)
	assert.Equal(t, "vllm:time_to_first_token_seconds", s.Metric)
}

func TestAnSLIWithARangeThatTwoSLOsShareKeepsEachOnesUnit(t *testing.T) {
	doc := func(name, annotation string) string {
		return `---
apiVersion: openslo/v1
kind: SLO
metadata: {name: ` + name + `, annotations: {` + annotation + `}}
spec:
  service: ` + name + `
  indicatorRef: shared
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 500, target: 0.95}]
`
	}
	c, err := Parse(Source{Name: "f", Data: []byte(`apiVersion: openslo/v1
kind: SLI
metadata: {name: shared}
spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: a_milliseconds, range: [0, 1000]}}}}
` + doc("a", "") + doc("b", "otelcol-llm.dev/class: quality, otelcol-llm.dev/unit: points"))})
	require.NoError(t, err)
	assert.Equal(t, &Range{0, 1}, c.SLOs[0].Indicator.Threshold.Range)
	assert.Equal(t, &Range{0, 1000}, c.SLOs[1].Indicator.Threshold.Range)
}
