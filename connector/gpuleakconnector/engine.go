// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/cause"
	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/leak"
	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/catalog"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/frame"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
	"github.com/otelcol-llm/otelcol-llm/internal/shared"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// engine is the state of a connector, shared by its instances.
type engine struct {
	cfg     *Config
	id      component.ID
	set     component.TelemetrySettings
	out     shared.Outputs
	own     *frame.Telemetry
	joins   *joinCounter
	now     func() time.Time
	tenants *tenant.Resolver
	enabled emit.Enabled
	rules   cause.Rules
	source  catalog.Source // nil without one
	guard   gpuwatch.Watcher

	// mu guards what follows. It is never held while something is sent or written.
	mu       sync.Mutex
	intake   *intake.Intake // of no SLO: it knows how far the input has come
	fleet    *leak.Fleet
	counters map[uint64]*counter
	checked  time.Time // when silent counters were looked for
	names    map[string]named
	oddities map[string]bool        // metrics in strange units that were told
	places   map[uint64]*leak.Where // of series; none is changed
	said     map[uint64]int64       // event times of records that are not late yet, by what they say
	results  emit.Pages             // until they are published
	points   int                    // in results
	lost     int64                  // points for which there was no room in results
	events   []leak.Event

	outbox emit.Untold // of the one goroutine that publishes, then of Shutdown
	pause  emit.Pause  // of events, likewise
	keeper *frame.Keeper
	work   frame.Work
}

func newEngine(set connector.Settings, cfg *Config) (*engine, error) {
	tenants, err := tenant.NewResolver(cfg.TenantFrom)
	if err != nil {
		return nil, err
	}
	e := &engine{
		cfg: cfg, id: set.ID, set: set.TelemetrySettings, now: time.Now, tenants: tenants, enabled: cfg.Metrics.Enabled(table),
		rules: cause.Builtin(), names: map[string]named{}, oddities: map[string]bool{}, places: map[uint64]*leak.Where{},
	}
	if cfg.Rules != "" {
		if e.rules, err = cause.Read(cfg.Rules); err != nil {
			return nil, err
		}
	}
	e.results = emit.Pages{Scope: metadata.ScopeName, On: e.enabled}
	if e.own, err = frame.NewTelemetry(set.TelemetrySettings, ownMetrics); err != nil {
		return nil, err
	}
	if e.joins, err = newJoinCounter(set.TelemetrySettings); err != nil {
		return nil, err
	}
	e.keeper = newKeeper(e)
	return e, nil
}

// Start takes up what was known before and begins to tell what is found.
func (e *engine) Start(ctx context.Context, host component.Host) error {
	var err error
	if e.cfg.Catalog != nil {
		if e.source, err = catalog.From(host, *e.cfg.Catalog); err != nil {
			return err
		}
	}
	if e.guard, err = gpuwatch.Find(host, e.cfg.Guard); err != nil {
		return err
	}
	e.mu.Lock()
	err = e.begin()
	e.mu.Unlock()
	if err != nil {
		return err
	}
	if _, err := e.keeper.Restore(ctx, host, e.cfg.Storage, component.KindConnector, e.id); err != nil {
		return err
	}
	e.remindGuard()
	e.work.Start()
	// Each has a goroutine of its own: a consumer that blocks must hold neither the verdicts nor the other consumer up.
	for _, work := range []func(context.Context){e.advance, e.publishMetrics, e.publishEvents} {
		e.work.Every(frame.Tick, work)
	}
	if e.keeper.Keeps() {
		e.work.Every(e.cfg.CheckpointInterval, e.keeper.Save)
	}
	return nil
}

// begin makes a state that knows nothing. The caller holds the mutex.
func (e *engine) begin() error {
	none, err := intake.Compile(&openslo.Catalog{}, e.set)
	if err != nil {
		return err
	}
	e.intake = intake.New(none, nil, intake.Options{
		Watermark: window.WatermarkOptions{
			Lateness: e.cfg.Lateness, IdleTimeout: e.cfg.IdleTimeout, MaxAhead: frame.MaxAhead, MaxLag: e.cfg.MaxLag, MaxSources: e.cfg.MaxSources,
		},
		MaxInputs: e.cfg.MaxInputSeries, TTL: e.cfg.MaxLag, Tenants: e.tenants, Take: e.listen, Logger: e.set.Logger,
	})
	e.fleet = leak.New(leak.Options{
		Trend: e.cfg.trend(), Rules: e.rules, Objectives: e.objectives, MaxProcesses: e.cfg.MaxProcesses, TTL: e.cfg.ProcessTTL, Judged: e.judged, Gone: e.gone,
		Contested: e.contested, Missed: e.missed,
	})
	e.counters, e.said, e.events = map[uint64]*counter{}, map[uint64]int64{}, nil
	e.joins.begin()
	return nil
}

// objectives are the promises that a leak can break.
func (e *engine) objectives() (all []leak.Objective) {
	if e.source == nil {
		return nil
	}
	slos := e.source.Catalog().SLOs
	for i := range slos {
		slo := &slos[i]
		o := leak.Objective{ID: slo.ID, Service: slo.Service, Window: slo.TimeWindow.Duration.Approx()}
		if t := slo.Indicator.Threshold; t != nil && selection.SameMetric(perRequest.Name, t.Metric) {
			if slo.Objective.Op == openslo.OpGTE || slo.Objective.Op == openslo.OpGT {
				continue // growth does not break it
			}
			o.PerRequest = slo.Objective.Value
		}
		all = append(all, o)
	}
	return all
}

// Shutdown tells what is left to tell, and keeps the rest.
func (e *engine) Shutdown(ctx context.Context) error {
	if !e.work.Started() {
		return errors.Join(e.keeper.Close(ctx), e.own.Shutdown()) // never started
	}
	if err := e.work.Stop(ctx); err != nil {
		return errors.Join(err, e.keeper.Close(ctx), e.own.Shutdown())
	}
	e.pause.Resume()
	e.outbox.Resume()
	last, cancel := context.WithTimeout(ctx, frame.LastWords)
	e.publishEvents(last)
	if e.keeper.Keeps() {
		e.keeper.Save(ctx)
	}
	e.publishMetrics(last)
	cancel()
	return errors.Join(e.keeper.Close(ctx), e.own.Shutdown())
}

// consume hears a batch as a whole before anything is judged: the order of its items has no say in what is late.
func (e *engine) consume(ctx context.Context, md pmetric.Metrics) {
	begin := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fleet == nil {
		return // not started
	}
	e.intake.Metrics(ctx, md, begin.UnixNano())
	e.judge(begin.UnixNano())
	e.own.Consumed(ctx, &e.intake.Counts, e.now().Sub(begin))
}

// advance judges what the wall clock allows to judge although nothing comes in.
func (e *engine) advance(context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	e.judge(now.UnixNano())
	if now.Sub(e.checked) > e.cfg.MaxLag/4 {
		e.checked = now
		for id, c := range e.counters {
			if now.UnixNano()-c.heard > int64(e.cfg.MaxLag) {
				delete(e.counters, id)
			}
		}
	}
	e.sizes()
}

// contested tells the operator, once for a process, that another one has its process id.
func (e *engine) contested(p *leak.Process, by *leak.Where) {
	e.set.Logger.Warn("two processes tell memory under one process id: the later one does not count. Put the names of hosts on (resource_detection, k8s_attributes)",
		zap.String("process.pid", p.PID), zap.String("host", p.Host), zap.String("process.executable.name", p.Executable), zap.String("container.id", p.Names.Container),
		zap.String("other.process.executable.name", by.Executable), zap.String("other.container.id", by.Names.Container))
}

// missed tells the operator, once for a process, why there is no verdict on it.
func (e *engine) missed(p *leak.Process) {
	e.set.Logger.Warn("a process is not judged while calls of it are missed (cuda.memory.missed), and for min_duration from the last one on: nvidia_gpu tells its memory without them",
		zap.String("process.pid", p.PID), zap.String("host", p.Host), zap.String("process.executable.name", p.Executable))
}

// log tells the operator at the console what an event tells the backends.
func (e *engine) log(ev *leak.Event) {
	fields := []zap.Field{zap.String("gpu.leak.id", ev.ID), zap.String("hw.id", ev.Device), zap.String("process.pid", ev.Process.PID), zap.String("text", ev.Text)}
	if ev.Opened {
		e.set.Logger.Warn("GPU memory leaks", fields...)
	} else {
		e.set.Logger.Info("GPU memory does not leak any more", fields...)
	}
}
