// SPDX-License-Identifier: Apache-2.0

// Package queryapi serves Prometheus's own HTTP API, as far as it reads, over a store: the same handlers, engine and answers
// as a Prometheus server, within limits.
package queryapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/route"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/store"
)

// Options of the API.
type Options struct {
	Store *store.Store
	// Timeout ends a query, and a request that waits for its turn.
	Timeout time.Duration
	// MaxSamples is how many samples a query may hold in memory, and all of them together twice.
	MaxSamples int
	// MaxLength is how many bytes the text of a query or of a selector may have.
	MaxLength int
	// MaxResults is how many series, labels or values are listed.
	MaxResults int
	// MaxConcurrent is how many requests are answered at a time; others wait.
	MaxConcurrent int
	// Lookback is how old the newest sample of a series may be for the series to be there.
	Lookback time.Duration
	// Version is what buildinfo says.
	Version string
	Logger  *slog.Logger
	// Answered is told of each request that the API has answered. It is called from many goroutines.
	Answered func(ctx context.Context, endpoint string, status int, took time.Duration)
}

// endpoints are what is served under /api/v1, all of which only reads, and the methods of each.
var endpoints = map[string][]string{
	"query":               {http.MethodGet, http.MethodPost},
	"query_range":         {http.MethodGet, http.MethodPost},
	"query_exemplars":     {http.MethodGet, http.MethodPost},
	"format_query":        {http.MethodGet, http.MethodPost},
	"parse_query":         {http.MethodGet, http.MethodPost},
	"series":              {http.MethodGet, http.MethodPost},
	"labels":              {http.MethodGet, http.MethodPost},
	"label/{name}/values": {http.MethodGet},
	"metadata":            {http.MethodGet},
	"status/buildinfo":    {http.MethodGet},
	"status/tsdb":         {http.MethodGet},
}

// New returns the handler.
func New(o Options) http.Handler {
	router := route.New()
	newAPI(o).Register(router.WithPrefix("/api/v1"))
	limits := newLimiter(o)
	mux := http.NewServeMux()
	for path, methods := range endpoints {
		for _, method := range methods {
			mux.Handle(method+" /api/v1/"+path, limits.wrap(path, router))
		}
	}
	text := func(say string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, say) // the client has gone
		})
	}
	// What a Prometheus server says, since clients compare it.
	mux.Handle("GET /-/ready", text("Prometheus Server is Ready.\n"))
	mux.Handle("GET /-/healthy", text("Prometheus Server is Healthy.\n"))
	mux.Handle("GET /{$}", text("The tsdb exporter of otelcol-llm: the Prometheus HTTP API is under /api/v1.\n"))
	return mux
}

func newAPI(o Options) *v1.API {
	metadata := targets(o.Store.Families)
	return v1.NewAPI(newBudget(o), o.Store, nil, nil, o.Store,
		nil, // scrape pools
		func(context.Context) v1.TargetRetriever { return metadata },
		nil, // alertmanagers
		func() config.Config { return config.Config{} },
		nil, // flags
		v1.GlobalURLOptions{},
		func(next http.HandlerFunc) http.HandlerFunc { return next }, // it is ready before it is served
		stats{o.Store},
		"", false, // no snapshots, no administration
		o.Logger,
		nil,     // rules
		0, 0, 0, // remote read, which is not served
		false, // an agent
		nil,   // CORS is confighttp's
		nil,   // runtime information
		&v1.PrometheusVersion{Version: o.Version, GoVersion: runtime.Version()},
		nil, nil, // notifications
		o.Store.Registry, prometheus.NewRegistry(), // the latter for what is not served
		nil,        // statistics of queries: as usual
		false, nil, // remote write
		false, false, false, // OTLP over HTTP
		false, o.Lookback, false, false, // of writing, too
		nil, nil, // error codes, features: as usual
		v1.OpenAPIOptions{IncludePaths: []string{"none"}}, // it is not served, and all of it would take a while to write
	)
}

// targets gives the API metadata where it looks for it: at a scraped target.
type families struct{ *store.Families }

func targets(f *store.Families) v1.TargetRetriever {
	t := scrape.NewTarget(labels.EmptyLabels(), nil, nil, nil)
	t.SetMetadataStore(families{f})
	return oneTarget{t}
}

// ListMetadata implements scrape.MetricMetadataStore, as do the following.
func (f families) ListMetadata() []scrape.MetricMetadata {
	var all []scrape.MetricMetadata
	for name, m := range f.All() {
		all = append(all, scrape.MetricMetadata{MetricFamily: name, Type: m.Type, Help: m.Help, Unit: m.Unit})
	}
	return all
}

func (f families) GetMetadata(name string) (scrape.MetricMetadata, bool) {
	m, ok := f.Get(name)
	return scrape.MetricMetadata{MetricFamily: name, Type: orUnknown(m.Type), Help: m.Help, Unit: m.Unit}, ok
}

func (families) SizeMetadata() int   { return 0 }
func (families) LengthMetadata() int { return 0 }

func orUnknown(t model.MetricType) model.MetricType {
	if t == "" {
		return model.MetricTypeUnknown
	}
	return t
}

type oneTarget struct{ target *scrape.Target }

func (o oneTarget) TargetsActive() map[string][]*scrape.Target {
	return map[string][]*scrape.Target{"": {o.target}}
}
func (oneTarget) TargetsDropped() map[string][]*scrape.Target { return nil }
func (oneTarget) TargetsDroppedCounts() map[string]int        { return nil }
func (oneTarget) ScrapePoolConfig(string) (*config.ScrapeConfig, error) {
	return nil, errors.ErrUnsupported
}

// stats is the store for status/tsdb, without what would change it.
type stats struct{ s *store.Store }

func (s stats) Stats(label string, limit int) (*tsdb.Stats, error) {
	return s.s.Head().Stats(label, limit), nil
}
func (s stats) BlockMetas() ([]tsdb.BlockMeta, error) { return s.s.BlockMetas(), nil }
func (stats) CleanTombstones() error                  { return errors.ErrUnsupported }
func (stats) Snapshot(string, bool) error             { return errors.ErrUnsupported }
func (stats) WALReplayStatus() (tsdb.WALReplayStatus, error) {
	return tsdb.WALReplayStatus{}, errors.ErrUnsupported
}
func (stats) Delete(context.Context, int64, int64, ...*labels.Matcher) error {
	return errors.ErrUnsupported
}
