// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/internal/configtest"
)

// memory is a Prometheus that knows that each hour had 1,200 events, 1,080 of which were good.
type memory struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string
	labels map[string]string
	while  func() // is called while the first question is answered
}

func newMemory(t testing.TB, labels map[string]string) *memory {
	m := &memory{labels: labels}
	m.Server = httptest.NewServer(http.HandlerFunc(m.answer))
	t.Cleanup(m.Close)
	return m
}

func (m *memory) answer(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	m.mu.Lock()
	m.asked = append(m.asked, query)
	while := m.while
	m.while = nil
	m.mu.Unlock()
	if while != nil {
		while()
	}
	number := func(key string) int64 {
		v, _ := strconv.ParseFloat(r.FormValue(key), 64)
		return int64(v)
	}
	step := number("step")
	v := 1200 * float64(step) / 3600
	switch {
	case strings.Contains(query, "present_over_time"):
		v = float64(step)
	case strings.Contains(query, "_bucket"), strings.Contains(query, "part"):
		v *= 0.9
	}
	var values [][2]any
	for at := number("start"); at <= number("end"); at += step {
		values = append(values, [2]any{at, fmt.Sprint(v)})
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{
		"resultType": "matrix", "result": []any{map[string]any{"metric": m.labels, "values": values}},
	}})
}

func (m *memory) questions() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked)
}

// backfillFrom is the configuration of an engine that asks a Prometheus.
func backfillFrom(t testing.TB, endpoint string) func(*Config) {
	t.Helper()
	settings, err := configtest.Read(t, "testdata/config.yaml", "slo/alerts", createDefaultConfig().(*Config))
	require.NoError(t, err)
	settings.Backfill.Get().Endpoint = endpoint
	return func(c *Config) { c.Backfill = settings.Backfill }
}

// remembering makes an engine that has asked a Prometheus.
func remembering(t testing.TB, h *host, endpoint string, at time.Time) *rig {
	t.Helper()
	r := newRigOn(t, h, backfillFrom(t, endpoint))
	r.clock = at
	api, err := r.prometheus(t.Context(), h)
	require.NoError(t, err)
	r.backfill(t.Context(), api)
	return r
}

// Scenario: an install of today; a Prometheus knows the last 28 days.
// Guarantees: the budget does not begin falsely full, coverage says what is known, and own data counts once.
func TestABudgetBeginsWithThePast(t *testing.T) {
	p := newMemory(t, map[string]string{})
	r := remembering(t, newHost(t, ttftDocs), p.URL, t0)
	for _, md := range hour()[:5] {
		r.clock = r.clock.Add(time.Minute)
		r.send(md)
	}
	r.wait(2 * time.Minute)
	// 1,200 an hour for 28 days, a tenth of them bad where a twentieth may be.
	assert.InDelta(t, -1, r.result("slo.error_budget.remaining", "llm:chat:ttft:p95"), 0.02)
	assert.InDelta(t, 1, r.result("slo.error_budget.coverage", "llm:chat:ttft:p95"), 0.01)
	assert.Equal(t, [2]float64{500, 0}, r.outcomes("llm:chat:ttft:p95"), "the counters are of what was heard")
	without := newRig(t, ttftDocs, nil)
	for _, md := range hour()[:5] {
		without.send(md)
	}
	without.wait(2 * time.Minute)
	assert.InDelta(t, 0, without.result("slo.error_budget.coverage", "llm:chat:ttft:p95"), 0.001)
}

// Scenario: input comes in while Prometheus is asked about the same time.
// Guarantees: it counts once.
func TestWhatWasHeardIsNotTakenFromThePast(t *testing.T) {
	p := newMemory(t, map[string]string{})
	for _, early := range []bool{true, false} {
		h := newHost(t, ttftDocs)
		r := newRigOn(t, h, backfillFrom(t, p.URL))
		r.clock = t0.Add(30 * time.Minute)
		hear := func() {
			for _, md := range hour()[:30] {
				r.consume(t.Context(), md)
			}
		}
		if early {
			p.while = hear
		}
		api, err := r.prometheus(t.Context(), h)
		require.NoError(t, err)
		r.backfill(t.Context(), api)
		if !early { // a replay of what is in the past already
			hear()
		}
		r.publish()
		r.wait(2 * time.Minute)
		assert.Equal(t, [2]float64{3000, 0}, r.outcomes("llm:chat:ttft:p95"))
		// Over the last hour: what was heard is good, and a tenth of the 600 events before it is bad; or all is of the past.
		want := 60.0 / 3600 / 0.05
		if !early {
			want = 2
		}
		assert.InDelta(t, want, r.result("slo.burn_rate", "llm:chat:ttft:p95", "window", "1h"), 0.2*want)
	}
}

func TestAPrometheusThatIsDownIsNoReasonNotToStart(t *testing.T) {
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	core, logs := observer.New(zapcore.WarnLevel)
	r := newLoggedRig(t, newHost(t, ttftDocs), zap.New(core), backfillFrom(t, down.URL))
	api, err := r.prometheus(t.Context(), newHost(t, ttftDocs))
	require.NoError(t, err)
	r.backfill(t.Context(), api)
	assert.Equal(t, 1, logs.FilterMessage("the past of an SLO was not to be had: its budget begins unobserved").Len())
	for _, md := range hour() {
		r.send(md)
	}
	assert.InDelta(t, 0, r.result("slo.error_budget.coverage", "llm:chat:ttft:p95"), 0.01)
}

// Guarantees: what is known from a checkpoint is not asked for; without one it is.
func TestACheckpointIsBetterThanAPrometheus(t *testing.T) {
	p, d := newMemory(t, map[string]string{}), newDisk()
	for i := range 2 {
		h := newHost(t, ttftDocs)
		h.others = map[component.ID]component.Component{diskID: d}
		cfg := createDefaultConfig().(*Config)
		cfg.Storage = &diskID
		backfillFrom(t, p.URL)(cfg)
		a := allSignals(t, cfg, new(consumertest.MetricsSink), new(consumertest.LogsSink))
		require.NoError(t, a.Start(t.Context(), h))
		if i == 0 {
			assert.Eventually(t, func() bool { return p.questions() >= 3 }, time.Minute, 5*time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond)
		asked := p.questions()
		require.NoError(t, a.Shutdown(t.Context()))
		if i == 1 {
			assert.Zero(t, asked)
		}
		p.mu.Lock()
		p.asked = nil
		p.mu.Unlock()
	}
}

// Scenario: the catalog shrinks while Prometheus is asked.
// Guarantees: the past of an SLO that is gone is let go, and nothing else happens.
func TestTheCatalogChangesDuringABackfill(t *testing.T) {
	p := newMemory(t, map[string]string{})
	other := strings.NewReplacer("chat-ttft", "zother", "llm:chat:ttft:p95", "llm:chat:zother:p95").Replace(ttftDocs)
	h := newHost(t, ttftDocs+"---\n"+other)
	r := newRigOn(t, h, backfillFrom(t, p.URL))
	p.while = func() {
		h.catalog = newHost(t, ttftDocs).catalog
		r.follow()
	}
	api, err := r.prometheus(t.Context(), h)
	require.NoError(t, err)
	r.backfill(t.Context(), api)
	assert.Equal(t, 1, r.judge.Len())
}

// Guarantees: groups of the past are those of the present.
func TestThePastOfAGroupIsItsOwn(t *testing.T) {
	p := newMemory(t, map[string]string{"model_name": "qwen"})
	docs := strings.Replace(ttftDocs, "annotations: {", "annotations: {otelcol-llm.dev/group-by: model_name, ", 1)
	r := remembering(t, newHost(t, docs), p.URL, t0)
	md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
	for _, model := range []string{"qwen", "llama"} {
		point := points.AppendEmpty()
		point.Attributes().PutStr("model_name", model)
		fillHistogram(point, t0, t0.Add(time.Minute), ttftBounds, 0, 0, 5, 0, 0, 0, 0)
	}
	r.clock = t0.Add(2 * time.Minute)
	r.send(md)
	r.wait(2 * time.Minute)
	for range 15 { // budgets that were balanced without input have their turn
		r.wait(time.Second)
	}
	assert.InDelta(t, 1, r.result("slo.error_budget.coverage", "llm:chat:ttft:p95", "model_name", "qwen"), 0.01)
	assert.InDelta(t, 0, r.result("slo.error_budget.coverage", "llm:chat:ttft:p95", "model_name", "llama"), 0.01)
}

// Guarantees: a composite is not asked for, its parts are; and its coverage is theirs.
func TestThePastOfACompositeIsThatOfItsParts(t *testing.T) {
	p := newMemory(t, map[string]string{})
	r := remembering(t, newHost(t, `
apiVersion: openslo/v1
kind: SLO
metadata: {name: both}
spec:
  service: chat
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives:
    - {displayName: one, target: 0.95, indicatorRef: a, compositeWeight: 1, op: lte, value: 0.8}
    - {displayName: two, target: 0.95, indicatorRef: b, compositeWeight: 1, op: lte, value: 0.8}
---
apiVersion: openslo/v1
kind: SLI
metadata: {name: a}
spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: "vllm:time_to_first_token_seconds"}}}}
---
apiVersion: openslo/v1
kind: SLI
metadata: {name: b}
spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: "vllm:e2e_request_latency_seconds"}}}}
`), p.URL, t0)
	for minute := range 5 {
		for _, name := range []string{"vllm:time_to_first_token_seconds", "vllm:e2e_request_latency_seconds"} {
			md := minuteOf(minute, ttftBounds, 0, 0, 10, 0, 0, 0, 0)
			md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetName(name)
			r.clock = t0.Add(time.Duration(minute+1) * time.Minute)
			r.send(md)
		}
	}
	r.wait(2 * time.Minute)
	for range 15 {
		r.wait(time.Second)
	}
	assert.InDelta(t, -1, r.result("slo.error_budget.remaining", "llm:chat:both:composite"), 0.02)
	assert.InDelta(t, 1, r.result("slo.error_budget.coverage", "llm:chat:both:composite"), 0.01)
}
