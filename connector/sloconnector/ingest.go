// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"cmp"
	"context"
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

// batch is where the engine stands in a batch while it walks it.
type batch struct {
	ctx      context.Context
	now      int64
	rm       pmetric.ResourceMetrics
	sm       pmetric.ScopeMetrics
	metric   pmetric.Metric
	matcher  *selection.Matcher
	resource uint64 // hash
	scope    uint64
	stream   uint64 // resource, scope, metric and unit
	newest   int64  // event time of what was heard of this resource
}

// consume hears a batch. Nothing in it is an error of the sender's that a retry would mend: what cannot be used is
// counted by reason.
func (e *engine) consume(ctx context.Context, md pmetric.Metrics) {
	begin := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.judge == nil {
		return // not started
	}
	b := batch{ctx: ctx, now: begin.UnixNano()}
	for _, rm := range md.ResourceMetrics().All() {
		b.rm, b.resource, b.newest = rm, 0, window.Unset
		for _, sm := range rm.ScopeMetrics().All() {
			b.sm, b.scope = sm, 0
			for _, m := range sm.Metrics().All() {
				if b.matcher = e.uses.Of(m.Name()); b.matcher == nil {
					continue
				}
				b.metric = m
				b.identify()
				e.metric(&b)
			}
		}
		if b.newest != window.Unset {
			e.watermark.Observe(b.resource, b.newest, b.now)
		}
	}
	// Windows close only now: the order of points inside a batch has no say in what is late.
	e.judge.Advance(e.watermark.Advance(b.now, window.Unset))
	e.own.consumed(ctx, &e.counts, e.now().Sub(begin))
}

// identify hashes what all points of the metric have in common, once for all of them. The unit is part of it: a series that
// changes its unit is another one.
func (b *batch) identify() {
	if b.resource == 0 {
		b.resource = attrs.Combine(attrs.Hash(b.rm.Resource().Attributes()))
	}
	if b.scope == 0 {
		scope := b.sm.Scope()
		b.scope = attrs.Combine(attrs.String(scope.Name()), attrs.String(scope.Version()), attrs.Hash(scope.Attributes()))
	}
	b.stream = attrs.Combine(b.resource, b.scope, attrs.String(b.metric.Name()), attrs.String(b.metric.Unit()))
}

func (e *engine) metric(b *batch) {
	if unknownTemporality(b.metric) {
		e.counts.refuse(noTemporality, pointsOf(b.metric))
		return
	}
	switch m := b.metric; m.Type() {
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
		e.counts.refuse(unsupportedShape, m.Summary().DataPoints().Len())
	default:
	}
}

// unknownTemporality reports whether it cannot be told what the points of a metric mean.
func unknownTemporality(m pmetric.Metric) bool {
	temporality := pmetric.AggregationTemporalityDelta
	switch m.Type() {
	case pmetric.MetricTypeSum:
		temporality = m.Sum().AggregationTemporality()
	case pmetric.MetricTypeHistogram:
		temporality = m.Histogram().AggregationTemporality()
	case pmetric.MetricTypeExponentialHistogram:
		temporality = m.ExponentialHistogram().AggregationTemporality()
	default:
	}
	return temporality != pmetric.AggregationTemporalityDelta && temporality != pmetric.AggregationTemporalityCumulative
}

func pointsOf(m pmetric.Metric) int {
	switch m.Type() {
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return m.Histogram().DataPoints().Len()
	default:
		return m.ExponentialHistogram().DataPoints().Len()
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
func find[P dataPoint](e *engine, b *batch, p P) (*input, int64) {
	if !selects(e, b, p) {
		return nil, 0
	}
	at := int64(p.Timestamp())
	switch {
	case p.Flags().NoRecordedValue():
		e.counts.refuse(noRecordedValue, 1)
		return nil, 0
	case at == 0:
		e.counts.refuse(noTimestamp, 1)
		return nil, 0
	case at < 0 || e.watermark.Ahead(at, b.now): // a time beyond 2262 is negative
		e.counts.refuse(future, 1)
		return nil, 0
	}
	id := attrs.Combine(b.stream, identity(p.Attributes()))
	in := e.inputs.series[id]
	switch {
	case in == nil && !e.inputs.room():
		e.counts.refuse(seriesLimit, 1)
		return nil, 0
	case in == nil:
		in = &input{}
		e.inputs.series[id] = in
	case in.generation != e.inputs.generation:
		in.bindings, in.counts = nil, false
	}
	in.generation = e.inputs.generation
	if !in.serves(e.input.uses) {
		e.bind(b, in, p.Attributes())
	}
	in.heard = b.now
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
func selects[P dataPoint](e *engine, b *batch, p P) bool {
	uses, err := selection.Match(b.ctx, b.matcher, e.input.memory, b.rm, b.sm, b.metric, p)
	if len(uses) > cap(e.input.memory) {
		e.input.memory = make([]int, 0, len(uses))
	}
	e.input.uses = uses
	if err != nil {
		e.set.Logger.Debug("a condition could not be evaluated", zap.String("metric", b.metric.Name()), zap.Error(err))
		if len(uses) == 0 {
			e.counts.refuse(conditionError, 1)
		}
	}
	return len(uses) > 0
}

// bind finds the judged series that an input series counts for by the uses of its point, besides those that earlier points
// had: a condition may look at more than the attributes.
func (e *engine) bind(b *batch, in *input, point pcommon.Map) {
	for _, i := range e.input.uses {
		at, found := slices.BinarySearchFunc(in.bindings, i, func(t binding, i int) int { return cmp.Compare(t.use.Index, i) })
		if found {
			continue
		}
		use := &e.uses.Uses()[i]
		keys := e.judge.GroupBy(use.SLO)
		values := make([]string, len(keys))
		for k, key := range keys {
			if v, ok := attrs.Lookup(key, point, b.sm.Scope().Attributes(), b.rm.Resource().Attributes()); ok {
				values[k] = strings.Clone(v.AsString()) // a part of the batch's memory would keep all of it
			}
		}
		t := binding{use: use, scale: use.Scale(b.metric.Name(), b.metric.Unit()), slo: use.SLO, values: values}
		in.bindings = slices.Insert(in.bindings, at, t)
		in.counts = in.counts || use.Counter
	}
}

// give hands a point to the bindings that take it, those of the uses it serves whose window is still open, and counts
// it once: as accepted if it counted for any SLO, else by the last reason why it did not.
func (e *engine) give(b *batch, in *input, at int64, exemplars pmetric.ExemplarSlice, add func(t *binding) reason) {
	why, counted := none, false
	uses := e.input.uses
	for i := range in.bindings {
		t := &in.bindings[i]
		if len(uses) == 0 || uses[0] != t.use.Index {
			continue
		}
		uses = uses[1:]
		if t.series == nil || t.series.Gone() {
			t.series = e.judge.Series(t.slo, t.values)
		}
		if e.judge.Late(t.series, at) {
			why = tooLate
			continue
		}
		if r := add(t); r != none {
			why = r
			continue
		}
		counted = true
		e.addExemplars(t, at, exemplars)
	}
	if counted || why == tooLate {
		b.newest = max(b.newest, at)
	}
	if counted {
		e.counts.accepted++
	} else {
		e.counts.refuse(why, 1)
	}
}
