// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/extension/slocatalogextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// telemetry is the extension's own; a nil one is fine to shut down.
type telemetry struct {
	slos     metric.Registration
	loads    metric.Int64Counter
	failures metric.Int64Counter
}

func newTelemetry(set component.TelemetrySettings, current func() *openslo.Catalog) (*telemetry, error) {
	meter := set.MeterProvider.Meter(metadata.ScopeName)
	slos, err := meter.Int64ObservableGauge("otelcol_slo_catalog_slos",
		metric.WithDescription("Objectives in the catalog. One SLO document has as many as it lists."),
		metric.WithUnit("{slo}"))
	if err != nil {
		return nil, fmt.Errorf("metric otelcol_slo_catalog_slos: %w", err)
	}
	reg, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(slos, int64(len(current().SLOs)))
		return nil
	}, slos)
	if err != nil {
		return nil, fmt.Errorf("metric otelcol_slo_catalog_slos: %w", err)
	}
	t := &telemetry{slos: reg}
	t.loads, err = meter.Int64Counter("otelcol_slo_catalog_loads",
		metric.WithDescription("Loads of the SLO files that gave a catalog, the first one included."), metric.WithUnit("{load}"))
	if err != nil {
		return nil, fmt.Errorf("metric otelcol_slo_catalog_loads: %w", err)
	}
	t.failures, err = meter.Int64Counter("otelcol_slo_catalog_load_failures",
		metric.WithDescription("Loads of changed SLO files that found a problem; the catalog before them stayed."), metric.WithUnit("{load}"))
	if err != nil {
		return nil, fmt.Errorf("metric otelcol_slo_catalog_load_failures: %w", err)
	}
	return t, nil
}

func (t *telemetry) shutdown() error {
	if t == nil {
		return nil
	}
	return t.slos.Unregister()
}
