// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/catalog"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// sloCatalog holds the catalog for other components.
type sloCatalog struct {
	id  component.ID
	cfg *Config
	set component.TelemetrySettings

	// current is replaced as a whole, so that a reader never sees half of a load.
	current   atomic.Pointer[openslo.Catalog]
	telemetry *telemetry

	// The goroutine that watches the files has these.
	seen    uint64 // fingerprint of the files as they were last read
	last    uint64 // fingerprint of the files at the last look
	failing bool   // the last load failed

	stop context.CancelFunc // nil when nothing watches
	done sync.WaitGroup
}

var _ catalog.Source = (*sloCatalog)(nil)

func newCatalog(set extension.Settings, cfg *Config) *sloCatalog {
	e := &sloCatalog{id: set.ID, cfg: cfg, set: set.TelemetrySettings}
	e.current.Store(&openslo.Catalog{})
	return e
}

// Catalog is the catalog as it is now; empty before Start.
func (e *sloCatalog) Catalog() *openslo.Catalog { return e.current.Load() }

// Start loads the files. Any problem in them keeps the Collector from starting: a promise that is written
// wrong must not go unmeasured without a word.
func (e *sloCatalog) Start(ctx context.Context, host component.Host) error {
	e.seen = fingerprint(e.cfg.Paths)
	e.last = e.seen
	c, err := load(e.cfg.Paths)
	if err != nil {
		return explain(err)
	}
	e.telemetry, err = newTelemetry(e.set, e.Catalog)
	if err != nil {
		return err
	}
	e.telemetry.loads.Add(ctx, 1)
	e.telemetry.failures.Add(ctx, 0) // there from the start, so that a rate sees the first
	e.current.Store(c)
	e.announce(c)
	if e.cfg.ReloadInterval > 0 {
		watching, stop := context.WithCancel(context.Background())
		e.stop = stop
		e.done.Go(func() { e.watch(watching, host) })
	}
	return nil
}

// explain says how many problems there are, and then one a line.
func explain(err error) error {
	if ps := (openslo.Problems)(nil); errors.As(err, &ps) {
		noun := "problems"
		if len(ps) == 1 {
			noun = "problem"
		}
		return fmt.Errorf("%d %s in the SLO files:\n%w", len(ps), noun, err)
	}
	return err
}

// announce logs what was loaded, and what of it nobody here measures.
func (e *sloCatalog) announce(c *openslo.Catalog) {
	unmeasured := make(map[string][]string) // why → slo_ids
	for _, slo := range c.SLOs {
		if why := slo.NotEvaluated(); why != "" {
			unmeasured[why] = append(unmeasured[why], slo.ID)
		}
	}
	e.set.Logger.Info("SLO catalog loaded",
		zap.Int("slos", len(c.SLOs)), zap.Int("services", serviceCount(c)),
		zap.Int("policies", len(c.Policies)), zap.Int("files", len(c.Files)))
	if len(c.SLOs) == 0 {
		e.set.Logger.Warn("SLO catalog has no SLO, so nothing will be evaluated", zap.Strings("paths", e.cfg.Paths))
	}
	for _, why := range slices.Sorted(maps.Keys(unmeasured)) {
		e.set.Logger.Warn("SLOs are not evaluated here", zap.String("reason", why), zap.Strings("slo_ids", unmeasured[why]))
	}
}

// serviceCount counts the services that promise something, or have a Service document.
func serviceCount(c *openslo.Catalog) int {
	names := make(map[string]bool)
	for _, s := range c.Services {
		names[s.Name] = true
	}
	for _, s := range c.SLOs {
		names[s.Service] = true
	}
	return len(names)
}

// Shutdown ends the extension's own telemetry. It is safe before Start and twice. The catalog stays readable for
// pipelines that are still draining.
func (e *sloCatalog) Shutdown(context.Context) error {
	if e.stop != nil {
		e.stop()
		e.done.Wait()
	}
	t := e.telemetry
	e.telemetry = nil
	return t.shutdown()
}
