// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/watch"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
)

// telemetry is what the extension says of itself.
type telemetry struct {
	id                               attribute.KeyValue // of the extension, of which there may be several
	detections, decisions, durations metric.Float64Histogram
	actions, lost, refused           metric.Int64Counter
	live, readings                   []metric.RecordOption // as a slice, which is not made for each
	observe                          metric.Registration
}

var (
	// The limits of the histograms have those of what is promised, 120 ms and 80 ms, among them.
	quick = metric.WithExplicitBucketBoundaries(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.12, 0.25, 0.5, 1, 5)
	slow  = metric.WithExplicitBucketBoundaries(0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 60)
)

func newTelemetry(set component.TelemetrySettings, id component.ID, sizes func() (watch.Beyond, [4]int), left func() (int, bool)) (*telemetry, error) {
	meter := set.MeterProvider.Meter(metadata.ScopeName)
	of := attribute.String("extension", id.String())
	source := func(name string) []metric.RecordOption {
		return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(of, attribute.String("source", name)))}
	}
	t := &telemetry{id: of, live: source("live"), readings: source("reading")}
	var errs []error
	histogram := func(name, description string, limits metric.HistogramOption) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), limits)
		errs = append(errs, err)
		return h
	}
	counter := func(name, unit, description string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return c
	}
	t.detections = histogram("otelcol_gpu_guard_detection_duration", "Time from an allocation, or from a reading, until the guard knows of it, by source.", quick)
	t.decisions = histogram("otelcol_gpu_guard_decision_duration", "Time from when there is a reason to act until it is decided on whom, or that on nobody, by trigger.", quick)
	t.durations = histogram("otelcol_gpu_guard_action_duration", "Time from the first signal until the process has ended, or nothing more is done, by outcome.", slow)
	t.actions = counter("otelcol_gpu_guard_actions", "{action}", "What was done and what was not, by outcome, reason and dry_run.")
	t.lost = counter("otelcol_gpu_guard_audit_lines_lost", "{line}", "Lines that the audit file could not take.")
	t.refused = counter("otelcol_gpu_guard_admin_requests_refused", "{request}", "Requests to the admin endpoint that were turned away, by reason.")
	errs = append(errs, t.observed(meter, sizes, left))
	return t, errors.Join(errs...)
}

// observed makes the instruments that are looked at when they are collected.
func (t *telemetry) observed(meter metric.Meter, sizes func() (watch.Beyond, [4]int), may func() (int, bool)) error {
	var errs []error
	var all []metric.Observable
	gauge := func(name, unit, description string) metric.Int64ObservableGauge {
		g, err := meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs, all = append(errs, err), append(all, g)
		return g
	}
	counter := func(name, unit, description string) metric.Int64ObservableCounter {
		c, err := meter.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs, all = append(errs, err), append(all, c)
		return c
	}
	known := [4]metric.Int64ObservableGauge{
		gauge("otelcol_gpu_guard_devices", "{device}", "Devices that are watched."),
		gauge("otelcol_gpu_guard_processes", "{process}", "Processes that are known to hold memory of a device."),
		gauge("otelcol_gpu_guard_leaks", "{leak}", "Verdicts of leaks that are open."),
		gauge("otelcol_gpu_guard_unplaced", "{process}", "Processes that hold memory of which it is not known on what device it is."),
	}
	left := gauge("otelcol_gpu_guard_budget_remaining", "{action}", "Actions that are left within the hour.")
	paused := gauge("otelcol_gpu_guard_paused", "{guard}", "1 while somebody has stopped the guard.")
	overflowed := counter("otelcol_gpu_guard_overflowed", "{message}", "What was told of devices, processes and leaks beyond the limits, by kind.")
	ignored := counter("otelcol_gpu_guard_leaks_ignored", "{leak}", "Verdicts that are about another machine (elsewhere) or about no process (nobody), by reason.")
	only := metric.WithAttributeSet(attribute.NewSet(t.id))
	by := func(key, value string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(t.id, attribute.String(key, value)))
	}
	var err error
	t.observe, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		beyond, now := sizes()
		for i := range known {
			o.ObserveInt64(known[i], int64(now[i]), only)
		}
		n, stopped := may()
		o.ObserveInt64(left, int64(n), only)
		is := int64(0)
		if stopped {
			is = 1
		}
		o.ObserveInt64(paused, is, only)
		o.ObserveInt64(overflowed, int64(beyond.Devices), by("kind", "device"))
		o.ObserveInt64(overflowed, int64(beyond.Processes), by("kind", "process"))
		o.ObserveInt64(overflowed, int64(beyond.Leaks), by("kind", "leak"))
		o.ObserveInt64(ignored, int64(beyond.Elsewhere), by("reason", "elsewhere"))
		o.ObserveInt64(ignored, int64(beyond.Nobody), by("reason", "nobody"))
		return nil
	}, all...)
	return errors.Join(append(errs, err)...)
}

// detected notes how long it took until something was known.
func (t *telemetry) detected(source []metric.RecordOption, took time.Duration) {
	t.detections.Record(context.Background(), max(took, 0).Seconds(), source...)
}

// recorded notes an action.
func (t *telemetry) recorded(a *gpuaction.Action, lost int) {
	ctx := context.Background()
	reason, _, _ := strings.Cut(a.Reason, ":") // what follows tells of one case
	t.actions.Add(ctx, 1, metric.WithAttributes(t.id, attribute.String("outcome", string(a.Outcome)), attribute.String("reason", reason), attribute.Bool("dry_run", a.DryRun)))
	if a.Decision > 0 {
		t.decisions.Record(ctx, a.Decision, metric.WithAttributes(t.id, attribute.String("trigger", a.Trigger)))
	}
	if a.Duration > 0 {
		t.durations.Record(ctx, a.Duration, metric.WithAttributes(t.id, attribute.String("outcome", string(a.Outcome))))
	}
	if lost > 0 {
		t.lost.Add(ctx, int64(lost), metric.WithAttributes(t.id))
	}
}

func (t *telemetry) turnedAway(ctx context.Context, reason string) {
	t.refused.Add(ctx, 1, metric.WithAttributes(t.id, attribute.String("reason", reason)))
}

func (t *telemetry) shutdown() error {
	if t == nil || t.observe == nil {
		return nil
	}
	observe := t.observe
	t.observe = nil
	return observe.Unregister()
}
