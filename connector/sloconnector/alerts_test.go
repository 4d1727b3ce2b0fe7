// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
)

// siren is an Alertmanager that keeps the newest word on each alert.
type siren struct {
	*httptest.Server
	mu     sync.Mutex
	alerts map[string]posted // by alertname and slo_id
}

// posted is Alertmanager's postableAlert.
type posted struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
	GeneratorURL        string
}

func newSiren(t testing.TB) *siren {
	s := &siren{alerts: map[string]posted{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var all []posted
		if json.NewDecoder(r.Body).Decode(&all) != nil || r.URL.Path != "/api/v2/alerts" {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, a := range all {
			s.alerts[a.Labels["alertname"]+" "+a.Labels["slo_id"]] = a
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// firing waits until an alert is, or is no longer, firing, and returns it.
func (s *siren) firing(t testing.TB, name string, want bool) (a posted) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		var known bool
		a, known = s.alerts[name+" llm:chat:ttft:p95"]
		return known && a.EndsAt.After(time.Now()) == want
	}, time.Minute, 5*time.Millisecond, "%s firing: %t", name, want)
	return a
}

const owned = `annotations: {otelcol-llm.dev/owner: team-chat, otelcol-llm.dev/runbook: "https://wiki/ttft", `

// alerting makes an engine that tells a siren. The documents may have alert policies.
func alerting(t testing.TB, s *siren, ext component.Component, docs string, configure func(*Config)) *rig {
	t.Helper()
	settings, err := configtest.Read(t, "testdata/config.yaml", "slo/alerts", createDefaultConfig().(*Config))
	require.NoError(t, err)
	settings.Alertmanager.Get().Endpoints = []string{s.URL}
	h := newHost(t, docs)
	h.others = map[component.ID]component.Component{diskID: ext}
	r := newRigOn(t, h, func(c *Config) {
		c.Alertmanager = settings.Alertmanager
		if ext != nil {
			c.Storage = &diskID
		}
		if configure != nil {
			configure(c)
		}
	})
	require.NoError(t, r.alerts.Start(t.Context(), h))
	t.Cleanup(func() { require.NoError(t, r.alerts.Shutdown(t.Context())) })
	return r
}

// Scenario: what is violated and burns becomes good again.
// Guarantees: Alertmanager hears of both with all that a person who is woken needs, and of their ends.
func TestAlertsBeginAndEnd(t *testing.T) {
	s := newSiren(t)
	docs := strings.Replace(ttftDocs, "annotations: {", owned+"otelcol-llm.dev/group-by: 'service.namespace', ", 1)
	r := alerting(t, s, nil, docs, burns)
	batches := hour(1, 2, 3, 4)
	for i, md := range batches {
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.namespace", "team-a")
		if i < 20 {
			p := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Histogram().DataPoints().At(0)
			x := p.Exemplars().AppendEmpty()
			x.SetTimestamp(p.Timestamp())
			x.SetTraceID([16]byte{0xab})
			x.SetDoubleValue(2)
		}
	}
	for _, md := range batches[:18] {
		r.send(md)
	}
	r.publishAlerts(t.Context())
	a := s.firing(t, alertViolation, true)
	assert.Equal(t, map[string]string{
		"alertname": "SLOViolation", "severity": "page", "slo_policy": "chat-ttft-3x5m", "owner": "team-chat", "slo_id": "llm:chat:ttft:p95",
		"service": "chat", "slo_class": "latency", "target": "0.8000", "unit": "seconds", "service_namespace": "team-a",
	}, a.Labels)
	assert.Equal(t, "chat: the promise chat-ttft is broken, service.namespace team-a", a.Annotations["summary"])
	assert.Contains(t, a.Annotations["description"], "missed in 3 windows of 5m in a row")
	assert.Equal(t, "https://wiki/ttft", a.Annotations["runbook_url"])
	assert.Equal(t, "llm:chat:ttft:p95", a.Annotations["slo_ids"])
	assert.Equal(t, "ab000000000000000000000000000000", a.Annotations["trace_id"])
	assert.NotEmpty(t, a.Annotations["slo_violation_id"])
	assert.Equal(t, "http://localhost:8686/?d.service_namespace=team-a&slo_id=llm%3Achat%3Attft%3Ap95&view=cell", a.GeneratorURL)
	assert.Equal(t, t0.Add(15*time.Minute), a.StartsAt)
	b := s.firing(t, alertBurnRate, true)
	assert.Equal(t, "page", b.Labels["severity"])
	assert.Equal(t, "1.5x over 10m and 5m", b.Labels["slo_condition"])
	for _, md := range batches[18:] {
		r.send(md)
	}
	r.publishAlerts(t.Context())
	s.firing(t, alertViolation, false)
	s.firing(t, alertBurnRate, false)
}

func TestTargetsAndSeverityOfAPolicy(t *testing.T) {
	s := newSiren(t)
	docs := strings.Replace(ttftDocs, "consecutiveWindows: 3,", "consecutiveWindows: 3, severity: ticket, notificationTargets: [{targetRef: on-call}, {targetRef: chat-room}],", 1) + `---
apiVersion: openslo/v1
kind: AlertNotificationTarget
metadata: {name: on-call}
spec: {target: pager}
---
apiVersion: openslo/v1
kind: AlertNotificationTarget
metadata: {name: chat-room}
spec: {target: slack}
`
	r := alerting(t, s, nil, docs, nil)
	for _, md := range hour(1, 2, 3)[:16] {
		r.send(md)
	}
	r.publishAlerts(t.Context())
	a := s.firing(t, alertViolation, true)
	assert.Equal(t, "ticket", a.Labels["severity"])
	assert.Equal(t, "on-call,chat-room", a.Labels["notification_target"])
}

// Scenario: maintenance, for an hour from now on, of a promise that is broken.
// Guarantees: nobody is told as long as it lasts; the books go on, and the log record says why nobody was told.
func TestNobodyIsToldDuringMaintenance(t *testing.T) {
	s := newSiren(t)
	r := alerting(t, s, nil, ttftDocs+`---
apiVersion: otelcol-llm.dev/v1alpha1
kind: MaintenanceWindow
metadata: {name: upgrade}
spec: {slos: [chat-ttft], effect: silence, startTime: `+t0.Format("2006-01-02 15:04:05")+`, timeZone: UTC, duration: 1h}
`, nil)
	r.clock = t0
	for i, md := range hour(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) {
		r.clock = t0.Add(time.Duration(i+1) * time.Minute)
		r.send(md)
		if i < 58 {
			r.publishAlerts(t.Context())
		}
	}
	assert.Equal(t, [2]float64{5400, 600}, r.outcomes("llm:chat:ttft:p95"))
	require.Equal(t, []event{{violationOpened, 15}}, r.events())
	name, _ := r.lastRecord().Attributes().Get("slo.maintenance")
	assert.Equal(t, "upgrade", name.Str())
	time.Sleep(50 * time.Millisecond)
	s.mu.Lock()
	assert.Empty(t, s.alerts)
	s.mu.Unlock()
	r.clock = t0.Add(61 * time.Minute)
	r.publishAlerts(t.Context())
	s.firing(t, alertViolation, true)
}

func TestAlertsGoOnAfterARestart(t *testing.T) {
	s, d := newSiren(t), newDisk()
	r := alerting(t, s, d, ttftDocs, nil)
	for _, md := range hour(1, 2, 3)[:16] {
		r.send(md)
	}
	r.publishAlerts(t.Context())
	before := s.firing(t, alertViolation, true)
	r.stop()
	require.NoError(t, r.alerts.Shutdown(t.Context()))
	s.mu.Lock()
	s.alerts = map[string]posted{}
	s.mu.Unlock()
	r = alerting(t, s, d, ttftDocs, nil)
	require.True(t, r.known)
	r.publishAlerts(t.Context())
	after := s.firing(t, alertViolation, true)
	before.EndsAt, after.EndsAt = time.Time{}, time.Time{}
	assert.Equal(t, before, after, "it is the same alert")
	for _, md := range hour(1, 2, 3)[16:] {
		r.send(md)
	}
	r.publishAlerts(t.Context())
	s.firing(t, alertViolation, false)
}

// Guarantees: what is switched on with nothing but its endpoint has the defaults of its table in README.md.
func TestSettingsThatAreLeftOutHaveTheirDefaults(t *testing.T) {
	cfg, err := configtest.Read(t, "testdata/config.yaml", "slo/alerts", createDefaultConfig().(*Config))
	require.NoError(t, err)
	am := cfg.Alertmanager.Get()
	assert.Equal(t, time.Minute, am.ResendInterval)
	assert.Equal(t, 10_000, am.MaxAlerts)
	assert.Equal(t, 10*time.Second, am.Timeout)
	assert.Equal(t, 24*time.Hour, cfg.Backfill.Get().Step)
	assert.Equal(t, 5*time.Minute, cfg.Backfill.Get().Deadline)
	assert.NoError(t, cfg.Validate())
	none, err := configtest.Read(t, "testdata/config.yaml", "slo", createDefaultConfig().(*Config))
	require.NoError(t, err)
	assert.False(t, none.Alertmanager.HasValue())
	assert.False(t, none.Backfill.HasValue())
}
