// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// point is a data point of any shape, and pointSlice the points of a metric.
type point[P any] interface {
	Timestamp() pcommon.Timestamp
	CopyTo(dest P)
}

type pointSlice[P any] interface {
	Len() int
	At(i int) P
}

// span is the time that the database takes, both ends included.
type span struct{ oldest, newest pcommon.Timestamp }

func newSpan(oldest, newest time.Time) span {
	return span{pcommon.NewTimestampFromTime(oldest), pcommon.NewTimestampFromTime(newest)}
}

func (s span) holds(t pcommon.Timestamp) bool { return t >= s.oldest && t <= s.newest }

func holdsAll[P point[P]](s span, points pointSlice[P]) bool {
	for i := range points.Len() {
		if !s.holds(points.At(i).Timestamp()) {
			return false
		}
	}
	return true
}

// sumsEnd says whether each histogram that has ended says so of its sum, too.
func sumsEnd(points pmetric.HistogramDataPointSlice) bool {
	for i := range points.Len() {
		if p := points.At(i); p.Flags().NoRecordedValue() && !p.HasSum() {
			return false
		}
	}
	return true
}

// takesAll says whether a batch can be translated as it is: all points are of that time, and all that has ended ends.
func (s span) takesAll(md pmetric.Metrics) bool {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				var ok bool
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					ok = holdsAll(s, m.Gauge().DataPoints())
				case pmetric.MetricTypeSum:
					ok = holdsAll(s, m.Sum().DataPoints())
				case pmetric.MetricTypeHistogram:
					ok = holdsAll(s, m.Histogram().DataPoints()) && sumsEnd(m.Histogram().DataPoints())
				case pmetric.MetricTypeExponentialHistogram:
					ok = holdsAll(s, m.ExponentialHistogram().DataPoints())
				case pmetric.MetricTypeSummary:
					ok = holdsAll(s, m.Summary().DataPoints())
				default:
					ok = true
				}
				if !ok {
					return false
				}
			}
		}
	}
	return true
}

// split copies a batch in which something is wrong: into metrics of one point each, and without the points of another time, of
// which it counts those before and those after. A histogram that has ended gets a sum: the prometheus receiver says none then, and
// the translator would let _sum go on for the lookback while all else of the histogram is gone.
type split struct {
	span
	before, after int64
}

func (s *split) copyOf(md pmetric.Metrics) pmetric.Metrics {
	out := pmetric.NewMetrics()
	for _, rm := range md.ResourceMetrics().All() {
		r := out.ResourceMetrics().AppendEmpty()
		r.SetSchemaUrl(rm.SchemaUrl())
		rm.Resource().CopyTo(r.Resource())
		for _, sm := range rm.ScopeMetrics().All() {
			scope := r.ScopeMetrics().AppendEmpty()
			scope.SetSchemaUrl(sm.SchemaUrl())
			sm.Scope().CopyTo(scope.Scope())
			for _, m := range sm.Metrics().All() {
				s.metric(m, scope.Metrics())
			}
		}
	}
	return out
}

func (s *split) metric(m pmetric.Metric, to pmetric.MetricSlice) {
	one := func() pmetric.Metric {
		n := to.AppendEmpty()
		n.SetName(m.Name())
		n.SetDescription(m.Description())
		n.SetUnit(m.Unit())
		return n
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		copyEach(s, m.Gauge().DataPoints(), func() pmetric.NumberDataPoint {
			return one().SetEmptyGauge().DataPoints().AppendEmpty()
		})
	case pmetric.MetricTypeSum:
		copyEach(s, m.Sum().DataPoints(), func() pmetric.NumberDataPoint {
			sum := one().SetEmptySum()
			sum.SetIsMonotonic(m.Sum().IsMonotonic())
			sum.SetAggregationTemporality(m.Sum().AggregationTemporality())
			return sum.DataPoints().AppendEmpty()
		})
	case pmetric.MetricTypeHistogram:
		first := to.Len()
		copyEach(s, m.Histogram().DataPoints(), func() pmetric.HistogramDataPoint {
			h := one().SetEmptyHistogram()
			h.SetAggregationTemporality(m.Histogram().AggregationTemporality())
			return h.DataPoints().AppendEmpty()
		})
		for i := first; i < to.Len(); i++ {
			if p := to.At(i).Histogram().DataPoints().At(0); p.Flags().NoRecordedValue() {
				p.SetSum(0)
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		copyEach(s, m.ExponentialHistogram().DataPoints(), func() pmetric.ExponentialHistogramDataPoint {
			h := one().SetEmptyExponentialHistogram()
			h.SetAggregationTemporality(m.ExponentialHistogram().AggregationTemporality())
			return h.DataPoints().AppendEmpty()
		})
	case pmetric.MetricTypeSummary:
		copyEach(s, m.Summary().DataPoints(), func() pmetric.SummaryDataPoint {
			return one().SetEmptySummary().DataPoints().AppendEmpty()
		})
	}
}

func copyEach[P point[P]](s *split, from pointSlice[P], to func() P) {
	for i := range from.Len() {
		p := from.At(i)
		switch t := p.Timestamp(); {
		case t < s.oldest:
			s.before++
		case t > s.newest:
			s.after++
		default:
			p.CopyTo(to())
		}
	}
}
