// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asked is what the fake Prometheus was asked.
type asked struct {
	method, path string
	form         url.Values
	header       http.Header
}

// recording is a Prometheus that keeps what it was asked.
func recording(all *[]asked) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		*all = append(*all, asked{r.Method, r.URL.EscapedPath(), r.Form, r.Header})
		answering(`{"status":"success","data":[]}`)(w, r)
	}
}

func (c running) post(t *testing.T, path, contentType, body string) answer {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, c.url+path, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Cookie", "session=1")
	request.Header.Set("Authorization", "Bearer the-browsers")
	return do(t, request)
}

const form = "application/x-www-form-urlencoded"

func TestQueriesArePassedOnWithoutWhatTheBrowserSends(t *testing.T) {
	var got []asked
	c := start(t, nil, recording(&got), func(cfg *Config) {
		cfg.QueryURL += "/prometheus/"
		cfg.Query.Headers.Set("X-Scope-OrgID", "acme")
	})
	assert.Equal(t, http.StatusOK, c.post(t, "/api/v1/query_range", form, "query=up%7Bjob%3D%22a%22%7D&start=1&end=2&step=1").status)
	assert.Equal(t, http.StatusOK, c.get(t, "/api/v1/label/__name__/values?match[]=up", nil).status)
	assert.Equal(t, http.StatusOK, c.get(t, "/api/v1/label/U__cloud_2e_region/values", nil).status)
	require.Len(t, got, 3)

	assert.Equal(t, "POST", got[0].method)
	assert.Equal(t, "/prometheus/api/v1/query_range", got[0].path)
	assert.Equal(t, url.Values{"query": {`up{job="a"}`}, "start": {"1"}, "end": {"2"}, "step": {"1"}}, got[0].form)
	assert.Equal(t, []string{"acme"}, got[0].header["X-Scope-Orgid"])
	assert.Empty(t, got[0].header["Cookie"])
	assert.Empty(t, got[0].header["Authorization"])

	assert.Equal(t, "/prometheus/api/v1/label/__name__/values", got[1].path)
	assert.Equal(t, url.Values{"match[]": {"up"}}, got[1].form)
}

// Guarantees: nothing but reading is passed on, whatever is asked, and however it is spelled.
func TestNothingButReadingIsPassedOn(t *testing.T) {
	var got []asked
	c := start(t, nil, recording(&got), nil)
	f := func(method, path string, want int) {
		t.Helper()
		request, err := http.NewRequest(method, c.url+path, http.NoBody)
		require.NoError(t, err)
		request.Header.Set("Content-Type", form)
		assert.Equal(t, want, do(t, request).status, "%s %s", method, path)
	}
	f("POST", "/api/v1/admin/tsdb/delete_series?match[]=up", http.StatusMethodNotAllowed)
	f("GET", "/api/v1/admin/tsdb/snapshot", http.StatusNotFound)
	f("GET", "/api/v1/status/config", http.StatusNotFound)
	f("POST", "/api/v1/write", http.StatusMethodNotAllowed)
	f("POST", "/api/v1/otlp/v1/metrics", http.StatusMethodNotAllowed)
	f("POST", "/-/reload", http.StatusMethodNotAllowed)
	f("GET", "/-/healthy", http.StatusNotFound)
	f("DELETE", "/api/v1/series?match[]=up", http.StatusMethodNotAllowed)
	f("PUT", "/api/v1/query", http.StatusMethodNotAllowed)
	f("POST", "/api/v1/metadata", http.StatusMethodNotAllowed)
	f("GET", "/api/v1/label/a%2F..%2F..%2Fadmin/other", http.StatusNotFound)
	for _, label := range []string{
		"..%2F..%2Fstatus%2Fconfig%3F", "..%2f..", "..%2f..%2fadmin", "..", "%2e%2e", "a%2F..%2Fb", "a%2F%2Fb",
		"%252e%252e%252fstatus", "a%5C..%5Cb", "a%3Fb", "a%23b",
	} {
		request, err := http.NewRequest(http.MethodGet, c.url+"/api/v1/label/"+label+"/values", http.NoBody)
		require.NoError(t, err)
		assert.NotEqual(t, http.StatusOK, do(t, request).status, label)
	}
	assert.Empty(t, got)

	f("GET", "/api/v1/label/app.kubernetes.io%2Fname/values", http.StatusOK)
	require.Len(t, got, 1)
	assert.Equal(t, "/api/v1/label/app.kubernetes.io%2Fname/values", got[0].path, "a slash in a label stays a part of it")
}

func TestAPostedQueryIsAFormOfBoundedLength(t *testing.T) {
	var got []asked
	c := start(t, nil, recording(&got), nil)
	assert.Equal(t, http.StatusUnsupportedMediaType, c.post(t, "/api/v1/query", "application/json", `{"query":"up"}`).status)
	assert.Equal(t, http.StatusUnsupportedMediaType, c.post(t, "/api/v1/query", "text/plain", "query=up").status, "what a page elsewhere can post without asking")
	long := c.post(t, "/api/v1/query", form, "query="+strings.Repeat("a", maxQuery))
	assert.Equal(t, http.StatusRequestEntityTooLarge, long.status)
	assert.Contains(t, long.body, "the query is longer than 262144 bytes")
	assert.Empty(t, got)
}

func TestWhatPrometheusRefusesReachesThePageAsItIs(t *testing.T) {
	c := start(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"status":"error","errorType":"bad_data","error":"parse error"}`)
	}, nil)
	got := c.get(t, "/api/v1/query?query=(", nil)
	assert.Equal(t, http.StatusBadRequest, got.status)
	assert.JSONEq(t, `{"status":"error","errorType":"bad_data","error":"parse error"}`, got.body)
}

// Guarantees: a query_url that is none is told in words that say what to do, in the form of the Prometheus API.
func TestABackendThatIsNoneIsToldPlainly(t *testing.T) {
	f := func(backend http.HandlerFunc, change func(*Config), want string) {
		t.Helper()
		got := start(t, nil, backend, change).get(t, "/api/v1/query?query=up", nil)
		assert.Equal(t, http.StatusBadGateway, got.status)
		assert.Contains(t, got.body, `"errorType":"unavailable"`)
		assert.Contains(t, got.body, want)
	}
	f(answering("{}"), func(cfg *Config) { cfg.QueryURL = "http://127.0.0.1:1" }, "query_url does not answer: dial tcp 127.0.0.1:1: connect: connection refused")
	f(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", http.StatusNotFound) }, nil, "query_url answers 404 Not Found, and not as Prometheus does: is it the address before /api/v1?")
	f(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no org id", http.StatusUnauthorized) }, nil, "query_url answers 401 Unauthorized: write credentials into query: auth, or headers such as X-Scope-OrgID")
	f(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/login", http.StatusFound) }, nil, "query_url answers 302 Found: write where it leads to into query_url")
	f(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(cfg *Config) { cfg.Query.Timeout = 50 * time.Millisecond }, "query_url did not answer in time (query::timeout)")
	f(answering(strings.Repeat(" ", 2000)), func(cfg *Config) { cfg.MaxResponseBytes = 1024 }, "the answer has 2000 bytes, max_response_bytes is 1024: ask for less")
}

// Scenario: an answer whose length is not known before turns out too long. Guarantees: it breaks off, so nobody takes half
// of it for the whole.
func TestAnAnswerThatTurnsOutTooLongBreaksOff(t *testing.T) {
	c := start(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range 100 {
			fmt.Fprint(w, strings.Repeat(" ", 1024))
			w.(http.Flusher).Flush()
		}
	}, func(cfg *Config) { cfg.MaxResponseBytes = 4096 })
	got := c.get(t, "/api/v1/query?query=up", nil)
	require.Error(t, got.err)
	assert.LessOrEqual(t, len(got.body), 4097)
}

// Guarantees: no more queries than max_concurrent_queries are under way at once; further ones wait for their turn.
func TestQueriesWaitForTheirTurn(t *testing.T) {
	under, release := make(chan struct{}, 10), make(chan struct{})
	c := start(t, nil, func(w http.ResponseWriter, r *http.Request) {
		under <- struct{}{}
		<-release
		answering(`{"status":"success"}`)(w, r)
	}, func(cfg *Config) { cfg.MaxConcurrentQueries = 2 })
	answers := make(chan int, 5)
	for range 5 {
		go func() { answers <- c.get(t, "/api/v1/query?query=up", nil).status }()
	}
	<-under
	<-under
	time.Sleep(50 * time.Millisecond)
	assert.Empty(t, under, "two are under way, three wait")
	close(release)
	for range 5 {
		assert.Equal(t, http.StatusOK, <-answers)
	}
}
