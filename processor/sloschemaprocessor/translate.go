// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/attrs"
)

// translate labels a point of a dialect, and reports whether it is to be dropped.
func (b *batch) translate(a pcommon.Map, f found, s series) bool {
	k, ours, whole := keyOf(a, s.dialect)
	switch {
	case !ours && s.maybe:
		return false // of somebody else
	case !whole:
		l := labelSet{1: b.service(a, k), 4: unitRatio} // what is known without knowing which SLO it is
		l.put(a, f.have)
		b.addTenant(a, f)
		return b.unknown(a, l.missing()&^f.have, noID)
	}
	b.learnAll() // the series that tell the targets may come later in the batch
	slo, full := b.memory.get(k, b.now)
	l := labelSet{slo.id, b.service(a, k), slo.class, "", unitRatio}
	why := noTarget
	target := slo.target.Load()
	switch {
	case target != nil:
		l[3] = *target
	case full:
		why = noRoom
	case slo.bad.Load():
		why = badTarget
	}
	l.put(a, f.have)
	b.addTenant(a, f)
	if missing := l.missing(); missing != 0 {
		if first := reasonOf(missing); first != noTarget {
			why = first
		}
		return b.unknown(a, missing, why)
	}
	if !b.cfg.KeepDialectLabels {
		for _, name := range kept[s.dialect] {
			attrs.Remove(a, name)
		}
	}
	b.counts.labelled[fromDialect+source(s.dialect)]++
	return false
}

// keyOf reads which SLO a point is of. ours says that the point has the label by which the dialect is known, whole that
// nothing is missing which tells the SLO from others.
func keyOf(a pcommon.Map, d dialect) (k key, ours, whole bool) {
	k.dialect = d
	switch d {
	case sloth:
		k.labels[0] = text(a, "sloth_id")
	case pyrra:
		k.labels[0] = text(a, "slo")
	default:
		k.labels = [3]string{text(a, "service_name"), text(a, "feature_name"), text(a, "slo_name")}
		ours = k.labels[2] != ""
		return k, ours, ours && k.labels[0] != ""
	}
	ours = k.labels[0] != ""
	return k, ours, ours
}

// service is the name of the service that promises.
func (b *batch) service(a pcommon.Map, k key) string {
	switch k.dialect {
	case sloth:
		return text(a, "sloth_service")
	case sloGenerator:
		return k.labels[0]
	default:
		for _, key := range b.cfg.ServiceFrom {
			if v, ok := attrs.Lookup(key, a, b.sm.Scope().Attributes(), b.rm.Resource().Attributes()); ok {
				return v.AsString()
			}
		}
		return ""
	}
}

func text(a pcommon.Map, key string) string {
	if v, ok := a.Get(key); ok && v.Type() == pcommon.ValueTypeStr {
		return v.Str()
	}
	return ""
}

// learnAll learns the targets that the batch tells, once a batch.
func (b *batch) learnAll() {
	if b.learned {
		return
	}
	b.learned = true
	for _, rm := range b.md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if s := b.planFor(b.using, m.Name()).series; s.objective {
					b.learn(s.dialect, m)
				}
			}
		}
	}
}

// learn learns the targets that the points of a metric tell.
func (b *batch) learn(d dialect, m pmetric.Metric) {
	var points pmetric.NumberDataPointSlice
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		points = m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		points = m.Sum().DataPoints()
	default:
		return
	}
	for _, p := range points.All() {
		if p.Flags().NoRecordedValue() {
			continue
		}
		k, _, whole := keyOf(p.Attributes(), d)
		if !whole {
			continue
		}
		if slo, full := b.memory.get(k, b.now); !full {
			slo.learn(number(p))
		}
	}
}

func number(p pmetric.NumberDataPoint) float64 {
	switch p.ValueType() {
	case pmetric.NumberDataPointValueTypeInt:
		return float64(p.IntValue())
	case pmetric.NumberDataPointValueTypeDouble:
		return p.DoubleValue()
	default:
		return math.NaN()
	}
}
