// SPDX-License-Identifier: Apache-2.0

package gpuguardreceiver

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/receiver/gpuguardreceiver/internal/metadata"
)

// telemetry is what the receiver says of itself.
type telemetry struct {
	dropped metric.Int64Counter
	only    metric.MeasurementOption
}

func newTelemetry(set component.TelemetrySettings, id component.ID) (*telemetry, error) {
	dropped, err := set.MeterProvider.Meter(metadata.ScopeName).Int64Counter("otelcol_gpu_guard_events_dropped",
		metric.WithUnit("{event}"), metric.WithDescription("Log events that no consumer took in time. The audit file has them."))
	if err != nil {
		return nil, fmt.Errorf("metric otelcol_gpu_guard_events_dropped: %w", err)
	}
	return &telemetry{dropped: dropped, only: metric.WithAttributeSet(attribute.NewSet(attribute.String("receiver", id.String())))}, nil
}

func (t *telemetry) lost(ctx context.Context, events int64) {
	t.dropped.Add(ctx, events, t.only)
}
