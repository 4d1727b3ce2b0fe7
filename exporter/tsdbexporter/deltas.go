// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"context"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/deltatocumulativeprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
)

// deltas adds up series of delta temporality, since Prometheus knows only sums. It is contrib's processor, as in Prometheus's
// own OTLP endpoint; its metrics otelcol_deltatocumulative_… tell how many series it has and what it refuses.
type deltas struct{ processor.Metrics }

// newDeltas hands what it has added up to write.
func newDeltas(ctx context.Context, set exporter.Settings, cfg *Config, write consumer.ConsumeMetricsFunc) (*deltas, error) {
	next, err := consumer.NewMetrics(write)
	if err != nil {
		return nil, err
	}
	factory := deltatocumulativeprocessor.NewFactory()
	added := factory.CreateDefaultConfig().(*deltatocumulativeprocessor.Config)
	added.MaxStale, added.MaxStreams = cfg.DeltaIdleTimeout, cfg.MaxDeltaSeries
	p, err := factory.CreateMetrics(ctx, processor.Settings{
		ID:                component.NewIDWithName(factory.Type(), set.ID.String()),
		TelemetrySettings: set.TelemetrySettings, BuildInfo: set.BuildInfo,
	}, added, next)
	if err != nil {
		return nil, err
	}
	return &deltas{p}, p.Start(ctx, nil)
}

// consume adds up a copy: the data is not ours to change.
func (d *deltas) consume(ctx context.Context, md pmetric.Metrics) error {
	own := pmetric.NewMetrics()
	md.CopyTo(own)
	return d.ConsumeMetrics(ctx, own)
}

// haveDelta says whether there is something to add up.
func haveDelta(md pmetric.Metrics) bool {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if temporality(m) == pmetric.AggregationTemporalityDelta {
					return true
				}
			}
		}
	}
	return false
}

func temporality(m pmetric.Metric) pmetric.AggregationTemporality {
	switch m.Type() {
	case pmetric.MetricTypeSum:
		return m.Sum().AggregationTemporality()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().AggregationTemporality()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().AggregationTemporality()
	}
	return pmetric.AggregationTemporalityUnspecified
}
