// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Scenario: one request is answered at a time, and that one does not end. Guarantees: others wait no longer than the timeout
// and are told why; with the end of the first the next is answered.
func TestRequestsWaitForTheirTurn(t *testing.T) {
	l := newLimiter(Options{Timeout: 50 * time.Millisecond, MaxConcurrent: 1, MaxLength: 10})
	inside, release := make(chan struct{}), make(chan struct{})
	h := l.wrap("query", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("hold") {
			close(inside)
			<-release
		}
	}))
	get := func(url string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
		return w
	}
	var holding sync.WaitGroup
	holding.Go(func() { get("/?hold") })
	<-inside
	w := get("/")
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.JSONEq(t, `{"status":"error","errorType":"unavailable","error":"1 requests are being answered, and none of them ended within 50ms"}`, w.Body.String())
	close(release)
	holding.Wait()
	assert.Equal(t, http.StatusOK, get("/").Code)
}

func TestOnlyAServerOnLocalhostAsksForItsName(t *testing.T) {
	f := func(endpoint string, allowed, want []string) {
		t.Helper()
		assert.Equal(t, want, Hosts(endpoint, allowed))
	}
	local := []string{"localhost", "127.0.0.1", "::1"}
	f("localhost:9191", nil, append(local, "localhost"))
	f("127.0.0.7:9191", []string{"a"}, append(local, "127.0.0.7", "a"))
	f("[::1]:9191", nil, append(local, "::1"))
	f("0.0.0.0:9191", nil, nil)
	f(":9191", nil, nil)
	f("0.0.0.0:9191", []string{"a"}, []string{"a"})
	f("/run/tsdb.sock", nil, nil)
}
