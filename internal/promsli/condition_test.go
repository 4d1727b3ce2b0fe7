// SPDX-License-Identifier: Apache-2.0

package promsli

import (
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
)

func TestSimpleConditionsAreMatchersAndOthersAreRefused(t *testing.T) {
	f := func(condition string, want ...string) {
		t.Helper()
		got, err := matchers(condition)
		require.NoError(t, err, condition)
		assert.Equal(t, want, got)
	}
	f("")
	f(`datapoint.attributes["model_name"] == "qwen2-72b"`, `model_name="qwen2-72b"`)
	f(`datapoint.attributes["gen_ai.request.model"] != "a"  and datapoint.attributes["b"]=="and"`, `gen_ai_request_model!="a"`, `b="and"`)
	f("datapoint.attributes[\"code\"] == 500\n  and datapoint.attributes[\"ok\"] == false\n", `code="500"`, `ok="false"`)
	f(`datapoint.attributes["a"] == "x\"y\\z"`, `a="x\"y\\z"`)
	f(`IsMatch(datapoint.attributes["model_name"], "(?i)llama-?2")`, `model_name=~".*(?:(?i)llama-?2).*"`)
	f(`not IsMatch(datapoint.attributes["model_name"], "^a") and datapoint.attributes["b"] == "c"`, `model_name!~".*(?:^a).*"`, `b="c"`)
	f(`IsMatch(datapoint.attributes["a"], "x*")`, `a=~".*(?:x*).*"`, `a!=""`)

	for _, condition := range []string{
		`datapoint.attributes["a"] == "b" or datapoint.attributes["a"] == "c"`,
		`resource.attributes["a"] == "b"`,
		`datapoint.attributes["a"] > 3`,
		`datapoint.attributes["a"] == 1.5`,
		`datapoint.attributes["a"] == nil`,
		`datapoint.attributes["a"] != ""`,
		`(datapoint.attributes["a"] == "b")`,
		`datapoint.attributes["a"] == "b" and`,
		`datapoint.attributes["a"] == "b" android`,
		`true`,
	} {
		_, err := matchers(condition)
		require.ErrorContains(t, err, "label matchers cannot say the condition "+condition, condition)
	}
}

func TestABoundaryIsFoundInEverySpelling(t *testing.T) {
	f := func(boundary float64, want string) {
		t.Helper()
		assert.Equal(t, want, le(boundary))
	}
	f(0.75, `le="0.75"`)
	f(1, `le=~"1|1\\.0"`)
	f(30, `le=~"30|30\\.0"`)
	f(1e6, `le=~"1000000|1000000\\.0|1e\\+06"`)
	f(0.00001, `le=~"0\\.00001|1e-05"`)
	f(0.1+0.2, `le="0.3"`)
}

// FuzzMatchers holds that a condition that is translated gives a selector that Prometheus reads, and that OTTL reads it too.
func FuzzMatchers(f *testing.F) {
	for _, condition := range []string{
		`datapoint.attributes["a.b"] == "c" and datapoint.attributes["0"] != 5`,
		`not IsMatch(datapoint.attributes["a"], "x*")`,
		`IsMatch(datapoint.attributes["a"], "(")`,
		`datapoint.attributes[""] == "\xff"`,
		"datapoint.attributes[\"a\"] == \"\ufffd\xff\"",
	} {
		f.Add(condition)
	}
	opts, err := selection.Checked()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, condition string) {
		list, err := matchers(condition)
		if err != nil || opts.Check(openslo.SignalMetrics, openslo.ExpressionCondition, condition) != nil {
			return
		}
		selector := source{name: "m", matchers: list}.selector("")
		if _, err := parser.ParseExpr(selector); err != nil {
			t.Fatalf("%s became %s: %v", condition, selector, err)
		}
	})
}
