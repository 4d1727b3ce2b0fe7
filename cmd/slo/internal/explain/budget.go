// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// budget says how much may go wrong, in events and in minutes.
func budget(slo *openslo.SLO) []string {
	o := &slo.Objective
	allowed := 1 - o.Target
	whole := slo.TimeWindow.Duration.Approx()
	spent := time.Duration(math.Round(allowed * float64(whole)))
	in := words(slo.TimeWindow.Duration)
	switch slo.TimeWindow.Duration.Unit {
	case 'M', 'Q', 'Y':
		in += " (taken as " + number(whole.Hours()/24) + " days)"
	}
	return append(allowance(slo, in, spent), atRisk(slo)...)
}

// allowance is the budget over the time window, which is called in, and which is spent by that much time without any good
// event.
func allowance(slo *openslo.SLO, in string, spent time.Duration) []string {
	o := &slo.Objective
	allowed := 1 - o.Target
	whole := slo.TimeWindow.Duration.Approx()
	switch slo.Budgeting {
	case openslo.Timeslices:
		all := float64(whole / o.TimeSliceWindow)
		bad := math.Floor(allowed*all + 1e-9)
		return []string{
			fmt.Sprintf("%s of the slices of %s may be bad: %s of the %s in %s, which are %s.", percent(allowed), span(o.TimeSliceWindow),
				number(bad), number(all), in, minutes(time.Duration(bad)*o.TimeSliceWindow)),
			goodSlice(slo),
		}
	case openslo.RatioTimeslices:
		return []string{fmt.Sprintf("The mean over the slices of %s may fall short by %s: as if all were bad for %s of %s. A slice counts as much as any other, however many events it has.",
			span(o.TimeSliceWindow), percent(allowed), minutes(spent), in)}
	}
	if isComposite(slo) {
		return []string{fmt.Sprintf("The ratio may fall short by %s: as if all events of all parts were bad for %s of %s.", percent(allowed), minutes(spent), in)}
	}
	return []string{
		fmt.Sprintf("%s of the events may be bad: %s in a million.", percent(allowed), number(math.Round(allowed*1e6))),
		fmt.Sprintf("With even traffic, all of them may be bad for %s of %s.", minutes(spent), in),
	}
}

func goodSlice(slo *openslo.SLO) string {
	if isComposite(slo) {
		return fmt.Sprintf("A slice is good in which the sum is at least %s.", percent(slo.Objective.TimeSliceTarget))
	}
	return fmt.Sprintf("A slice is good in which at least %s of the events are.", percent(slo.Objective.TimeSliceTarget))
}

func minutes(d time.Duration) string {
	return fmt.Sprintf("%s minutes (%s)", number(d.Minutes()), span(d))
}

// pages says who is told when.
func pages(c *openslo.Catalog, slo *openslo.SLO) []string {
	var lines []string
	for i := range c.Policies {
		if pol := &c.Policies[i]; watches(&pol.When, slo.ID) {
			lines = append(lines, violation(pol))
		}
	}
	for i := range slo.AlertPolicies {
		lines = append(lines, burn(slo, &slo.AlertPolicies[i]))
	}
	if len(lines) == 0 && slo.Composite != nil {
		return []string{"Nobody by itself: policies and alerts of " + slo.Name + " look at the whole."}
	}
	if len(lines) == 0 && len(atRisk(slo)) > 0 {
		return []string{"Nobody, but for its being at risk. No ViolationPolicy names " + slo.Name + ", and it has no alertPolicies."}
	}
	if len(lines) == 0 {
		return []string{"Nobody. No ViolationPolicy names " + slo.Name + ", and it has no alertPolicies."}
	}
	return lines
}

func watches(c *openslo.Condition, id string) bool {
	for _, list := range [][]openslo.Condition{c.All, c.Any} {
		for i := range list {
			if watches(&list[i], id) {
				return true
			}
		}
	}
	for _, leaf := range c.IDs {
		if leaf == id {
			return true
		}
	}
	return false
}

func violation(pol *openslo.ViolationPolicy) string {
	how := fmt.Sprintf("in a window of %s", span(pol.Window))
	if n := pol.ConsecutiveWindows; n > 1 {
		how = fmt.Sprintf("in %d windows of %s in a row, so after %s at the earliest", n, span(pol.Window), span(time.Duration(n)*pol.Window))
	}
	empty := map[openslo.NoDataAction]string{
		openslo.NoDataHold: "neither counts nor resets", openslo.NoDataOpen: "counts as missed", openslo.NoDataClose: "counts as kept",
	}[pol.OnNoData]
	return fmt.Sprintf("Violation %s%s: opens when %s %s. A window without data %s.", pol.Name, told(pol.Severity, pol.Targets), missed(&pol.When, false), how, empty)
}

// missed is a policy's condition in words.
func missed(c *openslo.Condition, nested bool) string {
	if c.SLO != "" {
		return c.SLO + " is missed"
	}
	children, word := c.All, "and"
	if len(children) == 0 {
		children, word = c.Any, "or"
	}
	var leaves []string
	var parts []string
	for i := range children {
		if children[i].SLO != "" {
			leaves = append(leaves, children[i].SLO)
		} else {
			parts = append(parts, missed(&children[i], len(children) > 1))
		}
	}
	if len(leaves) > 0 {
		verb := " is missed"
		if len(leaves) > 1 && word == "and" {
			verb = " are missed"
		}
		parts = append([]string{list(leaves, word) + verb}, parts...)
	}
	text := strings.Join(parts, ", "+word+" ")
	if nested && len(parts) > 1 {
		return "(" + text + ")"
	}
	return text
}
