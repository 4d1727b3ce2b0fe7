// SPDX-License-Identifier: Apache-2.0

// Package emit is the one way in which components write metrics: a table says what they are called, a Batch puts
// points into them.
package emit

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Batch collects points. Points of one metric and resource stand together, whatever the order in which they come; but a point
// that ends a series is the last of its pmetric.Metric, and further ones go to another of the same name. The Prometheus exporter
// passes over all that comes behind such a point
// (https://github.com/open-telemetry/opentelemetry-collector-contrib/blob/v0.149.0/exporter/prometheusexporter/accumulator.go).
type Batch struct {
	md        pmetric.Metrics
	scope     string
	on        Enabled
	resources map[string]*Resource
	points    int
}

// NewBatch returns an empty batch of an instrumentation scope, into which points of the metrics that are on are written.
func NewBatch(scope string, on Enabled) *Batch {
	return &Batch{md: pmetric.NewMetrics(), scope: scope, on: on, resources: map[string]*Resource{}}
}

// Metrics is what was collected. The batch must not be used after it is handed on.
func (b *Batch) Metrics() pmetric.Metrics { return b.md }

// Points is the number of points collected.
func (b *Batch) Points() int { return b.points }

// Resource is where points of one resource go.
type Resource struct {
	batch   *Batch
	rm      pmetric.ResourceMetrics
	begun   bool                     // it has a point
	metrics map[shape]pmetric.Metric // those to which points can be added
}

// shape tells a metric's explicit from its exponential histograms: one that is a Distribution has both.
type shape struct {
	*Metric
	of pmetric.MetricType
}

// Resource returns the resource with a key, which fill describes when it is new.
func (b *Batch) Resource(key string, fill func(pcommon.Map)) *Resource {
	if r := b.resources[key]; r != nil {
		return r
	}
	r := &Resource{batch: b, rm: pmetric.NewResourceMetrics(), metrics: map[shape]pmetric.Metric{}}
	fill(r.rm.Resource().Attributes())
	b.resources[key] = r
	return r
}

// metric returns where points of a metric in a shape stand. The batch has a resource from its first point on.
func (r *Resource) metric(m *Metric, of pmetric.MetricType) pmetric.Metric {
	r.batch.points++
	if metric, ok := r.metrics[shape{m, of}]; ok {
		return metric
	}
	if !r.begun {
		r.begun = true
		rm := r.batch.md.ResourceMetrics().AppendEmpty()
		r.rm.MoveTo(rm)
		r.rm = rm
		r.rm.ScopeMetrics().AppendEmpty().Scope().SetName(r.batch.scope)
	}
	metric := r.rm.ScopeMetrics().At(0).Metrics().AppendEmpty()
	metric.SetName(m.Name)
	metric.SetDescription(m.Description)
	metric.SetUnit(m.Unit)
	switch of {
	case pmetric.MetricTypeSum:
		sum := metric.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	case pmetric.MetricTypeHistogram:
		metric.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	case pmetric.MetricTypeExponentialHistogram:
		metric.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	default:
		metric.SetEmptyGauge()
	}
	r.metrics[shape{m, of}] = metric
	return metric
}

// close lets further points of a metric of numbers begin another pmetric.Metric.
func (r *Resource) close(m *Metric) {
	delete(r.metrics, shape{m, numbers(m)})
}

func numbers(m *Metric) pmetric.MetricType {
	if m.Kind == Counter {
		return pmetric.MetricTypeSum
	}
	return pmetric.MetricTypeGauge
}

func (r *Resource) number(m *Metric, at int64) pmetric.NumberDataPoint {
	var p pmetric.NumberDataPoint
	if metric := r.metric(m, numbers(m)); m.Kind == Counter {
		p = metric.Sum().DataPoints().AppendEmpty()
	} else {
		p = metric.Gauge().DataPoints().AppendEmpty()
	}
	p.SetTimestamp(pcommon.Timestamp(at))
	return p
}
