// SPDX-License-Identifier: Apache-2.0

package promrules

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/extension/slocatalogextension/samples"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

func catalog(t testing.TB, data string) *openslo.Catalog {
	t.Helper()
	c, err := openslo.Parse(openslo.Source{Name: "f.yaml", Data: []byte(data)})
	require.NoError(t, err)
	return c
}

// written are the rules of a catalog as a file, which Prometheus accepts.
func written(t testing.TB, c *openslo.Catalog, opts Options) (string, []Skipped) {
	t.Helper()
	groups, skipped := Build(c, opts)
	var b bytes.Buffer
	require.NoError(t, Write(&b, c.Files, groups, skipped, time.Minute))
	_, errs := rulefmt.Parse(b.Bytes(), false, model.LegacyValidation)
	require.Empty(t, errs, b.String())
	return b.String(), skipped
}

func TestPrometheusAcceptsTheRulesOfEverySample(t *testing.T) {
	for _, name := range samples.Names() {
		files, sources, err := samples.Resolve([]string{samples.Scheme + name})
		require.NoError(t, err)
		c, err := openslo.LoadWith(openslo.Options{}, files, sources...)
		require.NoError(t, err)
		_, skipped := written(t, c, Options{})
		if name == "goodput" { // is made of spans
			assert.NotEmpty(t, skipped)
			continue
		}
		assert.Empty(t, skipped)
	}
}

// slo is an SLO document.
func slo(name, indicator, objective string, more ...string) string {
	doc := fmt.Sprintf(`---
apiVersion: openslo/v1
kind: SLO
metadata: {name: %s, annotations: {otelcol-llm.dev/group-by: model_name}}
spec:
  service: chat
  indicator: {metadata: {name: %s}, spec: %s}
  timeWindow: [{duration: 28d, isRolling: true}]
  objectives: [%s]
`, name, name, indicator, objective)
	if len(more) == 0 {
		more = []string{"budgetingMethod: Occurrences"}
	}
	for _, line := range more {
		doc += "  " + line + "\n"
	}
	return doc
}

func threshold(spec string) string {
	return "{thresholdMetric: {metricSource: {type: opentelemetry, spec: {" + spec + "}}}}"
}

func ratio(part, spec, total string) string {
	return fmt.Sprintf("{ratioMetric: {%s: {metricSource: {type: opentelemetry, spec: {%s}}}, total: {metricSource: {type: opentelemetry, spec: {%s}}}}}",
		part, spec, total)
}

// ratioOver5m is the SLI's expression over five minutes.
func ratioOver5m(t testing.TB, opts Options, doc string) string {
	t.Helper()
	groups, skipped := Build(catalog(t, doc), opts)
	require.Empty(t, skipped)
	for _, r := range groups[0].Rules {
		if r.Record == sliRatio && r.Labels["window"] == "5m" {
			return r.Expr
		}
	}
	require.Fail(t, "no rule over 5m")
	return ""
}

func TestTheRatioIsWeightedByEventsAndNeverAMeanOfRatios(t *testing.T) {
	f := func(indicator, objective, want string, opts ...Options) {
		t.Helper()
		assert.Equal(t, want, ratioOver5m(t, append(opts, Options{})[0], slo("a", indicator, objective)))
	}
	// histograms
	f(threshold("metric: ttft_seconds"), "{op: lte, value: 0.75, target: 0.95}",
		`sum by (model_name) (increase(ttft_seconds_bucket{le="0.75"}[5m]))
/
(sum by (model_name) (increase(ttft_seconds_count[5m])) > 0)`)
	f(threshold("metric: ttft_seconds_bucket"), "{op: gt, value: 1, target: 0.95}",
		`1 - sum by (model_name) (increase(ttft_seconds_bucket{le=~"1|1\\.0"}[5m]))
/
(sum by (model_name) (increase(ttft_seconds_count[5m])) > 0)`)
	f(threshold("metric: gen_ai.server.time_to_first_token"), "{op: lte, value: 0.1, target: 0.95}",
		`sum by (model_name) (increase(gen_ai_server_time_to_first_token_seconds_bucket{le="0.1"}[5m]))
/
(sum by (model_name) (increase(gen_ai_server_time_to_first_token_seconds_count[5m])) > 0)`)
	f(threshold("metric: rpc.server.latency, unit: ms"), "{op: lte, value: 800, target: 0.95}", // the boundary as the source has it
		`sum by (model_name) (increase(rpc_server_latency_milliseconds_bucket{le=~"800|800\\.0"}[5m]))
/
(sum by (model_name) (increase(rpc_server_latency_milliseconds_count[5m])) > 0)`)
	// gauges, and the rate of counters
	f(threshold("metric: 'vllm:kv_cache_usage_perc'"), "{op: lte, value: 0.95, target: 0.95}",
		`sum_over_time(slo:sli_samples:good{slo_id="llm:chat:a:p95"}[5m])
/
sum_over_time(slo:sli_samples:total{slo_id="llm:chat:a:p95"}[5m])`)
	f(threshold("metric: prompt.size, unit: KiBy"), "{op: lte, value: 5, target: 0.95}",
		`sum by (model_name) (increase(prompt_size_kibibytes_bucket{le=~"5|5\\.0"}[5m]))
/
(sum by (model_name) (increase(prompt_size_kibibytes_count[5m])) > 0)`, Options{Histograms: []string{"prompt.size"}})
	// ratios
	f(ratio("good", `metric: answers_total, condition: 'datapoint.attributes["code"] != 500'`, "metric: answers_total"), "{target: 0.95}",
		`(sum by (model_name) (increase(answers_total{code!="500"}[5m])) or 0 * sum by (model_name) (increase(answers_total[5m])))
/
(sum by (model_name) (increase(answers_total[5m])) > 0)`)
	f(ratio("bad", "metric: gen_ai.errors", "metric: http.server.request.duration"), "{target: 0.95}", // a histogram counts by its number of values
		`1 - (sum by (model_name) (increase(gen_ai_errors_total[5m])) or 0 * sum by (model_name) (increase(http_server_request_duration_seconds_count[5m])))
/
(sum by (model_name) (increase(http_server_request_duration_seconds_count[5m])) > 0)`)
}

func TestWhatPrometheusCannotSayIsTold(t *testing.T) {
	spans := threshold(`signal: traces, value: 'span.attributes["x.duration"]'`)
	c := catalog(t, slo("spans", spans, "{op: lte, value: 1, target: 0.9}")+
		slo("elsewhere", "{thresholdMetric: {metricSource: {type: Datadog, spec: {query: x}}}}", "{op: lte, value: 1, target: 0.9}")+
		slo("either", threshold(`metric: a_seconds, condition: 'datapoint.attributes["a"] == "b" or true'`), "{op: lte, value: 1, target: 0.9}")+
		slo("fine", threshold(`metric: a_seconds`), "{op: lte, value: 1, target: 0.9}", "budgetingMethod: Occurrences", `alertPolicies:
    - kind: AlertPolicy
      metadata: {name: silence}
      spec:
        alertWhenNoData: true
        conditions: [{kind: AlertCondition, metadata: {name: burn}, spec: {severity: page, condition: {op: gte, threshold: 4, lookbackWindow: 4d}}}]`)+`---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: over-spans}
spec: {window: 5m, when: {any: [{slo: fine}, {slo: spans}]}}
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: opens}
spec: {window: 5m, when: {slo: fine}, onNoData: open}
`)
	file, skipped := written(t, c, Options{})
	var got []string
	for _, s := range skipped {
		got = append(got, s.String())
		assert.Contains(t, file, "\n# - "+s.String()+"\n")
	}
	assert.Equal(t, []string{
		`llm:chat:either:p90: label matchers cannot say the condition datapoint.attributes["a"] == "b" or true: they know datapoint.attributes[…] with ==, != and IsMatch, joined by and`,
		"llm:chat:elsewhere:p90: its metricSource is of type Datadog, which another tool measures, and not opentelemetry",
		"AlertPolicy silence of llm:chat:fine:p90: alertWhenNoData needs a window longer than lookbackWindow 4d",
		"llm:chat:spans:p90: it is made of traces, which Prometheus does not have",
		"ViolationPolicy opens: onNoData: open has no equal, because a rule does not know which groups there should be",
		"ViolationPolicy over-spans: there are no rules for llm:chat:spans:p90",
	}, got)
}

func TestNothingToSayIsAnEmptyFileOfRules(t *testing.T) {
	file, skipped := written(t, &openslo.Catalog{Files: []string{"empty.yaml"}}, Options{})
	assert.Empty(t, skipped)
	assert.Equal(t, "# Written by slo rules from empty.yaml. Do not edit.\ngroups: []\n", file)
}

// Scenario: every form of an SLI, budget and alert. Guarantees: Prometheus accepts the rules.
func TestPrometheusAcceptsEveryForm(t *testing.T) {
	raw := func(kind string) string {
		return "{ratioMetric: {rawType: " + kind + ", raw: {metricSource: {type: opentelemetry, spec: {metric: cache.hits, unit: '%'}}}}}"
	}
	doc := slo("raw-success", raw("success"), "{target: 0.9}") + slo("raw-failure", raw("failure"), "{target: 0.9}") +
		slo("rate", threshold("metric: tokens_total, unit: tokens/s"), "{op: gt, value: 80, target: 0.9}") +
		slo("gauge-count", ratio("good", "metric: good", "metric: all"), "{target: 0.9}") +
		slo("means", threshold("metric: a_seconds"), "{op: lt, value: 1, target: 0.9, timeSliceWindow: 1m}", "budgetingMethod: RatioTimeslices")
	file, skipped := written(t, catalog(t, doc), Options{Gauges: []string{"good", "all"}})
	assert.Empty(t, skipped)
	assert.Contains(t, file, "1 - 0.01 * sum by (model_name) (sum_over_time(cache_hits_percent[5m]))")
	assert.Contains(t, file, "sum by (model_name) (sum_over_time(good[5m]))")
	assert.Contains(t, file, "sum by (model_name) (rate(tokens_total[2m]) > bool 80)")
	assert.Contains(t, file, `(1 - avg_over_time(slo:sli:ratio{slo_id="llm:chat:means:p90", window="1m"}[1h:1m])) / 0.1`)
}
