// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The example of the design document, word for word.
func TestTheDesignsExampleIsReadAsItIsMeant(t *testing.T) {
	c, err := Parse(source(t, "testdata/good/design.yaml"))
	require.NoError(t, err)
	groupBy := []string{"service.namespace", "cloud.region"}
	assert.Equal(t, &Catalog{
		Files: []string{"design.yaml"},
		SLOs: []SLO{{
			ID: "llm:chat:ttft:p95", Name: "chat-ttft", Service: "chat", Class: ClassLatency, GroupBy: groupBy, Unit: "seconds", MinEvents: 1,
			Indicator: Indicator{Name: "ttft", Threshold: &Selector{
				Type: TypeOpenTelemetry, Signal: SignalMetrics, Metric: "vllm:time_to_first_token_seconds",
				Condition: `datapoint.attributes["model_name"] == "qwen2-72b"`, Scale: 1,
			}},
			Objective:  Objective{Name: "p95", Op: OpLTE, Value: 0.8, Target: 0.95},
			TimeWindow: TimeWindow{Duration: Duration{Count: 28, Unit: 'd'}, Rolling: true},
			Budgeting:  Occurrences,
			Position:   Position{File: "design.yaml", Line: 25},
		}},
		Policies: []ViolationPolicy{{
			Name: "chat-ttft-3x5m", Window: 5 * time.Minute, ConsecutiveWindows: 3, OnNoData: NoDataHold, GroupBy: groupBy,
			When:     Condition{All: []Condition{{SLO: "chat-ttft", IDs: []string{"llm:chat:ttft:p95"}}}},
			Position: Position{File: "design.yaml", Line: 27},
		}},
	}, c)
	assert.Equal(t, "0.8000", c.SLOs[0].Target())
	assert.True(t, c.SLOs[0].Evaluated())
}

func TestEveryKindIsReadAndReferencesAreResolved(t *testing.T) {
	c, err := Parse(source(t, "testdata/good/kinds.yaml"))
	require.NoError(t, err)

	require.Len(t, c.Services, 2)
	assert.Equal(t, "batch", c.Services[0].Name)
	assert.Equal(t, Service{
		Name: "chat", DisplayName: "Chat", Description: "The chat service.", Position: Position{File: "kinds.yaml", Line: 2},
	}, c.Services[1])

	byID := make(map[string]SLO)
	for _, s := range c.SLOs {
		byID[s.ID] = s
	}
	require.Len(t, byID, 6)

	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	failed := &Selector{Type: TypeOpenTelemetry, Signal: SignalMetrics, Metric: "vllm:request_success_total", Scale: 1,
		Condition: `datapoint.attributes["finished_reason"] == "error"`}
	total := &Selector{Type: TypeOpenTelemetry, Signal: SignalMetrics, Metric: "vllm:request_success_total", Scale: 1}
	assert.Equal(t, SLO{
		ID: "genai:chat:availability:99.95", Name: "chat-availability", DisplayName: "Chat answers", Description: "It answers.",
		Service: "chat", Class: ClassAvailability, Unit: "ratio", MinEvents: 1,
		Indicator: Indicator{Name: "availability", Ratio: &Ratio{Counter: true, Bad: failed, Total: total}},
		Objective: Objective{Name: "99.95", DisplayName: "promised", Target: 0.9995, TimeSliceTarget: 0.99, TimeSliceWindow: time.Minute},
		TimeWindow: TimeWindow{
			Duration: Duration{Count: 1, Unit: 'M'}, Start: time.Date(2026, 1, 1, 0, 0, 0, 0, berlin), Location: berlin,
		},
		Budgeting: Timeslices, Position: Position{File: "kinds.yaml", Line: 58},
		AlertPolicies: c.AlertPolicies,
	}, byID["genai:chat:availability:99.95"])
	assert.Equal(t, "0.9995", byID["genai:chat:availability:99.95"].Target())
	hoped := byID["genai:chat:availability:99"].Objective
	assert.Equal(t, Objective{Name: "99", DisplayName: "hoped for", Target: 0.99, TimeSliceTarget: 1, TimeSliceWindow: 5 * time.Minute}, hoped)

	e2e := byID["llm:chat:e2e:p99.9"]
	assert.Equal(t, "seconds", e2e.Unit)
	assert.Equal(t, "60.0000", e2e.Target(), "the objective is converted with the source")
	assert.Equal(t, &Selector{Type: TypeOpenTelemetry, Signal: SignalTraces, Condition: `span.name == "llm_request"`,
		Value: `span.attributes["gen_ai.latency.e2e"]`, Unit: "ms", Scale: 1e-3}, e2e.Indicator.Threshold)
	assert.Equal(t, RatioTimeslices, e2e.Budgeting)

	raw := byID["llm:batch:success:90"].Indicator.Ratio
	assert.Equal(t, &Ratio{RawType: RawSuccess, Raw: &Selector{Type: TypeOpenTelemetry, Signal: SignalMetrics,
		Metric: "batch.success", Unit: "%", Scale: 0.01}}, raw)

	other := byID["llm:search:latency:p0"]
	assert.False(t, other.Evaluated(), "another tool's query is a valid document that nobody here measures")
	assert.Equal(t, &Selector{Type: "Prometheus", Scale: 1}, other.Indicator.Threshold)

	assert.Equal(t, []DataSource{{Name: "collector", Type: TypeOpenTelemetry, Position: Position{File: "kinds.yaml", Line: 16}}}, c.DataSources)
	burn := AlertCondition{Name: "fast-burn", Severity: "page", Kind: BurnRate, Op: OpGTE, Threshold: 14.4,
		LookbackWindow: time.Hour, AlertAfter: 5 * time.Minute, Position: Position{File: "kinds.yaml", Line: 121}}
	mail := AlertNotificationTarget{Name: "mail", Description: "By mail.", Target: "email", Position: Position{File: "kinds.yaml", Line: 116}}
	assert.Equal(t, []AlertCondition{burn}, c.AlertConditions)
	assert.Equal(t, []AlertNotificationTarget{mail}, c.NotificationTargets)
	assert.Equal(t, []AlertPolicy{{Name: "page", WhenBreaching: true, Condition: burn, Targets: []AlertNotificationTarget{mail},
		Position: Position{File: "kinds.yaml", Line: 128}}}, c.AlertPolicies)

	both := []string{"llm:chat:e2e:p95", "llm:chat:e2e:p99.9"}
	leaf := Condition{SLO: "chat-e2e", IDs: both}
	require.Len(t, c.Policies, 1)
	assert.Equal(t, ViolationPolicy{
		Name: "chat", Window: 90 * time.Minute, ConsecutiveWindows: 1, OnNoData: NoDataClose,
		When:     Condition{Any: []Condition{leaf, {All: []Condition{leaf, {Any: []Condition{leaf}}}}}},
		GroupBy:  []string{"service.namespace", "cloud.region"},
		Position: Position{File: "kinds.yaml", Line: 136},
	}, c.Policies[0])
}

// Scenario: a reference points forward, into a file that is given later. Guarantees: the order of files does
// not matter, and SLOs and policies come out sorted.
func TestTheOrderOfFilesDoesNotMatter(t *testing.T) {
	a, b := sloSource("a", "p", "slo-b"), sloSource("b", "q", "slo-a")
	first, err := Parse(a, b)
	require.NoError(t, err)
	second, err := Parse(b, a)
	require.NoError(t, err)
	assert.Equal(t, first.SLOs, second.SLOs)
	assert.Equal(t, first.Policies, second.Policies)
	assert.Equal(t, []string{"llm:chat:a:p95", "llm:chat:b:p95"}, []string{first.SLOs[0].ID, first.SLOs[1].ID})
}

// sloSource is an SLO with a policy over another one.
func sloSource(name, policy, over string) Source {
	return Source{Name: name + ".yaml", Data: []byte(threshold("slo-"+name, name, "metric: a_seconds", "lte", "1") + fmt.Sprintf(`
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: %s}
spec: {window: 5m, when: {slo: %s}}
`, policy, over))}
}

// threshold is an SLO document of one threshold objective.
func threshold(name, indicator, selector, op, value string, annotations ...string) string {
	return fmt.Sprintf(`apiVersion: openslo/v1
kind: SLO
metadata: {name: %s, annotations: {%s}}
spec:
  service: chat
  indicator: {metadata: {name: %s}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {%s}}}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: %s, value: %s, target: 0.95}]`, name, strings.Join(annotations, ", "), indicator, selector, op, value)
}

func TestUnitClassAndTargetFollowFromTheSource(t *testing.T) {
	f := func(selector, value, wantUnit string, wantClass Class, wantTarget string, annotations ...string) {
		t.Helper()
		c, err := Parse(Source{Name: "f", Data: []byte(threshold("a", "a", selector, "lte", value, annotations...))})
		if !assert.NoError(t, err, selector) {
			return
		}
		s := c.SLOs[0]
		assert.Equal(t, []string{wantUnit, string(wantClass), wantTarget}, []string{s.Unit, string(s.Class), s.Target()}, selector)
	}
	// metricSource.spec.unit
	f("metric: a, unit: ms", "800", "seconds", ClassLatency, "0.8000")
	f("metric: a, unit: us", "800000", "seconds", ClassLatency, "0.8000")
	f("metric: a_seconds, unit: ms", "800", "seconds", ClassLatency, "0.8000") // what is written beats the name
	f("metric: a, unit: min", "2", "seconds", ClassLatency, "120.0000")
	f("metric: a, unit: '%'", "95", "ratio", ClassSaturation, "0.9500")
	f("metric: a, unit: 1", "0.95", "ratio", ClassSaturation, "0.9500")
	f("metric: a, unit: KiBy", "2", "bytes", ClassSaturation, "2048.0000")
	f("metric: a, unit: 'tokens/s'", "20", "tokens_per_second", ClassThroughput, "20.0000")
	f("metric: a, unit: '{token}/s'", "20", "tokens_per_second", ClassThroughput, "20.0000")
	f("metric: a, unit: MiBy/s", "1", "bytes_per_second", ClassThroughput, "1048576.0000")
	// the metric's name
	f("metric: vllm:time_to_first_token_seconds", "0.8", "seconds", ClassLatency, "0.8000")
	f("metric: vllm:time_to_first_token_seconds_bucket", "0.8", "seconds", ClassLatency, "0.8000")
	f("metric: a_milliseconds", "800", "seconds", ClassLatency, "0.8000")
	f("metric: nv_inference_queue_duration_us", "800000", "seconds", ClassLatency, "0.8000")
	f("metric: gen_ai.server.time_to_first_token", "0.8", "seconds", ClassLatency, "0.8000")
	f("metric: http.server.request.duration", "0.8", "seconds", ClassLatency, "0.8000")
	f("metric: process_resident_memory_bytes", "100", "bytes", ClassSaturation, "100.0000")
	f("metric: hw.gpu.memory.utilization", "0.95", "ratio", ClassSaturation, "0.9500")
	f("metric: vllm:kv_cache_usage_perc", "0.95", "ratio", ClassSaturation, "0.9500") // vLLM counts to 1
	f("metric: generated_tokens_per_second", "20", "tokens_per_second", ClassThroughput, "20.0000")
	f("metric: answers_per_second", "20", "answers_per_second", ClassThroughput, "20.0000")
	f(`signal: traces, value: 'span.attributes["gen_ai.latency.time_to_first_token"]'`, "0.8", "seconds", ClassLatency, "0.8000")
	// annotations
	f("metric: a", "10", "requests", ClassSaturation, "10.0000", "otelcol-llm.dev/unit: requests", "otelcol-llm.dev/class: saturation")
	f("metric: a", "10", "seconds", ClassLatency, "10.0000", "otelcol-llm.dev/class: latency")
	f("metric: a_us", "10", "tokens", ClassCost, "10.0000", "otelcol-llm.dev/unit: tokens", "otelcol-llm.dev/class: cost")
	f("metric: a_us", "10", "seconds", ClassLatency, "0.0000", "otelcol-llm.dev/unit: seconds")
	f("metric: score", "0.7", "ratio", ClassQuality, "0.7000", "otelcol-llm.dev/class: quality")
}

// Scenario: a bucket boundary of the source is written as the objective. Guarantees: boundary times Scale is the
// objective's value to the last bit, so the objective is met exactly and not nearly.
func TestAWrittenBoundaryMeetsTheObjectiveToTheBit(t *testing.T) {
	for ms := 1; ms <= 2000; ms++ {
		c, err := Parse(Source{Name: "f", Data: []byte(threshold("a", "a", "metric: a, unit: ms", "lte", fmt.Sprint(ms)))})
		require.NoError(t, err)
		s := c.SLOs[0]
		require.Equal(t, s.Objective.Value, float64(ms)*s.Indicator.Threshold.Scale) //nolint:testifylint // exact is the promise
	}
}

func TestAnSLIThatTwoSLOsShareKeepsEachOnesUnit(t *testing.T) {
	sli := `
---
apiVersion: openslo/v1
kind: SLI
metadata: {name: shared}
spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: a_milliseconds}}}}
`
	doc := func(name, annotation string) string {
		return fmt.Sprintf(`---
apiVersion: openslo/v1
kind: SLO
metadata: {name: %s, annotations: {%s, otelcol-llm.dev/slo-id: "llm:chat:%s:p95"}}
spec:
  service: chat
  indicatorRef: shared
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 500, target: 0.95}]
`, name, annotation, name)
	}
	c, err := Parse(Source{Name: "f", Data: []byte(doc("a", "otelcol-llm.dev/class: latency") +
		doc("b", "otelcol-llm.dev/class: quality, otelcol-llm.dev/unit: points") + sli)})
	require.NoError(t, err)
	assert.Equal(t, []string{"seconds", "0.5000"}, []string{c.SLOs[0].Unit, c.SLOs[0].Target()})
	assert.InDelta(t, 1e-3, c.SLOs[0].Indicator.Threshold.Scale, 0)
	assert.Equal(t, []string{"points", "500.0000"}, []string{c.SLOs[1].Unit, c.SLOs[1].Target()})
	assert.InDelta(t, 1, c.SLOs[1].Indicator.Threshold.Scale, 0)
}

// Scenario: OpenSLO's own examples, some of them invalid. Guarantees: each is refused for precisely what the
// specification, or this package, does not allow in it.
func TestPublishedExamples(t *testing.T) {
	f := func(file string, want ...string) {
		t.Helper()
		src := source(t, "testdata/examples/examples_"+file)
		src.Name = "f"
		_, err := Parse(src)
		var ps Problems
		require.ErrorAs(t, err, &ps)
		var got []string
		for _, p := range ps {
			got = append(got, p.String())
		}
		assert.Equal(t, want, got, file)
	}
	f("budgeting-method_ratio-timeslices.yaml",
		"f:32: spec.objectives[0].op: is for thresholdMetric only: remove it, a ratio is compared with target")
	f("budgeting-method_timeslices-slo.yaml",
		"f:27: spec.timeWindow[0].duration: 1m counts minutes, and a calendar window is of d, w, M, Q or Y: write e.g. 1M for a month",
		"f:35: spec.objectives[0].op: is for thresholdMetric only: remove it, a ratio is compared with target")
	f("treat-low-traffic-as-equally-important_timeslices-slo.yaml",
		"f:33: spec.objectives[0].op: is for thresholdMetric only: remove it, a ratio is compared with target")
}

// Scenario: the same examples with only the lines in question removed or put right, and the one without any.
// Guarantees: nothing else in them is in the way.
func TestPublishedExamplesOncePutRightAreAccepted(t *testing.T) {
	f := func(file string, oldNew ...string) {
		t.Helper()
		src := source(t, "testdata/examples/examples_"+file)
		src.Data = []byte(strings.NewReplacer(oldNew...).Replace(string(src.Data)))
		c, err := Parse(src)
		require.NoError(t, err, file)
		assert.NotEmpty(t, c.SLOs)
		assert.False(t, c.SLOs[0].Evaluated())
	}
	f("budgeting-method_occurences-slo.yaml")
	f("budgeting-method_ratio-timeslices.yaml", "op: gt", "")
	f("budgeting-method_timeslices-slo.yaml", "op: gt", "", "duration: 1m", "duration: 1M")
	f("treat-low-traffic-as-equally-important_timeslices-slo.yaml", "op: gt", "")
}

func TestProblemsAreFoundByErrorsAs(t *testing.T) {
	_, err := Parse(Source{Name: "f", Data: []byte("kind: SLO")})
	var ps Problems
	require.True(t, errors.As(fmt.Errorf("slo_catalog: %w", err), &ps))
	assert.Equal(t, "f:1: apiVersion: missing: write openslo/v1, or otelcol-llm.dev/v1alpha1 for a ViolationPolicy or MaintenanceWindow", ps[0].String())
}
