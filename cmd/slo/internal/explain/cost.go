// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// perObjective are the metrics that the slo connector gives for each objective and group, and how many series each of
// them is. A test holds them against the connector's documentation.md.
var perObjective = []struct {
	Metric string
	Series int
}{
	{"slo.sli.value", 1},
	{"slo.sli.bound", 2},
	{"slo.sli.events", 2},
	{"slo.objective", 1},
	{"slo.state", 4},
}

// perPolicy is the metric for each ViolationPolicy and group: one series.
const perPolicy = "slo.violations"

func seriesPerGroup() int {
	n := 0
	for _, m := range perObjective {
		n += m.Series
	}
	return n
}

// cost says how many series the connector makes of an SLO.
func cost(slo *openslo.SLO) string {
	if notMeasured(slo) != "" {
		return "None: it is not measured here."
	}
	parts := make([]string, len(perObjective))
	for i, m := range perObjective {
		parts[i] = fmt.Sprintf("%s %d", m.Metric, m.Series)
	}
	return fmt.Sprintf("%d%s: %s.", seriesPerGroup(), each(slo.GroupBy), list(parts, "and"))
}

func each(groupBy []string) string {
	switch len(groupBy) {
	case 0:
		return ""
	case 1:
		return " for each value of " + groupBy[0]
	default:
		return " for each combination of " + list(groupBy, "and")
	}
}

// total says what all SLOs cost together, by the keys that they are grouped by.
func total(p *page, c *openslo.Catalog, chosen []*openslo.SLO) {
	type sum struct {
		groupBy              []string
		objectives, policies int
	}
	var sums []*sum
	of := func(groupBy []string) *sum {
		keys := slices.Sorted(slices.Values(groupBy))
		for _, s := range sums {
			if slices.Equal(s.groupBy, keys) {
				return s
			}
		}
		s := &sum{groupBy: keys}
		sums = append(sums, s)
		return s
	}
	for _, slo := range chosen {
		if notMeasured(slo) == "" {
			of(slo.GroupBy).objectives++
		}
	}
	for i := range c.Policies {
		pol := &c.Policies[i]
		if slices.ContainsFunc(chosen, func(slo *openslo.SLO) bool { return watches(&pol.When, slo.ID) }) {
			of(pol.GroupBy).policies++
		}
	}
	var lines []string
	for _, s := range sums {
		n := s.objectives*seriesPerGroup() + s.policies
		parts := []string{fmt.Sprintf("%d × %d", s.objectives, seriesPerGroup())}
		if s.policies > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", s.policies, perPolicy))
		}
		group := each(s.groupBy)
		if group == "" {
			group = " without groups"
		}
		lines = append(lines, fmt.Sprintf("%d%s: %s.", n, group, strings.Join(parts, " + ")))
	}
	if len(lines) == 0 {
		return
	}
	p.title("All together", "the series that the slo connector makes, of both outcomes, bounds and states")
	p.field("Series", lines...)
}
