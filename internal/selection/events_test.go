// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

func ofSpans(name, condition, value string) openslo.SLO {
	return openslo.SLO{Name: name, Unit: "seconds", Position: openslo.Position{File: "slo.yaml", Line: 7},
		Indicator: openslo.Indicator{Threshold: &openslo.Selector{
			Type: openslo.TypeOpenTelemetry, Signal: openslo.SignalTraces, Condition: condition, Value: value, Scale: 1}}}
}

func forTraces(t testing.TB, slos ...openslo.SLO) *Spans {
	s, err := ForTraces(&openslo.Catalog{SLOs: slos}, componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	return s
}

func oneSpan() (ptrace.ResourceSpans, ptrace.ScopeSpans, ptrace.Span) {
	rs := ptrace.NewTraces().ResourceSpans().AppendEmpty()
	ss := rs.ScopeSpans().AppendEmpty()
	return rs, ss, ss.Spans().AppendEmpty()
}

// Guarantees: a value is a number in the base unit, whatever it came as; nil is none, and what is no number is an error.
func TestTheValueOfASpan(t *testing.T) {
	rs, ss, span := oneSpan()
	span.SetStartTimestamp(pcommon.Timestamp(1_000_000_000))
	span.SetEndTimestamp(pcommon.Timestamp(3_500_000_000))
	require.NoError(t, span.Attributes().FromRaw(map[string]any{
		"float": 1.5, "int": 2, "text": " 2.5 ", "true": true, "false": false, "word": "fast", "map": map[string]any{"a": 1}, "list": []any{1},
		"nan": math.NaN(), "inf": math.Inf(1), "nil": nil, "empty": "",
	}))
	rs.Resource().Attributes().PutDouble("float", 7)
	read := func(value, unit string, scale float64) Found {
		slo := ofSpans("a", "", value)
		slo.Unit, slo.Indicator.Threshold.Scale = unit, scale
		found, err := forTraces(t, slo).Match(t.Context(), nil, rs, ss, span)
		require.NoError(t, err)
		require.Len(t, found, 1)
		return found[0]
	}
	f := func(value string, scale, want float64) {
		t.Helper()
		got := read(value, "seconds", scale)
		require.NoError(t, got.Err, value)
		assert.True(t, got.Has && got.Counted, value)
		assert.InDelta(t, want, got.Value, 1e-12, value)
	}
	f(`span.attributes["float"]`, 1, 1.5)
	f(`span.attributes["float"]`, 0.001, 0.0015)
	f(`resource.attributes["float"]`, 1, 7)
	f(`span.attributes["int"]`, 1, 2)
	f(`span.attributes["text"]`, 1, 2.5)
	f(`span.attributes["true"]`, 1, 1)
	f(`span.attributes["false"]`, 1, 0)
	f(`span.attributes["map"]["a"]`, 1, 1)
	f(`Double(span.attributes["int"])`, 1, 2)
	f(`Int(span.attributes["int"])`, 1, 2)
	f(`IsMatch(span.name, "")`, 1, 1)
	f(`span.end_time_unix_nano - span.start_time_unix_nano`, 1e-9, 2.5)
	f(`span.end_time - span.start_time`, 1, 2.5)
	f(`span.end_time - span.start_time`, 0.001, 2.5)
	f(``, 1, 1)
	assert.InDelta(t, 2.5, read(`span.end_time - span.start_time`, "ratio", 1).Value, 0)
	assert.True(t, math.IsNaN(read(`span.attributes["nan"]`, "seconds", 1).Value))
	assert.True(t, math.IsInf(read(`span.attributes["inf"]`, "seconds", 1).Value, 1))
	for _, value := range []string{`span.attributes["absent"]`, `span.attributes["nil"]`, `span.attributes["map"]["b"]`, `scope.attributes["float"]`} {
		got := read(value, "seconds", 1)
		require.NoError(t, got.Err, value)
		assert.False(t, got.Has, value)
	}
	wrong := func(value, want string) {
		t.Helper()
		got := read(value, "seconds", 1)
		assert.False(t, got.Has, value)
		assert.EqualError(t, got.Err, want)
	}
	wrong(`span.attributes["word"]`, `value: "fast" is no number`)
	wrong(`span.attributes["empty"]`, `value: "" is no number`)
	wrong(`span.attributes["map"]`, `value: a map is no number`)
	wrong(`span.attributes["list"]`, `value: a slice is no number`)
	wrong(`Concat([span.attributes["word"], "x"], "-")`, `value: "fast-x" is no number`)
	wrong(`span.end_time`, `value: a time.Time is no number`)
	wrong(`span.attributes`, `value: a pcommon.Map is no number`)
	require.ErrorContains(t, read(`ParseJSON(span.attributes["word"])`, "seconds", 1).Err, "value: ")
}

// Guarantees: an expression that is read without OTTL says what OTTL says.
func TestAnAttributeIsWhatOTTLSaysItIs(t *testing.T) {
	rs, ss, span := oneSpan()
	require.NoError(t, span.Attributes().FromRaw(map[string]any{
		"a": 1.5, "b": 2, "c": "2.5", "d": true, "e": "fast", "f": map[string]any{"a": 1}, "g": []any{1}, "h": nil, "i": []byte{1},
	}))
	for key := range span.Attributes().All() {
		plain, evaluated := fmt.Sprintf(`span.attributes["%s"]`, key), fmt.Sprintf(`span.attributes["\u%04x"]`, key[0])
		s := forTraces(t, ofSpans("a", "", plain), ofSpans("a", "", evaluated))
		require.True(t, s.programs[0].value.plain)
		require.False(t, s.programs[1].value.plain)
		found, err := s.Match(t.Context(), nil, rs, ss, span)
		require.NoError(t, err)
		assert.InDelta(t, found[0].Value, found[1].Value, 0, key)
		assert.Equal(t, found[0].Has, found[1].Has, key)
		assert.Equal(t, found[0].Err == nil, found[1].Err == nil, key)
	}
}

func TestASpanServesWhatItsConditionsSay(t *testing.T) {
	count := func(condition string) *openslo.Selector {
		return &openslo.Selector{Type: openslo.TypeOpenTelemetry, Signal: openslo.SignalTraces, Condition: condition, Scale: 1}
	}
	raw := count("")
	raw.Value = `span.attributes["ratio"]`
	rate := ofSpans("rate", `span.name == "llm_request"`, `span.attributes["tokens"]`)
	rate.Unit = "tokens_per_second"
	rate.Indicator.Threshold.Rate = time.Minute
	rate.Indicator.Threshold.Counted = `span.status.code != STATUS_CODE_ERROR`
	part := ofSpans("part", `span.name == "llm_request"`, `span.attributes["tokens"]`)
	part.Composite = &openslo.Composite{}
	s := forTraces(t,
		openslo.SLO{Name: "ratio", Indicator: openslo.Indicator{Ratio: &openslo.Ratio{
			Good: count(`span.attributes["ok"] == "yes" and span.name == "llm_request"`), Total: count(`span.name == "llm_request"`)}}},
		openslo.SLO{Name: "raw", Indicator: openslo.Indicator{Ratio: &openslo.Ratio{Raw: raw, RawType: openslo.RawFailure}}},
		threshold("of metrics", "ttft", ""),
		openslo.SLO{Name: "composite", Indicator: openslo.Indicator{Parts: []openslo.Part{{ID: "x", Share: 1}}}},
		part, rate)
	require.Len(t, s.Uses(), 5, "a composite has none of its own, and each part is judged by itself")
	rs, ss, span := oneSpan()
	type seen struct {
		slo     int
		role    Role
		value   float64
		counted bool
	}
	f := func(want ...seen) {
		t.Helper()
		found, err := s.Match(t.Context(), nil, rs, ss, span)
		require.NoError(t, err)
		var got []seen
		for _, x := range found {
			require.NoError(t, x.Err)
			if x.Has {
				got = append(got, seen{x.Use.SLO, x.Use.Role, x.Value, x.Counted})
			}
		}
		assert.Equal(t, want, got)
	}
	f()
	span.Attributes().PutDouble("ratio", 0.25)
	f(seen{1, RawFailure, 0.25, true})
	span.SetName("llm_request")
	span.Attributes().PutInt("tokens", 70)
	f(seen{0, Total, 1, true}, seen{1, RawFailure, 0.25, true}, seen{4, Value, 70, true}, seen{5, Value, 70, true})
	span.Attributes().PutStr("ok", "yes")
	span.Status().SetCode(ptrace.StatusCodeError)
	found, err := s.Match(t.Context(), nil, rs, ss, span)
	require.NoError(t, err)
	require.Len(t, found, 5)
	assert.Equal(t, Good, found[0].Use.Role)
	assert.True(t, found[3].Counted)
	assert.False(t, found[4].Counted)
	assert.NoError(t, found[4].Err)
	assert.Equal(t, time.Minute, found[4].Use.Rate)
}

func TestWhatCannotBeEvaluatedIsSaid(t *testing.T) {
	bad := `ParseJSON(span.attributes["k"]) == nil`
	counted := ofSpans("b", "", "")
	counted.Indicator.Threshold.Counted = bad
	s := forTraces(t, ofSpans("a", bad, ""), counted, ofSpans("c", "", `span.attributes["v"]`))
	rs, ss, span := oneSpan()
	span.Attributes().PutStr("k", "{")
	span.Attributes().PutInt("v", 3)
	found, err := s.Match(t.Context(), nil, rs, ss, span)
	require.ErrorContains(t, err, "condition: ")
	var of *Error
	require.ErrorAs(t, err, &of)
	assert.Equal(t, 0, of.Use)
	require.Len(t, found, 2)
	require.ErrorAs(t, found[0].Err, &of)
	assert.Equal(t, Error{Use: 1, Key: "counted", Err: of.Err}, *of)
	assert.False(t, found[0].Has || found[0].Counted)
	assert.InDelta(t, 3, found[1].Value, 0)
}

func TestExpressionsThatDoNotParseNameTheirPlaceAndKey(t *testing.T) {
	a := ofSpans("a", `nonsense(1)`, `nonsense(2)`)
	a.Indicator.Threshold.Counted = `nonsense(3)`
	b := openslo.SLO{Name: "b", Position: openslo.Position{File: "b.yaml", Line: 3}, Indicator: openslo.Indicator{Ratio: &openslo.Ratio{
		Good: &openslo.Selector{Type: openslo.TypeOpenTelemetry, Signal: openslo.SignalTraces, Condition: `span.name = "x"`}}}}
	_, err := ForTraces(&openslo.Catalog{SLOs: []openslo.SLO{a, b}}, componenttest.NewNopTelemetrySettings())
	require.Error(t, err)
	for _, want := range []string{
		`slo.yaml:7: slo "a": condition: `, `slo.yaml:7: slo "a": value: `, `slo.yaml:7: slo "a": counted: `, `b.yaml:3: slo "b": good.condition: `,
	} {
		assert.ErrorContains(t, err, want)
	}
}

func TestLogRecordsServeSLOsLikeSpans(t *testing.T) {
	slo := ofSpans("a", `log.event_name == "gen_ai.evaluation.result" and log.attributes["name"] == "toxicity"`, `log.attributes["score"]`)
	slo.Indicator.Threshold.Signal = openslo.SignalLogs
	body := ofSpans("b", `log.severity_number >= SEVERITY_NUMBER_WARN`, `log.body`)
	body.Indicator.Threshold.Signal = openslo.SignalLogs
	r, err := ForLogs(&openslo.Catalog{SLOs: []openslo.SLO{slo, body}}, componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	require.Len(t, r.Uses(), 2)
	rl := plog.NewLogs().ResourceLogs().AppendEmpty()
	sl := rl.ScopeLogs().AppendEmpty()
	record := sl.LogRecords().AppendEmpty()
	record.Attributes().PutStr("name", "toxicity")
	record.Attributes().PutDouble("score", 0.9)
	found, err := r.Match(t.Context(), nil, rl, sl, record)
	require.NoError(t, err)
	assert.Empty(t, found)
	record.SetEventName("gen_ai.evaluation.result")
	record.SetSeverityNumber(plog.SeverityNumberError)
	record.Body().SetInt(5)
	found, err = r.Match(t.Context(), found, rl, sl, record)
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.InDelta(t, 0.9, found[0].Value, 0)
	assert.InDelta(t, 5, found[1].Value, 0)
}

// Guarantees: one catalog's spans may be matched by many goroutines (run with -race).
func TestSpansAreMatchedConcurrently(t *testing.T) {
	s := forTraces(t, ofSpans("a", `IsMatch(span.name, "^llm")`, `Double(span.attributes["v"])`), ofSpans("b", `span.name == "llm"`, ""))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			rs, ss, span := oneSpan()
			span.SetName("llm")
			span.Attributes().PutInt("v", 3)
			for range 200 {
				if found, err := s.Match(t.Context(), nil, rs, ss, span); err != nil || len(found) != 2 || found[0].Value != 3 {
					t.Error(found, err)
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkSpan is a request's span and ten SLOs: two models of five promises each, three of which read one attribute.
func BenchmarkSpan(b *testing.B) {
	var slos []openslo.SLO
	for _, model := range []string{"qwen2-72b", "llama3-8b"} {
		condition := fmt.Sprintf(`span.name == "llm_request" and span.attributes["gen_ai.request.model"] == %q`, model)
		for _, value := range []string{
			`span.attributes["gen_ai.latency.time_to_first_token"]`, `span.attributes["gen_ai.latency.time_to_first_token"]`,
			`span.attributes["gen_ai.latency.time_to_first_token"]`, `span.attributes["gen_ai.usage.output_tokens"]`,
			`span.end_time_unix_nano - span.start_time_unix_nano`,
		} {
			slos = append(slos, ofSpans("a", condition, value))
		}
	}
	s := forTraces(b, slos...)
	rs, ss, span := oneSpan()
	span.Attributes().PutStr("gen_ai.operation.name", "chat")
	span.Attributes().PutStr("gen_ai.request.model", "qwen2-72b")
	span.Attributes().PutInt("gen_ai.usage.input_tokens", 700)
	span.Attributes().PutInt("gen_ai.usage.output_tokens", 200)
	span.Attributes().PutDouble("gen_ai.latency.time_to_first_token", 0.3)
	for _, c := range []struct {
		span string
		want int
	}{{"llm_request", 5}, {"GET /health", 0}} {
		b.Run(fmt.Sprintf("%d_of_10_slos", c.want), func(b *testing.B) {
			span.SetName(c.span)
			into := make([]Found, 0, 8)
			b.ReportAllocs()
			for b.Loop() {
				if into, _ = s.Match(b.Context(), into, rs, ss, span); len(into) != c.want {
					b.Fatal(into)
				}
			}
		})
	}
}
