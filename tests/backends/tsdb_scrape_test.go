// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

const scraping = `
{job_name: vllm, scrape_interval: 100ms, scrape_timeout: 100ms, scrape_native_histograms: true, track_timestamps_staleness: true, static_configs: [{targets: [%q], labels: {instance: gpu-1}}]}`

// ofEngine are series that are gone with the engine.
const ofEngine = `{__name__=~"vllm.*|wait.*|gc.*|restarted.*|odd|swing"}`

// scrapers are a Prometheus server and a Collector with the prometheus receiver in front of its tsdb exporter.
func scrapers(t testing.TB, e *engine) (theirs, mine store, c *spawn.Collector) {
	t.Helper()
	address, ask := spawn.FreeEndpoint(t), spawn.FreeEndpoint(t)
	config := spawn.WriteConfig(t, "scrape_configs: ["+fmt.Sprintf(scraping, e.serve(t, 0))+"]\nstorage: {tsdb: {out_of_order_time_window: 1h}}\n")
	run(t, promtool(t), "check", "config", config)
	keep(t, prometheus(t), "--config.file="+config, "--web.listen-address="+address, "--storage.tsdb.path="+t.TempDir(), "--enable-feature=exemplar-storage")
	c = spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(`
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
	theirs, mine = store{ask: "http://" + address}, store{ask: "http://" + ask}
	require.Eventually(t, theirs.ready, arrives, 100*time.Millisecond, "Prometheus is not ready")
	for step := range e.steps {
		// A scrape is stored as a whole; one that took too long is not, and the next one sees the same.
		has := func(s store) bool {
			at := e.at(step)
			found := s.samples(t, `timestamp(swing{model_name="qwen"})`, at)
			return len(found) == 1 && found[0].value == float64(at.Unix())
		}
		require.Eventually(t, func() bool { return has(theirs) && has(mine) }, arrives, 10*time.Millisecond, "step %d is not scraped", step)
		require.NoError(t, e.next())
	}
	gone := func(s store) bool {
		now := time.Now()
		return len(s.samples(t, `up == 0`, now)) == 1 && len(s.samples(t, ofEngine, now)) == 0
	}
	require.Eventually(t, func() bool { return gone(theirs) && gone(mine) }, arrives, 100*time.Millisecond, "nobody sees that the engine is gone")
	return theirs, mine, c
}

// scrapeQuestions are asked of both in the words of the Prometheus server; translate says what they are for the exporter.
var scrapeQuestions = []string{
	// What the simulator has: selectors, rates, gauges.
	`vllm:num_requests_running`, `{__name__=~"vllm:.*_total", model_name!=""}`, `vllm:request_success_total{finished_reason=~"stop|length"}`,
	`rate(vllm:generation_tokens_total[2m])`, `increase(vllm:prompt_tokens_total[5m])`, `irate(vllm:generation_tokens_total[1m])`,
	`sum by (finished_reason) (rate(vllm:request_success_total[2m]))`, `sum without (engine) (vllm:request_success_total)`,
	`max_over_time(vllm:kv_cache_usage_perc[3m])`, `quantile_over_time(0.9, vllm:num_requests_running[5m])`, `stddev_over_time(vllm:num_requests_running[5m])`,
	`min_over_time(vllm:kv_cache_usage_perc[5m:30s])`, `avg_over_time(rate(vllm:generation_tokens_total[1m])[5m:15s])`, `delta(vllm:kv_cache_usage_perc[5m])`,
	`idelta(vllm:num_requests_running[1m])`, `deriv(vllm:kv_cache_usage_perc[5m])`, `predict_linear(vllm:kv_cache_usage_perc[5m], 600)`,
	`changes(vllm:num_requests_running[5m])`, `vllm:num_requests_running offset 2m`, `vllm:num_requests_running offset -1m`, `vllm:generation_tokens_total @ end()`,
	`rate(vllm:generation_tokens_total[2m] @ start())`, `process_start_time_seconds`, `python_info`,
	// What it has: classic histograms.
	`vllm:time_to_first_token_seconds_bucket`, `histogram_quantile(0.95, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[2m])))`,
	`histogram_quantile(0.5, rate(vllm:e2e_request_latency_seconds_bucket[5m]))`, `histogram_quantile(1.5, vllm:time_to_first_token_seconds_bucket)`,
	`rate(vllm:time_to_first_token_seconds_sum[2m]) / rate(vllm:time_to_first_token_seconds_count[2m])`,
	`rate(vllm:time_to_first_token_seconds_bucket{le="1.0"}[2m]) / ignoring (le) rate(vllm:time_to_first_token_seconds_count[2m])`,
	`sum by (le) (vllm:request_prompt_tokens_bucket)`,
	// Classic histograms with a restart, and summaries.
	`wait_seconds_bucket`, `histogram_quantile(0.9, rate(wait_seconds_bucket[2m]))`, `resets(wait_seconds_count[10m])`, `gc_duration_seconds`,
	`rate(gc_duration_seconds_count[2m])`, `gc_duration_seconds_sum / gc_duration_seconds_count`, `max by (quantile) (gc_duration_seconds)`,
	// Native histograms.
	`request_duration_seconds`, `rate(request_duration_seconds[2m])`, `increase(request_duration_seconds[5m])`, `irate(request_duration_seconds[1m])`,
	`sum(request_duration_seconds)`, `avg by (job) (rate(request_duration_seconds[2m]))`, `histogram_quantile(0.9, sum(rate(request_duration_seconds[2m])))`,
	`histogram_quantile(0.05, request_duration_seconds)`, `histogram_count(request_duration_seconds)`, `histogram_sum(rate(request_duration_seconds[2m]))`,
	`histogram_avg(request_duration_seconds)`, `histogram_fraction(0, 0.5, rate(request_duration_seconds[2m]))`, `histogram_stddev(request_duration_seconds)`,
	`histogram_stdvar(request_duration_seconds)`, `sum_over_time(request_duration_seconds[2m])`, `resets(request_duration_seconds[10m])`,
	`request_duration_seconds * 2 - request_duration_seconds`, `count(request_duration_seconds)`, `histogram_count(last_over_time(request_duration_seconds[10m]))`,
	// Restarts, ends, rare samples, odd values.
	`restarted_total`, `rate(restarted_total[2m])`, `resets(restarted_total[10m])`, `ended`, `count_over_time(ended[10m])`, `last_over_time(ended[10m])`,
	`seldom`, `count_over_time(seldom[10m])`, `absent(ended)`, `absent_over_time(ended[1m])`, `absent(nothing{a="b"})`, `present_over_time(seldom[1m])`,
	`odd`, `1 / odd`, `sum by (is) (odd)`, `max(odd)`, `odd == bool odd`, `unknown`, `sgn(odd)`,
	// Operators.
	`swing * on (model_name) restarted_total`, `restarted_total / on (job) group_left (extra) label_replace(count by (job) (swing), "extra", "x", "", "")`,
	`swing > 0.5`, `swing > bool 0.5`, `swing and ignoring (is) odd{is="nan"}`, `swing or vllm:num_requests_running`, `swing unless swing > 0.5`,
	`vllm:num_requests_running ^ 2 % 7`, `-swing`, `swing atan2 restarted_total`,
	// Aggregations.
	`topk(1, restarted_total)`, `bottomk(1, swing)`, `quantile(0.5, vllm:request_success_total)`, `stddev(vllm:request_success_total)`, `stdvar(swing)`,
	`count_values("running", vllm:num_requests_running)`, `group by (job, instance) (vllm:request_success_total)`, `count by (__name__) ({__name__=~"vllm.*|gc.*|request_.*"})`,
	`avg without (model_name) (swing)`, `limitk(1, swing)`,
	// Functions.
	`label_replace(swing, "short", "$1", "model_name", "(.).*")`, `label_join(swing, "both", "/", "job", "model_name")`, `sort(swing)`, `sort_desc(restarted_total)`,
	`sort_by_label(swing, "model_name")`, `clamp(swing, 0.2, 0.8)`, `clamp_max(swing, 0.5)`, `round(swing, 0.01)`, `ceil(swing)`, `exp(ln(swing))`, `sqrt(swing)`,
	`vector(scalar(vllm:num_requests_running))`, `time() - timestamp(swing)`, `day_of_week(process_start_time_seconds)`, `mad_over_time(swing[5m])`,
	`double_exponential_smoothing(swing[5m], 0.5, 0.5)`, `info(swing)`, `sum_over_time(swing[2m]) / count_over_time(swing[2m])`, `stdvar_over_time(swing[5m])`,
	// Names beyond ASCII, and a counter that is not called one.
	`{"llm.tokens/s"}`, `sum by ("größe") ({"llm.tokens/s", "größe"="ß"})`, `plain`, `rate(plain[2m])`,
}

// Scenario: an engine is scraped by a Prometheus server, and by the Collector's prometheus receiver for its tsdb exporter: llmsim,
// and besides what llmsim has not, such as native histograms and a restart. Then it is gone.
// Guarantees: whatever is asked of the two, the answer is the same, but for names and the width of zero buckets.
func TestTheTSDBAnswersAsAPrometheusThatScrapesTheSame(t *testing.T) {
	e := startEngine(t, 40)
	theirs, mine, c := scrapers(t, e)
	for who := range e.types {
		for contentType := range e.types[who] {
			assert.Contains(t, contentType, "application/vnd.google.protobuf", "native histograms come by no other")
		}
	}
	both := comparison{t, theirs, mine}
	end := e.at(e.steps - 5) // nothing that is asked looks further ahead than a minute, behind which are the times at which it was gone
	unix := func(at time.Time) string { return fmt.Sprint(at.Unix()) }

	compared, silent := 0, []string{}
	for _, q := range scrapeQuestions {
		ordered := strings.HasPrefix(q, "sort")
		found := false
		for _, at := range []time.Time{end, e.at(e.steps / 2), e.at(7).Add(8 * time.Second)} {
			found = both.same("query", url.Values{"query": {q}, "time": {unix(at)}}, ordered).found() || found
		}
		found = both.same("query_range", url.Values{"query": {q}, "start": {unix(e.at(4))}, "end": {unix(end)}, "step": {"37"}}, false).found() || found
		compared += 4
		if !found {
			silent = append(silent, q)
		}
	}
	assert.Equal(t, []string{`limitk(1, swing)`, `sort_by_label(swing, "model_name")`, `mad_over_time(swing[5m])`, `double_exponential_smoothing(swing[5m], 0.5, 0.5)`, `info(swing)`},
		silent, "what Prometheus calls experimental, and has off, is refused by both in the same words")
	t.Logf("%d questions, %d answers compared", len(scrapeQuestions), compared)

	t.Run("what the scrape itself says", func(t *testing.T) {
		for _, q := range []string{`avg by (job, instance) (up)`, `min by (__name__) ({__name__=~"scrape_samples_scraped|scrape_samples_post_metric_relabeling"})`} {
			comparison{t, theirs, mine}.same("query", url.Values{"query": {q}, "time": {unix(time.Now())}}, false)
		}
	})
	t.Run("a target that is gone", func(t *testing.T) {
		both := comparison{t, theirs, mine}
		now := unix(time.Now())
		for _, q := range []string{ofEngine, `request_duration_seconds`} {
			assert.False(t, both.same("query", url.Values{"query": {q}, "time": {now}}, false).found(), "within the lookback, and gone")
		}
		for _, q := range []string{`last_over_time(swing[30m])`, `histogram_count(last_over_time(request_duration_seconds[30m]))`, `count_over_time(wait_seconds_bucket[30m])`} {
			assert.True(t, both.same("query", url.Values{"query": {q}, "time": {now}}, false).found(), q)
		}
	})
	t.Run("series and labels", func(t *testing.T) { sameLabels(comparison{t, theirs, mine}, e) })
	t.Run("exemplars", func(t *testing.T) {
		both := comparison{t, theirs, mine}
		window := url.Values{"start": {unix(e.begin)}, "end": {unix(time.Now())}}
		for _, q := range []string{`restarted_total`, `rate(wait_seconds_bucket[2m])`, `request_duration_seconds`} {
			window.Set("query", q)
			assert.True(t, both.same("query_exemplars", window, false).found(), q)
		}
	})
	t.Run("metadata", func(t *testing.T) { sameMetadata(comparison{t, theirs, mine}) })
	t.Run("errors", func(t *testing.T) {
		both := comparison{t, theirs, mine}
		for _, q := range []string{`sum(`, `rate(swing)`, `swing * odd`, `label_replace(swing, "a", "b", "c", "(")`, `{}`, `nothing()`, `swing[5m:`} {
			both.same("query", url.Values{"query": {q}, "time": {unix(end)}}, false)
		}
		both.same("query_range", url.Values{"query": {"swing"}, "start": {"0"}, "end": {"1000000"}, "step": {"1"}}, false)
		both.same("query_range", url.Values{"query": {"swing"}, "start": {"2"}, "end": {"1"}, "step": {"1"}}, false)
		both.same("query_range", url.Values{"query": {"swing[1m]"}, "start": {"1"}, "end": {"2"}, "step": {"1"}}, false)
		both.same("query", url.Values{"query": {"swing"}, "time": {unix(end)}, "timeout": {"a while"}}, false)
		both.same("series", url.Values{}, false)
		both.same("format_query", url.Values{"query": {"sum  by(a) (swing)"}}, false)
		both.same("parse_query", url.Values{"query": {"sum by (a) (rate(swing[5m]))"}}, false)
	})
	require.NoError(t, e.err)
	assert.Equal(t, 0, c.Stop())
}

// sameLabels compares what the endpoints for series and labels say, within a selection and a limit. target_info, which is what
// OTLP has besides, is left out by the selection.
func sameLabels(both comparison, e *engine) {
	const all = `{job="vllm", __name__!="target_info", __name__!~"scrape_.*|up"}`
	window := func(more ...string) url.Values {
		form := url.Values{"start": {fmt.Sprint(e.begin.Unix())}, "end": {fmt.Sprint(e.at(e.steps - 1).Unix())}}
		for i := 0; i+1 < len(more); i += 2 {
			form.Add(more[i], more[i+1])
		}
		return form
	}
	f := func(path string, form url.Values) {
		both.Helper()
		assert.True(both, both.same(path, form, false).found(), "%s %s", path, form)
	}
	f("series", window("match[]", all))
	f("series", window("match[]", `swing`, "match[]", `odd{is="nan"}`))
	f("series", window("match[]", `wait_seconds_bucket`))
	f("labels", window("match[]", all))
	f("labels", window("match[]", "odd", "match[]", "gc_duration_seconds"))
	f("labels", window("match[]", all, "limit", "3"))
	for _, s := range []string{"__name__", "model_name", "le", "finished_reason", "job", "instance"} {
		f("label/"+s+"/values", window("match[]", all))
	}
	// Which are within a limit is not said; how many, and that there are more, is.
	for path, limit := range map[string]int{"series": 5, "label/__name__/values": 2} {
		for _, s := range []store{both.theirs, both.mine} {
			a, _ := s.answer(both, path, window("match[]", all, "limit", fmt.Sprint(limit)))
			assert.Len(both, a.Data, limit)
			assert.Equal(both, []string{"results truncated due to limit"}, a.Warnings)
		}
	}
}

// sameMetadata compares type, help and unit of all that was scraped. OTLP has no metric without a type: it is a gauge.
func sameMetadata(both comparison) {
	get := func(s store, path string) map[string]any {
		a, _ := s.answer(both, path, url.Values{})
		return a.Data.(map[string]any)
	}
	want, got := translated(get(both.theirs, "metadata")).(map[string]any), get(both.mine, "metadata")
	delete(got, "target_info")
	delete(got, "ended") // Prometheus forgets what it no longer scrapes
	for _, all := range []map[string]any{want, got} {
		for name := range all {
			if strings.HasPrefix(name, "scrape_") || name == "up" {
				delete(all, name) // Prometheus says nothing of its own, the receiver does
			}
		}
	}
	want["unknown"].([]any)[0].(map[string]any)["type"] = "gauge"
	assert.Greater(both, len(want), 50)
	assert.Equal(both, want, got)
}
