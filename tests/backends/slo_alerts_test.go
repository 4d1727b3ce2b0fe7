// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// alertingSLOs are two promises on the same histograms. They differ in whom they alert.
const alertingSLOs = `
apiVersion: openslo/v1
kind: SLO
metadata:
  name: ttft
  displayName: Time to first token
  annotations:
    otelcol-llm.dev/slo-id: "llm:chat:ttft:p95"
    otelcol-llm.dev/class: latency
    otelcol-llm.dev/group-by: cloud.region
    otelcol-llm.dev/owner: chat team
    otelcol-llm.dev/runbook: https://wiki.example.com/ttft
spec:
  service: chat
  indicator: {metadata: {name: ttft}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: "vllm:time_to_first_token_seconds"}}}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 0.8, target: 0.95}]
---
apiVersion: openslo/v1
kind: SLO
metadata:
  name: strict
  annotations: {otelcol-llm.dev/slo-id: "llm:chat:ttft:p99", otelcol-llm.dev/class: latency, otelcol-llm.dev/group-by: cloud.region}
spec:
  service: chat
  indicator: {metadata: {name: ttft}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: "vllm:time_to_first_token_seconds"}}}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 0.8, target: 0.99}]
---
apiVersion: openslo/v1
kind: AlertNotificationTarget
metadata: {name: on-call}
spec: {target: pagerduty}
---
apiVersion: openslo/v1
kind: AlertNotificationTarget
metadata: {name: chat-channel}
spec: {target: slack}
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: ttft-5m}
spec:
  window: 5m
  when: {slo: ttft}
  severity: critical
  notificationTargets: [targetRef: on-call, targetRef: chat-channel]
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: strict-5m}
spec: {window: 5m, when: {slo: strict}}
`

// maintained is alertingSLOs while one of the two promises is under maintenance.
func maintained() string {
	return alertingSLOs + fmt.Sprintf(`---
apiVersion: otelcol-llm.dev/v1alpha1
kind: MaintenanceWindow
metadata: {name: driver-update}
spec: {slos: [strict], effect: silence, startTime: %s, timeZone: UTC, duration: 48h}
`, time.Now().UTC().Add(-24*time.Hour).Format(time.DateTime))
}

// minutes are the first tokens of some minutes after t0, all fast or all slow.
func minutes(t0 time.Time, from, until int, slow bool) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("cloud.region", "eu-1")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("vllm:time_to_first_token_seconds")
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	for minute := from; minute < until; minute++ {
		at := t0.Add(time.Duration(minute)*time.Minute + 30*time.Second)
		p := m.Histogram().DataPoints().AppendEmpty()
		p.SetStartTimestamp(pcommon.NewTimestampFromTime(at.Add(-30 * time.Second)))
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.ExplicitBounds().FromRaw([]float64{0.4, 0.8, 1.6})
		counts := []uint64{0, 100, 0, 0}
		if slow {
			counts = []uint64{0, 0, 100, 0}
		}
		p.BucketCounts().FromRaw(counts)
		p.SetCount(100)
	}
	return md
}

// alertingTo are settings under which an alert is sent again every so often, and resolves by itself after four times that.
func alertingTo(endpoint string, again time.Duration) string {
	return fmt.Sprintf("storage: file_storage, checkpoint_interval: 1s, alertmanager: {endpoints: [%q], resend_interval: %s, console_url: %q}",
		"http://"+endpoint, again, "http://console.example.com:8686")
}

// waitViolations waits until a checkpoint, which is what counters tell, has the one violation of a policy.
func (j *judge) waitViolations(policy string) {
	j.t.Helper()
	require.Eventually(j.t, func() bool {
		n, ok := j.result("slo_violations_total", map[string]string{"slo_policy": policy, "cloud_region": "eu-1"})
		return ok && n == 1
	}, notified, often, "violations of %s", policy)
}

// alertsOf are those that Alertmanager lists of a promise.
func alertsOf(t testing.TB, endpoint, sloID string) (found []listed) {
	t.Helper()
	var all []listed
	call(t, http.MethodGet, "http://"+endpoint+"/api/v2/alerts", nil, &all)
	for i := range all {
		if all[i].Labels["slo_id"] == sloID {
			found = append(found, all[i])
		}
	}
	return found
}

// Scenario: a promise is broken for ten minutes and kept again; another one, broken as well, is under maintenance, until that
// is called off.
// Guarantees: Alertmanager lists the alert with all by which people route it and what they need to know, people hear that it
// fires and that it is resolved; of the promise under maintenance nobody hears and its violation counts all the same, and
// after maintenance its alert is there.
func TestABrokenPromiseReachesThePeopleItNames(t *testing.T) {
	hearing, endpoint := newPeople(t), spawn.FreeEndpoint(t)
	runAlertmanager(t, endpoint, t.TempDir(), hearing)
	j := startJudge(t, maintained(), alertingTo(endpoint, resend))
	t0 := time.Now().UTC().Truncate(5 * time.Minute).Add(-40 * time.Minute)
	j.send(minutes(t0, 0, 10, false))
	j.send(minutes(t0, 10, 20, true))

	alert := waitListed(t, endpoint, "SLOViolation", "active")
	labels := map[string]string{
		"alertname": "SLOViolation", "slo_id": "llm:chat:ttft:p95", "service": "chat", "slo_class": "latency", "target": "0.8000", "unit": "seconds",
		"cloud_region": "eu-1", "severity": "critical", "owner": "chat team", "slo_policy": "ttft-5m", "notification_target": "on-call,chat-channel",
	}
	assert.Equal(t, labels, alert.Labels)
	assert.Equal(t, "https://wiki.example.com/ttft", alert.Annotations["runbook_url"])
	assert.Equal(t, "chat: the promise Time to first token is broken, cloud.region eu-1", alert.Annotations["summary"])
	assert.Contains(t, alert.Annotations["description"], "promised at most 0.8")
	assert.Len(t, alert.Annotations["slo_violation_id"], 32)
	assert.Equal(t, "http://console.example.com:8686/?d.cloud_region=eu-1&slo_id=llm%3Achat%3Attft%3Ap95&view=cell", alert.GeneratorURL)
	assert.True(t, alert.StartsAt.Equal(t0.Add(15*time.Minute)), "%s: since the end of the first bad window", alert.StartsAt)
	heard := hearing.waitFor(t, "SLOViolation", "firing")
	assert.Equal(t, labels, heard.Labels)
	assert.Equal(t, alert.Annotations, heard.Annotations)

	j.waitViolations("ttft-5m")
	j.waitViolations("strict-5m") // the books go on
	waitOutlived(t, endpoint, alert)
	assert.Empty(t, alertsOf(t, endpoint, "llm:chat:ttft:p99"), "nobody is told during maintenance")
	assert.Len(t, hearing.of("SLOViolation", "firing"), 1)
	assert.Empty(t, hearing.of("SLOViolation", "resolved"), "repeated, it goes on")

	j.write(alertingSLOs) // maintenance is over
	require.Eventually(t, func() bool { return len(alertsOf(t, endpoint, "llm:chat:ttft:p99")) == 1 }, notified, often)
	require.Eventually(t, func() bool { return len(hearing.of("SLOViolation", "firing")) == 2 }, notified, often, "nobody hears of the other one")
	j.waitViolations("strict-5m")

	j.send(minutes(t0, 20, 30, false))
	require.Eventually(t, func() bool { return len(hearing.of("SLOViolation", "resolved")) == 2 }, notified, often, "nobody hears of the end")
	assert.Len(t, hearing.of("SLOViolation", "firing"), 2)
	assert.Equal(t, 0, j.Stop())
}

// Scenario: while a promise is broken, Alertmanager is restarted, which keeps no alerts.
// Guarantees: the alert is there again, since the same time, and nobody is told twice.
func TestAnAlertmanagerThatWasRestartedHearsOfTheViolationAgain(t *testing.T) {
	hearing, endpoint, storage := newPeople(t), spawn.FreeEndpoint(t), t.TempDir()
	t0 := time.Now().UTC().Truncate(5 * time.Minute).Add(-40 * time.Minute)
	j := startJudge(t, maintained(), alertingTo(endpoint, resend))
	j.send(minutes(t0, 0, 10, true))
	var began time.Time
	t.Run("before", func(t *testing.T) {
		runAlertmanager(t, endpoint, storage, hearing)
		began = waitListed(t, endpoint, "SLOViolation", "active").StartsAt
		hearing.waitFor(t, "SLOViolation", "firing")
		waitNoted(t, endpoint, 1)
	})
	time.Sleep(time.Second)
	t.Run("after", func(t *testing.T) {
		runAlertmanager(t, endpoint, storage, hearing)
		again := waitListed(t, endpoint, "SLOViolation", "active")
		assert.True(t, began.Equal(again.StartsAt))
		waitOutlived(t, endpoint, again)
		assert.Len(t, hearing.of("SLOViolation", "firing"), 1)
		assert.Empty(t, hearing.of("SLOViolation", "resolved"))
	})
	assert.Equal(t, 0, j.Stop())
}

// Scenario: while a promise is broken, the Collector is killed, and started again.
// Guarantees: the alert goes on, since the same time, and nobody hears that it is over; when the promise is kept, they do.
func TestAnAlertOutlivesACrash(t *testing.T) {
	hearing, endpoint := newPeople(t), spawn.FreeEndpoint(t)
	runAlertmanager(t, endpoint, t.TempDir(), hearing)
	t0 := time.Now().UTC().Truncate(5 * time.Minute).Add(-40 * time.Minute)
	const again = 15 * time.Second // an alert lasts for longer than a start takes on a busy machine
	j := startJudge(t, maintained(), alertingTo(endpoint, again))
	j.send(minutes(t0, 0, 10, true))
	before := waitListed(t, endpoint, "SLOViolation", "active")
	hearing.waitFor(t, "SLOViolation", "firing")
	j.waitViolations("ttft-5m") // a checkpoint has it

	j.Kill()
	killed := time.Now()
	j.start()
	var after listed
	require.Eventually(t, func() bool {
		after = waitListed(t, endpoint, "SLOViolation", "active")
		return after.EndsAt.After(killed.Add(4 * again))
	}, notified, often, "it is not sent after the crash")
	time.Sleep(3 * time.Second) // three group intervals
	assert.True(t, before.StartsAt.Equal(after.StartsAt), "%s, %s before", after.StartsAt, before.StartsAt)
	assert.Equal(t, before.Annotations, after.Annotations)
	assert.Equal(t, before.Labels, after.Labels)
	assert.Len(t, hearing.of("SLOViolation", "firing"), 1)
	assert.Empty(t, hearing.of("SLOViolation", "resolved"))

	j.send(minutes(t0, 10, 20, false))
	hearing.waitFor(t, "SLOViolation", "resolved")
	assert.Equal(t, 0, j.Stop())
}
