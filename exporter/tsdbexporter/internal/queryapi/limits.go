// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// limiter lets a number of requests in at a time, and ends each after a while. The engine has limits of its own for queries;
// these are for all else too, and for how many of them there are.
type limiter struct {
	turns    chan struct{}
	timeout  time.Duration
	longest  int
	results  int
	answered func(ctx context.Context, endpoint string, status int, took time.Duration)
}

func newLimiter(o Options) *limiter {
	l := &limiter{turns: make(chan struct{}, o.MaxConcurrent), timeout: o.Timeout, longest: o.MaxLength, results: o.MaxResults, answered: o.Answered}
	if l.answered == nil {
		l.answered = func(context.Context, string, int, time.Duration) {}
	}
	return l
}

func (l *limiter) wrap(endpoint string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		seen := &status{ResponseWriter: w, code: http.StatusOK}
		defer func() { l.answered(r.Context(), endpoint, seen.code, time.Since(began)) }()
		if err := l.check(endpoint, r); err != nil {
			refuse(seen, http.StatusBadRequest, "bad_data", err.Error())
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), l.timeout)
		defer cancel()
		select {
		case l.turns <- struct{}{}:
			defer func() { <-l.turns }()
			r.Header.Del("Origin") // CORS was confighttp's; Prometheus's would want a pattern
			next.ServeHTTP(seen, r.WithContext(ctx))
		case <-ctx.Done():
			refuse(seen, http.StatusServiceUnavailable, "unavailable", fmt.Sprintf("%d requests are being answered, and none of them ended within %s", cap(l.turns), l.timeout))
		}
	})
}

// check looks at the question before anybody reads it: the time to read one, which nothing ends, grows with the square of its
// length.
func (l *limiter) check(endpoint string, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	for _, key := range []string{"query", "match[]"} {
		for _, text := range r.Form[key] {
			if len(text) > l.longest {
				return fmt.Errorf("%s: has %d bytes, and query::max_length is %d", key, len(text), l.longest)
			}
			if n := writtenOut(text); n > l.longest {
				return fmt.Errorf("%s: its regular expressions have %d characters with their repetitions written out, and query::max_length is %d", key, n, l.longest)
			}
		}
	}
	if listing[endpoint] {
		l.bound(r)
	}
	return nil
}

// listing are the endpoints that list what there is. Queries have a limit of samples instead.
var listing = map[string]bool{"series": true, "labels": true, "label/{name}/values": true}

// bound lets no list be longer than it may. Who asks for more, or for all, is told by a warning that there is more.
func (l *limiter) bound(r *http.Request) {
	text := r.FormValue("limit")
	if asked, err := strconv.Atoi(text); text == "" || err == nil && (asked == 0 || asked > l.results) {
		r.Form.Set("limit", strconv.Itoa(l.results))
	}
}

// refuse answers as Prometheus does.
func refuse(w http.ResponseWriter, code int, kind, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": "error", "errorType": kind, "error": why}) // the client has gone
}

// Unavailable answers that nothing can be answered yet.
func Unavailable(w http.ResponseWriter, why error) {
	refuse(w, http.StatusServiceUnavailable, "unavailable", why.Error())
}

// status remembers the status code.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}
