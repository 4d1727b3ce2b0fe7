// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/clock"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Unix(1_700_000_000, 0).UTC()

func request(id uint64, reason engine.Reason, labels map[string]string) Finished {
	return Finished{
		Record: engine.Record{
			ID: id, Arrival: 10 * time.Second, Scheduled: 11 * time.Second, FirstToken: 13 * time.Second,
			LastToken: 16 * time.Second, End: 16 * time.Second,
			PromptTokens: 100, CachedTokens: 64, OutputTokens: 4, MaxTokens: 128, Reason: reason,
		},
		Labels: labels, Model: "m",
	}
}

func TestSpanSaysWhatVLLMSays(t *testing.T) {
	// Scenario: 30 simulated seconds in one of the wall's; a request from 10 to 16.
	// Guarantees: the span ends 16/30 s after the start, and is 6 s long.
	labels := map[string]string{"cloud.region": "eu", "service.instance.id": "r0"}
	td := Build([]Finished{request(1, engine.Stop, labels)}, clock.Clock{Start: start, Speed: 30}, 5)
	require.Equal(t, 1, td.SpanCount())
	rs := td.ResourceSpans().At(0)
	assert.Equal(t, map[string]any{"cloud.region": "eu", "service.instance.id": "r0", "service.name": "llmsim"}, rs.Resource().Attributes().AsRaw())
	s := rs.ScopeSpans().At(0).Spans().At(0)
	assert.Equal(t, "llm_request", s.Name())
	assert.Equal(t, ptrace.SpanKindServer, s.Kind())
	assert.Equal(t, ptrace.StatusCodeUnset, s.Status().Code())
	assert.False(t, s.TraceID().IsEmpty())
	assert.False(t, s.SpanID().IsEmpty())
	assert.WithinDuration(t, start.Add(16*time.Second/30), s.EndTimestamp().AsTime(), time.Microsecond)
	assert.Equal(t, 6*time.Second, s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()))
	got := s.Attributes().AsRaw()
	assert.Contains(t, got["gen_ai.request.id"], "cmpl-")
	delete(got, "gen_ai.request.id")
	assert.Equal(t, map[string]any{
		"gen_ai.latency.time_in_queue":           1.0,
		"gen_ai.latency.time_to_first_token":     3.0,
		"gen_ai.latency.e2e":                     6.0,
		"gen_ai.latency.time_in_model_prefill":   2.0,
		"gen_ai.latency.time_in_model_decode":    3.0,
		"gen_ai.latency.time_in_model_inference": 5.0,
		"gen_ai.usage.prompt_tokens":             int64(100),
		"gen_ai.usage.completion_tokens":         int64(4),
		"gen_ai.usage.cached_tokens":             int64(64),
		"gen_ai.request.n":                       int64(1),
		"gen_ai.request.max_tokens":              int64(128),
		"gen_ai.response.model":                  "m",
	}, got)
}

func TestErrorsHaveAnErrorStatusAndReplicasTheirOwnResource(t *testing.T) {
	a, b := map[string]string{"tenant": "a"}, map[string]string{"tenant": "b"}
	td := Build([]Finished{request(1, engine.Error, a), request(2, engine.Stop, b), request(3, engine.Stop, a)}, clock.Clock{Start: start, Speed: 1}, 0)
	require.Equal(t, 2, td.ResourceSpans().Len())
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	require.Equal(t, 2, spans.Len())
	assert.Equal(t, ptrace.StatusCodeError, spans.At(0).Status().Code())
	assert.NotEqual(t, spans.At(0).TraceID(), spans.At(1).TraceID())
}

func TestIdsFollowTheRun(t *testing.T) {
	id := func(run uint64) string {
		td := Build([]Finished{request(1, engine.Stop, nil)}, clock.Clock{Start: start, Speed: 1}, run)
		return td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).TraceID().String()
	}
	assert.Equal(t, id(1), id(1))
	assert.NotEqual(t, id(1), id(2))
}

func collect(t *testing.T, status int) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var got atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		req := ptraceotlp.NewExportRequest()
		if r.URL.Path != "/v1/traces" || req.UnmarshalProto(body) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(status)
		got.Add(int64(req.Traces().SpanCount()))
	}))
	t.Cleanup(srv.Close)
	return srv, &got
}

func TestEverySpanArrivesOnce(t *testing.T) {
	srv, got := collect(t, http.StatusOK)
	e, err := NewExporter(srv.URL, clock.Clock{Start: start, Speed: 1}, 1)
	require.NoError(t, err)
	for i := range uint64(2000) {
		e.AddWait(request(i, engine.Stop, nil))
	}
	require.NoError(t, e.Close(context.Background()))
	assert.EqualValues(t, 2000, got.Load())
	assert.Equal(t, Counts{Sent: 2000}, e.Counts())
}

func TestWhatIsRefusedIsCountedAndTheReasonKept(t *testing.T) {
	srv, _ := collect(t, http.StatusServiceUnavailable)
	e, err := NewExporter(srv.URL, clock.Clock{Start: start, Speed: 1}, 1)
	require.NoError(t, err)
	e.Add(request(1, engine.Stop, nil))
	require.NoError(t, e.Close(context.Background()))
	c := e.Counts()
	assert.EqualValues(t, 1, c.DroppedSendFailed)
	assert.Contains(t, c.LastError, "503")
}

func TestFullQueueDropsAndDoesNotBlock(t *testing.T) {
	// Scenario: an endpoint that answers nobody until the test says so.
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer srv.Close()
	e, err := NewExporter(srv.URL, clock.Clock{Start: start, Speed: 1}, 1)
	require.NoError(t, err)
	const n = queueSize + 2*batchSize + 100
	for i := range uint64(n) {
		e.Add(request(i, engine.Stop, nil))
	}
	assert.GreaterOrEqual(t, e.Counts().DroppedQueueFull, uint64(100))
	close(release)
	require.NoError(t, e.Close(context.Background()))
	c := e.Counts()
	assert.EqualValues(t, n, c.Sent+c.DroppedQueueFull)
}

func TestEndpointMustBeAURL(t *testing.T) {
	for _, bad := range []string{"localhost:4318", "grpc://localhost:4317", "http://", "::"} {
		_, err := NewExporter(bad, clock.Clock{}, 0)
		assert.ErrorContains(t, err, "is no URL like http://localhost:4318", bad)
	}
}
