// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

func TestAnExpressionThatDoesNotCompileIsToldWithWhatWouldBeRight(t *testing.T) {
	opts, err := Checked()
	require.NoError(t, err)
	f := func(signal openslo.Signal, kind openslo.ExpressionKind, expression, want string) {
		t.Helper()
		err := opts.Check(signal, kind, expression)
		if want == "" {
			assert.NoError(t, err, expression)
			return
		}
		require.EqualError(t, err, want, expression)
	}
	condition := func(expression, want string) {
		t.Helper()
		f(openslo.SignalMetrics, openslo.ExpressionCondition, expression, want)
	}
	condition(`datapoint.attributes["model_name"] == "qwen2-72b"`, "")
	condition(`metric.name == "a" and resource.attributes["b"] != nil`, "")
	condition(`IsMatch(datapoint.attributes["x"], "^a")`, "")
	condition(`datapoint.attributes["x"]`,
		`is no OTTL condition: condition has invalid syntax: 1:26: unexpected token "<EOF>" (expected <opcomparison> Value): write e.g. datapoint.attributes["model_name"] == "qwen2-72b"`)
	condition(`datapoint.attributes["x"] = "a"`, `is no OTTL condition: = is not known: write ==`)
	condition(`datapoint.attributes["x"] == "a" && true`, `is no OTTL condition: && is not known: write and`)
	condition(`datapoint.attributes["x"] == "a" || true`, `is no OTTL condition: || is not known: write or`)
	condition(`attributes["x"] == "a"`,
		`is no OTTL condition: attributes[x] does not say what it belongs to: write datapoint.attributes[x], or metric, scope or resource before the dot; text stands in quotes`)
	condition(`datapoint.attributes["x"] == qwen`,
		`is no OTTL condition: qwen does not say what it belongs to: write datapoint.qwen, or metric, scope or resource before the dot; text stands in quotes`)
	condition(`span.name == "x"`, `is no OTTL condition: span.name is not of this signal: begin with datapoint, metric, scope or resource`)
	condition(`datapoint.attribute["x"] == "a"`,
		`is no OTTL condition: datapoint.attribute[x] has an unknown part "attribute": write e.g. datapoint.attributes["gen_ai.request.model"]`)

	value := func(signal openslo.Signal, expression, want string) {
		t.Helper()
		f(signal, openslo.ExpressionValue, expression, want)
	}
	value(openslo.SignalTraces, `Double(span.attributes["gen_ai.latency.e2e"])`, "")
	value(openslo.SignalTraces, `span.end_time_unix_nano - span.start_time_unix_nano`, "")
	value(openslo.SignalLogs, `log.attributes["gen_ai.evaluation.score.value"]`, "")
	value(openslo.SignalTraces, `log.body`, `is no OTTL value: log.body is not of this signal: begin with span, scope or resource`)
	value(openslo.SignalTraces, `span.attributes["x"] == 1`,
		`is no OTTL value: expression has invalid syntax: 1:22: unexpected token "==": write e.g. span.attributes["gen_ai.latency.time_to_first_token"]`)
	f(openslo.SignalTraces, openslo.ExpressionCondition, `span.name == "llm_request"`, "")
	f(openslo.SignalLogs, openslo.ExpressionCondition, `log.event_name == "gen_ai.evaluation.result"`, "")
	f(openslo.SignalTraces, openslo.ExpressionCounted, `span.attributes["gen_ai.latency.time_to_first_token"] <= 2`, "")
	f(openslo.SignalTraces, openslo.ExpressionCounted, `span.attributes["x"] = 2`, `is no OTTL condition: = is not known: write ==`)
	f(openslo.SignalLogs, openslo.ExpressionCounted, `log.body`,
		`is no OTTL condition: condition has invalid syntax: 1:9: unexpected token "<EOF>" (expected <opcomparison> Value): write e.g. log.attributes["model_name"] == "qwen2-72b"`)
}

// Scenario: every expression of a catalog that was checked is compiled again for evaluation. Guarantees: the check
// refuses what the evaluation would refuse.
func TestTheCheckAndTheEvaluationAgree(t *testing.T) {
	opts, err := Checked()
	require.NoError(t, err)
	for _, expression := range []string{`true`, `datapoint.attributes["x"] == 1.5`, `nonsense(1)`, `attributes["x"] == 1`, `datapoint.flags == 0`, `"`} {
		_, compiled := ForMetrics(&openslo.Catalog{SLOs: []openslo.SLO{threshold("a", "m", expression)}}, componenttest.NewNopTelemetrySettings())
		checked := opts.Check(openslo.SignalMetrics, openslo.ExpressionCondition, expression)
		assert.Equal(t, compiled == nil, checked == nil, expression)
	}
}
