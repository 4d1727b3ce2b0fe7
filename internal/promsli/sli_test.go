// SPDX-License-Identifier: Apache-2.0

package promsli

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

func selector(metric string) *openslo.Selector {
	return &openslo.Selector{Type: openslo.TypeOpenTelemetry, Signal: openslo.SignalMetrics, Metric: metric, Scale: 1}
}

func thresholdOf(metric string, op openslo.Op) *openslo.SLO {
	unit := openslo.UnitOfName(metric)
	return &openslo.SLO{
		Unit: unit, Indicator: openslo.Indicator{Threshold: selector(metric)},
		Objective: openslo.Objective{Op: op, Value: 1, Target: 0.9},
	}
}

func ratioOf(r openslo.Ratio) *openslo.SLO {
	return &openslo.SLO{Unit: "ratio", Indicator: openslo.Indicator{Ratio: &r}, Objective: openslo.Objective{Target: 0.9}}
}

func TestGoodAndTotalAreEventsOfTheSameGroups(t *testing.T) {
	f := func(slo *openslo.SLO, good, total, seen string) {
		t.Helper()
		sli, err := New(slo, []string{"model_name", "cloud.region"}, Kinds{})
		require.NoError(t, err)
		assert.Equal(t, good, sli.Good("1h"))
		assert.Equal(t, total, sli.Total("1h"))
		assert.Equal(t, seen, sli.Seen("1h"))
		for _, expr := range []string{good, total, seen, sli.Ratio("1h")} {
			_, err := parser.ParseExpr(expr)
			require.NoError(t, err, expr)
		}
	}
	const by = "sum by (cloud_region, model_name) "
	const presence = "300 * count_over_time((count by (cloud_region, model_name) (present_over_time("
	f(thresholdOf("ttft_seconds", openslo.OpLTE),
		by+`(increase(ttft_seconds_bucket{le=~"1|1\\.0"}[1h]))`,
		by+`(increase(ttft_seconds_count[1h]))`,
		presence+`ttft_seconds_count[5m])))[1h:5m])`)
	f(thresholdOf("ttft_seconds", openslo.OpGT),
		by+"(increase(ttft_seconds_count[1h]))\n-\n"+by+`(increase(ttft_seconds_bucket{le=~"1|1\\.0"}[1h]))`,
		by+`(increase(ttft_seconds_count[1h]))`,
		presence+`ttft_seconds_count[5m])))[1h:5m])`)
	// Points are weighted by their number, which is known, and their share by looking at them once a minute.
	f(thresholdOf("kv_usage_ratio", openslo.OpLT),
		by+"(count_over_time(kv_usage_ratio[1h]))\n*\nsum_over_time(("+by+"(kv_usage_ratio < bool 1))[1h:1m])\n/\nsum_over_time((count by (cloud_region, model_name) (kv_usage_ratio))[1h:1m])",
		by+"(count_over_time(kv_usage_ratio[1h]))",
		presence+`kv_usage_ratio[5m])))[1h:5m])`)
	f(ratioOf(openslo.Ratio{Bad: selector("errors_total"), Total: selector("requests_total")}),
		by+"(increase(requests_total[1h]))\n-\n("+by+"(increase(errors_total[1h])) or 0 * "+by+"(increase(requests_total[1h])))",
		by+"(increase(requests_total[1h]))",
		presence+`requests_total[5m])))[1h:5m])`)
	f(ratioOf(openslo.Ratio{Raw: selector("error_ratio"), RawType: openslo.RawFailure}),
		by+"(count_over_time(error_ratio[1h]))\n-\n"+by+"(sum_over_time(error_ratio[1h]))",
		by+"(count_over_time(error_ratio[1h]))",
		presence+`error_ratio[5m])))[1h:5m])`)
}

func TestWhatPromQLCannotSayIsAnErrorThatSaysWhy(t *testing.T) {
	f := func(change func(*openslo.SLO), want string) {
		t.Helper()
		slo := thresholdOf("ttft_seconds", openslo.OpLTE)
		change(slo)
		_, err := New(slo, nil, Kinds{})
		assert.ErrorContains(t, err, want)
	}
	f(func(s *openslo.SLO) { s.Indicator.Threshold.Rate = 10 * time.Second }, "a rate over intervals of 10s")
	f(func(s *openslo.SLO) { s.Indicator.Threshold.Expected = "requests_total" }, "requests_total counted and was not measured")
	f(func(s *openslo.SLO) { s.Indicator.Threshold.Range = &openslo.Range{Max: 1} }, "does not see single values")
	f(func(s *openslo.SLO) { s.Indicator.Threshold.Counted = "true" }, "a condition on what is counted")
	f(func(s *openslo.SLO) { s.Indicator.Threshold.Signal = openslo.SignalTraces }, "it is made of traces, which Prometheus does not have")
	f(func(s *openslo.SLO) { s.Indicator.Threshold.Type = "Datadog" }, "of type Datadog")
	f(func(s *openslo.SLO) { s.Indicator.Threshold.Condition = "true" }, "label matchers cannot say the condition true")
	f(func(s *openslo.SLO) {
		s.Indicator = openslo.Indicator{Parts: []openslo.Part{{ID: "a", Share: 1}}}
	}, "it is made of other SLOs")
}
