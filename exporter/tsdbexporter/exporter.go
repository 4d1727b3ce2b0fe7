// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/exporter"
	"go.uber.org/zap"
	"go.uber.org/zap/exp/zapslog"

	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/queryapi"
	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/store"
)

// tsdbExporter is the database, its accumulator for deltas, and its server.
type tsdbExporter struct {
	cfg  *Config
	set  exporter.Settings
	log  *zap.Logger
	host component.Host

	store     atomic.Pointer[store.Store]  // nil while the disk is too full to open it
	api       atomic.Pointer[http.Handler] // nil as long
	telemetry *telemetry
	deltas    *deltas
	server    *http.Server
	serving   sync.WaitGroup     // the server, and each request
	giveUp    context.CancelFunc // ends opening
	opening   sync.WaitGroup

	mu     sync.Mutex
	full   bool      // guarded by mu: the disk was, at the last push
	warned time.Time // guarded by mu: when refused samples were last logged
}

func newExporter(set exporter.Settings, cfg *Config) *tsdbExporter {
	return &tsdbExporter{cfg: cfg, set: set, log: set.Logger}
}

// errNotOpen is for the sender, who may try again.
var errNotOpen = errors.New("the database is not open yet: the disk is too full to read its write-ahead log")

// start opens the database, which reads its write-ahead log, and then listens. When it returns, queries see all that was there
// before; but for a disk that is too full, on which the Collector has more to do than this: then it is tried again until there is room.
func (e *tsdbExporter) start(ctx context.Context, host component.Host) (err error) {
	e.host = host
	defer func() {
		if err != nil {
			err = errors.Join(err, e.shutdown(ctx))
		}
	}()
	if e.telemetry, err = newTelemetry(e.set.TelemetrySettings, e.store.Load); err != nil {
		return err
	}
	if e.deltas, err = newDeltas(ctx, e.set, e.cfg, e.write); err != nil {
		return err
	}
	logger := slog.New(zapslog.NewHandler(e.log.Core()))
	switch err = e.open(logger); {
	case errors.Is(err, store.ErrNoRoom):
		e.log.Error("the database is not open: data is refused, and queries are not answered, until there is room on the disk", zap.Error(err))
		e.reportRoom(err)
		var until context.Context
		until, e.giveUp = context.WithCancel(context.Background())
		e.opening.Go(func() { e.reopen(until, logger) })
	case err != nil:
		return err
	}
	return e.listen(ctx)
}

// reopen tries to open the database until there is room for that.
func (e *tsdbExporter) reopen(until context.Context, logger *slog.Logger) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			switch err := e.open(logger); {
			case err == nil:
				e.reportRoom(nil)
				return
			case !errors.Is(err, store.ErrNoRoom):
				componentstatus.ReportStatus(e.host, componentstatus.NewFatalErrorEvent(err))
				return
			}
		case <-until.Done():
			return
		}
	}
}

func (e *tsdbExporter) open(logger *slog.Logger) error {
	s, err := store.Open(store.Options{
		Directory: e.cfg.Directory, Retention: time.Duration(e.cfg.Retention), MaxBytes: e.cfg.MaxBytes, MinFreeBytes: e.cfg.MinFreeBytes,
		OutOfOrderWindow: e.cfg.OutOfOrderWindow, MaxSeries: e.cfg.MaxSeries, MaxExemplars: e.cfg.MaxExemplars,
	}, logger)
	if err != nil {
		return err
	}
	for _, r := range s.Repairs {
		e.log.Warn("the database was damaged and is repaired", zap.String("part", r.What), zap.String("repair", r.How), zap.String("lost", r.Lost), zap.String("reason", r.Why))
	}
	if ahead := s.Ahead(time.Now()); ahead > 0 {
		e.log.Warn("the newest sample is ahead of the clock: until then, what is older than it by more than out_of_order_window is refused; if a clock was wrong, move the directory away",
			zap.String("directory", e.cfg.Directory), zap.Duration("ahead", ahead), zap.Duration("out_of_order_window", e.cfg.OutOfOrderWindow))
	}
	api := queryapi.New(queryapi.Options{
		Store: s, Timeout: e.cfg.Query.Timeout, MaxSamples: e.cfg.Query.MaxSamples, MaxLength: e.cfg.Query.MaxLength, MaxResults: e.cfg.Query.MaxResults, MaxConcurrent: e.cfg.Query.MaxConcurrent,
		Lookback: e.cfg.Query.Lookback, Version: e.set.BuildInfo.Version, Logger: logger, Answered: e.telemetry.answered,
	})
	e.store.Store(s)
	e.api.Store(&api)
	e.log.Info("the database answers PromQL", zap.String("directory", e.cfg.Directory), zap.String("endpoint", e.cfg.HTTP.NetAddr.Endpoint),
		zap.Uint64("series", s.Head().NumSeries()), zap.Stringer("retention", e.cfg.Retention), zap.Int64("max_bytes", e.cfg.MaxBytes))
	return nil
}

// answer is what the server does: it asks the API, once there is one.
func (e *tsdbExporter) answer(w http.ResponseWriter, r *http.Request) {
	e.serving.Add(1)
	defer e.serving.Done()
	if api := e.api.Load(); api != nil {
		(*api).ServeHTTP(w, r)
		return
	}
	queryapi.Unavailable(w, errNotOpen)
}

func (e *tsdbExporter) listen(ctx context.Context) error {
	cors := e.cfg.HTTP.CORS
	guard := queryapi.Guard{
		Hosts:        queryapi.Hosts(e.cfg.HTTP.NetAddr.Endpoint, e.cfg.AllowedHosts),
		OtherOrigins: cors.HasValue() && len(cors.Get().AllowedOrigins) > 0,
	}
	var err error
	if e.server, err = e.cfg.HTTP.ToServer(ctx, e.host.GetExtensions(), e.set.TelemetrySettings, guard.Wrap(http.HandlerFunc(e.answer))); err != nil {
		return err
	}
	listener, err := e.cfg.HTTP.ToListener(ctx)
	if err != nil {
		return fmt.Errorf("endpoint %s: %w", e.cfg.HTTP.NetAddr.Endpoint, err)
	}
	if at := listener.Addr().String(); !queryapi.Local(at) && !e.cfg.HTTP.Auth.HasValue() {
		e.log.Warn("the API has no auth: whoever reaches it reads all metrics, and so does a web page that a browser which reaches it has open, unless there are allowed_hosts",
			zap.String("endpoint", at), zap.Strings("allowed_hosts", e.cfg.AllowedHosts))
	}
	e.serving.Go(func() {
		if err := e.server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			componentstatus.ReportStatus(e.host, componentstatus.NewFatalErrorEvent(err))
		}
	})
	return nil
}

// shutdown lets the queries end that are being answered, and closes the database. What was taken is in its write-ahead log.
func (e *tsdbExporter) shutdown(ctx context.Context) error {
	var errs []error
	if e.giveUp != nil {
		e.giveUp()
		e.opening.Wait()
		e.giveUp = nil
	}
	if e.server != nil {
		if err := e.server.Shutdown(ctx); err != nil {
			errs = append(errs, e.server.Close()) // which ends the queries
		}
		e.serving.Wait() // nobody may read a file that is closed
		e.server = nil
	}
	if e.deltas != nil {
		errs = append(errs, e.deltas.Shutdown(ctx))
		e.deltas = nil
	}
	if e.telemetry != nil {
		errs = append(errs, e.telemetry.shutdown())
		e.telemetry = nil
	}
	if s := e.store.Swap(nil); s != nil {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
