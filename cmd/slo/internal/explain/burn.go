// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// usual are the burn rates of Google's SRE workbook, which put a promise at risk that has no alertPolicies of its own.
var usual = []struct {
	rate float64
	long time.Duration
}{{14.4, time.Hour}, {6, 6 * time.Hour}, {3, 24 * time.Hour}, {1, 72 * time.Hour}}

// atRisk says how fast the budget may be spent.
func atRisk(slo *openslo.SLO) []string {
	if notMeasured(slo) != "" || slo.Objective.Target == 0 || len(slo.AlertPolicies) > 0 {
		return nil
	}
	var rates []string
	how := " as fast as it may be"
	for _, u := range usual {
		short := openslo.ShortWindow(u.long)
		if u.long <= slo.TimeWindow.Duration.Approx() && short >= slo.Objective.TimeSliceWindow && u.rate <= slo.Objective.MaxBurnRate()*(1+1e-9) {
			rates = append(rates, fmt.Sprintf("%s×%s over %s and %s", number(u.rate), how, span(u.long), span(short)))
			how = ""
		}
	}
	if len(rates) == 0 {
		return nil
	}
	return []string{"It is at risk while the budget is spent " + list(rates, "or") + "."}
}

// told says in parentheses how bad it is and who is told; nothing where neither is written.
func told(severity string, targets []openslo.AlertNotificationTarget) string {
	var said, who []string
	if severity != "" {
		said = append(said, "severity "+severity)
	}
	for _, t := range targets {
		who = append(who, t.Name+" by "+t.Target)
	}
	if len(who) > 0 {
		said = append(said, "tells "+list(who, "and"))
	}
	if len(said) == 0 {
		return ""
	}
	return " (" + strings.Join(said, ", ") + ")"
}

// burn says when an AlertPolicy alerts, and how long the budget lasts then.
func burn(slo *openslo.SLO, a *openslo.AlertPolicy) string {
	cond := &a.Condition
	head := fmt.Sprintf("Alert %s%s: ", a.Name, told(cond.Severity, a.Targets))
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
		} else if isComposite(slo) {
			events = "events, by the weights of their parts,"
		}
		over := "the last " + span(cond.LookbackWindow)
		if short := openslo.ShortWindow(cond.LookbackWindow); short >= max(slo.Objective.TimeSliceWindow, time.Minute) {
			over += " and the last " + span(short) // the latter ends it soon after its cause
		}
		whole := slo.TimeWindow.Duration.Approx()
		exhausted := time.Duration(float64(whole) / cond.Threshold)
		sentences = append(sentences, fmt.Sprintf("when over %s the budget was spent %s %s times as fast as it may be%s. That means that %s %s of the %s were bad, that a whole budget of %s lasts %s, and that %s of it is gone after %s.",
			over, word, number(cond.Threshold), lasted, word, about(cond.Threshold*(1-slo.Objective.Target)), events,
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
