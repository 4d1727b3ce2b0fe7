// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/alertmanager"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/promsli"
)

// The names of alerts.
const (
	alertViolation = "SLOViolation"
	alertBurnRate  = "SLOErrorBudgetBurn"
)

// publishAlerts says which alerts fire. Those of promises under maintenance are not among them: nobody is told, and the books
// go on.
func (e *engine) publishAlerts(context.Context) {
	if e.alerts == nil {
		return
	}
	e.mu.Lock()
	now := e.now()
	if changes := e.judge.OpenChanges(); changes == e.alerted.changes && now.Sub(e.alerted.at) < lookAtAlerts {
		e.mu.Unlock()
		return
	}
	e.alerted.changes, e.alerted.at = e.judge.OpenChanges(), now
	var open []judge.Event
	e.judge.Open(func(ev *judge.Event) { open = append(open, *ev) })
	slos := e.slos
	e.mu.Unlock() // alerts take longer to write than to find
	var firing []alertmanager.Alert
	for i := range open {
		if maintenance(slos, &open[i], now) == "" {
			firing = append(firing, e.alert(&open[i]))
		}
	}
	e.alerts.Set(firing)
}

// lookAtAlerts is how often what is open is looked at although nothing has opened or closed: maintenance begins and ends by
// the clock.
const lookAtAlerts = 10 * time.Second

// catalog is the one that is followed.
func (e *engine) catalog() *openslo.Catalog {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.slos
}

// maintenance names the maintenance window that a promise which an event is about is in, "" for none.
func maintenance(slos *openslo.Catalog, ev *judge.Event, at time.Time) string {
	for _, id := range ev.SLOs {
		for _, m := range slos.Maintained(id) {
			if _, _, in := m.At(at); in {
				return m.Name
			}
		}
	}
	return ""
}

// alert is an open violation or burn rate as Alertmanager takes it. Its labels say what it is and who is to be told; what
// changes while it is open stands in its annotations.
func (e *engine) alert(ev *judge.Event) alertmanager.Alert {
	slo := ev.Of.SLO()
	labels := map[string]string{
		"alertname": alertViolation, "severity": ev.Severity, "slo_policy": ev.Policy, "slo_condition": ev.Condition, "owner": slo.Owner,
	}
	if ev.Kind == judge.BurnAlert {
		labels["alertname"] = alertBurnRate
	}
	described := pcommon.NewMap()
	e.describe(described, ev.Of)
	for key, v := range described.All() {
		labels[key] = v.AsString()
	}
	var targets []string
	for _, t := range ev.Targets {
		targets = append(targets, t.Name)
	}
	labels["notification_target"] = strings.Join(targets, ",")
	if labels["severity"] == "" {
		labels["severity"] = "page"
	}
	annotations := map[string]string{
		"summary": summary(ev), "description": ev.Reason, "runbook_url": slo.Runbook, "slo_ids": strings.Join(ev.SLOs, ","),
	}
	if ev.Kind == judge.BurnAlert {
		annotations["slo_alert_id"] = ev.ID
	} else {
		annotations["slo_violation_id"] = ev.ID
	}
	if ev.Exemplar.TraceID != [16]byte{} {
		annotations["trace_id"] = pcommon.TraceID(ev.Exemplar.TraceID).String()
	}
	return alertmanager.Alert{
		Labels: labels, Annotations: annotations, StartsAt: time.Unix(0, ev.Time), GeneratorURL: e.link(ev),
	}
}

func summary(ev *judge.Event) string {
	slo := ev.Of.SLO()
	name := slo.DisplayName
	if name == "" {
		name = slo.Name
	}
	what := "is broken"
	if ev.Kind == judge.BurnAlert {
		what = "spends its error budget too fast"
	}
	text := slo.Service + ": the promise " + name + " " + what
	ev.Of.Group(func(key, value string) { text += ", " + key + " " + value })
	return text
}

// link is where the console shows what an event is about: the cell of its SLO and group.
func (e *engine) link(ev *judge.Event) string {
	base := e.cfg.Alertmanager.Get().ConsoleURL
	if base == "" {
		return ""
	}
	query := url.Values{"view": {"cell"}, "slo_id": {ev.Of.SLO().ID}}
	ev.Of.Group(func(key, value string) { query.Set("d."+promsli.Label(key), value) }) // the page knows labels
	return strings.TrimRight(base, "/") + "/?" + query.Encode()
}
