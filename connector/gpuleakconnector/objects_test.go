// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/metadata"
)

// traced is a span of an application in a pod, which knows its process by the number that it has in there.
func traced(name, object string, at time.Time, id byte) (ptrace.Traces, ptrace.Span) {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	for k, v := range inPod {
		rs.Resource().Attributes().PutStr(k, v.(string))
	}
	rs.Resource().Attributes().PutInt("process.pid", 1)
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName(name)
	span.SetTraceID(pcommon.TraceID{1})
	span.SetSpanID(pcommon.SpanID{id})
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(at.Add(-time.Second)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(at))
	if object != "" {
		span.Attributes().PutStr("gpu.memory.object", object)
	}
	return td, span
}

// Scenario: spans, and events of spans, say what an application makes and releases; some come twice, some failed, and some say nothing of use.
func TestWhatSpansSayOfObjectsIsHeardOnce(t *testing.T) {
	r := newRig(t, nil)
	at := t0.Add(23 * time.Hour)
	send := func(td ptrace.Traces) {
		td.MarkReadOnly()
		r.consumeTraces(t.Context(), td)
	}
	for range 2 {
		td, _ := traced("gpu.memory.object.created", "engine", at, 1)
		send(td)
	}
	td, _ := traced("gpu.memory.object.created", "engine", at, 2) // at the same moment
	send(td)
	td, span := traced("gpu.memory.object.created", "engine", at, 3)
	span.Status().SetCode(ptrace.StatusCodeError)
	send(td)
	for range 2 {
		td, span = traced("POST /v1/models/load", "", at, 4)
		for _, object := range []string{"context", "context", "window"} {
			ev := span.Events().AppendEmpty()
			ev.SetName("gpu.memory.object.created")
			ev.SetTimestamp(pcommon.NewTimestampFromTime(at))
			ev.Attributes().PutStr("gpu.memory.object", object)
		}
		send(td)
	}
	assert.Equal(t, map[string]int64{"": 4}, r.counted("points_accepted"))
	assert.Equal(t, map[string]int64{"duplicate": 3, "no_value": 3}, r.counted("points_refused"))
}

// Scenario: an application in a pod makes an execution context every five minutes and releases none, says so by spans, and its memory grows.
// Guarantees: that is the cause of the leak of the process that holds the memory, whatever number it has in the pod.
func TestSpansSayWhyMemoryLeaks(t *testing.T) {
	r := newRig(t, nil)
	for tick := range 4 * 120 {
		at := t0.Add(time.Duration(tick) * 30 * time.Second)
		r.send(newScrape(at).put("nvidia.gpu.process.memory.usage", 40*gib*(1+0.01*float64(tick)/120), attributes(worker(71, "GPU-0", inPod))...).Metrics)
		if tick%10 == 0 {
			td, _ := traced("gpu.memory.object.created", "context", at, byte(tick/10))
			r.consumeTraces(t.Context(), td)
		}
	}
	require.Len(t, r.records(), 1)
	assert.Equal(t, "context_not_released", r.records()[0].Attributes().AsRaw()["gpu.leak.cause"])
}

// Guarantees: the instances for all three signals share one engine, which hears each batch once.
func TestTracesFeedTheSameEngine(t *testing.T) {
	f, set, cfg := NewFactory(), connectortest.NewNopSettings(metadata.Type), defaults()
	m, err := f.CreateTracesToMetrics(t.Context(), set, cfg, new(consumertest.MetricsSink))
	require.NoError(t, err)
	l, err := f.CreateTracesToLogs(t.Context(), set, cfg, new(consumertest.LogsSink))
	require.NoError(t, err)
	for _, c := range []connector.Traces{m, l} {
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	}
	e := m.(*instance).Engine()
	assert.Same(t, e, l.(*instance).Engine())
	td, _ := traced("gpu.memory.object.created", "engine", time.Now(), 1)
	for _, c := range []connector.Traces{m, l} {
		require.NoError(t, c.ConsumeTraces(t.Context(), td))
	}
	e.mu.Lock()
	assert.Equal(t, 1, e.fleet.Pending())
	e.mu.Unlock()
	for _, c := range []connector.Traces{m, l} {
		require.NoError(t, c.Shutdown(t.Context()))
	}
}
