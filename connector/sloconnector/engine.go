// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"errors"
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
	warned    map[string]bool // slo_ids whose source lacks a boundary at the objective

	// pending are events not yet taken by the logs consumer. It belongs to whoever publishes, one goroutine at a
	// time: run, then Shutdown.
	pending []judge.Event

	stop chan struct{}
	done chan struct{}
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
	e.stop, e.done = make(chan struct{}), make(chan struct{})
	go e.run()
	return nil
}

// prepare makes the engine ready to hear.
func (e *engine) prepare(host component.Host) error {
	source, err := catalog.From(host, e.cfg.Catalog)
	if err != nil {
		return err
	}
	slos := source.Catalog()
	uses, err := selection.ForMetrics(slos, e.set)
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
		Lateness: e.cfg.Lateness, IdleTimeout: e.cfg.IdleTimeout, MaxAhead: maxAhead, MaxSources: e.cfg.MaxSources,
	})
	e.inputs = newInputs(e.cfg.MaxInputSeries, e.cfg.SeriesTTL)
	e.announce()
	return nil
}

// follow takes over what the catalog holds since it was last asked. A catalog that cannot be compiled changes nothing.
func (e *engine) follow() {
	slos := e.source.Catalog()
	if slos == e.slos {
		return
	}
	uses, err := selection.ForMetrics(slos, e.set)
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
	for i := range e.slos.SLOs {
		slo := &e.slos.SLOs[i]
		switch {
		case !slo.Evaluated():
			e.set.Logger.Info("an SLO is not measured here: its metricSource is not of type opentelemetry", zap.String("slo_id", slo.ID))
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
	close(e.stop)
	select {
	case <-e.done:
	case <-ctx.Done():
		return errors.Join(ctx.Err(), e.own.shutdown())
	}
	e.publish(ctx)
	return e.own.shutdown()
}

func (e *engine) run() {
	defer close(e.done)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-e.stop
		cancel() // a consumer that blocks must not hold the shutdown up
	}()
	for {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
			e.follow()
			e.advance(e.now())
			e.publish(ctx)
		}
	}
}

// advance closes what the wall clock allows to close although nothing comes in.
func (e *engine) advance(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.judge.Advance(e.watermark.Advance(now.UnixNano(), e.judge.LastEnd()))
	e.inputs.expire(now.UnixNano())
	e.own.observe(e)
}
