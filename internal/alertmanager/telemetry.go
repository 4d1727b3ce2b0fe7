// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// telemetry is what a Sender says of itself.
type telemetry struct {
	meter           metric.Meter
	sentAlerts      metric.Int64Counter
	failedAlerts    metric.Int64Counter
	firing, leftOut metric.Int64ObservableGauge
	observe         metric.Registration
}

func newTelemetry(set component.TelemetrySettings) (*telemetry, error) {
	t := &telemetry{meter: set.MeterProvider.Meter("github.com/otelcol-llm/otelcol-llm/internal/alertmanager")}
	var errs [4]error
	t.sentAlerts, errs[0] = t.meter.Int64Counter("otelcol_alertmanager_alerts_sent", metric.WithUnit("{alert}"),
		metric.WithDescription("Alerts that an Alertmanager has taken, repetitions included."))
	t.failedAlerts, errs[1] = t.meter.Int64Counter("otelcol_alertmanager_alerts_failed", metric.WithUnit("{alert}"),
		metric.WithDescription("Alerts that an Alertmanager has not taken, each time, by reason: the HTTP status or unreachable."))
	t.firing, errs[2] = t.meter.Int64ObservableGauge("otelcol_alertmanager_alerts_firing", metric.WithUnit("{alert}"),
		metric.WithDescription("Alerts that fire."))
	t.leftOut, errs[3] = t.meter.Int64ObservableGauge("otelcol_alertmanager_alerts_left_out", metric.WithUnit("{alert}"),
		metric.WithDescription("Alerts that fire and are not sent, because there are more than max_alerts."))
	return t, errors.Join(errs[:]...)
}

func (t *telemetry) register(s *store) (err error) {
	t.observe, err = t.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		firing, leftOut := s.sizes()
		o.ObserveInt64(t.firing, int64(firing))
		o.ObserveInt64(t.leftOut, int64(leftOut))
		return nil
	}, t.firing, t.leftOut)
	return err
}

func (t *telemetry) unregister() error { return t.observe.Unregister() }

func (t *telemetry) sent(ctx context.Context, endpoint string, n int) {
	t.sentAlerts.Add(ctx, int64(n), metric.WithAttributes(attribute.String("endpoint", endpoint)))
}

func (t *telemetry) failed(ctx context.Context, endpoint, reason string, n int) {
	t.failedAlerts.Add(ctx, int64(n), metric.WithAttributes(attribute.String("endpoint", endpoint), attribute.String("reason", reason)))
}
