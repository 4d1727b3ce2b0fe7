// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"
)

// promise is one SLO, made to every tenant.
type promise struct {
	name, model string
	metric      string  // a histogram, or the counter of ended requests
	limit       float64 // of the histogram, one of its boundaries
}

const (
	target  = 0.99
	service = "chat"
)

// kinds are the promises that each model has.
var kinds = []struct {
	name, metric string
	limit        float64
}{{"ttft", ttft, 0.5}, {"tpot", tpot, 0.1}, {"e2e", e2e, 15}, {"queue", queue, 1}, {"availability", ended, 0}}

// promises are all of them, five a model.
func promises(models int) (all []promise) {
	for m := range models {
		for _, k := range kinds {
			all = append(all, promise{modelName(m) + "-" + k.name, modelName(m), k.metric, k.limit})
		}
	}
	return all
}

// id is the slo_id.
func (p promise) id() string { return "llm:" + service + ":" + p.name + ":p99" }

// catalog is the SLO file: one SLO a promise, judged apart for each tenant, with a policy of one window.
func catalog(all []promise, window time.Duration) string {
	var b strings.Builder
	for _, p := range all {
		fmt.Fprintf(&b, `---
apiVersion: openslo/v1
kind: SLO
metadata:
  name: %s
  annotations: {otelcol-llm.dev/slo-id: %q, otelcol-llm.dev/group-by: tenant}
spec:
  service: %s
  indicator:
    metadata: {name: %[1]s}
    spec:
%[4]s  timeWindow: [{duration: 30d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{%[5]starget: %[6]v}]
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: %[1]s}
spec: {window: %[7]s, when: {all: [{slo: %[1]s}]}}
`, p.name, p.id(), service, p.indicator(), p.objective(), target, window)
	}
	return b.String()
}

func (p promise) indicator() string {
	condition := fmt.Sprintf(`datapoint.attributes["model_name"] == "%s"`, p.model)
	source := func(condition string) string {
		return fmt.Sprintf("{metricSource: {type: opentelemetry, spec: {metric: %q, condition: '%s'}}}", p.metric, condition)
	}
	if p.limit == 0 {
		return fmt.Sprintf("      ratioMetric:\n        counter: true\n        bad: %s\n        total: %s\n",
			source(condition+` and datapoint.attributes["finished_reason"] == "error"`), source(condition))
	}
	return fmt.Sprintf("      thresholdMetric: %s\n", source(condition))
}

func (p promise) objective() string {
	if p.limit == 0 {
		return ""
	}
	return fmt.Sprintf("op: lte, value: %v, ", p.limit)
}

// slothSpec is the same promises to one tenant as Sloth takes them, which has no group-by: an SLO for each.
func slothSpec(all []promise, tenant string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: prometheus/v1\nservice: %s\nslos:\n", tenant)
	for _, p := range all {
		bad, total := p.queries(tenant)
		fmt.Fprintf(&b, `  - name: %[1]s
    objective: %[2]v
    sli:
      events:
        error_query: '%[3]s'
        total_query: '%[4]s'
    alerting:
      name: Burning
      page_alert: {labels: {severity: page}}
      ticket_alert: {labels: {severity: ticket}}
`, p.name, 100*target, bad, total)
	}
	return b.String()
}

// queries are PromQL for the bad and for all events of a tenant.
func (p promise) queries(tenant string) (bad, total string) {
	sum := func(series, more string) string {
		return fmt.Sprintf(`sum(rate(%s{tenant="%s",model_name="%s"%s}[{{.window}}]))`, series, tenant, p.model, more)
	}
	if p.limit == 0 {
		return sum(p.metric, `,finished_reason="error"`), sum(p.metric, "")
	}
	total = sum(p.metric+"_count", "")
	return total + " - " + sum(p.metric+"_bucket", fmt.Sprintf(`,le="%s"`, boundary(p.limit))), total
}
