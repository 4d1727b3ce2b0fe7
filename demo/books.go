// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// account is a promise to one group whose books are to be told.
type account struct {
	slo   string
	group map[string]string
	after time.Time // when the books know of the whole fault
}

// balancedAfter is when the books of a moment are known: the Collector balances them at each full minute of event time, and is
// a few seconds behind it here.
func balancedAfter(t time.Time) time.Time {
	return t.Truncate(time.Minute).Add(time.Minute + 5*time.Second)
}

// tellBooks says what the broken promise has cost, once that is known.
func (n *narrator) tellBooks(ctx context.Context) {
	if n.kept == nil || n.finale || time.Now().Before(n.kept.after) {
		return
	}
	left, budget := n.result(ctx, "slo_error_budget_remaining_ratio", nil)
	burn, rate := n.result(ctx, "slo_burn_rate_ratio", map[string]string{"window": "5m"})
	if !budget || !rate {
		return // at the next look
	}
	n.finale = true
	n.say("the error budget of %s since the start: %.0f %% left\n%sburn rate over 5 minutes: %.1f times what the 28 days allow; from 14.4 over an hour on somebody is paged",
		labels(n.kept.group), 100*left, wrapped, burn)
	n.say("that is the whole story, on a page: %s\n%sit goes on running until Ctrl-C", n.console, wrapped)
}

// result is what the Collector's Prometheus endpoint shows of the promise that was kept again.
func (n *narrator) result(ctx context.Context, name string, more map[string]string) (v float64, ok bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.results, nil)
	if err != nil {
		return 0, false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, false
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return 0, false
	}
	want := map[string]string{"slo_id": n.kept.slo}
	for key, value := range n.kept.group {
		want[strings.ReplaceAll(key, ".", "_")] = value
	}
	for key, value := range more {
		want[key] = value
	}
	for _, m := range families[name].GetMetric() {
		if has(m, want) {
			return m.GetGauge().GetValue(), true
		}
	}
	return 0, false
}

// has reports whether a series has all labels.
func has(m *dto.Metric, want map[string]string) bool {
	found := 0
	for _, l := range m.GetLabel() {
		if v, wanted := want[l.GetName()]; wanted && v == l.GetValue() {
			found++
		}
	}
	return found == len(want)
}
