// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
)

// reason says why a selected point was not counted.
type reason int

const (
	none reason = iota
	tooLate
	future
	noTimestamp
	noRecordedValue
	baseline
	reset
	stale
	notFinite
	sentinel
	negative
	badBuckets
	countMismatch
	noTemporality
	noInterval
	unsupportedShape
	conditionError
	layoutLimit
	seriesLimit
	reasons
)

// reasonNames are the values of the attribute reason, explained in README.md.
var reasonNames = [reasons]string{
	tooLate: "late", future: "future", noTimestamp: "no_timestamp", noRecordedValue: "no_recorded_value",
	baseline: "baseline", reset: "reset", stale: "stale", notFinite: "not_finite", sentinel: "sentinel",
	negative: "negative", badBuckets: "bad_buckets", countMismatch: "count_mismatch", noTemporality: "no_temporality",
	noInterval: "no_interval", unsupportedShape: "unsupported_shape", conditionError: "condition_error",
	layoutLimit: "layout_limit", seriesLimit: "series_limit",
}

// counts collects what happened to the points of a batch, so that instruments are touched once a batch.
type counts struct {
	accepted int64
	refused  [reasons]int64
}

func (c *counts) refuse(why reason, n int) { c.refused[why] += int64(n) }

// telemetry is what the connector says of itself.
type telemetry struct {
	accepted   metric.Int64Counter
	refused    metric.Int64Counter
	evicted    metric.Int64Counter
	dropped    metric.Int64Counter
	evaluation metric.Float64Histogram
	reasons    [reasons]metric.MeasurementOption
	told       uint64 // evictions counted so far

	// sizes are observed, so that they end with the component.
	series, inputs atomic.Int64
	sizes          metric.Registration
}

func newTelemetry(set component.TelemetrySettings) (*telemetry, error) {
	meter := set.MeterProvider.Meter(metadata.ScopeName)
	t := &telemetry{}
	var errs [7]error
	t.accepted, errs[0] = meter.Int64Counter("otelcol_slo_points_accepted", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Data points that counted for at least one SLO."))
	t.refused, errs[1] = meter.Int64Counter("otelcol_slo_points_refused", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Data points of an SLO's metric that did not count, by reason."))
	t.evicted, errs[2] = meter.Int64Counter("otelcol_slo_evictions", metric.WithUnit("{series}"),
		metric.WithDescription("Series forgotten because nothing was heard of them."))
	t.dropped, errs[3] = meter.Int64Counter("otelcol_slo_events_dropped", metric.WithUnit("{event}"),
		metric.WithDescription("Violation events that no consumer took in time."))
	series, err := meter.Int64ObservableGauge("otelcol_slo_series", metric.WithUnit("{series}"),
		metric.WithDescription("Series that are judged (SLO × group)."))
	errs[4] = err
	inputs, err := meter.Int64ObservableGauge("otelcol_slo_input_series", metric.WithUnit("{series}"),
		metric.WithDescription("Input series that are remembered."))
	errs[5] = err
	t.evaluation, errs[6] = meter.Float64Histogram("otelcol_slo_evaluation_duration", metric.WithUnit("s"),
		metric.WithDescription("Time spent on one batch."),
		metric.WithExplicitBucketBoundaries(0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1))
	for i, name := range reasonNames {
		t.reasons[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", name)))
	}
	t.sizes, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(series, t.series.Load())
		o.ObserveInt64(inputs, t.inputs.Load())
		return nil
	}, series, inputs)
	return t, errors.Join(append(errs[:], err)...)
}

func (t *telemetry) shutdown() error { return t.sizes.Unregister() }

// consumed hands a batch's counts on and clears them.
func (t *telemetry) consumed(ctx context.Context, c *counts, took time.Duration) {
	if c.accepted > 0 {
		t.accepted.Add(ctx, c.accepted)
	}
	for i, n := range c.refused {
		if n > 0 {
			t.refused.Add(ctx, n, t.reasons[i])
		}
	}
	t.evaluation.Record(ctx, took.Seconds())
	*c = counts{}
}

// observe tells the sizes of the maps. The caller holds the engine's mutex.
func (t *telemetry) observe(e *engine) {
	t.series.Store(int64(e.judge.Len()))
	t.inputs.Store(int64(len(e.inputs.series)))
	if evicted := e.judge.Evicted() + e.inputs.evicted; evicted > t.told {
		t.evicted.Add(context.Background(), int64(evicted-t.told))
		t.told = evicted
	}
}
