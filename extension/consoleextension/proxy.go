// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

// maxQuery bounds what a query is made of, in bytes.
const maxQuery = 256 << 10

// maxWait is how long a query waits for others to end.
const maxWait = 10 * time.Second

// proxy passes queries on to the Prometheus API at base: only those that read, without the browser's headers and cookies.
// What authorizes them there is configured.
type proxy struct {
	client      *http.Client
	base        string
	slots       chan struct{} // one element for each query that is under way
	maxResponse int64
	telemetry   *telemetry
}

func newProxy(cfg *Config, client *http.Client, t *telemetry) *proxy {
	// A redirect leads to a login page, or out of what was configured.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &proxy{
		client:      client,
		base:        strings.TrimRight(cfg.QueryURL, "/"),
		slots:       make(chan struct{}, cfg.MaxConcurrentQueries),
		maxResponse: cfg.MaxResponseBytes,
		telemetry:   t,
	}
}

// register adds what may be asked. By POST a query can be longer than a URL may be.
func (p *proxy) register(mux *http.ServeMux) error {
	for _, name := range []string{"query", "query_range", "query_exemplars", "series", "labels"} {
		mux.HandleFunc("GET /api/v1/"+name, p.pass)
		mux.HandleFunc("POST /api/v1/"+name, p.pass)
	}
	mux.HandleFunc("GET /api/v1/label/{name}/values", p.pass)
	mux.HandleFunc("GET /api/v1/metadata", p.pass)
	mux.HandleFunc("GET /api/", func(w http.ResponseWriter, _ *http.Request) {
		fail(w, http.StatusNotFound, "not_found", "the console passes queries on, and nothing else")
	})
	_, err := url.Parse(p.base)
	return err
}

// fail answers with an error in the form of the Prometheus API.
func fail(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": "error", "errorType": kind, "error": message}) // nobody is left to tell
}

// plain says whether a path leads where it seems to, however often whoever is on the way decodes it. A label may have a slash
// in it, as of Kubernetes.
func plain(decoded string) bool {
	return path.Clean(decoded) == decoded && !strings.ContainsAny(decoded, `%?#\`)
}

func (p *proxy) pass(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	if !plain(r.URL.Path) {
		fail(w, http.StatusBadRequest, "bad_data", "a label with .., //, %, ?, # or \\ in its name is asked for by its escaped name, U__…")
		return
	}
	if r.Method == http.MethodPost {
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/x-www-form-urlencoded" {
			fail(w, http.StatusUnsupportedMediaType, "bad_data", "a query that is posted is a form")
			return
		}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxQuery)
	if err := r.ParseForm(); err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			p.telemetry.refuse(ctx, "too_large")
			fail(w, http.StatusRequestEntityTooLarge, "bad_data", fmt.Sprintf("the query is longer than %d bytes", maxQuery))
			return
		}
		fail(w, http.StatusBadRequest, "bad_data", err.Error())
		return
	}
	waiting, stop := context.WithTimeout(ctx, maxWait)
	defer stop()
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-waiting.Done():
		p.telemetry.refuse(ctx, "busy")
		fail(w, http.StatusServiceUnavailable, "unavailable", "too many queries at once (max_concurrent_queries)")
		return
	}
	p.ask(w, r)
}

func (p *proxy) ask(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	request, err := p.request(r)
	if err != nil {
		fail(w, http.StatusBadRequest, "bad_data", err.Error())
		return
	}
	answer, err := p.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			p.telemetry.query(context.WithoutCancel(ctx), "canceled")
			return
		}
		p.telemetry.query(ctx, "failed")
		fail(w, http.StatusBadGateway, "unavailable", reason(err))
		return
	}
	defer answer.Body.Close()
	if why := p.unfit(answer); why != "" {
		p.telemetry.query(ctx, "failed")
		fail(w, http.StatusBadGateway, "unavailable", why)
		return
	}
	p.copy(w, r, answer)
}

// request is the query as it is asked at query_url.
func (p *proxy) request(r *http.Request) (*http.Request, error) {
	to, err := url.Parse(p.base + r.URL.EscapedPath())
	if err != nil {
		return nil, err
	}
	var body io.Reader
	if r.Method == http.MethodPost {
		body = strings.NewReader(r.Form.Encode())
	} else {
		to.RawQuery = r.Form.Encode()
	}
	request, err := http.NewRequestWithContext(r.Context(), r.Method, to.String(), body) //nolint:gosec // the host is the configured one, the path one of register
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "otelcol-llm console")
	return request, nil
}

// unfit says why an answer is none of a Prometheus API, or nothing.
func (p *proxy) unfit(answer *http.Response) string {
	if answer.StatusCode >= 300 && answer.StatusCode < 400 {
		return fmt.Sprintf("query_url answers %s: write where it leads to into query_url, or credentials into query", answer.Status)
	}
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind != "application/json" {
		if answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden {
			return fmt.Sprintf("query_url answers %s: write credentials into query: auth, or headers such as X-Scope-OrgID", answer.Status)
		}
		return fmt.Sprintf("query_url answers %s, and not as Prometheus does: is it the address before /api/v1?", answer.Status)
	}
	if answer.ContentLength > p.maxResponse {
		return fmt.Sprintf("the answer has %d bytes, max_response_bytes is %d: ask for less", answer.ContentLength, p.maxResponse)
	}
	return ""
}

// copy passes an answer on as it comes in. One that turns out too long ends in the middle, so that nobody takes it for whole.
func (p *proxy) copy(w http.ResponseWriter, r *http.Request, answer *http.Response) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(answer.StatusCode)
	n, err := io.Copy(w, io.LimitReader(answer.Body, p.maxResponse+1))
	ctx := context.WithoutCancel(r.Context())
	switch {
	case n > p.maxResponse:
		p.telemetry.query(ctx, "cut")
	case r.Context().Err() != nil:
		p.telemetry.query(ctx, "canceled")
	case err != nil:
		p.telemetry.query(ctx, "failed")
	case answer.StatusCode >= 400:
		p.telemetry.query(ctx, "refused")
		return
	default:
		p.telemetry.query(ctx, "ok")
		return
	}
	panic(http.ErrAbortHandler)
}

// reason is why query_url did not answer, without its URL: that may hold a password, and the page knows which it is.
func reason(err error) string {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		if u.Timeout() {
			return "query_url did not answer in time (query::timeout)"
		}
		err = u.Err
	}
	return "query_url does not answer: " + err.Error()
}
