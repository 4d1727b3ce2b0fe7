// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/catalog"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/readmostly"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
)

// engine is what all instances of one component id share. Batches may come from any number of goroutines: what they
// read is replaced as a whole or has its own synchronization, and none of them waits for another.
type engine struct {
	cfg      *Config
	set      component.TelemetrySettings
	now      func() time.Time
	own      *telemetry
	memory   *memory
	speaks   [dialects]bool
	source   catalog.Source
	current  atomic.Pointer[compiled]
	refused  atomic.Pointer[openslo.Catalog] // the last one that did not compile
	compiles sync.Mutex                      // held while a new catalog is compiled
}

// compiled is a catalog, ready to label points.
type compiled struct {
	catalog *openslo.Catalog
	uses    *selection.Metrics
	labels  []labelSet     // of each SLO
	byID    map[string]int // slo_id → index in labels
	plans   *readmostly.Map[string, *plan]
}

// plan is what is done with the points of a metric.
type plan struct {
	matcher *selection.Matcher // nil when no SLO is made of it
	series  series
}

// maxKnownNames bounds the names of metrics that are remembered; beyond it a name is looked at each time it comes.
const maxKnownNames = 10_000

func newEngine(set processor.Settings, cfg *Config) (*engine, error) {
	e := &engine{cfg: cfg, set: set.TelemetrySettings, now: time.Now, memory: newMemory(cfg)}
	for i, name := range dialectNames {
		e.speaks[i] = slices.Contains(cfg.Dialects, name)
	}
	var err error
	e.own, err = newTelemetry(e.set, e.memory.slos.Len)
	return e, err
}

// Start compiles the catalog. Conditions that do not compile keep the Collector from starting.
func (e *engine) Start(_ context.Context, host component.Host) error {
	source, err := catalog.From(host, e.cfg.Catalog)
	if err != nil {
		return err
	}
	c, err := e.compile(source.Catalog())
	if err != nil {
		return err
	}
	e.source = source
	e.current.Store(c)
	return nil
}

// Shutdown ends the engine's own telemetry. There is nothing to flush.
func (e *engine) Shutdown(context.Context) error { return e.own.shutdown() }

func (e *engine) compile(from *openslo.Catalog) (*compiled, error) {
	uses, err := selection.ForMetrics(from, e.set)
	if err != nil {
		return nil, fmt.Errorf("slo_schema: %w", err)
	}
	c := &compiled{
		catalog: from, uses: uses, labels: make([]labelSet, len(from.SLOs)), byID: make(map[string]int, len(from.SLOs)),
		plans: readmostly.New[string, *plan](maxKnownNames),
	}
	for i := range from.SLOs {
		slo := &from.SLOs[i]
		c.labels[i] = labelSet{slo.ID, slo.Service, string(slo.Class), slo.Target(), slo.Unit}
		c.byID[slo.ID] = i
	}
	return c, nil
}

// selection is the catalog as it is now, or the last one that compiled. It is nil before Start.
func (e *engine) selection() *compiled {
	c := e.current.Load()
	if c == nil {
		return nil
	}
	is := e.source.Catalog()
	if c.catalog == is || e.refused.Load() == is {
		return c
	}
	if !e.compiles.TryLock() {
		return c // another batch is at it; this one need not wait
	}
	defer e.compiles.Unlock()
	next, err := e.compile(is)
	if err != nil {
		e.refused.Store(is)
		e.own.refusedCatalogs.Add(context.Background(), 1)
		e.set.Logger.Error("the SLO catalog has conditions that do not compile: the one before stays in use", zap.Error(err))
		return c
	}
	e.current.Store(next)
	e.set.Logger.Info("the SLO catalog has changed", zap.Int("slos", len(next.labels)))
	return next
}

// planFor is what is done with the points of a metric.
func (e *engine) planFor(c *compiled, name string) *plan {
	if p, ok := c.plans.Get(name); ok {
		return p
	}
	p := &plan{matcher: c.uses.Of(name), series: seriesOf(name)}
	if p.series.dialect != noDialect && !e.speaks[p.series.dialect] {
		p.series = series{dialect: noDialect}
	}
	c.plans.GetOrPut(strings.Clone(name), func() *plan { return p })
	return p
}
