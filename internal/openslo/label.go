// SPDX-License-Identifier: Apache-2.0

package openslo

import "strconv"

// TargetValue is the number that is promised, in the base unit: the threshold of a threshold indicator, the
// share of good events of a ratio.
func (s SLO) TargetValue() float64 {
	if s.Indicator.Threshold != nil {
		return s.Objective.Value
	}
	return s.Objective.Target
}

// Target is the canonical label of that name: TargetValue with four decimals, e.g. 0.8000.
func (s SLO) Target() string {
	return strconv.FormatFloat(s.TargetValue(), 'f', 4, 64)
}

// Evaluated tells whether this distribution measures the SLO: all of its sources are TypeOpenTelemetry, or all of its parts
// are measured. NotEvaluated says why it does not.
func (s SLO) Evaluated() bool { return s.NotEvaluated() == "" }

// NotEvaluated says why this distribution does not measure the SLO; it is empty where it does.
func (s SLO) NotEvaluated() string {
	if len(s.Indicator.Parts) > 0 {
		return s.unmeasured
	}
	selectors := s.Indicator.Selectors()
	for _, sel := range selectors {
		if sel.Type != TypeOpenTelemetry {
			return "its metricSource is of type " + sel.Type + ", which another tool measures, and not " + TypeOpenTelemetry
		}
	}
	if len(selectors) == 0 {
		return "it has no indicator"
	}
	return ""
}

// Selectors are the sources that the indicator is made of. A composite has none of its own: those of its parts are theirs.
func (i Indicator) Selectors() []*Selector {
	all := []*Selector{i.Threshold}
	if i.Ratio != nil {
		all = append(all, i.Ratio.Good, i.Ratio.Bad, i.Ratio.Total, i.Ratio.Raw)
	}
	set := all[:0]
	for _, s := range all {
		if s != nil {
			set = append(set, s)
		}
	}
	return set
}
