// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/store"
)

// borrowed are metrics that Prometheus's packages count, under the names that they have here.
var borrowed = []struct{ name, from, unit, description string }{
	{"otelcol_tsdb_samples_appended", "prometheus_tsdb_head_samples_appended_total", "{sample}",
		"Samples that are in the database; an exponential histogram is one, an explicit one has one for each bucket, the sum and the count."},
	{"otelcol_tsdb_samples_out_of_order", "prometheus_tsdb_head_out_of_order_samples_appended_total", "{sample}",
		"Those of the appended samples that came later than a newer one of their series."},
	{"otelcol_tsdb_exemplars_appended", "prometheus_tsdb_exemplar_exemplars_appended_total", "{exemplar}",
		"Exemplars that were taken."},
	{"otelcol_tsdb_compactions", "prometheus_tsdb_compactions_total", "{compaction}",
		"Blocks that were written."},
	{"otelcol_tsdb_compactions_failed", "prometheus_tsdb_compactions_failed_total", "{compaction}",
		"Blocks that could not be written."},
	{"otelcol_tsdb_query_samples", "prometheus_engine_query_samples_total", "{sample}",
		"Samples that queries have read."},
}

// telemetry is what the exporter says of itself.
type telemetry struct {
	refused          metric.Int64Counter
	refusedExemplars metric.Int64Counter
	unreadable       metric.Int64Counter
	queries          metric.Float64Histogram
	reasons          [store.Reasons]metric.MeasurementOption
	observed         metric.Registration
}

// newTelemetry observes the database that is there, which may be none yet.
func newTelemetry(set component.TelemetrySettings, database func() *store.Store) (*telemetry, error) {
	meter := set.MeterProvider.Meter(metadata.ScopeName)
	t := &telemetry{}
	var errs [7]error
	t.refused, errs[0] = meter.Int64Counter("otelcol_tsdb_samples_refused", metric.WithUnit("{sample}"),
		metric.WithDescription("Samples that the database does not take, by reason."))
	t.refusedExemplars, errs[1] = meter.Int64Counter("otelcol_tsdb_exemplars_refused", metric.WithUnit("{exemplar}"),
		metric.WithDescription("Exemplars that the database does not take; their samples it has taken."))
	t.unreadable, errs[2] = meter.Int64Counter("otelcol_tsdb_points_unreadable", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Data points that Prometheus has no form for."))
	t.queries, errs[3] = meter.Float64Histogram("otelcol_tsdb_request_duration", metric.WithUnit("s"),
		metric.WithDescription("Time to answer requests of the API, waiting included, by endpoint and status code."),
		metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30))
	for i, name := range store.ReasonNames {
		t.reasons[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", name)))
	}
	series, err := meter.Int64ObservableGauge("otelcol_tsdb_series", metric.WithUnit("{series}"),
		metric.WithDescription("Series that are being written to; max_series limits them."))
	errs[4] = err
	size, err := meter.Int64ObservableGauge("otelcol_tsdb_size", metric.WithUnit("By"),
		metric.WithDescription("Size of the database on disk; max_bytes limits it."))
	errs[5] = err
	repairs, err := meter.Int64ObservableCounter("otelcol_tsdb_repairs", metric.WithUnit("{repair}"),
		metric.WithDescription("Parts of the database that were damaged when it was opened."))
	errs[6] = err
	observables := []metric.Observable{series, size, repairs}
	lent := make([]metric.Float64ObservableCounter, len(borrowed))
	for i, b := range borrowed {
		if lent[i], err = meter.Float64ObservableCounter(b.name, metric.WithUnit(b.unit), metric.WithDescription(b.description)); err != nil {
			return nil, err
		}
		observables = append(observables, lent[i])
	}
	t.observed, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := database()
		if s == nil {
			return nil
		}
		o.ObserveInt64(series, int64(s.Head().NumSeries()))
		o.ObserveInt64(size, s.Bytes())
		o.ObserveInt64(repairs, int64(len(s.Repairs)))
		values := s.Gathered()
		for i, b := range borrowed {
			o.ObserveFloat64(lent[i], values[b.from])
		}
		return nil
	}, observables...)
	return t, errors.Join(append(errs[:], err)...)
}

func (t *telemetry) shutdown() error { return t.observed.Unregister() }

// appended counts what became of a batch.
func (t *telemetry) appended(ctx context.Context, refused *store.Refusals, unreadable int64) {
	for i, n := range refused.Refused {
		if n > 0 {
			t.refused.Add(ctx, n, t.reasons[i])
		}
	}
	if refused.RefusedExemplars > 0 {
		t.refusedExemplars.Add(ctx, refused.RefusedExemplars)
	}
	if unreadable > 0 {
		t.unreadable.Add(ctx, unreadable)
	}
}

// answered counts a request of the API.
func (t *telemetry) answered(ctx context.Context, endpoint string, status int, took time.Duration) {
	t.queries.Record(context.WithoutCancel(ctx), took.Seconds(), metric.WithAttributeSet(attribute.NewSet(
		attribute.String("endpoint", endpoint), attribute.String("status", strconv.Itoa(status)))))
}
