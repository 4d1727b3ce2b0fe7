// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// metric is one that the slo connector gives, and how many series of it there are at most.
type metric struct {
	Name   string
	Series int
}

// perObjective are the metrics for each objective and group, as far as they are on by default. A test holds them against the
// connector's documentation.md.
var perObjective = []metric{
	{"slo.sli.value", 1},
	{"slo.sli.bound", 2},
	{sliEvents, 2},
	{"slo.objective", 1},
	{"slo.state", 4},
	{"slo.error_budget.remaining", 1},
	{"slo.error_budget.coverage", 1},
	{burnRate, len(burnWindows)},
}

const (
	sliEvents = "slo.sli.events"
	burnRate  = "slo.burn_rate"

	perPolicy    = "slo.violations"     // one series for each ViolationPolicy and group
	perConnector = "slo.evaluation.lag" // one series
)

// burnWindows are those that the connector tells burn rates over.
var burnWindows = [...]time.Duration{5 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 72 * time.Hour}

// metricsOf are the metrics of an SLO in each of its groups: the events of a composite are those of its parts, and a burn
// rate over more than the SLO's time window says nothing.
func metricsOf(slo *openslo.SLO) (all []metric) {
	for _, m := range perObjective {
		switch m.Name {
		case sliEvents:
			if isComposite(slo) {
				continue
			}
		case burnRate:
			m.Series = 0
			for _, w := range burnWindows {
				if w <= slo.TimeWindow.Duration.Approx() {
					m.Series++
				}
			}
		}
		if m.Series > 0 {
			all = append(all, m)
		}
	}
	return all
}

func seriesPerGroup(slo *openslo.SLO) (n int) {
	for _, m := range metricsOf(slo) {
		n += m.Series
	}
	return n
}

// cost says how many series the connector makes of an SLO.
func cost(slo *openslo.SLO) string {
	if notMeasured(slo) != "" {
		return "None: it is not measured here."
	}
	var parts []string
	for _, m := range metricsOf(slo) {
		parts = append(parts, fmt.Sprintf("%s %d", m.Name, m.Series))
	}
	return fmt.Sprintf("%d%s: %s.", seriesPerGroup(slo), each(slo.GroupBy), list(parts, "and"))
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
		groupBy  []string
		slos     map[int]int // how many SLOs make so many series
		policies int
	}
	var sums []*sum
	of := func(groupBy []string) *sum {
		keys := slices.Sorted(slices.Values(groupBy))
		for _, s := range sums {
			if slices.Equal(s.groupBy, keys) {
				return s
			}
		}
		s := &sum{groupBy: keys, slos: map[int]int{}}
		sums = append(sums, s)
		return s
	}
	for _, slo := range chosen {
		if notMeasured(slo) == "" {
			of(slo.GroupBy).slos[seriesPerGroup(slo)]++
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
		n := s.policies
		var parts []string
		for _, series := range slices.Sorted(maps.Keys(s.slos)) {
			n += s.slos[series] * series
			parts = append(parts, fmt.Sprintf("%d × %d", s.slos[series], series))
		}
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
	lines = append(lines, "1 of "+perConnector+", however many SLOs there are.")
	p.title("All together", "the series that the slo connector makes, of both outcomes, bounds and states")
	p.field("Series", lines...)
}
