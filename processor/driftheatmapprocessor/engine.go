// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/catalog"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/frame"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/heat"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/metadata"
)

// engine is the state of a processor, shared by its pipelines.
type engine struct {
	cfg        *Config
	id         component.ID
	set        component.TelemetrySettings
	outputs    []*output // one a metrics pipeline, in no order: the Collector makes them in none
	own        *frame.Telemetry
	overflowed metric.Int64Counter
	now        func() time.Time
	tenants    *tenant.Resolver
	enabled    emit.Enabled
	dimensions dimensions

	source catalog.Source
	slos   *openslo.Catalog // that of heat and selectors, or a later one that could not be compiled

	// mu guards what follows. It is never held while something is sent or written.
	mu        sync.Mutex
	selectors *intake.Selectors
	heat      *heat.Map
	intake    *intake.Intake
	coupled   *coupled   // nil without coupling
	results   emit.Pages // of windows, until they are published
	points    int        // in results
	lost      int64      // points for which there was no room in results
	refreshed time.Time
	turns     uint64

	notices notices
	keeper  *frame.Keeper
	work    frame.Work
}

func newEngine(set processor.Settings, cfg *Config) (*engine, error) {
	tenants, err := tenant.NewResolver(cfg.TenantFrom)
	if err != nil {
		return nil, err
	}
	e := &engine{
		cfg: cfg, id: set.ID, set: set.TelemetrySettings, now: time.Now, tenants: tenants,
		enabled: cfg.Metrics.Enabled(table), dimensions: newDimensions(cfg),
	}
	e.results = emit.Pages{Scope: metadata.ScopeName, On: e.enabled}
	if e.own, err = frame.NewTelemetry(set.TelemetrySettings, ownMetrics); err != nil {
		return nil, err
	}
	if e.overflowed, err = newOverflowed(set.TelemetrySettings); err != nil {
		return nil, err
	}
	e.keeper = newKeeper(e)
	return e, nil
}

// Start finds the catalog, compiles it, takes up what was known before and begins to tell what is found.
func (e *engine) Start(ctx context.Context, host component.Host) error {
	if err := e.prepare(host); err != nil {
		return err
	}
	if _, err := e.restore(ctx, host); err != nil {
		return err
	}
	if len(e.outputs) == 0 {
		e.set.Logger.Warn("results leave by a metrics pipeline, and this processor is in none: add it to one")
	}
	e.warnOfQuantiles(e.slos)
	e.work.Start()
	// Each has a goroutine of its own: a consumer that blocks must not hold the verdicts up.
	for _, work := range []func(context.Context){e.advance, e.publish} {
		e.work.Every(frame.Tick, work)
	}
	if e.keeper.Keeps() {
		e.work.Every(e.cfg.CheckpointInterval, e.save)
	}
	return nil
}

// prepare makes the engine ready to hear.
func (e *engine) prepare(host component.Host) error {
	source, err := catalog.From(host, e.cfg.Catalog)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.source, e.slos = source, source.Catalog()
	if e.selectors, err = intake.Compile(e.slos, e.set); err != nil {
		return err
	}
	return e.begin()
}

// begin makes a state that knows nothing. The caller holds the mutex.
func (e *engine) begin() (err error) {
	normal := baseline.DefaultOptions()
	normal.Decay = baseline.Decay{Factor: e.cfg.Decay, Window: e.cfg.Window}
	normal.MinSamples, normal.Reference = e.cfg.MinSamples, e.cfg.ReferenceWindows
	if since := e.cfg.ReferenceSince; !since.IsZero() {
		normal.Since = since.UnixNano()
	}
	opts := heat.Options{
		Baseline: normal, Dimensions: e.dimensions.keys, MaxCells: e.cfg.MaxCells, Tenant: e.dimensions.tenant(e.cfg), TTL: e.cfg.CellTTL,
		Canary: e.dimensions.canary(e.cfg), Closed: e.closed,
	}
	if e.enabled.Has(explanationMetric) {
		opts.Explained = e.explained
	}
	if e.heat, err = heat.New(e.slos, opts); err != nil {
		return err
	}
	var take func(*intake.Batch) bool
	if e.coupled = newCoupled(e.cfg); e.coupled != nil {
		take = e.listen
	}
	e.intake = intake.New(e.selectors, sink{e}, intake.Options{
		Watermark: window.WatermarkOptions{
			Lateness: e.cfg.Lateness, IdleTimeout: e.cfg.IdleTimeout, MaxAhead: frame.MaxAhead, MaxLag: e.cfg.MaxLag, MaxSources: e.cfg.MaxSources,
		},
		MaxInputs: e.cfg.MaxInputSeries, TTL: e.cfg.SeriesTTL, MaxRecentSpans: e.cfg.MaxRecentSpans,
		Tenants: e.tenants, Text: e.dimensions.text, Take: take, Logger: e.set.Logger,
	})
	return nil
}

// Shutdown tells what is left to tell, and keeps the rest.
func (e *engine) Shutdown(ctx context.Context) error {
	if !e.work.Started() {
		return errors.Join(e.keeper.Close(ctx), e.own.Shutdown()) // never started
	}
	if err := e.work.Stop(ctx); err != nil {
		return errors.Join(err, e.keeper.Close(ctx), e.own.Shutdown())
	}
	if e.keeper.Keeps() {
		e.save(ctx)
	}
	for _, to := range e.outputs {
		to.Resume()
	}
	last, cancel := context.WithTimeout(ctx, frame.LastWords)
	e.publish(last)
	cancel()
	return errors.Join(e.keeper.Close(ctx), e.own.Shutdown())
}

func (e *engine) consume(ctx context.Context, md pmetric.Metrics) {
	e.hear(ctx, func(in *intake.Intake, now int64) { in.Metrics(ctx, md, now) })
}

func (e *engine) consumeTraces(ctx context.Context, td ptrace.Traces) {
	e.hear(ctx, func(in *intake.Intake, now int64) { in.Traces(ctx, td, now) })
}

func (e *engine) consumeLogs(ctx context.Context, ld plog.Logs) {
	e.hear(ctx, func(in *intake.Intake, now int64) { in.Logs(ctx, ld, now) })
}

// hear lets listen hear a batch as a whole before anything closes: the order of items inside it has no say in what is late.
// Every pipeline feeds the engine, since each has data of its own; what comes by two of them is found to be sent again.
func (e *engine) hear(ctx context.Context, listen func(in *intake.Intake, now int64)) {
	begin := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.heat == nil {
		return // not started
	}
	listen(e.intake, begin.UnixNano())
	if e.coupled != nil {
		e.coupled.finish(&e.intake.Counts)
	}
	e.closeWindows(e.intake.Watermark.Advance(begin.UnixNano(), window.Unset))
	e.own.Consumed(ctx, &e.intake.Counts, e.now().Sub(begin))
}

// closeWindows closes the windows that end at or before a watermark. The caller holds the mutex.
func (e *engine) closeWindows(watermark int64) {
	e.heat.Advance(watermark)
	e.tellCurves(watermark)
}

// advance closes what the wall clock allows to close although nothing comes in, by the catalog as it is now.
func (e *engine) advance(context.Context) {
	e.follow()
	defer e.say()
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now().UnixNano()
	e.closeWindows(e.intake.Watermark.Advance(now, e.heat.LastEnd()))
	e.intake.Expire(now)
	if e.coupled != nil {
		e.coupled.expire(now)
	}
	e.sizes()
}

// follow takes over what the catalog holds since it was last asked. A catalog that cannot be compiled changes nothing.
func (e *engine) follow() {
	slos := e.source.Catalog()
	if slos == e.slos {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.slos = slos
	selectors, err := intake.Compile(slos, e.set)
	if err == nil {
		err = e.heat.Update(slos)
	}
	if err != nil {
		e.set.Logger.Error("the new SLO catalog is not used; the one before stays in use", zap.Error(err))
		return
	}
	e.selectors = selectors
	e.intake.Select(selectors)
	e.notices.wide = nil
	e.warnOfQuantiles(slos)
}

// sink gives the map what the intake finds. Its series are all cells.
type sink struct{ engine *engine }

func (s sink) GroupBy(int) []string { return s.engine.dimensions.keys }

func (s sink) Series(slo int, values []string) intake.Series { return s.engine.heat.Cell(slo, values) }

func (s sink) Late(_ intake.Series, t int64) bool { return s.engine.heat.Late(t) }

func (s sink) PaneStart(slo int, t int64) int64 { return s.engine.heat.PaneStart(slo, t) }

func (s sink) WindowStart(_ int, t int64) int64 { return s.engine.heat.WindowStart(t) }

func (s sink) LateBefore() int64 { return s.engine.heat.LateBefore() }

func (s sink) Exemplar(intake.Series, int64, intake.Exemplar) {}

func (s sink) Unknown(int) {}
