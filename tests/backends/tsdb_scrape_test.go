// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	metrics "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// engine is scraped by two. It shows both of them the same samples, with times of their own, and goes on to the next when both
// have seen one.
type engine struct {
	begin time.Time

	mu   sync.Mutex
	step int
	seen [2]bool
}

func (e *engine) serve(t testing.TB, who int) (address string) {
	registry := metrics.NewRegistry()
	registry.MustRegister(e)
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		handler.ServeHTTP(w, r)
		e.seen[who] = true
		if e.seen[0] && e.seen[1] {
			e.seen = [2]bool{}
			e.step++
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func (e *engine) steps() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.step
}

// Describe says nothing, so that nothing is checked.
func (*engine) Describe(chan<- *metrics.Desc) {}

// Collect is called with the lock held.
func (e *engine) Collect(out chan<- metrics.Metric) {
	at := e.begin.Add(time.Duration(e.step) * 15 * time.Second)
	n := e.step + 1
	if n > 20 {
		n -= 20 // a restart
	}
	send := func(m metrics.Metric) { out <- metrics.NewMetricWithTimestamp(at, m) }
	for i, model := range []string{"qwen", "llama"} {
		desc := func(name string) *metrics.Desc {
			return metrics.NewDesc(name, "What "+name+" is.", nil, metrics.Labels{"model_name": model})
		}
		k := uint64(n * (i + 1))
		send(metrics.MustNewConstMetric(desc("vllm:request_success_total"), metrics.CounterValue, float64(10*k)))
		send(metrics.MustNewConstMetric(desc("vllm:kv_cache_usage_perc"), metrics.GaugeValue, math.Abs(math.Sin(float64(e.step)/5+float64(i)))))
		send(metrics.MustNewConstHistogram(desc("vllm:time_to_first_token_seconds"), 9*k, 3.3*float64(k), map[float64]uint64{0.1: k, 0.5: 5 * k, 2.5: 8 * k}))
		send(metrics.MustNewConstSummary(desc("gc_duration_seconds"), k, float64(k)/9, map[float64]float64{0.5: 0.01, 0.99: float64(k)}))
		// The width of the zero bucket is the one that Prometheus's translator gives every histogram from OTLP.
		native, err := metrics.NewConstNativeHistogram(desc("request_duration_seconds"), 7*k, 2.2*float64(k),
			map[int]int64{-3: int64(2 * k), -2: int64(k), 1: int64(k)}, map[int]int64{0: int64(k)}, 2*k, 3, 1e-128, time.Time{})
		if err != nil {
			panic(err)
		}
		send(native)
	}
}

const scraping = `
{job_name: vllm, scrape_interval: 100ms, scrape_timeout: 100ms, scrape_native_histograms: true, static_configs: [{targets: [%q], labels: {instance: gpu-1}}]}`

// Scenario: an engine is scraped by a Prometheus server, and by the Collector's prometheus receiver for its tsdb exporter; it has
// classic and native histograms, and starts anew once.
// Guarantees: whatever is asked of the two, the answer is the same.
func TestTheTSDBAnswersAsAPrometheusThatScrapesTheSame(t *testing.T) {
	const steps = 40
	e := &engine{begin: time.Now().Truncate(time.Second).Add(-steps * 15 * time.Second)}
	address, ask := spawn.FreeEndpoint(t), spawn.FreeEndpoint(t)
	config := spawn.WriteConfig(t, "scrape_configs: ["+fmt.Sprintf(scraping, e.serve(t, 0))+"]\nstorage: {tsdb: {out_of_order_time_window: 1h}}\n")
	run(t, promtool(t), "check", "config", config)
	keep(t, tool(t, "prometheus", "PROMETHEUS_VERSION"), "--config.file="+config, "--web.listen-address="+address, "--storage.tsdb.path="+t.TempDir())
	c := spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(`
receivers:
  prometheus: {config: {scrape_configs: [%s]}}
exporters:
  tsdb: {endpoint: %q, directory: %q, promote_resource_attributes: [], min_free_bytes: 0}
service:
  pipelines:
    metrics: {receivers: [prometheus], exporters: [tsdb]}
  telemetry: {metrics: {level: none}}
`, fmt.Sprintf(scraping, e.serve(t, 1)), ask, t.TempDir()))}})
	c.WaitReady()
	theirs, mine := store{ask: "http://" + address}, store{ask: "http://" + ask}
	require.Eventually(t, theirs.ready, time.Minute, 100*time.Millisecond, "Prometheus is not ready")
	require.Eventually(t, func() bool { return e.steps() > steps }, time.Minute, 100*time.Millisecond, "the engine is not scraped")
	time.Sleep(time.Second) // until the last scrape is stored

	end := e.begin.Add((steps - 1) * 15 * time.Second)
	for _, q := range []string{
		`vllm:request_success_total`, `rate(vllm:request_success_total[2m])`, `resets(vllm:request_success_total[10m])`, `vllm:kv_cache_usage_perc`,
		`max_over_time(vllm:kv_cache_usage_perc[3m])`, `count_over_time(vllm:kv_cache_usage_perc[5m])`, `vllm:time_to_first_token_seconds_bucket`,
		`histogram_quantile(0.95, sum by (le, model_name) (rate(vllm:time_to_first_token_seconds_bucket[2m])))`, `vllm:time_to_first_token_seconds_sum`,
		`gc_duration_seconds`, `rate(gc_duration_seconds_count[2m])`, `request_duration_seconds`, `rate(request_duration_seconds[2m])`,
		`histogram_quantile(0.9, sum(rate(request_duration_seconds[2m])))`, `histogram_count(request_duration_seconds)`, `histogram_fraction(0, 0.5, rate(request_duration_seconds[2m]))`,
		`sum by (job, instance) (vllm:request_success_total)`, `count({__name__=~"vllm.*|gc.*|request_.*"})`, `avg by (job) (up)`,
	} {
		for path, form := range map[string]url.Values{
			"query":       {"time": {fmt.Sprint(end.Unix())}},
			"query_range": {"start": {fmt.Sprint(e.begin.Add(time.Minute).Unix())}, "end": {fmt.Sprint(end.Unix())}, "step": {"37"}},
		} {
			if q == "avg by (job) (up)" {
				form = url.Values{} // it has the time of the scrape
				path = "query"
			}
			form.Set("query", q)
			want, raw := theirs.get(t, path, form)
			got, _ := mine.get(t, path, form)
			assert.NotContains(t, raw, `"result":[]`, q)
			if q == "avg by (job) (up)" {
				want, got = valueOf(t, want), valueOf(t, got)
			}
			assert.Equal(t, want, got, "%s %s", path, q)
		}
	}
	assert.Equal(t, 0, c.Stop())
}

// valueOf is the value of the one series of an instant query, without its time.
func valueOf(t testing.TB, data any) any {
	t.Helper()
	results := data.(map[string]any)["result"].([]any)
	require.Len(t, results, 1)
	return results[0].(map[string]any)["value"].([]any)[1]
}
