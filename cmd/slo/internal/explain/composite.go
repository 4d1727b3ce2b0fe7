// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

func isComposite(slo *openslo.SLO) bool { return len(slo.Indicator.Parts) > 0 }

// whole is the promise of a composite in a sentence.
func whole(slo *openslo.SLO) string {
	o := &slo.Objective
	const sum = "the ratio of good events, the sum of what each part contributes,"
	over := window(slo.TimeWindow)
	switch slo.Budgeting {
	case openslo.Timeslices:
		return fmt.Sprintf("In at least %s of the slices of %s, %s is at least %s, %s.", percent(o.Target), span(o.TimeSliceWindow), sum,
			percent(o.TimeSliceTarget), over)
	case openslo.RatioTimeslices:
		return fmt.Sprintf("In the mean of all slices of %s, %s is at least %s, %s.", span(o.TimeSliceWindow), sum, percent(o.Target), over)
	}
	return fmt.Sprintf("All in all, %s is at least %s, %s.", sum, percent(o.Target), over)
}

// madeOf says how the ratio of a composite is computed.
func madeOf(slo *openslo.SLO) []string {
	parts := make([]string, len(slo.Indicator.Parts))
	for i, part := range slo.Indicator.Parts {
		parts[i] = percent(part.Share) + " × the ratio of " + part.ID
	}
	lines := []string{
		"Its ratio is " + list(parts, "+") + ".",
		"What is promised is the sum of what the parts promise, likewise. Each part is also judged by itself.",
	}
	if len(parts) > 1 {
		lines[0] = "Its ratio is the sum of " + list(parts, "and") + "."
		lines = append(lines, "A part without data could be all good or all bad: the bounds of the whole widen by its share.")
	}
	return lines
}
