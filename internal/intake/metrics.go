// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/attrs"
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Batch is where an Intake stands in a batch of metrics while it walks it.
type Batch struct {
	Metric   pmetric.Metric
	intake   *Intake
	ctx      context.Context
	now      int64
	rm       pmetric.ResourceMetrics
	sm       pmetric.ScopeMetrics
	matcher  *selection.Matcher
	resource uint64 // hash
	scope    uint64
	stream   uint64 // resource, scope, metric and unit
	newest   int64  // event time of what was heard of this resource
}

// Metrics takes a batch in, at a wall time. Nothing closes meanwhile, so the order of its items has no say in what is late.
func (e *Intake) Metrics(ctx context.Context, md pmetric.Metrics, now int64) {
	b := &e.batch // it would not stay on the stack
	*b = Batch{intake: e, ctx: ctx, now: now}
	defer func() { *b = Batch{} }() // nothing of it is kept
	for _, rm := range md.ResourceMetrics().All() {
		b.rm, b.resource, b.newest = rm, 0, window.Unset
		for _, sm := range rm.ScopeMetrics().All() {
			b.sm, b.scope = sm, 0
			for _, m := range sm.Metrics().All() {
				b.Metric, b.stream = m, 0
				if e.options.Take != nil && e.options.Take(b) {
					continue
				}
				if b.matcher = e.uses.Of(m.Name()); b.matcher != nil {
					b.identify()
					e.metric(b)
				}
			}
		}
		if b.newest != window.Unset {
			e.Watermark.Observe(b.resource, b.newest, now)
		}
	}
}

// identify hashes what all points of the metric have in common, once for all of them. The unit is part of it: a series that
// changes its unit is another one.
func (b *Batch) identify() {
	if b.resource == 0 {
		b.resource = attrs.Combine(attrs.Hash(b.rm.Resource().Attributes()))
	}
	if b.scope == 0 {
		scope := b.sm.Scope()
		b.scope = attrs.Combine(attrs.String(scope.Name()), attrs.String(scope.Version()), attrs.Hash(scope.Attributes()))
	}
	b.stream = attrs.Combine(b.resource, b.scope, attrs.String(b.Metric.Name()), attrs.String(b.Metric.Unit()))
}

func (e *Intake) metric(b *Batch) {
	if unknownTemporality(b.Metric) {
		e.Counts.Refuse(NoTemporality, Points(b.Metric))
		return
	}
	switch m := b.Metric; m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			if in, at := find(e, b, p); in != nil {
				e.number(b, in, at, p, false, 0)
			}
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			if in, at := find(e, b, p); in != nil {
				e.sum(b, in, at, m.Sum(), p)
			}
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			if in, at := find(e, b, p); in != nil {
				e.histogram(b, in, at, m.Histogram().AggregationTemporality(), p)
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			if in, at := find(e, b, p); in != nil {
				e.exponential(b, in, at, m.ExponentialHistogram().AggregationTemporality(), p)
			}
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			if in, at := find(e, b, p); in != nil {
				e.summary(b, in, at, p)
			}
		}
	default:
	}
}

// unknownTemporality reports whether it cannot be told what the points of a metric mean.
func unknownTemporality(m pmetric.Metric) bool {
	switch m.Type() {
	case pmetric.MetricTypeSum, pmetric.MetricTypeHistogram, pmetric.MetricTypeExponentialHistogram:
		t := Temporality(m)
		return t != pmetric.AggregationTemporalityDelta && t != pmetric.AggregationTemporalityCumulative
	default:
		return false
	}
}

// Temporality is that of a metric's points.
func Temporality(m pmetric.Metric) pmetric.AggregationTemporality {
	switch m.Type() {
	case pmetric.MetricTypeSum:
		return m.Sum().AggregationTemporality()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().AggregationTemporality()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().AggregationTemporality()
	default:
		return pmetric.AggregationTemporalityUnspecified
	}
}

// Points is the number of points of a metric.
func Points(m pmetric.Metric) int {
	switch m.Type() {
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return m.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return m.Summary().DataPoints().Len()
	default:
		return 0
	}
}

// dataPoint is what the points of all shapes have in common.
type dataPoint interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
	Flags() pmetric.DataPointFlags
}

// find returns the input series of a point and the point's event time, or nil for a point that is refused or that no SLO
// selects. Conditions come first: what no SLO selects is neither refused nor remembered.
func find[P dataPoint](e *Intake, b *Batch, p P) (*Input, int64) {
	if !selects(e, b, p) {
		return nil, 0
	}
	at := int64(p.Timestamp())
	switch {
	case p.Flags().NoRecordedValue():
		e.Counts.Refuse(NoRecordedValue, 1)
		return nil, 0
	case at == 0:
		e.Counts.Refuse(NoTimestamp, 1)
		return nil, 0
	case at < 0 || e.Watermark.Ahead(at, b.now): // a time beyond 2262 is negative
		e.Counts.Refuse(Future, 1)
		return nil, 0
	}
	id := attrs.Combine(b.stream, identity(p.Attributes()))
	in := e.inputs.get(id, b.now)
	if in == nil {
		e.Counts.Refuse(SeriesLimit, 1)
		return nil, 0
	}
	if in.generation != e.inputs.generation {
		in.bindings, in.counts, in.generation = nil, false, e.inputs.generation
	}
	if !in.serves(e.scratch.uses) {
		e.bind(b, in, p.Attributes())
	}
	return in, at
}

// identity is the hash of a point's own attributes. Labels that slo_schema has written are not among them: they change with
// the catalog, and the series is the same all the same.
func identity(point pcommon.Map) uint64 {
	if _, labelled := point.Get(labels.SLOID); labelled {
		return attrs.HashWithout(point, written)
	}
	return attrs.Hash(point)
}

var written = append(labels.Canonical[:], labels.SLOIDs)

// selects finds the uses that a point serves, into the scratch, and reports whether there are any. A point that serves none
// because a condition could not be evaluated is refused.
func selects[P dataPoint](e *Intake, b *Batch, p P) bool {
	uses, err := selection.Match(b.ctx, b.matcher, e.scratch.memory, b.rm, b.sm, b.Metric, p)
	if len(uses) > cap(e.scratch.memory) {
		e.scratch.memory = make([]int, 0, len(uses))
	}
	e.scratch.uses = uses
	if err != nil {
		e.options.Logger.Debug("a condition could not be evaluated", zap.String("metric", b.Metric.Name()), zap.Error(err))
		if len(uses) == 0 {
			e.Counts.Refuse(ConditionError, 1)
		}
	}
	return len(uses) > 0
}

// bind finds the series that an input series counts for by the uses of its point, besides those that earlier points
// had: a condition may look at more than the attributes.
func (e *Intake) bind(b *Batch, in *Input, point pcommon.Map) {
	for _, i := range e.scratch.uses {
		at, found := slices.BinarySearchFunc(in.bindings, i, func(t binding, i int) int { return cmp.Compare(t.use.Index, i) })
		if found {
			continue
		}
		use := &e.uses.Uses()[i]
		keys := e.to.GroupBy(use.SLO)
		values := make([]string, len(keys))
		for k, key := range keys {
			v := e.groupValue(key, point, b.sm.Scope().Attributes(), b.rm.Resource().Attributes())
			values[k] = strings.Clone(v) // a part of the batch's memory would keep all of it
		}
		t := binding{use: use, scale: use.Scale(b.Metric.Name(), b.Metric.Unit()), slo: use.SLO, values: values}
		in.bindings = slices.Insert(in.bindings, at, t)
		in.counts = in.counts || use.Counter
	}
}

// give hands a point, which tells of what happened since an event time, to the bindings that take it, those of the uses it
// serves whose window is still open, and counts it once: as accepted if it counted for any SLO, else by the last reason why
// it did not.
func (e *Intake) give(b *Batch, in *Input, since, at int64, exemplars pmetric.ExemplarSlice, add func(t *binding) Reason) {
	why, counted := None, false
	uses := e.scratch.uses
	for i := range in.bindings {
		t := &in.bindings[i]
		if len(uses) == 0 || uses[0] != t.use.Index {
			continue
		}
		uses = uses[1:]
		if t.series == nil || t.series.Gone() {
			t.series = e.to.Series(t.slo, t.values)
		}
		if e.to.Late(t.series, at) {
			why = Late
			continue
		}
		if e.excluded[t.slo].cover(at) {
			why = Excluded
			continue
		}
		if r := add(t); r != None {
			why = r
			continue
		}
		counted = true
		if since > 0 && since < at {
			t.series.Cover(since, at)
		}
		e.addExemplars(t, at, exemplars)
	}
	if counted || why == Late || why == Excluded {
		b.newest = max(b.newest, at)
	}
	if counted {
		e.Counts.Accepted++
	} else {
		e.Counts.Refuse(why, 1)
	}
}

// again reports whether a delta point was heard before: a client may send a request again that was taken in part.
func (e *Intake) again(b *Batch, in *Input, start pcommon.Timestamp, at int64) bool {
	if start == 0 || !in.once.Seen(int64(start), at, e.to.LateBefore()) {
		return false
	}
	b.newest = max(b.newest, at)
	e.Counts.Refuse(Duplicate, 1)
	return true
}

// told reports whether a value that stands for itself was heard before, the same number at the same time, or may have been and be
// forgotten.
func (e *Intake) told(b *Batch, in *Input, v float64, at int64) bool {
	var why Reason
	switch closed := e.to.LateBefore(); {
	case at >= closed && in.once.Forgotten(at):
		why = Stale
	case in.once.Seen(int64(math.Float64bits(v)), at, closed):
		why = Duplicate
	default:
		return false
	}
	b.newest = max(b.newest, at)
	e.Counts.Refuse(why, 1)
	return true
}

// What follows is for metrics that a component takes for itself.

// Now is the wall time.
func (b *Batch) Now() int64 { return b.now }

// Input is the input series of a point of the metric, nil where there is no room, which is counted.
func (b *Batch) Input(point pcommon.Map) *Input {
	if b.stream == 0 {
		b.identify()
	}
	in := b.intake.inputs.get(attrs.Combine(b.stream, attrs.Hash(point)), b.now)
	if in == nil {
		b.intake.Counts.Refuse(SeriesLimit, 1)
	}
	return in
}

// Again reports whether a delta point of an input series was heard before, which is counted.
func (b *Batch) Again(in *Input, start pcommon.Timestamp, at int64) bool {
	return b.intake.again(b, in, start, at)
}

// Source identifies what a point is of: its resource and its own attributes, without those that slo_schema has written.
func (b *Batch) Source(point pcommon.Map) uint64 {
	if b.stream == 0 {
		b.identify()
	}
	return attrs.Combine(b.resource, identity(point))
}

// Value is the value of a key, looked up in the point, then the scope, then the resource.
func (b *Batch) Value(key string, point pcommon.Map) string {
	return b.intake.value(key, point, b.sm.Scope().Attributes(), b.rm.Resource().Attributes())
}

// GroupValue is the value of a group-by key: like Value, but nobody names another tenant.
func (b *Batch) GroupValue(key string, point pcommon.Map) string {
	return b.intake.groupValue(key, point, b.sm.Scope().Attributes(), b.rm.Resource().Attributes())
}

// Heard notes an event time of the resource.
func (b *Batch) Heard(at int64) {
	if b.resource == 0 {
		b.identify()
	}
	b.newest = max(b.newest, at)
}
