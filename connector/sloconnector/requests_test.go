// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const (
	ttftKey   = "gen_ai.latency.time_to_first_token"
	decodeKey = "gen_ai.latency.time_in_model_decode"
	tokensKey = "gen_ai.usage.completion_tokens"
)

// slo is the document of an SLO on what one request says of itself.
func sloOf(name, id, annotations, indicator, objective string) string {
	return `
apiVersion: openslo/v1
kind: SLO
metadata: {name: ` + name + `, annotations: {otelcol-llm.dev/slo-id: "` + id + `"` + annotations + `}}
spec:
  service: chat
  indicator: {metadata: {name: ` + name + `}, spec: ` + indicator + `}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [` + objective + `]
---
`
}

func thresholdOf(spec string) string {
	return `{thresholdMetric: {metricSource: {type: opentelemetry, spec: {` + spec + `}}}}`
}

func ratioOf(good, total string) string {
	return `{ratioMetric: {good: {metricSource: {type: opentelemetry, spec: {` + good + `}}}, total: {metricSource: {type: opentelemetry, spec: {` + total + `}}}}}`
}

const isRequest = `condition: 'span.name == "llm_request"'`

// spanDocs promise a time to first token, a token rate, and goodput as ratio and rate.
var spanDocs = sloOf("ttft", "llm:chat:ttft:p95", "",
	thresholdOf(`signal: traces, `+isRequest+`, value: 'span.attributes["`+ttftKey+`"]', unit: s`), `{op: lte, value: 0.8, target: 0.95}`) +
	sloOf("tokens", "llm:chat:tokens:p05", "",
		thresholdOf(`signal: traces, unit: tokens/s, condition: 'span.name == "llm_request" and span.attributes["`+tokensKey+`"] > 1', value: '(span.attributes["`+tokensKey+`"] - 1) / span.attributes["`+decodeKey+`"]'`),
		`{op: gte, value: 80, target: 0.95}`) +
	sloOf("goodput", "llm:chat:goodput:x", "",
		ratioOf(`signal: traces, condition: 'span.name == "llm_request" and span.attributes["`+ttftKey+`"] >= 0 and span.attributes["`+ttftKey+`"] <= 0.8 and span.attributes["`+decodeKey+`"] <= 0.1 * (span.attributes["`+tokensKey+`"] - 1)'`,
			`signal: traces, `+isRequest), `{target: 0.9}`) +
	sloOf("goodrate", "llm:chat:goodrate:x", "",
		thresholdOf(`signal: traces, `+isRequest+`, rate: 1m, unit: requests, counted: 'span.attributes["`+ttftKey+`"] <= 0.8'`), `{op: gte, value: 1, target: 0.5}`)

func (r *rig) sendTraces(td ptrace.Traces) {
	r.t.Helper()
	td.MarkReadOnly()
	r.consumeTraces(r.t.Context(), td)
	r.publish()
}

func (r *rig) sendLogs(ld plog.Logs) {
	r.t.Helper()
	ld.MarkReadOnly()
	r.consumeLogs(r.t.Context(), ld)
	r.publish()
}

// requestSpan is the span of the n-th request: its time to first token and its time per output token, in seconds, at 100 tokens.
func requestSpan(n int, at time.Time, ttft, tpot float64) ptrace.Traces {
	td := ptrace.NewTraces()
	addSpan(td, n, at, func(m pcommon.Map) {
		m.PutDouble(ttftKey, ttft)
		m.PutDouble(decodeKey, tpot*100)
		m.PutInt(tokensKey, 101)
	})
	return td
}

func addSpan(td ptrace.Traces, n int, at time.Time, fill func(m pcommon.Map)) ptrace.Span {
	if td.ResourceSpans().Len() == 0 {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.instance.id", "replica-1")
		rs.ScopeSpans().AppendEmpty()
	}
	s := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().AppendEmpty()
	s.SetName("llm_request")
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], uint64(n+1))
	s.SetTraceID(id)
	s.SetSpanID([8]byte(id[:8]))
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(at.Add(-time.Second)))
	s.SetEndTimestamp(pcommon.NewTimestampFromTime(at))
	fill(s.Attributes())
	return s
}

// result is the newest value of a metric of an SLO.
func (r *rig) result(name, slo string, more ...string) float64 {
	want := map[string]string{"slo_id": slo}
	for i := 0; i < len(more); i += 2 {
		want[more[i]] = more[i+1]
	}
	v, ok := r.last(name, want)
	require.True(r.t, ok, "%s of %s %v", name, slo, more)
	return v
}

// outcomes are the good and bad events of an SLO.
func (r *rig) outcomes(slo string) [2]float64 {
	r.t.Helper()
	return [2]float64{r.result("slo.sli.events", slo, "outcome", "good"), r.result("slo.sli.events", slo, "outcome", "bad")}
}

// Scenario: five minutes of 120 requests; a tenth is late with its first token, another tenth slow with the others.
// Guarantees: every request is judged by what it says of itself, to the request.
func TestSpansSayWhatHappenedToTheRequest(t *testing.T) {
	r := newRig(t, spanDocs, nil)
	n := 0
	for minute := range 5 {
		td := ptrace.NewTraces()
		for i := range 120 {
			ttft, tpot := 0.5, 0.01
			switch i % 10 {
			case 0:
				ttft = 0.9
			case 1:
				tpot = 0.2
			}
			for _, rs := range requestSpan(n, t0.Add(time.Duration(minute)*time.Minute+time.Duration(i)*time.Second/3), ttft, tpot).ResourceSpans().All() {
				rs.CopyTo(td.ResourceSpans().AppendEmpty())
			}
			n++
		}
		r.sendTraces(td)
	}
	r.wait(2 * time.Minute)
	assert.Equal(t, [2]float64{540, 60}, r.outcomes("llm:chat:ttft:p95"))
	assert.Equal(t, [2]float64{540, 60}, r.outcomes("llm:chat:tokens:p05"))
	assert.Equal(t, [2]float64{480, 120}, r.outcomes("llm:chat:goodput:x"))
	assert.InDelta(t, 0.8, r.result("slo.sli.value", "llm:chat:goodput:x"), 1e-9)
	assert.Equal(t, [2]float64{5, 0}, r.outcomes("llm:chat:goodrate:x"), "108 a minute are 1.8 a second")
	assert.InDelta(t, 1.8, r.result("slo.sli.value", "llm:chat:goodrate:x"), 0.01)
	assert.InDelta(t, 1, r.result("slo.state", "llm:chat:ttft:p95", "state", "violated"), 0)
	assert.InDelta(t, 0.9, r.result("slo.sli.value", "llm:chat:ttft:p95"), 0.02)
	assert.InDelta(t, 5, r.result("slo.sli.value", "llm:chat:tokens:p05"), 0.1)
	assert.Empty(t, r.refused())
}

func TestAWrongValueIsRefusedWithItsReason(t *testing.T) {
	docs := sloOf("ttft", "llm:chat:ttft:p95", "",
		thresholdOf(`signal: traces, `+isRequest+`, value: 'span.attributes["`+ttftKey+`"]', unit: s, range: [0, 3600]`), `{op: lte, value: 0.8, target: 0.95}`)
	f := func(want string, change func(s ptrace.Span)) {
		t.Helper()
		r := newRig(t, docs, nil)
		td := ptrace.NewTraces()
		change(addSpan(td, 1, t0, func(pcommon.Map) {}))
		r.sendTraces(td)
		assert.Equal(t, map[string]int64{want: 1}, r.refused())
		r.sendTraces(requestSpan(2, t0, 0.5, 0.1))
		assert.Equal(t, [2]float64{1, 0}, r.outcomes("llm:chat:ttft:p95"), "nothing else is lost")
	}
	put := func(v float64) func(s ptrace.Span) {
		return func(s ptrace.Span) { s.Attributes().PutDouble(ttftKey, v) }
	}
	f("no_value", func(ptrace.Span) {})
	f("condition_error", func(s ptrace.Span) { s.Attributes().PutStr(ttftKey, "soon") })
	f("condition_error", func(s ptrace.Span) { s.Attributes().PutEmptyMap(ttftKey) })
	f("not_finite", put(math.NaN()))
	f("not_finite", put(math.Inf(1)))
	f("sentinel", put(-1))
	f("sentinel", func(s ptrace.Span) { s.Attributes().PutInt(ttftKey, -1) })
	f("implausible", put(-0.5))
	f("implausible", put(4000))
	f("no_timestamp", func(s ptrace.Span) { s.Attributes().PutDouble(ttftKey, 1); s.SetEndTimestamp(0) })
	f("future", func(s ptrace.Span) {
		s.Attributes().PutDouble(ttftKey, 1)
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(t0.Add(25 * time.Hour)))
	})
	f("future", func(s ptrace.Span) { s.Attributes().PutDouble(ttftKey, 1); s.SetEndTimestamp(math.MaxUint64) })
	r := newRig(t, docs, nil)
	td := ptrace.NewTraces()
	addSpan(td, 1, t0, func(m pcommon.Map) { m.PutStr(ttftKey, " 0.25 ") }) // a number that lost its type
	r.sendTraces(td)
	assert.Equal(t, [2]float64{1, 0}, r.outcomes("llm:chat:ttft:p95"))
}

func TestStatusAndDurationOfASpan(t *testing.T) {
	docs := sloOf("ok", "llm:chat:ok:x", "", ratioOf(`signal: traces, condition: 'span.status.code != 2'`, `signal: traces`), `{target: 0.9}`) +
		sloOf("bad", "llm:chat:bad:x", "", `{ratioMetric: {bad: {metricSource: {type: opentelemetry, spec: {signal: traces, condition: 'span.status.code == STATUS_CODE_ERROR'}}}, total: {metricSource: {type: opentelemetry, spec: {signal: traces}}}}}`, `{target: 0.9}`) +
		sloOf("duration", "llm:chat:duration:p95", "", thresholdOf(`signal: traces, value: 'span.end_time_unix_nano - span.start_time_unix_nano', unit: ns`), `{op: lte, value: 2000000000, target: 0.9}`)
	r := newRig(t, docs, nil)
	td := ptrace.NewTraces()
	for i := range 10 {
		s := addSpan(td, i, t0.Add(time.Duration(i)*time.Second), func(pcommon.Map) {})
		if i%5 == 0 {
			s.Status().SetCode(ptrace.StatusCodeError)
			s.SetStartTimestamp(s.EndTimestamp() - 3e9)
		}
	}
	r.sendTraces(td)
	assert.Equal(t, [2]float64{8, 2}, r.outcomes("llm:chat:ok:x"))
	assert.Equal(t, [2]float64{8, 2}, r.outcomes("llm:chat:bad:x"))
	assert.Equal(t, [2]float64{8, 2}, r.outcomes("llm:chat:duration:p95"))
}

func TestASpanThatIsSentAgainCountsOnce(t *testing.T) {
	r := newRig(t, spanDocs, nil)
	for range 3 {
		r.sendTraces(requestSpan(1, t0, 0.5, 0.01))
	}
	assert.Equal(t, map[string]int64{"duplicate": 2}, r.refused())
	for _, id := range []string{"llm:chat:ttft:p95", "llm:chat:tokens:p05", "llm:chat:goodput:x"} {
		assert.Equal(t, [2]float64{1, 0}, r.outcomes(id), id)
	}
	forgetful := newRig(t, spanDocs, func(c *Config) { c.MaxRecentSpans = 0 })
	for range 3 {
		forgetful.sendTraces(requestSpan(1, t0, 0.5, 0.01))
	}
	assert.Equal(t, [2]float64{3, 0}, forgetful.outcomes("llm:chat:ttft:p95"))
}

func TestALateSpanIsCountedNotMerged(t *testing.T) {
	r := newRig(t, spanDocs, nil)
	r.sendTraces(requestSpan(1, t0, 0.5, 0.01))
	r.sendTraces(requestSpan(2, t0.Add(10*time.Minute), 0.5, 0.01))
	r.sendTraces(requestSpan(3, t0.Add(time.Minute), 0.5, 0.01))
	assert.Equal(t, map[string]int64{"late": 1}, r.refused())
	assert.Equal(t, [2]float64{2, 0}, r.outcomes("llm:chat:ttft:p95"))
}

// Scenario: spans say who is at fault; the worst one of the window stands for the violation.
func TestTheSpanOfABadRequestIsTheExemplar(t *testing.T) {
	docs := spanDocs + `
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: slow}
spec: {window: 5m, consecutiveWindows: 1, when: {slo: ttft}}
`
	r := newRig(t, docs, nil)
	for i := range 6 {
		r.sendTraces(requestSpan(i, t0.Add(time.Duration(i)*time.Minute), 1+float64(i%5)/10, 0.01))
	}
	require.Equal(t, []event{{violationOpened, 5}}, r.events())
	trace := r.lastRecord().TraceID()
	assert.Equal(t, uint64(5), binary.BigEndian.Uint64(trace[:8]), "the slowest")
	assert.False(t, r.lastRecord().SpanID().IsEmpty())
	found := map[string]bool{}
	for _, md := range r.metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for _, p := range numbers(m).All() {
					for _, x := range p.Exemplars().All() {
						if x.TraceID() == trace {
							found[m.Name()] = true
						}
					}
				}
			}
		}
	}
	assert.Equal(t, map[string]bool{"slo.sli.events": true, "slo.violations": true}, found)
}

func TestGroupsOfSpansComeFromSpanScopeAndResource(t *testing.T) {
	docs := sloOf("ttft", "llm:chat:ttft:p95", ", otelcol-llm.dev/group-by: 'gen_ai.response.model,lib,tenant'",
		thresholdOf(`signal: traces, value: 'span.attributes["`+ttftKey+`"]', unit: s`), `{op: lte, value: 0.8, target: 0.95}`)
	r := newRig(t, docs, nil)
	td := requestSpan(1, t0, 0.5, 0.01)
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("service.namespace", "team-a")
	td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().Attributes().PutStr("lib", "vllm")
	td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().PutStr("gen_ai.response.model", "qwen")
	r.sendTraces(td)
	v, ok := r.last("slo.sli.events", map[string]string{"outcome": "good", "gen_ai.response.model": "qwen", "lib": "vllm", "tenant": "team-a"})
	assert.True(t, ok)
	assert.InDelta(t, 1, v, 0)
}

// evaluation is a log event of GenAI's conventions.
func evaluation(at time.Time, name string, put func(m pcommon.Map)) plog.Logs {
	ld := plog.NewLogs()
	r := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	r.SetEventName("gen_ai.evaluation.result")
	r.SetTimestamp(pcommon.NewTimestampFromTime(at))
	r.Attributes().PutStr("gen_ai.evaluation.name", name)
	r.SetTraceID([16]byte{7})
	put(r.Attributes())
	return ld
}

// Scenario: scores of two evaluations, one of which may be -1.
// Guarantees: op says which end is good, range which scores there can be: -1 is then a score, and no word for "not known".
func TestScoresOfEvaluations(t *testing.T) {
	const key = "gen_ai.evaluation.score.value"
	spec := func(name, bounds string) string {
		return thresholdOf(`signal: logs, condition: 'log.event_name == "gen_ai.evaluation.result" and log.attributes["gen_ai.evaluation.name"] == "` + name + `"', value: 'log.attributes["` + key + `"]', unit: ratio, range: ` + bounds)
	}
	docs := sloOf("relevance", "llm:chat:relevance:x", ", otelcol-llm.dev/class: quality", spec("relevance", "[0, 1]"), `{op: gte, value: 0.7, target: 0.5}`) +
		sloOf("mood", "llm:chat:mood:x", ", otelcol-llm.dev/class: quality", spec("mood", "[-1, 1]"), `{op: gte, value: 0, target: 0.5}`)
	r := newRig(t, docs, nil)
	for i, v := range []float64{0.9, 0.7, 0.2, -1, 1.5} {
		for _, name := range []string{"relevance", "mood"} {
			r.sendLogs(evaluation(t0.Add(time.Duration(i)*time.Second), name, func(m pcommon.Map) { m.PutDouble(key, v) }))
		}
	}
	assert.Equal(t, [2]float64{2, 1}, r.outcomes("llm:chat:relevance:x"))
	assert.Equal(t, [2]float64{3, 1}, r.outcomes("llm:chat:mood:x"))
	assert.Equal(t, map[string]int64{"sentinel": 1, "implausible": 2}, r.refused())

	observed := evaluation(t0, "mood", func(m pcommon.Map) { m.PutDouble(key, 1) })
	record := observed.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
	record.SetTimestamp(0)
	record.SetObservedTimestamp(pcommon.NewTimestampFromTime(t0.Add(time.Minute)))
	r.sendLogs(observed)
	assert.Equal(t, [2]float64{4, 1}, r.outcomes("llm:chat:mood:x"), "a record without a time of its own has that of its observer")
}

// Guarantees: a span costs no allocation, whatever the number of its SLOs that only look at attributes.
func TestSpansAllocateNothing(t *testing.T) {
	docs := sloOf("ttft", "llm:chat:ttft:p95", "", thresholdOf(`signal: traces, `+isRequest+`, value: 'span.attributes["`+ttftKey+`"]', unit: s`), `{op: lte, value: 0.8, target: 0.95}`)
	r := newRig(t, docs, func(c *Config) { c.MaxRecentSpans = 1000 })
	td := ptrace.NewTraces()
	for i := range 100 {
		addSpan(td, i, t0, func(m pcommon.Map) { m.PutDouble(ttftKey, 0.5) })
	}
	n := uint64(1000)
	send := func() {
		for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			n++
			var id [8]byte
			binary.BigEndian.PutUint64(id[:], n)
			s.SetSpanID(id)
		}
		r.consumeTraces(t.Context(), td)
	}
	for range 30 {
		send()
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(50, send), 10.0, "a batch of 100 spans may cost a few allocations, a span none")
	assert.Empty(t, r.refused())
}
