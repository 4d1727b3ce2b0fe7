// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/internal/intake"
)

// Instrument describes a metric, whose name begins with that of its component.
type Instrument struct{ Name, Unit, Description string }

// Spec is what one component's metrics of its own have that others' have not.
type Spec struct {
	Scope     string // instrumentation scope
	Component string // as it stands in the names
	Refused   string // descriptions
	Evicted   string
	Inputs    string
	Dropped   Instrument
	Gauges    []Instrument // numbered from Own on
}

// The gauges that every component has.
const (
	Inputs = iota
	Sources
	IgnoredSources
	CheckpointSize
	RecentSpans
	Own // the first of a component's own
)

// Telemetry is what a component says of itself.
type Telemetry struct {
	Accepted   metric.Int64Counter
	Refused    metric.Int64Counter
	Evicted    metric.Int64Counter
	Dropped    metric.Int64Counter
	Damaged    metric.Int64Counter
	Failed     metric.Int64Counter
	saves      metric.Float64Histogram
	evaluation metric.Float64Histogram
	reasons    []metric.MeasurementOption // by intake.Reason
	told       uint64                     // evictions counted so far

	// gauges are observed, so that they end with the component.
	gauges  []atomic.Int64
	observe metric.Registration
}

// NewTelemetry makes the instruments.
func NewTelemetry(set component.TelemetrySettings, spec Spec) (*Telemetry, error) {
	meter := set.MeterProvider.Meter(spec.Scope)
	t := &Telemetry{}
	var errs []error
	counter := func(of Instrument) metric.Int64Counter {
		c, err := meter.Int64Counter(spec.name(of.Name), metric.WithUnit(of.Unit), metric.WithDescription(of.Description))
		errs = append(errs, err)
		return c
	}
	seconds := func(name, description string, bounds ...float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(spec.name(name), metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	t.Accepted = counter(Instrument{"points_accepted", "{datapoint}", "Data points, spans and log records that counted."})
	t.Refused = counter(Instrument{"points_refused", "{datapoint}", spec.Refused})
	t.Evicted = counter(Instrument{"evictions", "{series}", spec.Evicted})
	t.Dropped = counter(spec.Dropped)
	t.Damaged = counter(Instrument{"checkpoints_damaged", "{checkpoint}", "Checkpoints that could not be taken up at the start, as a whole or in part."})
	t.Failed = counter(Instrument{"checkpoints_failed", "{checkpoint}", "Checkpoints that could not be written."})
	t.evaluation = seconds("evaluation_duration", "Time spent on one batch.", 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1)
	t.saves = seconds("checkpoint_duration", "Time spent on writing one checkpoint.", 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5)
	t.reasons = make([]metric.MeasurementOption, len(intake.Reasons())+1)
	for i, name := range intake.Reasons() {
		t.reasons[intake.Reason(i)+1] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", name)))
	}
	return t, errors.Join(append(errs, t.register(meter, spec))...)
}

func (s *Spec) name(of string) string { return "otelcol_" + s.Component + "_" + of }

func (t *Telemetry) register(meter metric.Meter, spec Spec) error {
	described := append([]Instrument{
		Inputs:         {"input_series", "{series}", spec.Inputs},
		Sources:        {"sources", "{source}", "Sources whose slowest decides when windows close."},
		IgnoredSources: {"ignored_sources", "{source}", "Sources that windows do not wait for: idle, or their clock is too far behind."},
		CheckpointSize: {"checkpoint_size", "By", "What the last checkpoint wrote."},
		RecentSpans:    {"recent_spans", "{span}", "Spans that are remembered, so that one that is sent again is found."},
	}, spec.Gauges...)
	t.gauges = make([]atomic.Int64, len(described))
	instruments := make([]metric.Int64ObservableGauge, len(described))
	all := make([]metric.Observable, len(described))
	for i, of := range described {
		g, err := meter.Int64ObservableGauge(spec.name(of.Name), metric.WithUnit(of.Unit), metric.WithDescription(of.Description))
		if err != nil {
			return err
		}
		instruments[i], all[i] = g, g
	}
	var err error
	t.observe, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for i, g := range instruments {
			o.ObserveInt64(g, t.gauges[i].Load())
		}
		return nil
	}, all...)
	return err
}

// Shutdown ends the gauges.
func (t *Telemetry) Shutdown() error { return t.observe.Unregister() }

// Set sets a gauge.
func (t *Telemetry) Set(gauge, n int) { t.gauges[gauge].Store(int64(n)) }

// Consumed hands a batch's counts on and clears them.
func (t *Telemetry) Consumed(ctx context.Context, c *intake.Counts, took time.Duration) {
	if c.Accepted > 0 {
		t.Accepted.Add(ctx, c.Accepted)
	}
	c.Refused(func(why intake.Reason, n int64) { t.Refused.Add(ctx, n, t.reasons[why]) })
	t.evaluation.Record(ctx, took.Seconds())
	*c = intake.Counts{}
}

// Saved notes a checkpoint.
func (t *Telemetry) Saved(ctx context.Context, took time.Duration, size int, ok bool) {
	if !ok {
		t.Failed.Add(ctx, 1)
		return
	}
	t.saves.Record(ctx, took.Seconds())
	t.Set(CheckpointSize, size)
}

// Sizes notes how full an intake is, and how many series were forgotten by it and by what it feeds. The caller holds the
// component's mutex.
func (t *Telemetry) Sizes(in *intake.Intake, evicted uint64) {
	waiting, ignored := in.Watermark.Sources()
	inputs, spans := in.Sizes()
	t.Set(Inputs, inputs)
	t.Set(Sources, waiting)
	t.Set(IgnoredSources, ignored)
	t.Set(RecentSpans, spans)
	if evicted += in.Evicted(); evicted > t.told {
		t.Evicted.Add(context.Background(), int64(evicted-t.told))
		t.told = evicted
	}
}
