// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/catalog"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// tick is how often the engine looks whether there is something to tell. Results leave within a second of what
// caused them.
const tick = 250 * time.Millisecond

// unseenAfter is how long an SLO may be without input before that is said.
const unseenAfter = 2 * time.Minute

// maxAhead is how far event time may be ahead of the wall clock (design: rules for everything stateful).
const maxAhead = time.Minute

// engine is the state of a connector, shared by its instances.
type engine struct {
	cfg     *Config
	set     component.TelemetrySettings
	metrics consumer.Metrics // nil where no pipeline takes them
	logs    consumer.Logs
	own     *telemetry
	now     func() time.Time

	source catalog.Source
	slos   *openslo.Catalog // that of judge and uses, or a later one that could not be compiled

	// mu guards what follows. It is never held while something is sent.
	mu        sync.Mutex
	judge     *judge.Judge
	uses      *selection.Metrics
	watermark *window.Watermark
	inputs    *inputs
	input     scratch
	counts    counts
	refreshed time.Time
	turns     uint64
	retell    bool            // a consumer refused results
	warned    map[string]bool // slo_ids whose source lacks a boundary at the objective
	lookAt    time.Time       // when to say which SLOs have had no input; zero when that is said

	outbox outbox
	stop   context.CancelFunc // nil before Start
	done   sync.WaitGroup
}

func newEngine(set connector.Settings, cfg *Config) (*engine, error) {
	own, err := newTelemetry(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &engine{cfg: cfg, set: set.TelemetrySettings, own: own, now: time.Now, warned: map[string]bool{}}, nil
}

// Start finds the catalog, compiles it and begins to tell what is found.
func (e *engine) Start(_ context.Context, host component.Host) error {
	if err := e.prepare(host); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	// Each has a goroutine of its own: a consumer that blocks must hold neither the verdicts nor the other consumer up.
	for _, work := range []func(context.Context){e.advance, e.publishMetrics, e.publishEvents} {
		e.done.Go(func() { repeat(ctx, work) })
	}
	return nil
}

// repeat calls work every tick until the context ends.
func repeat(ctx context.Context, work func(context.Context)) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			work(ctx)
		}
	}
}

// prepare makes the engine ready to hear.
func (e *engine) prepare(host component.Host) error {
	source, err := catalog.From(host, e.cfg.Catalog)
	if err != nil {
		return err
	}
	slos := source.Catalog()
	uses, err := e.compile(slos)
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.source, e.slos, e.uses = source, slos, uses
	e.judge = judge.New(slos, judge.Options{
		Window: e.cfg.Window, GroupBy: e.cfg.GroupBy, MaxSeries: e.cfg.MaxSeries, TTL: e.cfg.SeriesTTL,
	})
	e.watermark = window.NewWatermark(window.WatermarkOptions{
		Lateness: e.cfg.Lateness, IdleTimeout: e.cfg.IdleTimeout, MaxAhead: maxAhead, MaxLag: e.cfg.MaxLag, MaxSources: e.cfg.MaxSources,
	})
	e.inputs = newInputs(e.cfg.MaxInputSeries, e.cfg.SeriesTTL)
	e.announce()
	return nil
}

// compile makes what finds the points of a catalog, once it is clear that its results can be told apart.
func (e *engine) compile(slos *openslo.Catalog) (*selection.Metrics, error) {
	var errs []error
	for i := range slos.SLOs {
		slo := &slos.SLOs[i]
		for _, key := range slo.GroupBy {
			if problem := openslo.CheckGroupBy(e.cfg.GroupBy, key); problem != "" && !slices.Contains(e.cfg.GroupBy, key) {
				errs = append(errs, fmt.Errorf("group_by: slo %q (%s:%d) is judged apart for other keys, too: %s", slo.Name, slo.Position.File, slo.Position.Line, problem))
			}
		}
	}
	uses, err := selection.ForMetrics(slos, e.set)
	return uses, errors.Join(append(errs, err)...)
}

// follow takes over what the catalog holds since it was last asked. A catalog that cannot be compiled changes nothing.
func (e *engine) follow() {
	slos := e.source.Catalog()
	if slos == e.slos {
		return
	}
	uses, err := e.compile(slos)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.slos = slos
	if err != nil {
		e.set.Logger.Error("the new SLO catalog is not used; judging goes on by the one before", zap.Error(err))
		return
	}
	e.uses = uses
	e.judge.Update(slos)
	e.inputs.generation++ // each input series finds its SLOs anew with its next point, and keeps its last one
	e.announce()
}

// announce makes what is promised visible from the start, and says what is not measured.
func (e *engine) announce() {
	e.lookAt = e.now().Add(unseenAfter)
	for i := range e.slos.SLOs {
		slo := &e.slos.SLOs[i]
		switch {
		case !slo.Evaluated():
			e.set.Logger.Info("an SLO is not measured here", zap.String("slo_id", slo.ID), zap.String("because", slo.NotEvaluated()))
		case !onlyMetrics(slo):
			e.set.Logger.Warn("an SLO is not measured: only indicators of the signal metrics are judged", zap.String("slo_id", slo.ID))
		case len(e.judge.GroupBy(i)) == 0:
			e.judge.Series(i, nil) // a promise without data is shown as such
		}
	}
}

func onlyMetrics(slo *openslo.SLO) bool {
	return !slices.ContainsFunc(slo.Indicator.Selectors(), func(s *openslo.Selector) bool { return s.Signal != openslo.SignalMetrics })
}

// Shutdown tells what is left to tell.
func (e *engine) Shutdown(ctx context.Context) error {
	if e.stop == nil {
		return e.own.shutdown() // never started
	}
	e.stop() // interrupts a consumer that blocks
	ended := make(chan struct{})
	go func() {
		e.done.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		return errors.Join(ctx.Err(), e.own.shutdown())
	}
	e.outbox.next = time.Time{}
	e.publishMetrics(ctx)
	e.publishEvents(ctx)
	return e.own.shutdown()
}

// advance closes what the wall clock allows to close although nothing comes in, by the catalog as it is now.
func (e *engine) advance(context.Context) {
	e.follow()
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	e.judge.Advance(e.watermark.Advance(now.UnixNano(), e.judge.LastEnd()))
	e.inputs.expire(now.UnixNano())
	e.own.sizes(e)
	if !e.lookAt.IsZero() && now.After(e.lookAt) {
		e.lookAt = time.Time{}
		if unseen := e.judge.Unseen(); len(unseen) > 0 {
			e.set.Logger.Warn("no data point has matched these SLOs yet: check the metric's name and the condition, and that it comes in here",
				zap.Strings("slo_ids", unseen))
		}
	}
}
