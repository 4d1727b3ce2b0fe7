// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/metadata"
)

// telemetry is what the receiver says of itself.
type telemetry struct {
	scrapes       metric.Int64Counter
	durations     metric.Float64Histogram
	refused       metric.Int64Counter
	sessions      metric.Int64Counter
	eventsDropped metric.Int64Counter
	dropped       metric.Int64Counter // readings
	id            attribute.KeyValue  // of the receiver, of which there may be several
	only          metric.MeasurementOption
	reasons       [gpu.Reasons]metric.MeasurementOption

	// Observed, so that they end with the component.
	connected, devices, processes, beyond atomic.Int64
	observe                               metric.Registration
}

func newTelemetry(set component.TelemetrySettings, id component.ID) (*telemetry, error) {
	meter := set.MeterProvider.Meter(metadata.ScopeName)
	of := attribute.String("receiver", id.String())
	t := &telemetry{id: of, only: metric.WithAttributeSet(attribute.NewSet(of))}
	var errs [10]error
	t.scrapes, errs[0] = meter.Int64Counter("otelcol_nvidia_gpu_scrapes", metric.WithUnit("{scrape}"),
		metric.WithDescription("Readings, by the groups that were read together and by outcome."))
	t.durations, errs[1] = meter.Float64Histogram("otelcol_nvidia_gpu_scrape_duration", metric.WithUnit("s"),
		metric.WithDescription("Time spent on one reading, by the groups that were read together: the driver's, and making data points of it."),
		metric.WithExplicitBucketBoundaries(0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5))
	t.refused, errs[2] = meter.Int64Counter("otelcol_nvidia_gpu_points_refused", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Values that were not believed and are no data points, by reason."))
	t.sessions, errs[3] = meter.Int64Counter("otelcol_nvidia_gpu_reinitializations", metric.WithUnit("{session}"),
		metric.WithDescription("Sessions with the driver after the first one."))
	t.eventsDropped, errs[4] = meter.Int64Counter("otelcol_nvidia_gpu_events_dropped", metric.WithUnit("{event}"),
		metric.WithDescription("Log events that no consumer took in time."))
	t.dropped, errs[5] = meter.Int64Counter("otelcol_nvidia_gpu_scrapes_dropped", metric.WithUnit("{scrape}"),
		metric.WithDescription("Readings of which no metrics were made, because the pipeline had not taken those before."))
	for why := range gpu.Reasons {
		t.reasons[why] = metric.WithAttributeSet(attribute.NewSet(of, attribute.String("reason", why.String())))
	}
	gauges := [...]struct {
		name, unit, description string
		value                   *atomic.Int64
	}{
		{"otelcol_nvidia_gpu_connected", "{session}", "1 while there is a session with the driver, 0 while one is looked for.", &t.connected},
		{"otelcol_nvidia_gpu_devices", "{device}", "GPUs and MIG instances, lost ones included.", &t.devices},
		{"otelcol_nvidia_gpu_processes", "{process}", "Processes on GPUs at the last reading of them; one on several devices counts for each.", &t.processes},
	}
	var instruments [len(gauges)]metric.Int64ObservableGauge
	var all []metric.Observable
	for i, g := range gauges {
		instruments[i], errs[6+i] = meter.Int64ObservableGauge(g.name, metric.WithUnit(g.unit), metric.WithDescription(g.description))
		all = append(all, instruments[i])
	}
	beyond, err := meter.Int64ObservableCounter("otelcol_nvidia_gpu_processes_overflowed", metric.WithUnit("{process}"),
		metric.WithDescription("Processes beyond max_processes, which were told together, at each reading."))
	errs[9] = err
	t.observe, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for i, g := range gauges {
			o.ObserveInt64(instruments[i], g.value.Load(), t.only)
		}
		o.ObserveInt64(beyond, t.beyond.Load(), t.only)
		return nil
	}, append(all, beyond)...)
	return t, errors.Join(append(errs[:], err)...)
}

func (t *telemetry) shutdown() error { return t.observe.Unregister() }

// scraped notes a reading.
func (t *telemetry) scraped(ctx context.Context, groups string, ok bool, took time.Duration) {
	outcome := "success"
	if !ok {
		outcome = "failure"
	}
	of := attribute.String("groups", groups)
	t.scrapes.Add(ctx, 1, metric.WithAttributes(t.id, of, attribute.String("outcome", outcome)))
	t.durations.Record(ctx, took.Seconds(), metric.WithAttributes(t.id, of))
}

// closed notes that nothing is seen any more.
func (t *telemetry) closed() {
	for _, gauge := range []*atomic.Int64{&t.connected, &t.devices, &t.processes} {
		gauge.Store(0)
	}
}

// saw notes what a reading has found, of which so many processes were beyond the limit.
func (t *telemetry) saw(ctx context.Context, s *gpu.Snapshot, p *plan, beyond int) {
	t.beyond.Add(int64(beyond))
	for why, n := range s.Refused {
		if n > 0 {
			t.refused.Add(ctx, n, t.reasons[why])
		}
	}
	t.devices.Store(int64(len(s.Devices)))
	if p.read.Has(gpu.ProcessMemory) {
		n := beyond
		for _, d := range s.Devices {
			if n += len(d.Processes); len(d.Processes) > 0 && d.Processes[0].PID == 0 {
				n-- // it stands for those beyond
			}
		}
		t.processes.Store(int64(n))
	}
}

func (t *telemetry) eventsLost(ctx context.Context, events int64) {
	t.eventsDropped.Add(ctx, events, t.only)
}
