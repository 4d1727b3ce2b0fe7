// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/processor/sloschemaprocessor/internal/metadata"
)

// source says where the labels of a point come from.
type source int

const (
	fromCatalog source = iota
	fromBefore
	fromDialect // and the dialects after it, in their order
	sources     = fromDialect + source(dialects)
)

var sourceNames = [sources]string{"catalog", "before", dialectNames[sloth], dialectNames[pyrra], dialectNames[sloGenerator]}

// reason says why the labels of a point cannot be completed.
type reason int

const (
	noID reason = iota
	noService
	noClass
	noTarget
	noUnit
	badTarget
	noRoom
	reasons
)

// reasonNames are the values of the attribute reason, explained in README.md.
var reasonNames = [reasons]string{
	noID: "no_slo_id", noService: "no_service", noClass: "no_slo_class", noTarget: "no_target", noUnit: "no_unit",
	badTarget: "bad_target", noRoom: "slo_limit",
}

// reasonOf is the reason for the first of the labels that are missing.
func reasonOf(missing bits) reason {
	for r := noID; r < noUnit; r++ {
		if missing&(1<<r) != 0 {
			return r
		}
	}
	return noUnit
}

// counts collects what happened to the points of a batch, so that instruments are touched once a batch.
type counts struct {
	labelled        [sources]int64
	unknown         [reasons]int64
	dropped         int64
	conditionErrors int64
	evicted         int64
}

// telemetry is what the processor says of itself.
type telemetry struct {
	labelled        metric.Int64Counter
	unknown         metric.Int64Counter
	conditionErrors metric.Int64Counter
	evicted         metric.Int64Counter
	refusedCatalogs metric.Int64Counter
	sources         [sources]metric.MeasurementOption
	reasons         [reasons]metric.MeasurementOption
	sizes           metric.Registration
}

func newTelemetry(set component.TelemetrySettings, slos func() int) (*telemetry, error) {
	meter := set.MeterProvider.Meter(metadata.ScopeName)
	t := &telemetry{}
	var errs [6]error
	t.labelled, errs[0] = meter.Int64Counter("otelcol_slo_schema_points_labelled", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Data points that carry all canonical labels, by where those come from."))
	t.unknown, errs[1] = meter.Int64Counter("otelcol_slo_schema_points_unknown", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Data points of an SLO whose canonical labels could not be completed, by reason."))
	t.conditionErrors, errs[2] = meter.Int64Counter("otelcol_slo_schema_condition_errors", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Data points on which a condition of an SLO could not be evaluated."))
	t.evicted, errs[3] = meter.Int64Counter("otelcol_slo_schema_evictions", metric.WithUnit("{slo}"),
		metric.WithDescription("SLOs of dialects that were forgotten because nothing was heard of them."))
	t.refusedCatalogs, errs[4] = meter.Int64Counter("otelcol_slo_schema_catalogs_refused", metric.WithUnit("{catalog}"),
		metric.WithDescription("Changes of the catalog that were not taken because a condition did not compile."))
	size, err := meter.Int64ObservableGauge("otelcol_slo_schema_dialect_slos", metric.WithUnit("{slo}"),
		metric.WithDescription("SLOs of dialects that are remembered."))
	errs[5] = err
	for i, name := range sourceNames {
		t.sources[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String("source", name)))
	}
	for i, name := range reasonNames {
		t.reasons[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", name)))
	}
	t.sizes, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(size, int64(slos()))
		return nil
	}, size)
	return t, errors.Join(append(errs[:], err)...)
}

func (t *telemetry) shutdown() error { return t.sizes.Unregister() }

// processed hands the counts of a batch on.
func (t *telemetry) processed(ctx context.Context, c *counts) {
	for i, n := range c.labelled {
		if n > 0 {
			t.labelled.Add(ctx, n, t.sources[i])
		}
	}
	for i, n := range c.unknown {
		if n > 0 {
			t.unknown.Add(ctx, n, t.reasons[i])
		}
	}
	if c.conditionErrors > 0 {
		t.conditionErrors.Add(ctx, c.conditionErrors)
	}
	if c.evicted > 0 {
		t.evicted.Add(ctx, c.evicted)
	}
}
