// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/attrs"
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
)

// batch is where the engine stands in a batch while it walks it.
type batch struct {
	*engine
	ctx    context.Context
	now    int64 // Unix seconds
	using  *compiled
	md     pmetric.Metrics
	rm     pmetric.ResourceMetrics
	sm     pmetric.ScopeMetrics
	metric pmetric.Metric
	plan   *plan

	tenant       string // of the scope or the resource
	tenantLooked bool
	learned      bool
	found        [16]int // memory for the uses and the SLOs of a point
	slos         [16]int
	counts       counts
}

// process labels a batch. What is dropped leaves no empty metric behind.
func (e *engine) process(ctx context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
	using := e.selection()
	if using == nil {
		return md, nil // not started
	}
	b := batch{engine: e, ctx: ctx, now: e.now().Unix(), using: using, md: md}
	b.counts.evicted = int64(e.memory.sweep(b.now))
	if e.cfg.OnUnknown == Drop {
		b.learnAll() // while the batch is whole: it cannot be walked where points are being removed
	}
	md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		b.rm = rm
		scopes := rm.ScopeMetrics().Len()
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
			b.sm, b.tenantLooked = sm, false
			metrics := sm.Metrics().Len()
			sm.Metrics().RemoveIf(b.label)
			return metrics > 0 && sm.Metrics().Len() == 0
		})
		return scopes > 0 && rm.ScopeMetrics().Len() == 0
	})
	e.own.processed(ctx, &b.counts)
	if b.counts.dropped > 0 && md.ResourceMetrics().Len() == 0 {
		return md, processorhelper.ErrSkipProcessingData
	}
	return md, nil
}

// label labels the points of a metric, and reports whether it has lost all of them.
func (b *batch) label(m pmetric.Metric) bool {
	b.metric, b.plan = m, b.planFor(b.using, m.Name())
	dropped := b.counts.dropped
	left := 0
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		points := m.Gauge().DataPoints()
		points.RemoveIf(func(p pmetric.NumberDataPoint) bool { return point(b, p) })
		left = points.Len()
	case pmetric.MetricTypeSum:
		points := m.Sum().DataPoints()
		points.RemoveIf(func(p pmetric.NumberDataPoint) bool { return point(b, p) })
		left = points.Len()
	case pmetric.MetricTypeHistogram:
		points := m.Histogram().DataPoints()
		points.RemoveIf(func(p pmetric.HistogramDataPoint) bool { return point(b, p) })
		left = points.Len()
	case pmetric.MetricTypeExponentialHistogram:
		points := m.ExponentialHistogram().DataPoints()
		points.RemoveIf(func(p pmetric.ExponentialHistogramDataPoint) bool { return point(b, p) })
		left = points.Len()
	case pmetric.MetricTypeSummary:
		points := m.Summary().DataPoints()
		points.RemoveIf(func(p pmetric.SummaryDataPoint) bool { return point(b, p) })
		left = points.Len()
	default:
	}
	return left == 0 && b.counts.dropped > dropped
}

// point labels one data point, and reports whether it is to be dropped.
func point[P interface{ Attributes() pcommon.Map }](b *batch, p P) bool {
	a := p.Attributes()
	f := scan(a)
	switch {
	case f.have&hasID != 0:
		return b.labelled(a, f)
	case b.plan.matcher != nil && selected(b, a, f, p):
		return false
	case f.sloth && b.speaks[sloth] && b.plan.series.dialect != sloth:
		return b.translate(a, f, series{dialect: sloth})
	case b.plan.series.dialect != noDialect:
		return b.translate(a, f, b.plan.series)
	case f.have&hasClass != 0:
		return b.unknown(a, hasAll&^f.have, noID)
	}
	return false
}

// labelled takes a point that was labelled before it came here: its labels are believed, and what it lacks is added.
func (b *batch) labelled(a pcommon.Map, f found) bool {
	if f.have&hasAll != hasAll {
		id, _ := a.Get(labels.SLOID)
		i, ok := b.using.byID[id.AsString()]
		if !ok {
			missing := hasAll &^ f.have
			b.addTenant(a, f)
			return b.unknown(a, missing, reasonOf(missing))
		}
		for n, key := range labels.Canonical {
			if f.have&(1<<n) == 0 {
				a.PutStr(key, b.using.labels[i][n])
			}
		}
		attrs.Remove(a, missingTag) // of whoever labelled it
	}
	b.addTenant(a, f)
	b.counts.labelled[fromBefore]++
	return false
}

// selected labels a point that SLOs of the catalog are made of, and reports whether there are any.
func selected[P interface{ Attributes() pcommon.Map }](b *batch, a pcommon.Map, f found, p P) bool {
	uses, err := selection.Match(b.ctx, b.plan.matcher, b.found[:0], b.rm, b.sm, b.metric, p)
	if err != nil {
		b.counts.conditionErrors++
		b.set.Logger.Debug("a condition could not be evaluated", zap.String("metric", b.metric.Name()), zap.Error(err))
	}
	if len(uses) == 0 {
		return false
	}
	slos := b.slos[:0] // each once, though a point may be good and one of all
	for _, i := range uses {
		if slo := b.using.uses.Uses()[i].SLO; len(slos) == 0 || slos[len(slos)-1] != slo {
			slos = append(slos, slo)
		}
	}
	if len(slos) == 1 || b.cfg.OnMultiple == First {
		b.using.labels[slos[0]].put(a, f.have)
	}
	if len(slos) > 1 {
		ids := a.PutEmptySlice(labels.SLOIDs)
		ids.EnsureCapacity(len(slos))
		for _, slo := range slos {
			ids.AppendEmpty().SetStr(b.using.labels[slo][0])
		}
	}
	b.addTenant(a, f)
	b.counts.labelled[fromCatalog]++
	return true
}

// addTenant puts the tenant on a point where its scope or resource knows it.
func (b *batch) addTenant(a pcommon.Map, f found) {
	if f.tenant {
		return
	}
	if !b.tenantLooked {
		b.tenantLooked, b.tenant = true, ""
		if v, ok := attrs.Lookup(labels.Tenant, pcommon.NewMap(), b.sm.Scope().Attributes(), b.rm.Resource().Attributes()); ok {
			b.tenant = v.AsString()
		}
	}
	if b.tenant != "" {
		a.PutStr(labels.Tenant, b.tenant)
	}
}

// unknown takes a point whose labels cannot be completed, and reports whether it is to be dropped.
func (b *batch) unknown(a pcommon.Map, missing bits, why reason) bool {
	b.counts.unknown[why]++
	switch b.cfg.OnUnknown {
	case Drop:
		b.counts.dropped++
		return true
	case Tag:
		a.PutStr(missingTag, missingNames[missing])
	default:
	}
	return false
}
