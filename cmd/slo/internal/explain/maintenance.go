// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// planned says when there is maintenance, and what that means for the promise.
func planned(c *openslo.Catalog, slo *openslo.SLO) []string {
	var lines []string
	for _, m := range c.Maintained(slo.ID) {
		what := "nobody is told, and the books go on"
		if m.Effect == openslo.EffectExclude {
			what = "events count for nothing, and nobody is told"
		}
		const layout = "2006-01-02 15:04"
		when := fmt.Sprintf("for %s from %s in %s", span(m.Duration), m.Start.Format(layout), m.Start.Location())
		if m.Every.Count > 0 {
			when += ", and again every " + strings.TrimPrefix(words(m.Every), "1 ")
			if !m.Until.IsZero() {
				when += " until " + m.Until.Format(layout)
			}
		}
		if m.Reason != "" {
			when += " (" + oneLine(m.Reason) + ")"
		}
		lines = append(lines, fmt.Sprintf("%s, %s: %s.", m.Name, when, what))
	}
	return lines
}

// owner says who answers for the promise, and what to do when it breaks.
func owner(slo *openslo.SLO) []string {
	var lines []string
	if slo.Owner != "" {
		lines = append(lines, oneLine(slo.Owner)+" answers for it.")
	}
	if slo.Runbook != "" {
		lines = append(lines, "What to do when it breaks: "+slo.Runbook)
	}
	return lines
}
