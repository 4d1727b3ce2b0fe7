// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"math"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// rates are the values of a rate, in the plural.
func rates(s *openslo.Selector) string {
	of := s.Metric
	if s.Signal != openslo.SignalMetrics {
		if of = things(s.Signal); s.Value != "" {
			of = s.Value + " on " + of
		}
	}
	return "the rates of " + of + " over " + span(s.Rate)
}

// interval says what one event of a rate is.
func interval(s *openslo.Selector) string {
	what := "the sum of what was selected in it"
	switch {
	case s.Signal == openslo.SignalMetrics && counter(s):
		what = "what the counter grew by in it"
	case s.Signal != openslo.SignalMetrics && s.Value == "":
		what = "the number of " + things(s.Signal) + " in it"
	}
	return "Each interval of " + span(s.Rate) + " with input is an event: its value is " + what + ", a second."
}

// plausible says what a measured value can be.
func plausible(s *openslo.Selector, unit string) string {
	if s.Rate > 0 {
		unit = strings.TrimSuffix(unit, "_per_second")
	}
	below, above := math.IsInf(s.Range.Min, -1), math.IsInf(s.Range.Max, 1)
	least, most := quantity(s.Range.Min, unit), quantity(s.Range.Max, unit)
	switch {
	case below && above:
		return "Every number is plausible."
	case below:
		return "A value above " + most + " is refused as implausible."
	case above:
		return "A value below " + least + " is refused as implausible."
	}
	return "A value below " + least + " or above " + most + " is refused as implausible."
}
