// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// engine is a serving engine with ten requests a second, whose first tokens become slow when something breaks.
type engine struct {
	*httptest.Server
	began time.Time
	fault atomic.Int64 // Unix nanoseconds, of a moment that has not come when it is set; 0 for none

	mu      sync.Mutex
	scraped []time.Time
}

// scrapedBetween says whether it was scraped after a moment and before another one.
func (e *engine) scrapedBetween(after, before time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.scraped, func(at time.Time) bool { return !at.Before(after) && at.Before(before) })
}

func newEngine(t *testing.T) *engine {
	e := &engine{began: time.Now()}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now()
		e.mu.Lock()
		e.scraped = append(e.scraped, now)
		e.mu.Unlock()
		all := int(now.Sub(e.began).Seconds() * 10)
		fast := all
		if fault := e.fault.Load(); fault != 0 && now.UnixNano() > fault {
			fast = int(time.Unix(0, fault).Sub(e.began).Seconds() * 10)
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprintf(w, `# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{le="0.5"} %[1]d
vllm:time_to_first_token_seconds_bucket{le="0.8"} %[1]d
vllm:time_to_first_token_seconds_bucket{le="2.5"} %[2]d
vllm:time_to_first_token_seconds_bucket{le="+Inf"} %[2]d
vllm:time_to_first_token_seconds_sum %[3]g
vllm:time_to_first_token_seconds_count %[2]d
`, fast, all, float64(fast)*0.4+float64(all-fast)*2)
	}))
	t.Cleanup(e.Close)
	return e
}

const faultConfig = `
extensions:
  slo_catalog: {paths: [%[1]q]}
receivers:
  prometheus: {config: {scrape_configs: [{job_name: vllm, scrape_interval: 1s, static_configs: [{targets: [%[2]q, %[3]q, %[4]q]}]}]}}
connectors:
  slo: {lateness: 0s, alertmanager: {endpoints: [%[5]q]}}
exporters:
  otlp_http: {endpoint: %[6]q, compression: none, sending_queue: {enabled: false}}
service:
  extensions: [slo_catalog]
  pipelines:
    metrics: {receivers: [prometheus], exporters: [slo]}
    metrics/slo: {receivers: [slo], exporters: [otlp_http]}
    logs/slo: {receivers: [slo], exporters: [otlp_http]}
  telemetry: {metrics: {level: none}}
`

const promptSLO = `
apiVersion: openslo/v1
kind: SLO
metadata: {name: ttft, annotations: {otelcol-llm.dev/slo-id: "llm:chat:ttft:p90", otelcol-llm.dev/class: latency}}
spec:
  service: chat
  indicator: {metadata: {name: ttft}, spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: "vllm:time_to_first_token_seconds"}}}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 0.8, target: 0.9}]
---
apiVersion: otelcol-llm.dev/v1alpha1
kind: ViolationPolicy
metadata: {name: ttft-10s}
spec: {window: 10s, when: {all: [{slo: ttft}]}}
`

// Scenario: three engines are scraped every second; first tokens of all become slow in the middle of a window of ten seconds.
// Guarantees: the violation is that of the window in which they did, and it is told, as an event and as an alert, when every
// engine was scraped once more after the window's end, not sooner. How much later that is, is logged.
func TestAFaultIsToldOneScrapeAfterItsWindow(t *testing.T) {
	parallel(t)
	const window = 10 * time.Second
	slos := filepath.Join(t.TempDir(), "slo.yaml")
	require.NoError(t, os.WriteFile(slos, []byte(promptSLO), 0o600))
	var mu sync.Mutex
	var alerted []time.Time
	people := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var alerts []struct {
			Labels map[string]string `json:"labels"`
		}
		assert.NoError(t, json.NewDecoder(r.Body).Decode(&alerts))
		mu.Lock()
		defer mu.Unlock()
		for _, a := range alerts {
			if a.Labels["alertname"] == "SLOViolation" && a.Labels["slo_id"] == "llm:chat:ttft:p90" {
				alerted = append(alerted, time.Now())
			}
		}
	}))
	t.Cleanup(people.Close)
	var engines [3]*engine
	var targets []any
	for i := range engines {
		engines[i] = newEngine(t)
		targets = append(targets, engines[i].Listener.Addr().String())
	}
	to := newSink(t)
	c := spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(faultConfig, append(append([]any{slos}, targets...), people.URL, to.URL)...))}})
	c.WaitReady()
	require.Eventually(t, func() bool {
		for _, h := range to.all("slo.state", "state", "ok") {
			if h.last().value == 1 {
				return true
			}
		}
		return false
	}, patience, 20*time.Millisecond, "no window was kept")

	// A second into a window that has not begun. Whenever it is scraped again in what is left of that, it is bad by far more than a tenth.
	start := time.Now().Truncate(window).Add(window)
	if time.Until(start) < window/2 {
		start = start.Add(window)
	}
	fault := start.Add(time.Second)
	for _, e := range engines {
		e.fault.Store(fault.UnixNano())
	}
	require.True(t, time.Now().Before(fault), "the test stood still for too long to tell anything")
	require.Eventually(t, func() bool {
		_, came := to.once()
		mu.Lock()
		defer mu.Unlock()
		return came > 0 && len(alerted) > 0
	}, patience, 10*time.Millisecond, "nobody was told")
	to.mu.Lock()
	opened := to.events[0]
	to.mu.Unlock()
	assert.Equal(t, "slo.violation.opened", opened.name)
	assert.True(t, opened.at.Equal(start.Add(window)), "as of the end of the window: %s, want %s", opened.at, start.Add(window))
	for what, at := range map[string]time.Time{"the event": opened.heard, "the alert": alerted[0]} {
		after := at.Sub(opened.at)
		t.Logf("%s came %s after the end of the window, %s after the fault", what, after.Round(time.Millisecond), at.Sub(fault).Round(time.Millisecond))
		for i, e := range engines {
			assert.True(t, e.scrapedBetween(opened.at, at), "engine %d was scraped before %s came", i, what)
		}
	}
	assert.Equal(t, 0, c.Stop())
}
