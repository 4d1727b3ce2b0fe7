// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// chat is a service: of its requests 2 % fail, and 10 % of first tokens take longer than 800 ms.
func chat(t testing.TB) (endpoint string) {
	begin := time.Now()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := 100 * time.Since(begin).Seconds() // requests so far
		fmt.Fprintf(w, `# TYPE chat_requests_total counter
chat_requests_total{code="200"} %f
chat_requests_total{code="500"} %f
# TYPE chat_ttft_seconds histogram
chat_ttft_seconds_bucket{le="0.8"} %f
chat_ttft_seconds_bucket{le="+Inf"} %f
chat_ttft_seconds_sum %f
chat_ttft_seconds_count %f
`, .98*n, .02*n, .9*n, n, .4*n, n)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// startPrometheus runs Prometheus on rule files, scraping targets by job, and returns its address.
func startPrometheus(t testing.TB, targets map[string]string, rules ...string) string {
	t.Helper()
	var jobs []string
	for job, target := range targets {
		jobs = append(jobs, fmt.Sprintf("{job_name: %s, static_configs: [{targets: [%q]}]}", job, target))
	}
	return startPrometheusOf(t, strings.Join(jobs, ", "), rules...)
}

// startPrometheusOf runs Prometheus on rule files with scrape jobs, written in YAML with commas between.
func startPrometheusOf(t testing.TB, jobs string, rules ...string) string {
	t.Helper()
	text := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files:\n"
	for _, file := range rules {
		run(t, promtool(t), "check", "rules", file)
		text += fmt.Sprintf("  - %q\n", file)
	}
	text += "scrape_configs: [" + jobs + "]\n"
	address, config := spawn.FreeEndpoint(t), spawn.WriteConfig(t, text)
	run(t, promtool(t), "check", "config", config)
	keep(t, prometheus(t), "--config.file="+config, "--web.listen-address="+address, "--storage.tsdb.path="+t.TempDir())
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, arrives, 100*time.Millisecond, "Prometheus is not ready")
	return address
}

// query is the value of an instant vector of one series.
func query(t testing.TB, address, expr string) float64 {
	t.Helper()
	resp, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(expr))
	require.NoError(t, err)
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	require.Len(t, answer.Data.Result, 1, expr)
	v, err := strconv.ParseFloat(answer.Data.Result[0].Value[1].(string), 64)
	require.NoError(t, err)
	return v
}

const federating = `
extensions:
  slo_catalog: {paths: ["builtin:vllm"]}
receivers:
  prometheus:
    config:
      scrape_configs:
        - job_name: slo-series
          scrape_interval: 1s
          honor_labels: true
          metrics_path: /federate
          params: {"match[]": ['{sloth_id!=""}', '{slo!=""}', 'chat_requests_total']}
          static_configs: [{targets: [%q]}]
processors:
  slo_schema:
    on_unknown: tag
    class_rules: [{slo_id: latency, class: latency}]
exporters:
  file: {path: %q, flush_interval: 100ms}
service:
  extensions: [slo_catalog]
  pipelines:
    metrics: {receivers: [prometheus], processors: [slo_schema], exporters: [file]}
  telemetry: {metrics: {level: none}}
`

// seen is a series as it came out last.
type seen struct {
	name   string
	labels map[string]string
	value  float64
}

// lastBatch reads the newest whole scrape that the binary has written.
func lastBatch(t testing.TB, path string) (all []seen) {
	t.Helper()
	data, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(t, err)
	lines := bytes.Split(data, []byte("\n"))
	if len(lines) < 2 {
		return nil
	}
	md, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(lines[len(lines)-2])
	require.NoError(t, err)
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				points := m.Gauge().DataPoints()
				if m.Type() == pmetric.MetricTypeSum {
					points = m.Sum().DataPoints()
				}
				for _, p := range points.All() {
					if p.Flags().NoRecordedValue() {
						continue
					}
					s := seen{m.Name(), map[string]string{}, p.DoubleValue()}
					for k, v := range p.Attributes().All() {
						s.labels[k] = v.AsString()
					}
					all = append(all, s)
				}
			}
		}
	}
	return all
}

// recorded are the names of the series that a file of rules records.
func recorded(t testing.TB, file string) (names []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`record: "?([\w:]+)`).FindAllSubmatch(data, -1) {
		names = append(names, string(m[1]))
	}
	require.NotEmpty(t, names)
	return names
}

// Scenario: a team has SLOs in Sloth and in Pyrra. Prometheus evaluates the rules that Sloth generates, and rules in the
// shape of Pyrra's, on a live service; the Collector scrapes the federation endpoint.
// Guarantees: every series that the rules record comes out with the five canonical labels and all that it had, once, with
// the value that Prometheus has; other series come out as they were.
func TestSlothAndPyrraSeriesComeOutCanonical(t *testing.T) {
	wd, err := os.Getwd()
	require.NoError(t, err)
	testdata := filepath.Join(wd, "testdata")
	slothRules, pyrraRules := filepath.Join(t.TempDir(), "sloth.rules.yaml"), filepath.Join(testdata, "pyrra.rules.yaml")
	run(t, sloth(t), "generate", "--input", filepath.Join(testdata, "sloth.yaml"), "--out", slothRules,
		"--default-slo-period", "1h", "--slo-period-windows-path", filepath.Join(testdata, "windows"))
	address := startPrometheus(t, map[string]string{"chat": chat(t)}, slothRules, pyrraRules)
	out := filepath.Join(t.TempDir(), "metrics.jsonl")
	c := spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(federating, address, out))}})
	c.WaitReady()

	// Rates need two scrapes, and rules that read other rules a further evaluation.
	names := append(recorded(t, slothRules), recorded(t, pyrraRules)...)
	var series []seen
	require.EventuallyWithT(t, func(ct *assert.CollectT) {
		series = lastBatch(t, out)
		have := map[string]int{}
		for _, s := range series {
			have[s.name]++
			assert.NotContains(ct, s.labels, "slo.missing", s.name)
		}
		for _, name := range append(names, "ALERTS") {
			assert.Positive(ct, have[name], name)
		}
	}, arrives, 500*time.Millisecond)

	canonical := func(id, service, class, target string) map[string]string {
		return map[string]string{"slo_id": id, "service": service, "slo_class": class, "target": target, "unit": "ratio"}
	}
	want := map[string]map[string]string{
		"chat-requests-availability": canonical("chat-requests-availability", "chat", "availability", "0.9900"),
		"chat-ttft-latency/sloth":    canonical("chat-ttft-latency", "chat", "latency", "0.9500"),
		"chat-errors":                canonical("chat-errors", "chat", "availability", "0.9950"),
		"chat-ttft-latency":          canonical("chat-ttft-latency", "frontend", "latency", "0.9500"),
	}
	found, once := map[string]int{}, map[string]bool{}
	for _, s := range series {
		identity := fmt.Sprint(s.name, s.labels)
		assert.False(t, once[identity], "twice: %s", identity)
		once[identity] = true
		slo := s.labels["slo"]
		if id := s.labels["sloth_id"]; id != "" {
			slo = id
			if id == "chat-ttft-latency" {
				slo += "/sloth"
			}
			assert.Equal(t, "serving", s.labels["owner"], identity) // what it had stays
		}
		if slo == "" {
			assert.NotContains(t, s.labels, "slo_id", identity) // the service's own series, and those of the scrape
			continue
		}
		found[slo]++
		for k, v := range want[slo] {
			assert.Equal(t, v, s.labels[k], "%s of %s", k, identity)
		}
	}
	for slo := range want {
		assert.Positive(t, found[slo], slo)
	}

	// What does not change from scrape to scrape has the value that Prometheus has; a burn rate stays one.
	for _, s := range series {
		switch s.name {
		case "slo:objective:ratio", "slo:error_budget:ratio", "slo:time_period:days":
			assert.InDelta(t, query(t, address, fmt.Sprintf(`%s{sloth_id=%q}`, s.name, s.labels["sloth_id"])), s.value, 0, s.name)
		case "pyrra_objective", "pyrra_window":
			assert.InDelta(t, query(t, address, fmt.Sprintf(`%s{slo=%q}`, s.name, s.labels["slo"])), s.value, 0, s.name)
		case "slo:current_burn_rate:ratio":
			assert.InDelta(t, 2, s.value, 0.2, "2 %% of errors burn a budget of 1 %%, and 10 %% one of 5 %%, twice as fast as it lasts")
		}
	}
	t.Logf("%d series of %d names, by SLO: %v", len(series), len(names), found)
	assert.Zero(t, c.Stop())
}
