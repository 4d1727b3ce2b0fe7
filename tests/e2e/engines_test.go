// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// dumps are the published /metrics of engines: those in testdata and, where OTELCOL_LLM_CASES names a folder with more
// (whose licence does not let them stand here), those too.
func dumps(t *testing.T) []string {
	t.Helper()
	byName := map[string]string{}
	folders := []string{filepath.Join(spawn.Root(t), "testdata", "engines")}
	if cases := os.Getenv("OTELCOL_LLM_CASES"); cases != "" {
		folders = append(folders, filepath.Join(cases, "engines"))
	}
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(folder, "*.prom.txt"))
		require.NoError(t, err)
		require.NotEmpty(t, found, folder)
		for _, file := range found {
			byName[filepath.Base(file)] = file
		}
	}
	var files []string
	for _, file := range byName {
		files = append(files, file)
	}
	sort.Strings(files)
	return files
}

// families are the metric families in a text exposition.
func families(t *testing.T, text io.Reader) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(text)
	require.NoError(t, err)
	return all
}

// sloFor promises something about a metric, so that each of its points is accepted or refused.
func sloFor(i int, metric string) string {
	return fmt.Sprintf(`---
apiVersion: openslo/v1
kind: SLO
metadata:
  name: slo-%[1]d
  annotations: {otelcol-llm.dev/slo-id: "llm:engine:m%[1]d:x", otelcol-llm.dev/class: saturation, otelcol-llm.dev/unit: things}
spec:
  service: engine
  indicator:
    metadata: {name: m%[1]d}
    spec: {thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: %[2]q}}}}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [{op: lte, value: 100, target: 0.95}]
`, i, metric)
}

const scrapeConfig = `
extensions:
  slo_catalog: {paths: [%[1]s/slo.yaml]}
receivers:
  prometheus:
    config:
      scrape_configs:
        - {job_name: engines, scrape_interval: 1s, static_configs: [{targets: [%[2]s]}]}
connectors:
  slo:
exporters:
  nop:
  file/metrics: {path: %[1]s/metrics.jsonl, flush_interval: 100ms}
service:
  extensions: [slo_catalog]
  pipelines:
    metrics: {receivers: [prometheus], exporters: [slo, nop]}
    metrics/slo: {receivers: [slo], exporters: [file/metrics]}
  telemetry:
    metrics:
      readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %[3]d}}}}]
`

// Scenario: the published /metrics of five engines, dirt and all, are scraped over HTTP; every metric in them, and every
// one that the scrape itself adds, is in a promise of its own.
// Guarantees: nothing crashes, and no point is lost from the books: received = accepted + refused for a reason.
func TestEveryPointOfEveryEngineIsAcceptedOrRefusedWithAReason(t *testing.T) {
	parallel(t)
	metrics := map[string]bool{"up": true, "scrape_duration_seconds": true, "scrape_samples_scraped": true,
		"scrape_samples_post_metric_relabeling": true, "scrape_series_added": true}
	const scrapes = 4
	var targets []string
	served := map[string]*atomic.Int64{}
	for _, file := range dumps(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		text = append(bytes.TrimRight(text, "\n"), '\n') // an editor took the last line's end from some
		for name := range families(t, bytes.NewReader(text)) {
			metrics[name] = true
		}
		n := new(atomic.Int64)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if n.Add(1) > scrapes { // from then on there is little to read, and the books are balanced at leisure
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
			_, _ = w.Write(text)
		}))
		t.Cleanup(server.Close)
		served[filepath.Base(file)] = n
		targets = append(targets, fmt.Sprintf("%q", strings.TrimPrefix(server.URL, "http://")))
	}
	require.GreaterOrEqual(t, len(targets), 4)

	var slos strings.Builder
	names := make([]string, 0, len(metrics))
	for name := range metrics {
		names = append(names, name)
	}
	sort.Strings(names)
	for i, name := range names {
		slos.WriteString(sloFor(i, name))
	}
	dir, port := t.TempDir(), spawn.FreePort(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "slo.yaml"), []byte(slos.String()), 0o600))
	c := spawn.Start(t, spawn.Options{Configs: []string{
		spawn.WriteConfig(t, fmt.Sprintf(scrapeConfig, dir, strings.Join(targets, ", "), port))}})
	c.WaitReady()

	var received, accepted, refused float64
	var reasons map[string]float64
	own := fmt.Sprintf("http://127.0.0.1:%d/metrics", port)
	// What is in the books was read while it was written: it is looked at between two scrapes.
	require.Eventually(t, func() bool {
		resp, err := http.Get(own)
		require.NoError(t, err)
		defer resp.Body.Close()
		mf := families(t, resp.Body)
		received, _ = sumOf(mf, "otelcol_receiver_accepted_metric_points", "")
		accepted, _ = sumOf(mf, "otelcol_slo_points_accepted", "")
		refused, reasons = sumOf(mf, "otelcol_slo_points_refused", "reason")
		over := received > 0
		for _, n := range served {
			over = over && n.Load() > scrapes+1 // the series of the last scrape have ended, too
		}
		return over && received == accepted+refused
	}, patience, 150*time.Millisecond, "received %v, accepted %v, refused %v: %v", &received, &accepted, &refused, &reasons)

	t.Logf("%d metrics of %d engines: received %.0f = accepted %.0f + refused %.0f %v", len(metrics), len(targets), received, accepted, refused, reasons)
	assert.Positive(t, accepted)
	assert.Positive(t, reasons["baseline"], "the first scrape of a counter says nothing yet")
	assert.NotContains(t, reasons, "")
	assert.True(t, c.Running())
	assert.Equal(t, 0, c.Stop())
}

// sumOf adds up a counter of the Collector's own, also by the values of a label. Its name may have the suffix _total.
func sumOf(mf map[string]*dto.MetricFamily, name, label string) (sum float64, by map[string]float64) {
	by = map[string]float64{}
	for _, n := range []string{name, name + "_total"} {
		for _, m := range mf[n].GetMetric() {
			v := m.GetCounter().GetValue()
			sum += v
			for _, l := range m.GetLabel() {
				if label != "" && l.GetName() == label {
					by[l.GetValue()] += v
				}
			}
		}
	}
	return sum, by
}
