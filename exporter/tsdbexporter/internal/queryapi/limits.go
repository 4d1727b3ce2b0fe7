// SPDX-License-Identifier: Apache-2.0

package queryapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// limiter lets a number of requests in at a time, and ends each after a while. The engine has limits of its own for queries;
// these are for all else too, and for how many of them there are.
type limiter struct {
	turns    chan struct{}
	timeout  time.Duration
	longest  int
	answered func(ctx context.Context, endpoint string, status int, took time.Duration)
}

func newLimiter(o Options) *limiter {
	l := &limiter{turns: make(chan struct{}, o.MaxConcurrent), timeout: o.Timeout, longest: o.MaxLength, answered: o.Answered}
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
		if err := l.check(r); err != nil {
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
func (l *limiter) check(r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return err
	}
	if query := r.FormValue("query"); len(query) > l.longest {
		return fmt.Errorf("query: has %d bytes, and query::max_length is %d", len(query), l.longest)
	}
	return nil
}

// refuse answers as Prometheus does.
func refuse(w http.ResponseWriter, code int, kind, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": "error", "errorType": kind, "error": why}) // the client has gone
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
