// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/alertmanager"
	"github.com/otelcol-llm/otelcol-llm/internal/catalog"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/frame"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/shared"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// unseenAfter is how long an SLO may be without input before that is said.
const unseenAfter = 2 * time.Minute

// engine is the state of a connector, shared by its instances.
type engine struct {
	cfg     *Config
	id      component.ID
	set     component.TelemetrySettings
	out     shared.Outputs
	own     *frame.Telemetry
	gone    metric.Int64Counter // parts that were forgotten
	now     func() time.Time
	tenants *tenant.Resolver
	enabled emit.Enabled
	alerts  *alertmanager.Sender // nil where nobody is told

	source catalog.Source
	slos   *openslo.Catalog // that of judge and selectors, or a later one that could not be compiled

	// mu guards what follows. It is never held while something is sent or written.
	mu        sync.Mutex
	judge     *judge.Judge
	selectors *intake.Selectors
	intake    *intake.Intake
	balances  judge.Balance // scratch
	begun     time.Time     // wall clock
	listened  time.Time     // wall clock when a batch was heard last, or the state was begun
	refreshed time.Time
	turns     uint64
	lagTold   time.Time
	retell    bool            // a consumer refused results
	warned    map[string]bool // what was said once, by what it is and slo_id
	lookAt    time.Time       // when to say which SLOs have had no input; zero when that is said
	parts     distributions
	heard     struct { // scratch for what others tell
		counts      []uint64
		exponential sketch.Exponential
		values      []string
	}
	outbox  outbox
	alerted struct { // when what is open was looked at last
		changes uint64
		at      time.Time
	}

	lastWords time.Duration
	untold    emit.Untold // of the one goroutine that publishes metrics, then of Shutdown

	keeper *frame.Keeper
	work   frame.Work
}

func newEngine(set connector.Settings, cfg *Config) (*engine, error) {
	tenants, err := tenant.NewResolver(cfg.TenantFrom)
	if err != nil {
		return nil, err
	}
	e := &engine{
		cfg: cfg, id: set.ID, set: set.TelemetrySettings, now: time.Now, warned: map[string]bool{}, tenants: tenants,
		enabled: cfg.Metrics.Enabled(table), lastWords: frame.LastWords,
	}
	e.parts = distributions{engine: e, out: emit.Pages{Scope: metadata.ScopeName, On: e.enabled}}
	if am := cfg.Alertmanager.Get(); am != nil {
		if e.alerts, err = alertmanager.New(*am, set.TelemetrySettings); err != nil {
			return nil, err
		}
	}
	if e.own, err = frame.NewTelemetry(set.TelemetrySettings, ownMetrics); err != nil {
		return nil, err
	}
	if e.gone, err = forgottenParts(set.TelemetrySettings); err != nil {
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
	known, err := e.restore(ctx, host)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.announce() // only now: a judge that takes up a state must be fresh
	e.mu.Unlock()
	if e.alerts != nil {
		if err := e.alerts.Start(ctx, host); err != nil {
			return err
		}
	}
	e.work.Start()
	// Each has a goroutine of its own: a consumer that blocks must hold neither the verdicts nor the other consumer up.
	for _, work := range []func(context.Context){e.advance, e.publishMetrics, e.publishEvents, e.publishAlerts} {
		e.work.Every(frame.Tick, work)
	}
	if e.keeper.Keeps() {
		e.work.Every(e.cfg.CheckpointInterval, e.save)
	}
	if e.cfg.Backfill.HasValue() && !known {
		api, err := e.prometheus(ctx, host)
		if err != nil {
			return err
		}
		e.work.Go(func(ctx context.Context) { e.backfill(ctx, api) })
	}
	return nil
}

// prepare makes the engine ready to hear.
func (e *engine) prepare(host component.Host) error {
	source, err := catalog.From(host, e.cfg.Catalog)
	if err != nil {
		return err
	}
	slos := source.Catalog()
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.compile(slos); err != nil {
		return err
	}
	e.source, e.slos = source, slos
	e.begin()
	return nil
}

// begin makes a state that knows nothing. The caller holds the mutex.
func (e *engine) begin() {
	e.judge = judge.New(e.slos, e.judgeOptions())
	e.intake = intake.New(e.selectors, sink{e}, intake.Options{
		Watermark: window.WatermarkOptions{
			Lateness: e.cfg.Lateness, IdleTimeout: e.cfg.IdleTimeout, MaxAhead: frame.MaxAhead, MaxLag: e.cfg.MaxLag, MaxSources: e.cfg.MaxSources,
		},
		MaxInputs: e.cfg.MaxInputSeries, TTL: e.cfg.SeriesTTL, MaxRecentSpans: e.cfg.MaxRecentSpans,
		Tenants: e.tenants, Take: e.distribution, Logger: e.set.Logger,
	})
	e.outbox.pending = nil
	e.begun = e.now()
	e.listened = e.begun
	e.parts.upTo = window.Unset
}

func (e *engine) judgeOptions() judge.Options {
	opts := judge.Options{
		Window: e.cfg.Window, GroupBy: e.cfg.GroupBy, MaxSeries: e.cfg.MaxSeries, MaxSeriesPerSLO: e.cfg.MaxSeriesPerSLO, TTL: e.cfg.SeriesTTL,
		Durable: e.cfg.Storage != nil, MaxParts: e.cfg.MaxParts, PartTTL: e.cfg.PartTTL,
	}
	for _, r := range e.cfg.BurnRates {
		opts.BurnRates = append(opts.BurnRates, judge.BurnRate{Long: r.Long, Short: r.Short, Factor: r.Factor, Severity: r.Severity})
	}
	if e.enabled.Has(sliDistribution) && e.out.Metrics != nil {
		opts.Distributions = e.parts.add
	}
	return opts
}

// Shutdown tells what is left to tell, and keeps the rest.
func (e *engine) Shutdown(ctx context.Context) error {
	if !e.work.Started() {
		return errors.Join(e.close(ctx), e.own.Shutdown()) // never started
	}
	if err := e.work.Stop(ctx); err != nil {
		return errors.Join(err, e.close(ctx), e.own.Shutdown())
	}
	e.outbox.Resume()
	e.untold.Resume()
	last, cancel := context.WithTimeout(ctx, e.lastWords)
	e.publishEvents(last)
	if e.keeper.Keeps() {
		e.save(ctx)
	}
	e.publishMetrics(last) // after it was saved
	cancel()
	return errors.Join(e.close(ctx), e.own.Shutdown())
}

// close gives back what Start took.
func (e *engine) close(ctx context.Context) error {
	var errs []error
	if e.alerts != nil {
		errs = append(errs, e.alerts.Shutdown(ctx))
	}
	return errors.Join(append(errs, e.keeper.Close(ctx))...)
}

// hear lets listen hear a batch as a whole before anything closes: the order of items inside it has no say in what is late.
func (e *engine) hear(ctx context.Context, listen func(in *intake.Intake, now int64)) {
	begin := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.judge == nil {
		return // not started
	}
	listen(e.intake, begin.UnixNano())
	e.listened = begin
	// Windows close in event time only now.
	e.judge.Advance(e.intake.Watermark.Advance(begin.UnixNano(), window.Unset))
	e.tellProgress(begin)
	e.hearOfParts(ctx)
	e.own.Consumed(ctx, &e.intake.Counts, e.now().Sub(begin))
}

// advance closes what the wall clock allows to close although nothing comes in, by the catalog as it is now.
func (e *engine) advance(context.Context) {
	e.follow()
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	e.judge.Advance(e.intake.Watermark.Advance(now.UnixNano(), e.judge.LastEnd()))
	e.tellProgress(now)
	e.hearOfParts(context.Background())
	e.intake.Expire(now.UnixNano())
	e.sizes()
	if !e.lookAt.IsZero() && now.After(e.lookAt) {
		e.lookAt = time.Time{}
		if unseen := e.judge.Unseen(); len(unseen) > 0 {
			e.set.Logger.Warn("nothing has matched these SLOs yet: check the metric's name, the value and the condition, and that it comes in here",
				zap.Strings("slo_ids", unseen))
		}
	}
}
