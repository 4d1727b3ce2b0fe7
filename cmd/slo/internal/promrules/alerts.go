// SPDX-License-Identifier: Apache-2.0

package promrules

import (
	"fmt"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/promsli"
)

// policy makes the alert of a ViolationPolicy.
//
// A subquery's steps are multiples of its step since the epoch, so [15m:5m] sees the three windows of 5m that the slo
// connector sees, and counts those in which the condition held.
func (b *builder) policy(pol *openslo.ViolationPolicy) {
	what := "ViolationPolicy " + pol.Name
	ids := leaves(&pol.When)
	for _, id := range ids {
		if b.made[id] == nil {
			b.skip(what, "there are no rules for %s", id)
			return
		}
	}
	if pol.OnNoData == openslo.NoDataOpen {
		b.skip(what, "onNoData: open has no equal, because a rule does not know which groups there should be")
		return
	}
	g := Group{Name: "violation/" + pol.Name, Comments: []string{
		"Windows end at multiples of " + promsli.Span(pol.Window) + ", give or take an evaluation interval of the SLOs' groups.",
	}}
	if pol.OnNoData == openslo.NoDataHold && pol.ConsecutiveWindows > 1 {
		g.Comments = append(g.Comments, "A window without data ends the row of missed ones; with onNoData: hold the slo connector waits for the next.")
	}
	n := pol.ConsecutiveWindows
	first := b.made[ids[0]]
	alert := Rule{
		Alert: alertViolation,
		Expr: fmt.Sprintf("count_over_time((\n  %s\n)[%s:%s]) >= %d", b.missed(&pol.When, pol, "  "),
			promsli.Span(time.Duration(n)*pol.Window), promsli.Span(pol.Window), n),
		Labels: labelsOf(first, 0),
		Annotations: map[string]string{
			"summary": fmt.Sprintf("%s: %s missed in %s%s", pol.Name, describe(&pol.When), windowsInARow(n, pol.Window), forGroup(pol.GroupBy)),
		},
	}
	alert.Labels["slo_policy"] = pol.Name
	alert.Labels["slo_ids"] = strings.Join(ids, ",")
	g.Rules = []Rule{alert}
	b.groups = append(b.groups, g)
}

// missed is a condition of a policy in PromQL. Its leaves carry the group's labels only, so that and and or see equals.
func (b *builder) missed(c *openslo.Condition, pol *openslo.ViolationPolicy, indent string) string {
	children, word := c.All, "and"
	if len(children) == 0 {
		children, word = c.Any, "or"
	}
	var parts []string
	for i := range children {
		parts = append(parts, b.missed(&children[i], pol, indent+"  "))
	}
	if c.SLO != "" {
		word = "or" // an SLO is missed when one of its objectives is
		for _, id := range c.IDs {
			parts = append(parts, fmt.Sprintf("max%s(%s < %s%s)",
				promsli.By(pol.GroupBy), recorded(sliRatio, id, promsli.Span(pol.Window)), promsli.Number(inWindow(b.made[id])), slack))
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "(\n" + indent + "  " + strings.Join(parts, "\n"+indent+word+"\n"+indent+"  ") + "\n" + indent + ")"
}

// inWindow is the share of good events that a single window must have.
func inWindow(slo *openslo.SLO) float64 {
	if slo.Budgeting == openslo.Timeslices {
		return slo.Objective.TimeSliceTarget
	}
	return slo.Objective.Target
}

// describe is a condition of a policy in words.
func describe(c *openslo.Condition) string {
	if c.SLO != "" {
		return c.SLO
	}
	children, word := c.All, " and "
	if len(children) == 0 {
		children, word = c.Any, " or "
	}
	parts := make([]string, len(children))
	for i := range children {
		parts[i] = describe(&children[i])
		if children[i].SLO == "" && len(children) > 1 {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	return strings.Join(parts, word)
}

func windowsInARow(n int, w time.Duration) string {
	if n == 1 {
		return "a window of " + promsli.Span(w)
	}
	return fmt.Sprintf("%d windows of %s in a row", n, promsli.Span(w))
}

// forGroup names the group by a template of its labels.
func forGroup(groupBy []string) string {
	var b strings.Builder
	for i, key := range groupBy {
		b.WriteString(map[bool]string{true: " for ", false: ", "}[i == 0])
		fmt.Fprintf(&b, "%s {{ $labels.%s }}", key, promsli.Label(key))
	}
	return b.String()
}

// alerts makes the alerts of an AlertPolicy of an SLO.
func (b *builder) alerts(slo *openslo.SLO, a *openslo.AlertPolicy, spans []time.Duration) []Rule {
	c := &a.Condition
	what := fmt.Sprintf("AlertPolicy %s of %s", a.Name, slo.ID)
	var rules []Rule
	add := func(alert, expr, summary string) {
		labels := labelsOf(slo, 0)
		labels["severity"], labels["slo_policy"] = c.Severity, a.Name
		rules = append(rules, Rule{Alert: alert, Expr: expr, For: c.AlertAfter, Labels: labels,
			Annotations: map[string]string{"summary": summary + forGroup(slo.GroupBy)}})
	}
	if a.WhenBreaching {
		expr, err := breaching(slo, c)
		if err != nil {
			b.skip(what, "%v", err)
		} else {
			whole := slo.TimeWindow.Duration
			add(alertBurnRate, expr, fmt.Sprintf("%s spends its error budget {{ $value | printf \"%%.1f\" }} times as fast as it may; at %s times, that of %s is gone in %s",
				slo.Name, promsli.Number(c.Threshold), whole, promsli.Span((time.Duration(float64(whole.Approx())/c.Threshold)).Round(time.Minute))))
		}
	}
	if a.WhenNoData {
		longest := spans[len(spans)-1]
		if longest <= c.LookbackWindow {
			b.skip(what, "alertWhenNoData needs a window longer than lookbackWindow %s", promsli.Span(c.LookbackWindow))
		} else {
			add(alertNoData, recorded(sliRatio, slo.ID, promsli.Span(longest))+"\nunless ignoring (window)\n"+recorded(sliRatio, slo.ID, promsli.Span(c.LookbackWindow)),
				fmt.Sprintf("%s has had no event for %s, and had some in the last %s", slo.Name, promsli.Span(c.LookbackWindow), promsli.Span(longest)))
		}
	}
	return rules
}

func breaching(slo *openslo.SLO, c *openslo.AlertCondition) (string, error) {
	if burn(slo, c.LookbackWindow) == "" {
		return "", fmt.Errorf("lookbackWindow %s is shorter than timeSliceWindow %s", promsli.Span(c.LookbackWindow), promsli.Span(slo.Objective.TimeSliceWindow))
	}
	op := ">="
	if c.Op == openslo.OpGT {
		op = ">"
	}
	over := func(w time.Duration) string {
		return fmt.Sprintf("%s %s %s", recorded(burnRate, slo.ID, promsli.Span(w)), op, promsli.Number(c.Threshold))
	}
	short := openslo.ShortWindow(c.LookbackWindow)
	if short == 0 || burn(slo, short) == "" {
		return over(c.LookbackWindow), nil
	}
	return over(c.LookbackWindow) + "\nand ignoring (window)\n" + over(short), nil
}
