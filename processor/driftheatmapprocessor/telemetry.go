// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/metadata"
)

// telemetry is what the processor says of itself.
type telemetry struct {
	accepted   metric.Int64Counter
	refused    metric.Int64Counter
	evicted    metric.Int64Counter
	dropped    metric.Int64Counter
	damaged    metric.Int64Counter
	saves      metric.Float64Histogram
	failed     metric.Int64Counter
	evaluation metric.Float64Histogram
	reasons    []metric.MeasurementOption // by intake.Reason
	told       uint64                     // evictions counted so far

	// gauges are observed, so that they end with the component.
	gauges  []gauge
	observe metric.Registration
}

// gauge is a size of something that data can fill.
type gauge struct {
	name, unit, description string
	value                   atomic.Int64
}

// The gauges, by their place in telemetry.gauges.
const (
	cellsGauge = iota
	inputsGauge
	sourcesGauge
	ignoredSourcesGauge
	checkpointGauge
	spansGauge
)

func newTelemetry(set component.TelemetrySettings) (*telemetry, error) {
	meter := set.MeterProvider.Meter(metadata.ScopeName)
	t := &telemetry{}
	var errs [8]error
	t.accepted, errs[0] = meter.Int64Counter("otelcol_drift_heatmap_points_accepted", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Data points that counted for at least one SLO."))
	t.refused, errs[1] = meter.Int64Counter("otelcol_drift_heatmap_points_refused", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Data points of an SLO's metric, or of one of coupling's, that did not count, by reason."))
	t.evicted, errs[2] = meter.Int64Counter("otelcol_drift_heatmap_evictions", metric.WithUnit("{series}"),
		metric.WithDescription("Cells and input series forgotten because nothing was heard of them."))
	t.dropped, errs[3] = meter.Int64Counter("otelcol_drift_heatmap_results_dropped", metric.WithUnit("{datapoint}"),
		metric.WithDescription("Points of results that no consumer took in time."))
	t.evaluation, errs[4] = meter.Float64Histogram("otelcol_drift_heatmap_evaluation_duration", metric.WithUnit("s"),
		metric.WithDescription("Time spent on one batch."),
		metric.WithExplicitBucketBoundaries(0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1))
	t.damaged, errs[5] = meter.Int64Counter("otelcol_drift_heatmap_checkpoints_damaged", metric.WithUnit("{checkpoint}"),
		metric.WithDescription("Checkpoints that could not be taken up at the start, as a whole or in part."))
	t.failed, errs[6] = meter.Int64Counter("otelcol_drift_heatmap_checkpoints_failed", metric.WithUnit("{checkpoint}"),
		metric.WithDescription("Checkpoints that could not be written."))
	t.saves, errs[7] = meter.Float64Histogram("otelcol_drift_heatmap_checkpoint_duration", metric.WithUnit("s"),
		metric.WithDescription("Time spent on writing one checkpoint."),
		metric.WithExplicitBucketBoundaries(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5))
	t.reasons = make([]metric.MeasurementOption, len(intake.Reasons())+1)
	for i, name := range intake.Reasons() {
		t.reasons[intake.Reason(i)+1] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", name)))
	}
	return t, errors.Join(append(errs[:], t.register(meter))...)
}

func (t *telemetry) register(meter metric.Meter) error {
	t.gauges = []gauge{
		cellsGauge:          {name: "otelcol_drift_heatmap_cells", unit: "{cell}", description: "Cells (SLO × dimensions), and those of coupling."},
		inputsGauge:         {name: "otelcol_drift_heatmap_input_series", unit: "{series}", description: "Input series, and engines, that are remembered."},
		sourcesGauge:        {name: "otelcol_drift_heatmap_sources", unit: "{source}", description: "Sources whose slowest decides when windows close."},
		ignoredSourcesGauge: {name: "otelcol_drift_heatmap_ignored_sources", unit: "{source}", description: "Sources that windows do not wait for: idle, or their clock is too far behind."},
		checkpointGauge:     {name: "otelcol_drift_heatmap_checkpoint_size", unit: "By", description: "What the last checkpoint wrote."},
		spansGauge:          {name: "otelcol_drift_heatmap_recent_spans", unit: "{span}", description: "Spans that are remembered, so that one that is sent again is found."},
	}
	instruments := make([]metric.Int64ObservableGauge, len(t.gauges))
	all := make([]metric.Observable, len(t.gauges))
	for i := range t.gauges {
		g, err := meter.Int64ObservableGauge(t.gauges[i].name, metric.WithUnit(t.gauges[i].unit), metric.WithDescription(t.gauges[i].description))
		if err != nil {
			return err
		}
		instruments[i], all[i] = g, g
	}
	var err error
	t.observe, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for i, g := range instruments {
			o.ObserveInt64(g, t.gauges[i].value.Load())
		}
		return nil
	}, all...)
	return err
}

func (t *telemetry) shutdown() error { return t.observe.Unregister() }

// consumed hands a batch's counts on and clears them.
func (t *telemetry) consumed(ctx context.Context, c *intake.Counts, took time.Duration) {
	if c.Accepted > 0 {
		t.accepted.Add(ctx, c.Accepted)
	}
	c.Refused(func(why intake.Reason, n int64) { t.refused.Add(ctx, n, t.reasons[why]) })
	t.evaluation.Record(ctx, took.Seconds())
	*c = intake.Counts{}
}

// saved notes a checkpoint.
func (t *telemetry) saved(ctx context.Context, took time.Duration, size int, ok bool) {
	if !ok {
		t.failed.Add(ctx, 1)
		return
	}
	t.saves.Record(ctx, took.Seconds())
	t.gauges[checkpointGauge].value.Store(int64(size))
}

// sizes notes how full the maps are. The caller holds the engine's mutex.
func (t *telemetry) sizes(e *engine) {
	waiting, ignored := e.intake.Watermark.Sources()
	inputs, spans := e.intake.Sizes()
	cells := e.heat.Len()
	if c := e.coupled; c != nil {
		inputs, cells = inputs+len(c.engines), cells+c.curves.Len()
	}
	for i, n := range map[int]int{
		cellsGauge: cells, inputsGauge: inputs, sourcesGauge: waiting, ignoredSourcesGauge: ignored,
		spansGauge: spans,
	} {
		t.gauges[i].value.Store(int64(n))
	}
	if evicted := e.heat.Evicted() + e.intake.Evicted(); evicted > t.told {
		t.evicted.Add(context.Background(), int64(evicted-t.told))
		t.told = evicted
	}
}
