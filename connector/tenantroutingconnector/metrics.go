// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/xpdata/pref"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/otelcol-llm/otelcol-llm/connector/tenantroutingconnector/internal/limit"
	"github.com/otelcol-llm/otelcol-llm/internal/attrs"
)

// metricsRouter is what the Collector sees.
type metricsRouter struct{ *router[pmetric.Metrics] }

// ConsumeMetrics routes a batch.
func (r metricsRouter) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	return r.consume(ctx, md)
}

var metricsShape = &shape[pmetric.Metrics, pmetric.ResourceMetricsSlice, pmetric.ResourceMetrics]{
	empty: func() pmetric.Metrics {
		md := pmetric.NewMetrics()
		pref.MarkPipelineOwnedMetrics(md)
		return md
	},
	resources: pmetric.Metrics.ResourceMetrics,
	items:     countPoints,
	each:      eachPoint,
	divide:    dividePoints,
}

var metricsSignal = &signal[pmetric.Metrics]{
	id:    pipeline.SignalMetrics,
	items: pmetric.Metrics.DataPointCount,
	bytes: (&pmetric.ProtoMarshaler{}).MetricsSize,
	fit:   fitPoints,
	clone: func(md pmetric.Metrics) pmetric.Metrics {
		c := metricsShape.empty()
		md.CopyTo(c)
		return c
	},
	split:   metricsShape.split,
	join:    metricsShape.join,
	markAll: metricsShape.markAll,
	own:     pref.MarkPipelineOwnedMetrics,
	free:    pref.UnrefMetrics,
	series:  admitSeries,
	export: func(set exporter.Settings, cfg *Config, push sendFunc[pmetric.Metrics], opts ...exporterhelper.Option) (*exporting[pmetric.Metrics], error) {
		e, err := exporterhelper.NewMetrics(context.Background(), set, cfg, consumer.ConsumeMetricsFunc(push), opts...)
		if err != nil {
			return nil, err
		}
		return &exporting[pmetric.Metrics]{e, e.ConsumeMetrics}, nil
	},
}

// Points of all kinds look alike, and none of their types knows of the others.
type (
	point[P any] interface {
		Attributes() pcommon.Map
		MoveTo(P)
	}
	points[P any] interface {
		Len() int
		At(int) P
		AppendEmpty() P
		RemoveIf(func(P) bool)
	}
)

func countPoints(rm pmetric.ResourceMetrics) (n int) {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				n += m.Gauge().DataPoints().Len()
			case pmetric.MetricTypeSum:
				n += m.Sum().DataPoints().Len()
			case pmetric.MetricTypeHistogram:
				n += m.Histogram().DataPoints().Len()
			case pmetric.MetricTypeExponentialHistogram:
				n += m.ExponentialHistogram().DataPoints().Len()
			case pmetric.MetricTypeSummary:
				n += m.Summary().DataPoints().Len()
			}
		}
	}
	return n
}

func eachPoint(rm pmetric.ResourceMetrics, f func(item, scope pcommon.Map) bool) bool {
	for _, sm := range rm.ScopeMetrics().All() {
		scope := sm.Scope().Attributes()
		for _, m := range sm.Metrics().All() {
			goOn := true
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				goOn = eachOf(m.Gauge().DataPoints(), scope, f)
			case pmetric.MetricTypeSum:
				goOn = eachOf(m.Sum().DataPoints(), scope, f)
			case pmetric.MetricTypeHistogram:
				goOn = eachOf(m.Histogram().DataPoints(), scope, f)
			case pmetric.MetricTypeExponentialHistogram:
				goOn = eachOf(m.ExponentialHistogram().DataPoints(), scope, f)
			case pmetric.MetricTypeSummary:
				goOn = eachOf(m.Summary().DataPoints(), scope, f)
			}
			if !goOn {
				return false
			}
		}
	}
	return true
}

func eachOf[S points[P], P point[P]](ps S, scope pcommon.Map, f func(item, scope pcommon.Map) bool) bool {
	for i := range ps.Len() {
		if !f(ps.At(i).Attributes(), scope) {
			return false
		}
	}
	return true
}

func dividePoints(rm pmetric.ResourceMetrics, to func(item, scope pcommon.Map) pmetric.ResourceMetrics) {
	copies := map[pmetric.ResourceMetrics]*metricCopy{}
	for i, sm := range rm.ScopeMetrics().All() {
		scope := sm.Scope().Attributes()
		for j, m := range sm.Metrics().All() {
			// at is the metric in the part to which a point belongs.
			at := func(item pcommon.Map) pmetric.Metric {
				part := to(item, scope)
				c := copies[part]
				if c == nil {
					part.SetSchemaUrl(rm.SchemaUrl())
					c = &metricCopy{part: part, scope: -1}
					copies[part] = c
				}
				return c.of(i, sm, j, m)
			}
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				movePoints(m.Gauge().DataPoints(), func(a pcommon.Map) pmetric.NumberDataPointSlice { return at(a).Gauge().DataPoints() })
			case pmetric.MetricTypeSum:
				movePoints(m.Sum().DataPoints(), func(a pcommon.Map) pmetric.NumberDataPointSlice { return at(a).Sum().DataPoints() })
			case pmetric.MetricTypeHistogram:
				movePoints(m.Histogram().DataPoints(), func(a pcommon.Map) pmetric.HistogramDataPointSlice { return at(a).Histogram().DataPoints() })
			case pmetric.MetricTypeExponentialHistogram:
				movePoints(m.ExponentialHistogram().DataPoints(), func(a pcommon.Map) pmetric.ExponentialHistogramDataPointSlice {
					return at(a).ExponentialHistogram().DataPoints()
				})
			case pmetric.MetricTypeSummary:
				movePoints(m.Summary().DataPoints(), func(a pcommon.Map) pmetric.SummaryDataPointSlice { return at(a).Summary().DataPoints() })
			}
		}
	}
}

func movePoints[S points[P], P point[P]](from S, to func(pcommon.Map) S) {
	for i := range from.Len() {
		p := from.At(i)
		p.MoveTo(to(p.Attributes()).AppendEmpty())
	}
}

// metricCopy is the scope and the metric of a part that points are moved to, which are made when the first comes.
type metricCopy struct {
	part   pmetric.ResourceMetrics
	scope  int // by which sm was made
	sm     pmetric.ScopeMetrics
	metric int // by which m was made
	m      pmetric.Metric
}

func (c *metricCopy) of(scope int, sm pmetric.ScopeMetrics, metric int, m pmetric.Metric) pmetric.Metric {
	if c.scope != scope {
		c.sm = c.part.ScopeMetrics().AppendEmpty()
		c.sm.SetSchemaUrl(sm.SchemaUrl())
		sm.Scope().CopyTo(c.sm.Scope())
		c.scope, c.metric = scope, -1
	}
	if c.metric != metric {
		c.m = c.sm.Metrics().AppendEmpty()
		describe(m, c.m)
		c.metric = metric
	}
	return c.m
}

// describe makes a metric what another one is, without its points.
func describe(from, to pmetric.Metric) {
	to.SetName(from.Name())
	to.SetDescription(from.Description())
	to.SetUnit(from.Unit())
	from.Metadata().CopyTo(to.Metadata())
	switch from.Type() {
	case pmetric.MetricTypeGauge:
		to.SetEmptyGauge()
	case pmetric.MetricTypeSum:
		s := to.SetEmptySum()
		s.SetAggregationTemporality(from.Sum().AggregationTemporality())
		s.SetIsMonotonic(from.Sum().IsMonotonic())
	case pmetric.MetricTypeHistogram:
		to.SetEmptyHistogram().SetAggregationTemporality(from.Histogram().AggregationTemporality())
	case pmetric.MetricTypeExponentialHistogram:
		to.SetEmptyExponentialHistogram().SetAggregationTemporality(from.ExponentialHistogram().AggregationTemporality())
	case pmetric.MetricTypeSummary:
		to.SetEmptySummary()
	}
}

// admitSeries removes points of series for which there is no room, and what is empty then.
func admitSeries(md pmetric.Metrics, s *limit.Series, now time.Time) (removed int) {
	s.Lock(now)
	defer s.Unlock()
	md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		ofResource := attrs.Hash(rm.Resource().Attributes())
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
			ofScope := attrs.Combine(ofResource, attrs.String(sm.Scope().Name()), attrs.Hash(sm.Scope().Attributes()))
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				n, left := admitPoints(m, attrs.Combine(ofScope, attrs.String(m.Name())), s)
				removed += n
				return n > 0 && left == 0
			})
			return sm.Metrics().Len() == 0
		})
		return rm.ScopeMetrics().Len() == 0
	})
	return removed
}

func admitPoints(m pmetric.Metric, of uint64, s *limit.Series) (removed, left int) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return admitOf(m.Gauge().DataPoints(), of, s)
	case pmetric.MetricTypeSum:
		return admitOf(m.Sum().DataPoints(), of, s)
	case pmetric.MetricTypeHistogram:
		return admitOf(m.Histogram().DataPoints(), of, s)
	case pmetric.MetricTypeExponentialHistogram:
		return admitOf(m.ExponentialHistogram().DataPoints(), of, s)
	case pmetric.MetricTypeSummary:
		return admitOf(m.Summary().DataPoints(), of, s)
	}
	return 0, 0
}

func admitOf[S points[P], P point[P]](ps S, of uint64, s *limit.Series) (removed, left int) {
	ps.RemoveIf(func(p P) bool {
		if s.Admit(attrs.Combine(of, attrs.Hash(p.Attributes()))) {
			return false
		}
		removed++
		return true
	})
	return removed, ps.Len()
}
