// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/delta"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// number takes a value that stands for itself: one event of a threshold, a ready ratio, an amount. A use whose spec says that
// its source only grows takes what was added, even where the type was lost on the way.
func (e *Intake) number(b *Batch, in *Input, at int64, p pmetric.NumberDataPoint, rising bool, start pcommon.Timestamp) {
	v, why := valueOf(p)
	grows := rising || in.counts
	switch {
	case why == Sentinel && !grows:
		why = None // where the spec says that there is such a value, it is one
	case why == None && grows && v > sketch.MaxCount:
		why = Implausible // no counter comes so far, and none could count on from there
	}
	if why != None {
		e.Counts.Refuse(why, 1)
		return
	}
	var added float64
	var before int64
	outcome := delta.Added
	if !grows && e.told(b, in, v, at) {
		return
	}
	if grows {
		if before = in.number.Last(); before == 0 {
			before = int64(start)
		}
		added, outcome = in.number.Add(e.since(in, at, start), v)
	}
	e.give(b, in, before, at, p.Exemplars(), func(t *binding) Reason {
		why := ReasonOf(outcome)
		switch {
		case !rising && !t.use.Counter && why != Stale: // it takes the value
			return add(t, at, v)
		case why != None:
			return why
		}
		return increase(t, at, added, at-before)
	})
}

// sum takes a point of a sum. One that may fall is a gauge by another name.
func (e *Intake) sum(b *Batch, in *Input, at int64, sum pmetric.Sum, p pmetric.NumberDataPoint) {
	if sum.AggregationTemporality() == pmetric.AggregationTemporalityCumulative {
		e.number(b, in, at, p, sum.IsMonotonic(), p.StartTimestamp())
		return
	}
	v, why := valueOf(p)
	if why != None {
		e.Counts.Refuse(why, 1)
		return
	}
	if math.Abs(v) > sketch.MaxCount {
		e.Counts.Refuse(Implausible, 1)
		return
	}
	start := p.StartTimestamp()
	if e.again(b, in, start, at) {
		return
	}
	span := int64(0)
	if start != 0 {
		span = at - int64(start)
	}
	e.give(b, in, e.heardSince(start, at), at, p.Exemplars(), func(t *binding) Reason { return increase(t, at, v, span) })
}

// summary takes the number of events of a summary. Its quantiles are those of a window of the source's own, and those of two
// sources make no quantile of both: a threshold cannot be judged by them.
func (e *Intake) summary(b *Batch, in *Input, at int64, p pmetric.SummaryDataPoint) {
	if p.Count() > sketch.MaxCount {
		e.Counts.Refuse(BadBuckets, 1)
		return
	}
	before := in.number.Last()
	added, outcome := in.number.Add(e.since(in, at, p.StartTimestamp()), float64(p.Count()))
	e.give(b, in, before, at, pmetric.NewExemplarSlice(), func(t *binding) Reason {
		if t.use.Role == selection.Value {
			return UnsupportedShape
		}
		if why := ReasonOf(outcome); why != None {
			return why
		}
		return addCount(t, at, added)
	})
}

// increase takes what was added to a counter over a span of time. A threshold is on its rate a second.
func increase(t *binding, at int64, added float64, span int64) Reason {
	switch {
	case t.use.Role != selection.Value:
		return add(t, at, added)
	case added < 0:
		return Negative
	case t.use.Rate > 0:
		t.series.AddAmount(at, added*t.scale)
		return None
	case span <= 0:
		return NoInterval
	default:
		return addValue(t, at, added/time.Duration(span).Seconds())
	}
}

// add gives one value to a judged series.
func add(t *binding, at int64, v float64) Reason {
	switch t.use.Role {
	case selection.Value:
		if t.use.Rate > 0 {
			return UnsupportedShape // what does not count up has no rate
		}
		return addValue(t, at, v)
	case selection.RawSuccess, selection.RawFailure:
		if v == -1 {
			return Sentinel
		}
		good := v * t.scale
		if t.use.Role == selection.RawFailure {
			good = 1 - good
		}
		if good < -ratioSlack || good > 1+ratioSlack {
			return OutOfRange
		}
		t.series.AddRaw(at, good)
		return None
	default:
		return addCount(t, at, v)
	}
}

func addValue(t *binding, at int64, v float64) Reason {
	minusOne := v == -1
	v *= t.scale
	switch {
	case minusOne && (t.use.Range == nil || t.use.Range.Min > v):
		return Sentinel
	case t.use.BelowZero(v):
		return Negative
	case !plausible(t.use, v):
		return Implausible
	case !t.series.AddValue(at, v):
		return LayoutLimit
	default:
		return None
	}
}

// plausible reports whether a value, or a mean of values, in the base unit is one that the spec says there can be. NaN is
// a mean that is not known.
func plausible(use *selection.Use, v float64) bool {
	return use.Range == nil || math.IsNaN(v) || (v >= use.Range.Min && v <= use.Range.Max)
}

// ratioSlack keeps rounding from putting a ratio out of range.
const ratioSlack = 1e-9

// addCount gives a number of events to a ratio, or to what should have been measured.
func addCount(t *binding, at int64, n float64) Reason {
	switch {
	case n < 0:
		return Negative
	case n > sketch.MaxCount:
		return Implausible
	}
	switch t.use.Role {
	case selection.Good:
		t.series.AddGood(at, n)
	case selection.Bad:
		t.series.AddBad(at, n)
	case selection.Total:
		t.series.AddTotal(at, n)
	case selection.Expected:
		t.series.AddExpected(at, n)
	default:
		return UnsupportedShape // a ready ratio is no distribution
	}
	return None
}

func (e *Intake) histogram(b *Batch, in *Input, at int64, temporality pmetric.AggregationTemporality, p pmetric.HistogramDataPoint) {
	in.layout = e.inputs.layouts.of(p.ExplicitBounds(), in.layout)
	bounds, counts := in.layout.bounds, e.scratch.copyCounts(p.BucketCounts())
	if len(counts) == 0 && len(bounds) == 0 { // OTLP allows a histogram of a count and a sum alone
		counts = append(counts, p.Count())
	}
	n, ok := sketch.Total(counts)
	why := None
	switch {
	case !ok || !in.layout.fits(counts):
		why = BadBuckets
	case n != p.Count():
		why = CountMismatch
	case p.HasSum() && !sketch.SumFits(bounds, counts, p.Sum()):
		why = Implausible
	}
	if why != None {
		e.Counts.Refuse(why, 1)
		return
	}
	since := e.heardSince(p.StartTimestamp(), at)
	if temporality == pmetric.AggregationTemporalityCumulative {
		before := in.explicit.Last()
		added, outcome := in.explicit.Add(e.since(in, at, p.StartTimestamp()), bounds, counts, e.scratch.added)
		if why := ReasonOf(outcome); why != None {
			e.Counts.Refuse(why, 1)
			return
		}
		if before != 0 {
			since = before
		}
		e.scratch.added, counts = added, added
		n, _ = sketch.Total(counts)
	} else if e.again(b, in, p.StartTimestamp(), at) {
		return
	}
	mean := meanOf(p.HasSum(), p.Sum(), p.Count())
	e.give(b, in, since, at, p.Exemplars(), func(t *binding) Reason {
		switch {
		case t.use.Role != selection.Value:
			return addCount(t, at, float64(n))
		case t.use.Rate > 0, len(bounds) == 0:
			return UnsupportedShape // without boundaries, its values could be anything
		case t.use.BelowZero(lowest(bounds, counts)), t.use.BelowZero(mean * t.scale):
			return Negative
		case !plausible(t.use, mean*t.scale):
			return Implausible
		case !t.series.AddExplicit(at, in.layout.inBase(t.scale), counts, n):
			return LayoutLimit
		default:
			return None
		}
	})
}

// lowest is the upper end of the lowest bucket with values, or zero if that is above.
func lowest(bounds []float64, counts []uint64) float64 {
	for i, upper := range bounds {
		if upper >= 0 {
			break
		}
		if counts[i] > 0 {
			return upper
		}
	}
	return 0
}

func countOf(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// meanOf is the mean of a histogram's values, NaN where it is not known.
func meanOf(known bool, sum float64, n uint64) float64 {
	if !known || n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}

func (e *Intake) exponential(b *Batch, in *Input, at int64, temporality pmetric.AggregationTemporality, p pmetric.ExponentialHistogramDataPoint) {
	h := &e.scratch.exponential
	CopyExponential(h, p)
	n := uint64(0)
	why := None
	if !h.Normalize() {
		why = BadBuckets
	} else if n = h.Count(); n > p.Count() || p.Count() > sketch.MaxCount || (n < p.Count() && !(p.HasSum() && math.IsNaN(p.Sum()))) {
		why = CountMismatch
	}
	if why != None {
		e.Counts.Refuse(why, 1)
		return
	}
	// Of a native histogram, values that are not a number are counted and in no bucket, and make the sum NaN.
	unknown := p.Count() - n
	since := e.heardSince(p.StartTimestamp(), at)
	if temporality == pmetric.AggregationTemporalityCumulative {
		if in.exponential == nil {
			in.exponential = &delta.Exponential{}
		}
		before := in.exponential.Last()
		outcome := in.exponential.Add(e.since(in, at, p.StartTimestamp()), h, &e.scratch.difference)
		was := in.unknown
		if outcome != delta.Stale {
			in.unknown = unknown
		}
		if why := ReasonOf(outcome); why != None {
			e.Counts.Refuse(why, 1)
			return
		}
		if before != 0 {
			since = before
		} else {
			was = 0
		}
		h = &e.scratch.difference
		n, unknown = h.Count(), unknown-min(was, unknown)
	} else if e.again(b, in, p.StartTimestamp(), at) {
		return
	}
	mean := meanOf(p.HasSum(), p.Sum(), p.Count())
	e.give(b, in, since, at, p.Exemplars(), func(t *binding) Reason {
		switch {
		case t.use.Role != selection.Value:
			return addCount(t, at, float64(n+unknown))
		case t.use.Rate > 0:
			return UnsupportedShape
		case t.use.BelowZero(-float64(countOf(h.Negative.Counts))), t.use.BelowZero(mean * t.scale):
			return Negative
		case !plausible(t.use, mean*t.scale):
			return Implausible
		}
		h.Factor = t.scale
		if !t.series.AddExponential(at, h, n) {
			return LayoutLimit
		}
		if unknown > 0 {
			t.series.AddUnknown(at, unknown)
			e.to.Unknown(t.slo)
		}
		return None
	})
}

// heardSince is the event time from which on a point tells of all that happened, 0 for none. One further back than anybody is
// waited for is no interval between two points but, say, the start of a process that is written on each of them.
func (e *Intake) heardSince(start pcommon.Timestamp, at int64) int64 {
	if at-int64(start) > int64(e.options.TTL) {
		return 0
	}
	return int64(start)
}

// since places a cumulative point: its first counts as a whole only if the series began in the pane of the point.
func (e *Intake) since(in *Input, at int64, start pcommon.Timestamp) delta.Point {
	since := int64(math.MinInt64)
	for i := range in.bindings {
		since = max(since, e.to.PaneStart(in.bindings[i].slo, at))
	}
	return delta.Point{Start: int64(start), Time: at, Since: since}
}

// valueOf is the value of a point, or why it is no measurement: some engines write −1 for "not known".
func valueOf(p pmetric.NumberDataPoint) (v float64, why Reason) {
	switch p.ValueType() {
	case pmetric.NumberDataPointValueTypeInt:
		v = float64(p.IntValue())
	case pmetric.NumberDataPointValueTypeDouble:
		v = p.DoubleValue()
	default:
		return 0, NoValue
	}
	switch {
	case math.IsNaN(v), math.IsInf(v, 0):
		return 0, NotFinite
	case v == -1:
		return v, Sentinel
	default:
		return v, None
	}
}

// Measured is the value of a point of something that cannot be below zero, such as an amount or a count, or why it is no measurement.
func Measured(p pmetric.NumberDataPoint) (v float64, why Reason) {
	switch v, why = valueOf(p); {
	case why != None:
	case v < 0:
		why = Negative
	case v > sketch.MaxCount:
		why = Implausible // NVML's 2^64-1 for what it does not know, among others
	}
	return v, why
}

// addExemplars offers the traces behind a point. A scraped exemplar stays until the next one replaces it, so its own time
// decides whether it is of this window.
// Of a ratio only what is bad can be a witness.
func (e *Intake) addExemplars(t *binding, at int64, all pmetric.ExemplarSlice) {
	if t.use.Role != selection.Value && t.use.Role != selection.Bad {
		return
	}
	for _, x := range all.All() {
		if when := int64(x.Timestamp()); when != 0 && e.to.WindowStart(t.slo, when) != e.to.WindowStart(t.slo, at) {
			continue
		}
		v := x.DoubleValue()
		if x.ValueType() == pmetric.ExemplarValueTypeInt {
			v = float64(x.IntValue())
		}
		e.to.Exemplar(t.series, at, Exemplar{TraceID: x.TraceID(), SpanID: x.SpanID(), Value: v * t.scale})
	}
}

func (s *scratch) copyCounts(counts pcommon.UInt64Slice) []uint64 {
	s.counts = AppendCounts(s.counts[:0], counts)
	return s.counts
}

// AppendCounts appends counts of buckets.
func AppendCounts(to []uint64, counts pcommon.UInt64Slice) []uint64 {
	for i := range counts.Len() {
		to = append(to, counts.At(i))
	}
	return to
}

// CopyExponential makes a histogram what a point says, with a factor of 1. Its memory is used again.
func CopyExponential(to *sketch.Exponential, p pmetric.ExponentialHistogramDataPoint) {
	to.Scale, to.ZeroCount, to.ZeroThreshold, to.Factor = p.Scale(), p.ZeroCount(), p.ZeroThreshold(), 1
	to.Positive.Offset, to.Negative.Offset = p.Positive().Offset(), p.Negative().Offset()
	to.Positive.Counts = AppendCounts(to.Positive.Counts[:0], p.Positive().BucketCounts())
	to.Negative.Counts = AppendCounts(to.Negative.Counts[:0], p.Negative().BucketCounts())
}
