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
	switch slo.Budgeting {
	case openslo.Timeslices:
		slices := float64(whole / o.TimeSliceWindow)
		bad := math.Floor(allowed*slices + 1e-9)
		return []string{
			fmt.Sprintf("%s of the slices of %s may be bad: %s of the %s in %s, which are %s.", percent(allowed), span(o.TimeSliceWindow),
				number(bad), number(slices), in, minutes(time.Duration(bad)*o.TimeSliceWindow)),
			fmt.Sprintf("A slice is good in which at least %s of the events are.", percent(o.TimeSliceTarget)),
		}
	case openslo.RatioTimeslices:
		return []string{fmt.Sprintf("The mean over the slices of %s may fall short by %s: as if all were bad for %s of %s. A slice counts as much as any other, however many events it has.",
			span(o.TimeSliceWindow), percent(allowed), minutes(spent), in)}
	}
	return []string{
		fmt.Sprintf("%s of the events may be bad: %s in a million.", percent(allowed), number(math.Round(allowed*1e6))),
		fmt.Sprintf("With even traffic, all of them may be bad for %s of %s.", minutes(spent), in),
	}
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
	return fmt.Sprintf("Violation %s: opens when %s %s. A window without data %s.", pol.Name, missed(&pol.When, false), how, empty)
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

// burn says when an AlertPolicy alerts, and how long the budget lasts then.
func burn(slo *openslo.SLO, a *openslo.AlertPolicy) string {
	cond := &a.Condition
	var told []string
	for _, t := range a.Targets {
		told = append(told, t.Name+" by "+t.Target)
	}
	who := ""
	if len(told) > 0 {
		who = ", tells " + list(told, "and")
	}
	head := fmt.Sprintf("Alert %s (severity %s%s): ", a.Name, cond.Severity, who)
	var sentences []string
	if a.WhenBreaching {
		word := "at least"
		if cond.Op == openslo.OpGT {
			word = "more than"
		}
		lasted := ""
		if cond.AlertAfter > 0 {
			lasted = ", and that for " + span(cond.AlertAfter)
		}
		events := "events"
		if slo.Budgeting == openslo.Timeslices {
			events = "slices"
		}
		whole := slo.TimeWindow.Duration.Approx()
		exhausted := time.Duration(float64(whole) / cond.Threshold)
		sentences = append(sentences, fmt.Sprintf("when over the last %s the budget was spent %s %s times as fast as it may be%s. That means that %s %s of the %s were bad, that a whole budget of %s lasts %s, and that %s of it is gone after %s.",
			span(cond.LookbackWindow), word, number(cond.Threshold), lasted, word, about(cond.Threshold*(1-slo.Objective.Target)), events,
			words(slo.TimeWindow.Duration), span(exhausted), about(float64(cond.LookbackWindow)/float64(exhausted)), span(cond.LookbackWindow)))
	}
	var also []string
	if a.WhenNoData {
		also = append(also, "when there is no data")
	}
	if a.WhenResolved {
		also = append(also, "when it is over")
	}
	switch {
	case len(also) > 0 && len(sentences) > 0:
		sentences = append(sentences, "Also "+list(also, "and")+".")
	case len(also) > 0:
		sentences = append(sentences, list(also, "and")+".")
	case len(sentences) == 0:
		sentences = append(sentences, "never, it is switched off.")
	}
	return head + strings.Join(sentences, " ")
}
