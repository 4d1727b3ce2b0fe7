// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/store"
)

// point is a data point of any shape, and pointSlice the points of a metric.
type point[P any] interface {
	Timestamp() pcommon.Timestamp
	Attributes() pcommon.Map
	CopyTo(dest P)
}

type pointSlice[P any] interface {
	Len() int
	At(i int) P
}

// span is the time that the database takes, both ends included.
type span struct{ oldest, newest pcommon.Timestamp }

// everything is for a batch of which the points have been looked at.
var everything = span{0, math.MaxUint64}

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

// split copies a batch in which something is wrong: into metrics of one point each, and without the points of another time, which it
// counts. A histogram that has ended gets a sum: the prometheus receiver says none then, and
// the translator would let _sum go on for the lookback while all else of the histogram is gone.
type split struct {
	span
	store.Refusals
}

// refuse counts a point.
func (s *split) refuse(why store.Reason, name string, attributes pcommon.Map, at pcommon.Timestamp) {
	s.Refused[why]++
	if s.Example.Err == nil {
		s.Example = store.Refusal{Series: name + labelled(attributes), Time: at.AsTime(), Err: otherTime[why]}
	}
}

// labelled are attributes as PromQL writes labels.
func labelled(attributes pcommon.Map) string {
	var all []string
	for key, value := range attributes.All() {
		all = append(all, fmt.Sprintf("%s=%q", key, value.AsString()))
	}
	slices.Sort(all)
	return "{" + strings.Join(all, ", ") + "}"
}

// otherTime says why a point is refused before the database has seen it.
var otherTime = map[store.Reason]error{
	store.OutOfBounds: errors.New("older than retention"),
	store.InFuture:    errors.New("more than 10 minutes ahead of the clock"),
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
		copyEach(s, m.Name(), m.Gauge().DataPoints(), func() pmetric.NumberDataPoint {
			return one().SetEmptyGauge().DataPoints().AppendEmpty()
		})
	case pmetric.MetricTypeSum:
		copyEach(s, m.Name(), m.Sum().DataPoints(), func() pmetric.NumberDataPoint {
			sum := one().SetEmptySum()
			sum.SetIsMonotonic(m.Sum().IsMonotonic())
			sum.SetAggregationTemporality(m.Sum().AggregationTemporality())
			return sum.DataPoints().AppendEmpty()
		})
	case pmetric.MetricTypeHistogram:
		first := to.Len()
		copyEach(s, m.Name(), m.Histogram().DataPoints(), func() pmetric.HistogramDataPoint {
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
		copyEach(s, m.Name(), m.ExponentialHistogram().DataPoints(), func() pmetric.ExponentialHistogramDataPoint {
			h := one().SetEmptyExponentialHistogram()
			h.SetAggregationTemporality(m.ExponentialHistogram().AggregationTemporality())
			return h.DataPoints().AppendEmpty()
		})
	case pmetric.MetricTypeSummary:
		copyEach(s, m.Name(), m.Summary().DataPoints(), func() pmetric.SummaryDataPoint {
			return one().SetEmptySummary().DataPoints().AppendEmpty()
		})
	}
}

func copyEach[P point[P]](s *split, name string, from pointSlice[P], to func() P) {
	for i := range from.Len() {
		p := from.At(i)
		switch t := p.Timestamp(); {
		case t < s.oldest:
			s.refuse(store.OutOfBounds, name, p.Attributes(), t)
		case t > s.newest:
			s.refuse(store.InFuture, name, p.Attributes(), t)
		default:
			p.CopyTo(to())
		}
	}
}
