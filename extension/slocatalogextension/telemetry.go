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
	slos metric.Registration
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
	return &telemetry{slos: reg}, nil
}

func (t *telemetry) shutdown() error {
	if t == nil {
		return nil
	}
	return t.slos.Unregister()
}
