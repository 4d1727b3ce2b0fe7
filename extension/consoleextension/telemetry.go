// SPDX-License-Identifier: Apache-2.0

package consoleextension

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/extension/consoleextension/internal/metadata"
)

// telemetry is the extension's own.
type telemetry struct {
	queries, refused metric.Int64Counter
}

func newTelemetry(set component.TelemetrySettings) (*telemetry, error) {
	meter := set.MeterProvider.Meter(metadata.ScopeName)
	queries, err := meter.Int64Counter("otelcol_console_queries",
		metric.WithDescription("Queries that were passed on, by outcome."), metric.WithUnit("{query}"))
	if err != nil {
		return nil, fmt.Errorf("metric otelcol_console_queries: %w", err)
	}
	refused, err := meter.Int64Counter("otelcol_console_requests_refused",
		metric.WithDescription("Requests that were not served, by reason."), metric.WithUnit("{request}"))
	if err != nil {
		return nil, fmt.Errorf("metric otelcol_console_requests_refused: %w", err)
	}
	return &telemetry{queries: queries, refused: refused}, nil
}

// query counts a query by what came of it: ok, refused (the backend's 4xx), failed, cut (too long) or canceled.
func (t *telemetry) query(ctx context.Context, outcome string) {
	t.queries.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", outcome)))
}

// refuse counts a request by why it was not served: host, origin, busy or too_large.
func (t *telemetry) refuse(ctx context.Context, reason string) {
	t.refused.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", reason)))
}
