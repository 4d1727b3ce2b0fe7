// SPDX-License-Identifier: Apache-2.0

// Package spans tells of finished requests as vLLM does over OTLP: one span
// named llm_request for each, with its latencies as attributes.
package spans

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/clock"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
)

// Finished is a request that left an engine, and where it was served.
type Finished struct {
	engine.Record
	// Labels are the replica's; they become the resource's attributes. The map
	// tells replicas apart, and nobody writes to it.
	Labels map[string]string
	Model  string
}

// Build makes the spans of a batch, one resource a replica.
//
// A span ends at the wall's time of its end and is as long as the request was in
// simulated seconds, so durations agree with attributes and histograms at any
// speed. Ids derive from run and the request.
func Build(batch []Finished, c clock.Clock, run uint64) ptrace.Traces {
	td := ptrace.NewTraces()
	byInstance := map[string]ptrace.SpanSlice{}
	for _, f := range batch {
		key := instanceKey(f.Labels)
		out, ok := byInstance[key]
		if !ok {
			rs := td.ResourceSpans().AppendEmpty()
			for _, k := range slices.Sorted(maps.Keys(f.Labels)) {
				rs.Resource().Attributes().PutStr(k, f.Labels[k])
			}
			if _, named := f.Labels["service.name"]; !named {
				rs.Resource().Attributes().PutStr("service.name", "llmsim")
			}
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName("vllm.llm_engine")
			out = ss.Spans()
			byInstance[key] = out
		}
		fill(out.AppendEmpty(), f, c, run)
	}
	return td
}

func fill(span ptrace.Span, f Finished, c clock.Clock, run uint64) {
	end := c.Wall(f.End)
	span.SetName("llm_request")
	span.SetKind(ptrace.SpanKindServer)
	span.SetTraceID(pcommon.TraceID(id128(run, f.ID)))
	span.SetSpanID(pcommon.SpanID(id64(run, f.ID)))
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(f.Arrival - f.End)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
	if f.Reason == engine.Error {
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage("the engine failed the request")
	}

	a := span.Attributes()
	a.EnsureCapacity(16)
	latency := func(name string, from, to time.Duration) {
		a.PutDouble("gen_ai.latency."+name, (to - from).Seconds())
	}
	latency("time_in_queue", f.Arrival, f.Scheduled)
	latency("time_to_first_token", f.Arrival, f.FirstToken)
	latency("e2e", f.Arrival, f.End)
	latency("time_in_model_prefill", f.Scheduled, f.FirstToken)
	latency("time_in_model_decode", f.FirstToken, f.LastToken)
	latency("time_in_model_inference", f.Scheduled, f.LastToken)
	a.PutInt("gen_ai.usage.prompt_tokens", int64(f.PromptTokens))
	a.PutInt("gen_ai.usage.completion_tokens", int64(f.OutputTokens))
	a.PutInt("gen_ai.usage.cached_tokens", int64(f.CachedTokens))
	a.PutStr("gen_ai.request.id", "cmpl-"+span.SpanID().String())
	a.PutInt("gen_ai.request.n", 1)
	a.PutInt("gen_ai.request.max_tokens", int64(f.MaxTokens))
	a.PutStr("gen_ai.response.model", f.Model)
}

// instanceKey identifies a replica by all its labels: an id alone may be anything.
func instanceKey(labels map[string]string) string {
	var b []byte
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		b = append(append(append(append(b, k...), 0), labels[k]...), 0)
	}
	return string(b)
}

func id64(run, id uint64) (out [8]byte) {
	binary.BigEndian.PutUint64(out[:], engine.Mix(run, id)|1) // all zero is no id
	return out
}

func id128(run, id uint64) (out [16]byte) {
	binary.BigEndian.PutUint64(out[:8], engine.Mix(run, ^id))
	binary.BigEndian.PutUint64(out[8:], engine.Mix(^run, id)|1)
	return out
}
