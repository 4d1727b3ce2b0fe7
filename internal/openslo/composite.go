// SPDX-License-Identifier: Apache-2.0

package openslo

import "math"

// compositeName is the name of the objective that a composite SLO has as a whole.
const compositeName = "composite"

// wholeOf is what the parts of a composite promise together: the mean of what each promises, by their shares. It is false
// where a part has a problem, so that there is no such sum.
func wholeOf(o object, parts []part) (placedObjective, bool) {
	whole := placedObjective{Objective: Objective{Name: compositeName}, at: object{value: o.fields["objectives"]}}
	for i := range parts {
		if len(parts[i].objectives) != 1 {
			return whole, false
		}
		obj, share := &parts[i].objectives[0], parts[i].composite.Share
		whole.Target += share * obj.Target
		whole.TimeSliceTarget += share * obj.TimeSliceTarget
		switch first := &parts[0].objectives[0]; {
		case i == 0:
			whole.TimeSliceWindow = obj.TimeSliceWindow
		case obj.TimeSliceWindow != first.TimeSliceWindow:
			v := obj.at.fields["timeSliceWindow"]
			v.problemf("%s is another length than the %s in line %d: write the same, because the slices of a composite are those of its parts",
				v.node.Value, first.at.fields["timeSliceWindow"].node.Value, first.at.pos().Line)
			return whole, false
		}
	}
	// Shares add up to 1 but for the last bit, and a target of 1 leaves no budget.
	whole.Target = min(whole.Target, math.Nextafter(1, 0))
	whole.TimeSliceTarget = min(whole.TimeSliceTarget, 1)
	return whole, len(parts) > 0
}

// compose is the SLO that a composite is as a whole. Parts are its parts, whose ids are known.
func compose(slo SLO, parts []SLO, whole Objective, at Position) SLO {
	slo.Objective, slo.Position = whole, at
	slo.Unit = "ratio"
	if slo.Class == "" {
		slo.Class = ClassAvailability
	}
	slo.Indicator = Indicator{Name: slo.Name}
	for i := range parts {
		slo.Indicator.Parts = append(slo.Indicator.Parts, Part{ID: parts[i].ID, Share: parts[i].Composite.Share})
		if why := parts[i].NotEvaluated(); why != "" && slo.unmeasured == "" {
			slo.unmeasured = "its part " + parts[i].ID + " is not: " + why
		}
	}
	return slo
}
