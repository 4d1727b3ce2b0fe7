// SPDX-License-Identifier: Apache-2.0

package openslo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// idPart is one of the four parts of a slo_id.
var idPart = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`)

// defaultDomain is the first part of a slo_id when the label domain does not say another.
const defaultDomain = "llm"

// derive completes an SLO of which everything written is right, into one an objective, and one more for what a composite is
// as a whole. The rules stand in the package comment.
func (p *parser) derive(d document, slo SLO, parts []part, whole *placedObjective) []SLO {
	m := d.meta
	var all []SLO
	var objectives []placedObjective
	metric := slo.Name
	for i := range parts {
		part, one := &parts[i], slo
		if part.composite != nil {
			one.AlertPolicies = nil // they are for the whole
		}
		deriveUnit(m, &one, &part.indicator, part.objectives)
		deriveRange(&part.indicator)
		if one.Class == "" && one.Unit != "" {
			one.Class = deriveClass(m, &one, &part.indicator)
		}
		one.Indicator, one.Composite = part.Indicator, part.composite
		if part.composite == nil {
			metric = part.Name
		}
		for j := range part.objectives {
			obj := &part.objectives[j]
			deriveObjective(obj, part)
			one.Objective, one.Position = obj.Objective, obj.at.pos()
			all = append(all, one)
		}
		objectives = append(objectives, part.objectives...)
	}
	if whole != nil {
		objectives = append(objectives, *whole)
	}
	prefix := p.deriveID(m, slo, metric, objectives)
	for i := range all {
		all[i].Objective.Name = objectives[i].Name
		all[i].ID = prefix + ":" + objectives[i].Name
	}
	if whole != nil {
		one := compose(slo, all, whole.Objective, d.pos())
		one.ID = prefix + ":" + compositeName
		all = append(all, one)
	}
	return all
}

// deriveObjective names an objective and converts its value to the base unit.
func deriveObjective(obj *placedObjective, of *part) {
	obj.Name = trimmed(obj.Target * 100)
	if of.Threshold != nil {
		obj.Name = "p" + obj.Name
		// The very multiplication that a source's bucket boundaries go through, so that a boundary that
		// was written equal stays equal to the last bit.
		obj.Value *= of.scale()
	}
	if of.composite != nil {
		obj.Name = of.Name + "-" + obj.Name
	}
}

// scale turns what is written in the source's unit into the base unit.
func (ind *indicator) scale() float64 {
	if ind.unit.explicit {
		return ind.unit.scale
	}
	return ind.Threshold.Scale
}

// deriveRange converts the range to the base unit. The selector may be another SLO's too, in another unit.
func deriveRange(ind *indicator) {
	if ind.Threshold == nil || ind.Threshold.Range == nil {
		return
	}
	s, scale := *ind.Threshold, ind.scale()
	s.Range = &Range{Min: s.Range.Min * scale, Max: s.Range.Max * scale}
	ind.Threshold = &s
}

// deriveUnit sets the base unit of the SLO.
func deriveUnit(m metadata, slo *SLO, ind *indicator, objectives []placedObjective) {
	annotated, at, haveAnnotation := m.annotation(annotationUnit)
	if haveAnnotation && !checkBaseUnit(at, annotated) {
		return
	}
	if ind.Ratio != nil {
		slo.Unit = "ratio"
		if haveAnnotation && annotated != "ratio" {
			at.problemf("is %s, but the unit of a ratioMetric is ratio: remove it", shown(annotated))
		}
		return
	}
	unit := ind.unit
	if haveAnnotation && annotated != unit.base {
		if unit.explicit {
			at.problemf("is %s, but metricSource.spec.unit %s is in %s: remove one", shown(annotated), shown(unit.written), unit.base)
			return
		}
		if ind.Threshold.Rate > 0 && !strings.HasSuffix(annotated, perSecond) {
			at.problemf("is %s, but the indicator is a rate: write what there is of it a second, e.g. %s%s", shown(annotated), annotated, perSecond)
			return
		}
		// What a person wrote counts more than the look of a name. The selector may be another SLO's too.
		unit = sourceUnit{unitScale: unitScale{base: annotated, scale: 1}}
		s := *ind.Threshold
		unit.apply(&s)
		ind.Threshold = &s
	}
	switch {
	case unit.base != "":
		slo.Unit = unit.base
	case slo.Class == ClassLatency:
		slo.Unit = "seconds"
	default:
		slo.Unit = "ratio"
		for _, obj := range objectives {
			if v := obj.at.fields["value"]; ind.Threshold.Type == TypeOpenTelemetry && (obj.Value < 0 || obj.Value > 1) {
				v.problemf("%s has no known unit, and no ratio is compared with %s: write metricSource.spec.unit or the annotation %s",
					sourceName(ind.Threshold), v.node.Value, annotationUnit)
			}
		}
	}
}

func sourceName(s *Selector) string {
	if s.Metric != "" {
		return "metric " + shown(s.Metric)
	}
	return "value " + shown(s.Value)
}

// checkBaseUnit reports a unit annotation that is no OpenMetrics base unit.
func checkBaseUnit(v value, unit string) bool {
	if known, ok := lookupUnit(unit); ok && known.base != unit {
		v.problemf("%s is no base unit: write %s here, and what the metric is in as metricSource.spec.unit", shown(unit), known.base)
		return false
	}
	if !baseUnit.MatchString(unit) {
		v.problemf("%s is no OpenMetrics base unit: write lower case words like seconds, bytes or tokens_per_second", shown(unit))
		return false
	}
	return true
}

// deriveClass tells the class from the kind of indicator and the unit.
func deriveClass(m metadata, slo *SLO, ind *indicator) Class {
	switch {
	case ind.Ratio != nil:
		return ClassAvailability
	case slo.Unit == "seconds":
		return ClassLatency
	case strings.HasSuffix(slo.Unit, perSecond):
		return ClassThroughput
	case slo.Unit == "ratio", slo.Unit == "bytes":
		return ClassSaturation
	}
	m.self.problemf("no class follows from the unit %s: write the annotation %s: %s",
		slo.Unit, annotationClass, either(strs(classes)))
	return ""
}

// deriveID is the first three parts of the id, with which it claims the ids of all objectives.
func (p *parser) deriveID(m metadata, slo SLO, metric string, objectives []placedObjective) string {
	written, at, explicit := m.annotation(annotationSLOID)
	var names []string
	var prefix string
	if explicit {
		parts := strings.Split(written, ":")
		if i := slices.IndexFunc(parts, func(s string) bool { return !idPart.MatchString(s) }); i >= 0 {
			at.problemf("part %s of %s is no good: write lower case letters and digits, with dots, dashes and underscores inside",
				shown(parts[i]), shown(written))
			return ""
		}
		switch {
		case len(objectives) == 1 && len(parts) == 4:
			prefix = strings.Join(parts[:3], ":")
			objectives[0].Name = parts[3]
		case len(objectives) > 1 && len(parts) == 3:
			prefix = written
		case len(objectives) == 1:
			at.problemf("%s has %s: write four, domain:service:metric:objective", shown(written), count(len(parts), "part"))
			return ""
		default:
			for _, obj := range objectives {
				names = append(names, obj.Name)
			}
			at.problemf("%s has %s and the SLO %d objectives: write three, domain:service:metric, and %s are appended",
				shown(written), count(len(parts), "part"), len(objectives), join(names, "and"))
			return ""
		}
	} else {
		domain := defaultDomain
		if d, ok := m.labels.get("domain"); ok {
			var single bool
			if domain, single = d.scalar(); !single || !idPart.MatchString(domain) {
				d.problemf("is %s, and a slo_id begins with it: write one lower case word", d.what())
				return ""
			}
		}
		prefix = domain + ":" + slo.Service + ":" + metric
	}
	for _, obj := range objectives {
		id := prefix + ":" + obj.Name
		if first, taken := p.ids[id]; taken {
			obj.at.problemf("slo_id %s stands twice, first at %s:%d: change the target, the indicator's name or the annotation %s",
				id, first.File, first.Line, annotationSLOID)
			continue
		}
		p.ids[id] = obj.at.pos()
	}
	return prefix
}

func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
