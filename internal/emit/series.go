// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// Series writes points that have labels in common. Times are in Unix nanoseconds; more are further attributes, a key and
// its value in turn. Nothing is written of a metric that is not on.
type Series struct {
	to    *Resource
	label func(pcommon.Map)
}

// Series returns a writer of points to which label gives their common attributes.
func (r *Resource) Series(label func(pcommon.Map)) Series { return Series{r, label} }

// Point is a point that was written, or none.
type Point struct {
	exemplars pmetric.ExemplarSlice
	written   bool
}

// Exemplar is a measurement that stands for others.
type Exemplar struct {
	TraceID [16]byte
	SpanID  [8]byte // zero where it is not known
	Value   float64
	Time    int64
}

// Exemplar adds an exemplar to the point.
func (p Point) Exemplar(x Exemplar) {
	if !p.written {
		return
	}
	to := p.exemplars.AppendEmpty()
	to.SetTraceID(x.TraceID)
	to.SetSpanID(x.SpanID)
	to.SetDoubleValue(x.Value)
	to.SetTimestamp(pcommon.Timestamp(x.Time))
}

func (s Series) off(m *Metric) bool { return !s.to.batch.on.Has(m) }

func (s Series) describe(attributes pcommon.Map, more []string) {
	s.label(attributes)
	for i := 0; i+1 < len(more); i += 2 {
		attributes.PutStr(more[i], more[i+1])
	}
}

// Gauge writes a value.
func (s Series) Gauge(m *Metric, at int64, value float64, more ...string) Point {
	if s.off(m) {
		return Point{}
	}
	p := s.to.number(m, at)
	p.SetDoubleValue(value)
	s.describe(p.Attributes(), more)
	return Point{p.Exemplars(), true}
}

// Counter writes the count since start.
func (s Series) Counter(m *Metric, start, at int64, value uint64, more ...string) Point {
	if s.off(m) {
		return Point{}
	}
	p := s.to.number(m, at)
	p.SetStartTimestamp(pcommon.Timestamp(start))
	p.SetIntValue(int64(value))
	s.describe(p.Attributes(), more)
	return Point{p.Exemplars(), true}
}

// StateSet writes a point for every state, 1 for the current one.
func (s Series) StateSet(m *Metric, at int64, current int, more ...string) {
	if s.off(m) {
		return
	}
	for i, state := range m.States {
		p := s.to.number(m, at)
		if i == current {
			p.SetIntValue(1)
		} else {
			p.SetIntValue(0)
		}
		s.describe(p.Attributes(), more)
		p.Attributes().PutStr("state", state)
	}
}

// Stale says that nothing more is told of a series: backends end it at once and need not wait until they forget it
// (https://opentelemetry.io/docs/specs/otel/metrics/data-model/#no-recorded-value). Of a delta there is nothing to end.
func (s Series) Stale(m *Metric, at int64, more ...string) {
	switch m.Kind {
	case StateSet:
		for _, state := range m.States {
			s.stale(m, at, append(more[:len(more):len(more)], "state", state))
		}
	case Gauge, Counter:
		s.stale(m, at, more)
	default:
	}
}

func (s Series) stale(m *Metric, at int64, more []string) {
	if s.off(m) {
		return
	}
	p := s.to.number(m, at)
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	s.describe(p.Attributes(), more)
	s.to.close(m)
}

// Histogram writes the values since start by explicit boundaries: counts[i] lie in (bounds[i-1], bounds[i]]. A sum that is
// NaN is not known.
func (s Series) Histogram(m *Metric, start, at int64, bounds []float64, counts []uint64, sum float64, more ...string) Point {
	if s.off(m) {
		return Point{}
	}
	p := s.to.metric(m, pmetric.MetricTypeHistogram).Histogram().DataPoints().AppendEmpty()
	p.SetStartTimestamp(pcommon.Timestamp(start))
	p.SetTimestamp(pcommon.Timestamp(at))
	p.ExplicitBounds().FromRaw(bounds)
	p.BucketCounts().FromRaw(counts)
	n, _ := sketch.Total(counts)
	p.SetCount(n)
	if !math.IsNaN(sum) {
		p.SetSum(sum)
	}
	s.describe(p.Attributes(), more)
	return Point{p.Exemplars(), true}
}

// Exponential writes the values since start as an exponential histogram. OTLP has no place for its Factor: a caller whose
// Factor is not 1 says so in more. A sum that is NaN is not known.
func (s Series) Exponential(m *Metric, start, at int64, e *sketch.Exponential, sum float64, more ...string) Point {
	if s.off(m) {
		return Point{}
	}
	p := s.to.metric(m, pmetric.MetricTypeExponentialHistogram).ExponentialHistogram().DataPoints().AppendEmpty()
	p.SetStartTimestamp(pcommon.Timestamp(start))
	p.SetTimestamp(pcommon.Timestamp(at))
	p.SetScale(e.Scale)
	p.SetZeroThreshold(e.ZeroThreshold)
	p.SetZeroCount(e.ZeroCount)
	p.Positive().SetOffset(e.Positive.Offset)
	p.Positive().BucketCounts().FromRaw(e.Positive.Counts)
	p.Negative().SetOffset(e.Negative.Offset)
	p.Negative().BucketCounts().FromRaw(e.Negative.Counts)
	p.SetCount(e.Count())
	if !math.IsNaN(sum) {
		p.SetSum(sum)
	}
	s.describe(p.Attributes(), more)
	return Point{p.Exemplars(), true}
}
