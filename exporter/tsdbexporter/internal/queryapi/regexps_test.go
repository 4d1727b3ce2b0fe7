// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-llm/otelcol-llm/internal/cputest"
)

func TestRegularExpressionsAreMeasuredWrittenOut(t *testing.T) {
	f := func(query string, want int) {
		t.Helper()
		assert.Equal(t, want, writtenOut(query), query)
	}
	f(`up`, 0)
	f(`up{job="a{1000}"}`, 0)
	f(`up{job=~"chat"}`, 4)
	f(`up{job=~"chat|web",pod!~'a+'}`, 8+2)
	f("up{job=~`[0-9]{3}`}", 3)
	f(`{"up","job"=~"(a?){1000}"}`, 2000)
	f(`{job=~"a{2,}"}`, 3)
	f(`{job=~"(ab){2,5}"}`, 10)
	f(`{job=~"\\w"}`, 1)
	f(`{job=~"("}`, 0)
	f(`{job=~"`, 0)
	f(`label_replace(up, "a", "$1", "b", "(.*)c{10}")`, 1+2+1+2+10)
	f(`sum(`, 0)
	assert.Greater(t, writtenOut("{job=~`\\pL`}"), 30)
}

// Guarantees: a regular expression that would take seconds is refused before anybody makes a program of it, and a long one that is only
// long is not.
func TestARegularExpressionThatTakesSecondsIsRefused(t *testing.T) {
	l := newLimiter(Options{Timeout: time.Minute, MaxConcurrent: 1, MaxLength: 16384})
	h := l.wrap("series", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	f := func(re, says string) {
		t.Helper()
		w := httptest.NewRecorder()
		took := cputest.Time(t, func() {
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?match[]="+url.QueryEscape("{a=~`"+re+"`}"), nil))
		})
		t.Logf("%d characters took %s", len(re), took)
		assert.Less(t, took, time.Second)
		if says == "" {
			assert.Equal(t, http.StatusOK, w.Code, w.Body)
			return
		}
		assert.Equal(t, http.StatusBadRequest, w.Code)
		assert.Contains(t, w.Body.String(), says)
	}
	f(strings.Repeat("pod-7f9c6d-12345|", 900)+".*-canary", "")
	f(strings.Repeat("(a?){1000}", 400), "match[]: its regular expressions have 800000 characters with their repetitions written out, and query::max_length is 16384")
	f(strings.Repeat(`\pL{1000}`, 1600), "written out")
	f(strings.Repeat(`\pL`, 5000), "written out")
	f(strings.Repeat(".{1000}", 2000), "written out")
}
