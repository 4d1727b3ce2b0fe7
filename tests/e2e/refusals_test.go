// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Scenario: real servers refuse a tenant for a while, over HTTP and over gRPC, in each way in which they do that are at a limit, do not
// know a token any more, or fail.
// Guarantees: nothing is lost. What OTLP calls final and is not about the data waits like all else.
func TestWhatIsRefusedForAWhileIsNotLost(t *testing.T) {
	parallel(t)
	e := newEstate(t)
	g := startGateway(t, e, t.TempDir(), "")
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
		e.mu.Lock()
		e.error, e.tried = answers.grpc, map[string]int{}
		e.mu.Unlock()
		e.fall(func(w http.ResponseWriter) { w.WriteHeader(answers.http) })
		require.Equal(t, http.StatusOK, g.sendMetrics(id, "sick").StatusCode)
		require.Equal(t, http.StatusOK, g.sendTraces(id, "sick").StatusCode)
		require.Eventually(t, func() bool {
			e.mu.Lock()
			defer e.mu.Unlock()
			return e.tried["http"] > 1 && e.tried["grpc"] > 1
		}, 20*time.Second, 10*time.Millisecond, "HTTP %d, %v: it is not tried again", answers.http, answers.grpc)
		e.fall(nil)
		require.Eventually(t, func() bool { n, _ := e.items("sick"); return n == 2*(id+1) }, 20*time.Second, 10*time.Millisecond)
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
	require.Eventually(t, func() bool { n, _ := e.items("large"); return n == 1 }, 20*time.Second, 10*time.Millisecond)
	g.WaitLog("Dropping data", 20*time.Second)
	assert.Contains(t, g.Logs(), fmt.Sprintf("vs. %d", limit))
}
