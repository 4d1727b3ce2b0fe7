// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// Scenario: the connector gets a metric, or a metric another attribute. Guarantees: what slo explain says of the cost is
// put right with it.
func TestTheCostIsThatOfTheConnectorsMetrics(t *testing.T) {
	data, err := os.ReadFile("../../../../connector/sloconnector/documentation.md")
	require.NoError(t, err)
	row := regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| [^|]* \\| [^|]* \\| ([^|]*) \\| (on|off) \\|")
	documented, told := map[string]int{}, map[string]int{}
	var windows []string
	for _, m := range row.FindAllStringSubmatch(string(data), -1) {
		name, attributes, on := m[1], m[2], m[3] == "on"
		if !on {
			continue
		}
		documented[name] = 1
		if _, values, ok := strings.Cut(attributes, "= "); ok {
			all := strings.Split(values, ", ")
			documented[name] = len(all)
			if name == burnRate {
				windows = all
			}
		}
	}
	for _, m := range perObjective {
		told[m.Name] = m.Series
	}
	told[perPolicy], told[perConnector] = 1, 1
	const ofParts = "slo.sli.incomplete" // told only by who is told distributions
	require.Contains(t, documented, ofParts)
	delete(documented, ofParts)
	assert.Equal(t, documented, told)
	for i, w := range burnWindows {
		assert.Equal(t, windows[i], span(w))
	}
}

// Scenario: an SLO over a day, and a composite. Guarantees: neither is said to make series that the connector does not make.
func TestTheCostIsThatOfTheSLO(t *testing.T) {
	f := func(want int, slo openslo.SLO) {
		t.Helper()
		assert.Equal(t, want, seriesPerGroup(&slo))
	}
	month := openslo.TimeWindow{Duration: openslo.Duration{Count: 28, Unit: 'd'}, Rolling: true}
	f(18, openslo.SLO{TimeWindow: month})
	f(17, openslo.SLO{TimeWindow: openslo.TimeWindow{Duration: openslo.Duration{Count: 1, Unit: 'd'}, Rolling: true}})
	f(13, openslo.SLO{TimeWindow: openslo.TimeWindow{Duration: openslo.Duration{Count: 29, Unit: 'm'}, Rolling: true}})
	f(16, openslo.SLO{TimeWindow: month, Indicator: openslo.Indicator{Parts: []openslo.Part{{ID: "a", Share: 1}}}})
}

// Scenario: promises with alert policies of their own, with slices, and with low objectives. Guarantees: the general burn
// rates that put a promise at risk are those that the connector asks, and no others.
func TestTheBurnRatesThatPutAPromiseAtRisk(t *testing.T) {
	f := func(want string, target float64, slice time.Duration, policies ...openslo.AlertPolicy) {
		t.Helper()
		slo := &openslo.SLO{
			Indicator:  openslo.Indicator{Threshold: &openslo.Selector{Type: openslo.TypeOpenTelemetry}},
			TimeWindow: openslo.TimeWindow{Duration: openslo.Duration{Count: 28, Unit: 'd'}, Rolling: true},
			Objective:  openslo.Objective{Target: target, TimeSliceWindow: slice}, AlertPolicies: policies,
		}
		assert.Equal(t, want, strings.Join(atRisk(slo), "\n"))
	}
	const begin = "It is at risk while the budget is spent "
	f(begin+"14.4× as fast as it may be over 1h and 5m, 6× over 6h and 30m, 3× over 1d and 2h or 1× over 3d and 6h.", 0.95, 0)
	f(begin+"6× as fast as it may be over 6h and 30m, 3× over 1d and 2h or 1× over 3d and 6h.", 0.9, 0)
	f(begin+"3× as fast as it may be over 1d and 2h or 1× over 3d and 6h.", 0.95, time.Hour)
	f("", 0.95, 0, openslo.AlertPolicy{WhenBreaching: true})
	f("", 0.95, 0, openslo.AlertPolicy{WhenNoData: true})
}

// Scenario: objectives that every value keeps, or none. Guarantees: the author is told, and only then.
func TestWhatEventsCannotChangeIsTold(t *testing.T) {
	f := func(want, unit string, r *openslo.Range, op openslo.Op, value, target float64) {
		t.Helper()
		slo := &openslo.SLO{Unit: unit, Objective: openslo.Objective{Op: op, Value: value, Target: target},
			Indicator: openslo.Indicator{Threshold: &openslo.Selector{Type: openslo.TypeOpenTelemetry, Range: r}}}
		got := foregone(slo)
		if want == "" {
			assert.Empty(t, got)
			return
		}
		assert.Contains(t, got, want)
	}
	const always, never = "no event is ever bad", "no event is ever good"
	score := &openslo.Range{Min: 1, Max: 5}
	f("", "seconds", nil, openslo.OpLTE, 1, 0.9)
	f("", "seconds", nil, openslo.OpLTE, 0, 0.9)
	f(never, "seconds", nil, openslo.OpLTE, -1, 0.9)
	f(never, "seconds", nil, openslo.OpLT, 0, 0.9)
	f(always, "tokens_per_second", nil, openslo.OpGTE, 0, 0.9)
	f(always, "bytes", nil, openslo.OpGT, -1, 0.9)
	f("", "celsius", nil, openslo.OpLTE, -1, 0.9) // it can be cold
	f(always, "points", score, openslo.OpLTE, 5, 0.9)
	f(always, "points", score, openslo.OpGTE, 1, 0.9)
	f(never, "points", score, openslo.OpGT, 5, 0.9)
	f("", "points", score, openslo.OpGTE, 5, 0.9)
	f("", "ratio", &openslo.Range{Min: -1, Max: 1}, openslo.OpGTE, 0, 0.9)
	f("the objective cannot be missed", "seconds", nil, openslo.OpLTE, 1, 0)
}

// Scenario: a report of users, vllm#47382: with speculative decoding the inter-token latency is per chunk. Guarantees:
// whoever takes it is told, and more plainly where it is called a time per output token.
func TestATimePerChunkIsNoTimePerOutputToken(t *testing.T) {
	f := func(want, name, metric string) {
		t.Helper()
		slo := &openslo.SLO{Name: name, Unit: "seconds", MinEvents: 1000, Objective: openslo.Objective{Op: openslo.OpLTE, Value: 1, Target: 0.9},
			Indicator: openslo.Indicator{Threshold: &openslo.Selector{Type: openslo.TypeOpenTelemetry, Metric: metric}}}
		got := strings.Join(warnings(slo), "\n")
		if want == "" {
			assert.Empty(t, got)
		}
		assert.Contains(t, got, want)
	}
	f("It is called a time per output token, and", "chat-tpot", "vllm:inter_token_latency_seconds")
	f("It is called a time per output token, and", "chat-time-per-output-token", "sglang:inter_token_latency_seconds")
	f("is a time per chunk where", "chat-itl", "vllm:inter_token_latency_seconds")
	f("", "chat-tpot", "vllm:request_time_per_output_token_seconds")
}

func TestNumbersAreWrittenAsPeopleReadThem(t *testing.T) {
	f := func(want, got string) {
		t.Helper()
		assert.Equal(t, want, got)
	}
	f("0.75", number(0.75))
	f("50,000", number(50000))
	f("1,234,567.5", number(1234567.5))
	f("-1,000", number(-1000))
	f("-100", number(-100))
	f("99.95 %", percent(0.9995))
	f("0.1 %", percent(0.001))
	f("2.1 %", about(0.021429))
	f("0.0595 %", about(0.000595))
	f("750 ms", quantity(0.75, "seconds"))
	f("30 s", quantity(30, "seconds"))
	f("0.95 (95 %)", quantity(0.95, "ratio"))
	f("80 tokens a second", quantity(80, "tokens_per_second"))
	f("95th", ordinal(95))
	f("1st", ordinal(1))
	f("22nd", ordinal(22))
	f("93rd", ordinal(93))
	f("11th", ordinal(11))
	f("99.9th", ordinal(99.9))
	f("1d 9h 36m", span(2016*time.Minute))
	f("30s", span(30*time.Second))
	f("1m 30s", span(90*time.Second))
}
