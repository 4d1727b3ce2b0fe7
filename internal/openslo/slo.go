// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"slices"
)

// sloDocument is what a policy needs to know of an SLO document.
type sloDocument struct {
	ids       []string // what a policy looks at: a composite as a whole, or all objectives; empty when the document has problems
	all       []string // with the parts of a composite
	groupBy   []string
	evaluated bool
}

// readSLO reads an SLO document into one SLO an objective.
func (p *parser) readSLO(d document, v value) {
	before := len(p.problems)
	o, ok := v.objectWith([]string{"alertPolicies"}, "description", "service", "indicator", "indicatorRef",
		"timeWindow", "budgetingMethod", "objectives", "alertPolicies")
	if !ok {
		return
	}
	slo := SLO{
		Name: d.meta.name, DisplayName: d.meta.displayName, Description: readDescription(o),
		GroupBy: readGroupBy(d.meta), Class: readClass(d.meta),
		MinEvents: readMinEvents(d.meta), Owner: readOwner(d.meta), Runbook: readRunbook(d.meta),
	}
	if s, ok := o.need("service", "name the service that makes the promise"); ok {
		slo.Service = readName(s)
		p.services[slo.Service] = append(p.services[slo.Service], d.meta.name)
	}
	if b, ok := o.need("budgetingMethod", "write Occurrences, Timeslices or RatioTimeslices"); ok {
		slo.Budgeting, _ = oneOf(b, Occurrences, Timeslices, RatioTimeslices)
	}
	if w, ok := o.need("timeWindow", "write e.g. [{duration: 28d, isRolling: true}]"); ok {
		slo.TimeWindow = readTimeWindow(w)
	}
	alerts := p.readAlertPolicies(o)
	parts, composite := p.readParts(o, slo)

	var objectives []placedObjective
	for _, part := range parts {
		objectives = append(objectives, part.objectives...)
	}
	var whole *placedObjective
	if composite {
		one, ok := wholeOf(o, parts)
		if whole, objectives = &one, nil; ok {
			objectives = []placedObjective{one}
		}
	}
	for _, a := range alerts {
		a.check(slo, objectives)
		slo.AlertPolicies = append(slo.AlertPolicies, a.AlertPolicy)
	}
	doc := sloDocument{groupBy: slo.GroupBy}
	sound := func() bool { return len(p.problems) == before }
	if sound() && !slices.ContainsFunc(parts, func(part part) bool { return !part.ok }) {
		for _, one := range p.derive(d, slo, parts, whole) {
			if !sound() {
				break
			}
			p.catalog.SLOs = append(p.catalog.SLOs, one)
			doc.all = append(doc.all, one.ID)
			if one.Composite == nil {
				doc.ids = append(doc.ids, one.ID)
				doc.evaluated = one.Evaluated()
			}
		}
	}
	p.slos[d.meta.name] = doc
}

// placedObjective is an objective with the place of its complaints.
type placedObjective struct {
	Objective
	at object
}

// part is an indicator and what is promised of it. A composite SLO has a part for each objective, others have one.
type part struct {
	indicator
	objectives []placedObjective
	composite  *Composite
}

// readParts reads the indicators and objectives of an SLO, and tells whether it is a composite.
func (p *parser) readParts(o object, slo SLO) (parts []part, composite bool) {
	items := p.openObjectives(o)
	if !slices.ContainsFunc(items, isComposite) {
		whole := part{indicator: p.readIndicator(o)}
		for _, item := range items {
			if obj, ok := readObjective(item, whole.indicator, slo); ok {
				whole.objectives = append(whole.objectives, placedObjective{obj, item})
			}
		}
		return []part{whole}, false
	}
	for _, key := range []string{"indicator", "indicatorRef"} {
		if o.has(key) {
			o.fields[key].problemf("is for an SLO of one indicator, and the objectives are parts of a composite (indicator, indicatorRef or compositeWeight in them): give each its own and remove this one")
			return nil, true
		}
	}
	var weights float64
	for _, item := range items {
		one := part{indicator: p.readIndicator(item), composite: &Composite{Weight: readWeight(item)}}
		weights += one.composite.Weight
		if obj, ok := readObjective(item, one.indicator, slo); ok {
			one.objectives = []placedObjective{{obj, item}}
		}
		parts = append(parts, one)
	}
	for _, one := range parts {
		one.composite.Share = one.composite.Weight / weights
	}
	return parts, true
}

func readWeight(o object) float64 {
	v, ok := o.get("compositeWeight")
	if !ok {
		return 1
	}
	n, ok := v.number()
	if ok && (n < 1/maxWeight || n > maxWeight) {
		v.problemf("%s is no weight: write a number from 1e-9 to 1e9, e.g. 1", v.node.Value)
	}
	return n
}

// maxWeight keeps the sum of weights finite, and each share of it above 0.
const maxWeight = 1e9

// openObjectives opens the list of objectives.
func (p *parser) openObjectives(o object) []object {
	v, ok := o.need("objectives", "write at least one, e.g. [{op: lte, value: 0.8, target: 0.95}]")
	if !ok {
		return nil
	}
	items, _ := v.list()
	var open []object
	for _, item := range items {
		obj, ok := item.object("displayName", "op", "value", "target", "targetPercent", "timeSliceTarget", "timeSliceWindow",
			"indicator", "indicatorRef", "compositeWeight")
		if !ok {
			continue
		}
		open = append(open, obj)
	}
	return open
}

// isComposite tells an objective that is a part of a composite SLO.
func isComposite(objective object) bool {
	return objective.has("indicator") || objective.has("indicatorRef") || objective.has("compositeWeight")
}

// readIndicator is the inline indicator of an SLO or objective, or the one referred to.
func (p *parser) readIndicator(o object) indicator {
	inline, ref := o.has("indicator"), o.has("indicatorRef")
	switch {
	case inline && ref:
		o.problemf("has indicator and indicatorRef: keep one")
	case inline:
		if v, ok := o.get("indicator"); ok {
			return p.inlineIndicator(v)
		}
	case ref:
		v, ok := o.get("indicatorRef")
		if !ok {
			break
		}
		name, ok := v.text()
		if !ok {
			break
		}
		ind, _ := byRef(p, v, KindSLI, name, p.indicators)
		return ind
	case o.meant["indicator"] || o.meant["indicatorRef"]:
	default:
		o.problemf("has no indicator: write indicator, or indicatorRef with the name of an SLI document")
	}
	return indicator{}
}

func (p *parser) inlineIndicator(v value) indicator {
	o, ok := v.object("metadata", "spec")
	if !ok {
		return indicator{}
	}
	var name string
	if m, ok := o.need("metadata", "name the indicator, e.g. metadata: {name: ttft}"); ok {
		name = readMetadata(m, nil).name
	}
	s, ok := o.need("spec", "write thresholdMetric or ratioMetric in it")
	if !ok {
		return indicator{}
	}
	ind := p.readIndicatorSpec(s)
	ind.Name = name
	ind.ok = ind.ok && name != ""
	return ind
}

// readClass is the class annotation, or "" when it is to be derived.
func readClass(m metadata) Class {
	s, v, ok := m.annotation(annotationClass)
	if !ok {
		return ""
	}
	if !slices.Contains(classes, Class(s)) {
		v.problemf("class %s is not known: %s", shown(s), instead(s, strs(classes)))
		return ""
	}
	return Class(s)
}

var classes = []Class{ClassLatency, ClassAvailability, ClassThroughput, ClassQuality, ClassCost, ClassSaturation}
