// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/attrs"
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
	uses     []*selection.Use
	resource uint64 // hash
	scope    uint64
	newest   int64 // event time of what was accepted of this resource
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
				if b.uses = e.uses.Of(m.Name()); b.uses == nil {
					continue
				}
				b.metric = m
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

func (e *engine) metric(b *batch) {
	if unknownTemporality(b.metric) {
		e.counts.refuse(noTemporality, pointsOf(b.metric))
		return
	}
	switch m := b.metric; m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			if in, at := e.find(b, p.Attributes(), p.Timestamp(), p.Flags()); in != nil {
				e.gauge(b, in, at, p)
			}
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			if in, at := e.find(b, p.Attributes(), p.Timestamp(), p.Flags()); in != nil {
				e.sum(b, in, at, m.Sum(), p)
			}
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			if in, at := e.find(b, p.Attributes(), p.Timestamp(), p.Flags()); in != nil {
				e.histogram(b, in, at, m.Histogram().AggregationTemporality(), p)
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			if in, at := e.find(b, p.Attributes(), p.Timestamp(), p.Flags()); in != nil {
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

// find returns the input series of a point and the point's event time, or nil for a point that is refused.
func (e *engine) find(b *batch, point pcommon.Map, ts pcommon.Timestamp, flags pmetric.DataPointFlags) (*input, int64) {
	at := int64(ts) // OTLP times are Unix nanoseconds; one beyond 2262 is refused as too far ahead
	switch {
	case flags.NoRecordedValue():
		e.counts.refuse(noRecordedValue, 1)
		return nil, 0
	case at == 0:
		e.counts.refuse(noTimestamp, 1)
		return nil, 0
	case at < 0 || e.watermark.Ahead(at, b.now):
		e.counts.refuse(future, 1)
		return nil, 0
	}
	if b.resource == 0 {
		b.resource = attrs.Combine(attrs.Hash(b.rm.Resource().Attributes()))
	}
	if b.scope == 0 {
		scope := b.sm.Scope()
		b.scope = attrs.Combine(attrs.String(scope.Name()), attrs.String(scope.Version()), attrs.Hash(scope.Attributes()))
	}
	id := attrs.Combine(b.resource, b.scope, attrs.String(b.metric.Name()), attrs.Hash(point))
	in := e.inputs.series[id]
	if in == nil {
		if !e.inputs.room() {
			e.counts.refuse(seriesLimit, 1)
			return nil, 0
		}
		in = &input{}
		e.inputs.series[id] = in
		e.bind(b, in, point)
	} else if in.generation != e.inputs.generation {
		e.bind(b, in, point)
	}
	in.heard = b.now
	return in, at
}

// bind says which judged series an input series counts for.
func (e *engine) bind(b *batch, in *input, point pcommon.Map) {
	in.generation = e.inputs.generation
	in.bindings = make([]binding, len(b.uses))
	for i, use := range b.uses {
		keys := e.judge.GroupBy(use.SLO)
		values := make([]string, len(keys))
		for k, key := range keys {
			if v, ok := attrs.Lookup(key, point, b.sm.Scope().Attributes(), b.rm.Resource().Attributes()); ok {
				values[k] = v.AsString()
			}
		}
		in.bindings[i] = binding{use: use, scale: use.Scale(b.metric.Unit()), slo: use.SLO, values: values}
	}
}

// targets returns the bindings that take a point: those whose condition holds and whose window is still open. Without
// any, why says what kept the point from counting; none says that no condition holds, which is no refusal.
func targets[P any](e *engine, b *batch, in *input, at int64, p P) (taken []*binding, why reason) {
	taken = e.input.targets[:0]
	for i := range in.bindings {
		bound := &in.bindings[i]
		if bound.use.Conditional() {
			ok, err := bound.use.Accepts(b.ctx, b.rm, b.sm, b.metric, p)
			if err != nil {
				e.set.Logger.Debug("a condition could not be evaluated", zap.String("slo_id", e.judge.SLO(bound.slo).ID), zap.Error(err))
				why = conditionError
				continue
			}
			if !ok {
				continue
			}
		}
		if bound.series == nil || bound.series.Gone() {
			bound.series = e.judge.Series(bound.slo, bound.values)
		}
		if e.judge.Late(bound.series, at) {
			why = tooLate
			continue
		}
		taken = append(taken, bound)
	}
	e.input.targets = taken
	return taken, why
}

// give hands a point to the bindings that take it and counts it once: as accepted if it counted for any SLO, else by
// the last reason why it did not.
func give[P any](e *engine, b *batch, in *input, at int64, p P, exemplars pmetric.ExemplarSlice, add func(t *binding) reason) {
	taken, why := targets(e, b, in, at, p)
	counted := false
	for _, t := range taken {
		if r := add(t); r != none {
			why = r
			continue
		}
		counted = true
		e.addExemplars(t, at, exemplars)
	}
	if counted || why == tooLate {
		b.newest = max(b.newest, at) // late points too are a sign of life
	}
	switch {
	case counted:
		e.counts.accepted++
	case why != none:
		e.counts.refuse(why, 1)
	}
}
