// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// refuser is a server of HTTP and one of gRPC that answer as they are told.
type refuser struct {
	ptraceotlp.UnimplementedGRPCServer
	http, grpc string

	mu           sync.Mutex
	overHTTP     int // 0 takes what comes
	overGRPC     error
	tried, taken map[string]int // requests by protocol
}

func newRefuser(t testing.TB) *refuser {
	t.Helper()
	r := &refuser{tried: map[string]int{}, taken: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.overHTTP != 0 {
			r.tried["http"]++
			w.WriteHeader(r.overHTTP)
			return
		}
		r.taken["http"]++
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	calls := grpc.NewServer()
	ptraceotlp.RegisterGRPCServer(calls, r)
	go func() { _ = calls.Serve(listener) }()
	t.Cleanup(calls.Stop)
	r.http, r.grpc = server.URL, listener.Addr().String()
	return r
}

// Export takes traces, or does not.
func (r *refuser) Export(context.Context, ptraceotlp.ExportRequest) (ptraceotlp.ExportResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.overGRPC != nil {
		r.tried["grpc"]++
	} else {
		r.taken["grpc"]++
	}
	return ptraceotlp.NewExportResponse(), r.overGRPC
}

// answer says how it answers from now on.
func (r *refuser) answer(overHTTP int, overGRPC error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.overHTTP, r.overGRPC, r.tried = overHTTP, overGRPC, map[string]int{}
}

// atLeast reports whether so many requests of each protocol were refused, or taken.
func (r *refuser) atLeast(n int, of *map[string]int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return (*of)["http"] >= n && (*of)["grpc"] >= n
}

// Scenario: real servers refuse a tenant for a while, over HTTP and over gRPC, in each way in which they do that are at a limit, do not
// know a token any more, or fail.
// Guarantees: nothing is lost. What OTLP calls final and is not about the data waits like all else.
func TestWhatIsRefusedForAWhileIsNotLost(t *testing.T) {
	parallel(t)
	r := newRefuser(t)
	g := startGateway(t, &estate{http: r.http, grpc: r.grpc}, t.TempDir(), "")
	for id, answers := range []struct {
		http int
		grpc error
	}{
		{http.StatusTooManyRequests, status.Error(codes.ResourceExhausted, "RATE_LIMITED: ingestion rate limit exceeded")}, // Tempo's
		{http.StatusUnauthorized, status.Error(codes.Unauthenticated, "the token has expired")},
		{http.StatusForbidden, status.Error(codes.PermissionDenied, "not yet")},
		{http.StatusInternalServerError, status.Error(codes.Internal, "restarting")},
		{http.StatusServiceUnavailable, status.Error(codes.Unavailable, "restarting")},
	} {
		r.answer(answers.http, answers.grpc)
		require.Equal(t, http.StatusOK, g.sendMetrics(id, "a").StatusCode)
		require.Equal(t, http.StatusOK, g.sendTraces(id, "a").StatusCode)
		require.Eventually(t, func() bool { return r.atLeast(2, &r.tried) }, time.Minute, 10*time.Millisecond,
			"HTTP %d, %v: it is not tried again", answers.http, answers.grpc)
		r.answer(0, nil)
		require.Eventually(t, func() bool { return r.atLeast(id+1, &r.taken) }, time.Minute, 10*time.Millisecond)
	}
	assert.NotContains(t, g.Logs(), "Dropping data")
	assert.Contains(t, g.Logs(), "Exporting failed. Rejecting data. Try enabling retry_on_failure", "the README of tenant_routing says what to think of it")
}

// Guarantees: what is larger than a server of gRPC takes is not tried for ever: it is lost, which is told, and what comes after it is sent.
func TestWhatIsLargerThanADestinationTakesHoldsNothingUp(t *testing.T) {
	parallel(t)
	e := newEstate(t)
	g := startGateway(t, e, t.TempDir(), "")
	const limit = 4 << 20 // of a server of gRPC that is not told otherwise
	require.Equal(t, http.StatusOK, g.sendTraces(1, slices.Repeat([]string{"large"}, limit/50)...).StatusCode)
	require.Equal(t, http.StatusOK, g.sendTraces(2, "large").StatusCode)
	require.Eventually(t, func() bool { n, _ := e.items("large"); return n == 1 }, time.Minute, 10*time.Millisecond)
	g.WaitLog("Dropping data", time.Minute)
	assert.Contains(t, g.Logs(), fmt.Sprintf("vs. %d", limit))
}
