// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"slices"
	"strings"
)

// sloDocument is what a policy needs to know of an SLO document.
type sloDocument struct {
	ids       []string // empty when the document has problems
	groupBy   []string
	evaluated bool
}

// readSLO reads an SLO document into one SLO an objective.
func (p *parser) readSLO(d document, v value) {
	before := len(p.problems)
	o, ok := v.object("description", "service", "indicator", "indicatorRef", "timeWindow", "budgetingMethod", "objectives", "alertPolicies")
	if !ok {
		return
	}
	slo := SLO{
		Name: d.meta.name, DisplayName: d.meta.displayName, Description: readDescription(o),
		GroupBy: readGroupBy(d.meta), Class: readClass(d.meta),
	}
	if s, ok := o.need("service", "name the service that makes the promise"); ok {
		slo.Service = readName(s)
	}
	if b, ok := o.need("budgetingMethod", "write Occurrences, Timeslices or RatioTimeslices"); ok {
		slo.Budgeting, _ = oneOf(b, Occurrences, Timeslices, RatioTimeslices)
	}
	if w, ok := o.need("timeWindow", "write e.g. [{duration: 28d, isRolling: true}]"); ok {
		slo.TimeWindow = readTimeWindow(w)
	}
	if a, ok := o.get("alertPolicies"); ok {
		a.list()
	}
	items := p.openObjectives(o)
	ind := p.sloIndicator(o, items)

	var objectives []placedObjective
	for _, item := range items {
		if obj, ok := readObjective(item, ind, slo); ok {
			objectives = append(objectives, placedObjective{obj, item})
		}
	}
	doc := sloDocument{groupBy: slo.GroupBy}
	sound := func() bool { return ind.ok && len(p.problems) == before }
	if sound() {
		p.derive(d.meta, &slo, &ind, objectives)
	}
	if sound() {
		for _, obj := range objectives {
			one := slo
			one.Indicator = ind.Indicator
			one.Objective = obj.Objective
			one.ID = slo.ID + ":" + obj.Name
			one.Position = obj.at.pos()
			p.catalog.SLOs = append(p.catalog.SLOs, one)
			doc.ids = append(doc.ids, one.ID)
			doc.evaluated = one.Evaluated()
		}
	}
	p.slos[d.meta.name] = doc
}

// placedObjective is an objective with the place of its complaints.
type placedObjective struct {
	Objective
	at object
}

// openObjectives opens the list of objectives. Composite ones are reported here, before anything else is
// asked of them.
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

// compositeKeys make an objective a part of a composite SLO.
var compositeKeys = []string{"indicator", "indicatorRef", "compositeWeight"}

func compositeKey(obj object) (string, bool) {
	for _, key := range compositeKeys {
		if obj.has(key) {
			return key, true
		}
	}
	return "", false
}

// sloIndicator is the inline indicator or the one referred to.
func (p *parser) sloIndicator(o object, objectives []object) indicator {
	inline, ref := o.has("indicator"), o.has("indicatorRef")
	switch {
	case inline && ref:
		o.problemf("has indicator and indicatorRef: keep one")
	case inline:
		v, ok := o.get("indicator")
		if !ok {
			break
		}
		return p.inlineIndicator(v)
	case ref:
		v, ok := o.get("indicatorRef")
		if !ok {
			break
		}
		name, ok := v.text()
		if !ok {
			break
		}
		if ind, ok := p.indicators[name]; ok {
			return ind
		}
		p.unresolved(v, KindSLI, name)
	default:
		for _, obj := range objectives {
			if _, composite := compositeKey(obj); composite {
				return indicator{} // its objectives bring their own, which is reported there
			}
		}
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

// reservedKeys are the attributes that results carry already.
var reservedKeys = []string{"slo_id", "service", "slo_class", "target", "unit", "outcome", "bound", "window", "state", "baseline"}

// readGroupBy is the group-by annotation: attribute keys with commas between.
func readGroupBy(m metadata) []string {
	s, v, ok := m.annotation(annotationGroupBy)
	if !ok {
		return nil
	}
	var keys []string
	labels := make(map[string]string) // as Prometheus would spell them → as written
	for key := range strings.SplitSeq(s, ",") {
		key = strings.TrimSpace(key)
		label := nameSeparators.Replace(key)
		first, taken := labels[label]
		switch {
		case key == "":
			v.problemf("%s has an empty key: write attribute keys with one comma between", shown(s))
		case strings.ContainsAny(key, " \t\n\"'"):
			v.problemf("%s is no attribute key: write keys with commas between, e.g. service.namespace,cloud.region", shown(key))
		case slices.Contains(reservedKeys, label):
			v.problemf("%s is an attribute of every result already: group by another key", shown(key))
		case taken && first == key:
			v.problemf("%s stands twice: keep one", shown(key))
		case taken:
			v.problemf("%s and %s become one label in Prometheus: keep one", shown(first), shown(key))
		default:
			labels[label] = key
			keys = append(keys, key)
		}
	}
	return keys
}
