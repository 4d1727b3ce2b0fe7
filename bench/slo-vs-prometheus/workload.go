// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// workload is what the endpoints expose: one endpoint a tenant, on it some models, with the series that a serving
// engine has. Every value is a function of the time since the workload began, so each peer sees the same numbers.
type workload struct {
	tenants, models int
	began           time.Time // when all counters were zero
}

// fault makes the time to first token of one tenant's model bad for good.
type fault struct {
	tenant, model int
	from          time.Duration // since the workload began
}

// family is a histogram: a log-normal of the given median and spread, on the boundaries of vLLM.
type family struct {
	name           string
	median, spread float64
	bounds         []float64
}

const (
	ttft  = "vllm:time_to_first_token_seconds"
	tpot  = "vllm:request_time_per_output_token_seconds"
	e2e   = "vllm:e2e_request_latency_seconds"
	queue = "vllm:request_queue_time_seconds"
	ended = "vllm:request_success_total"
)

var histograms = []family{
	{ttft, 0.1, 0.5, []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}},
	{tpot, 0.03, 0.4, []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}},
	{e2e, 4, 0.4, []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240}},
	{queue, 0.2, 0.5, []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60}},
}

// badFactor is how much slower everything is in a fault: nothing is in time any more.
const badFactor = 100

// reasons are the ways in which requests end, and their shares.
var reasons = []struct {
	name  string
	share float64
}{{"stop", 0.9}, {"length", 0.09}, {"abort", 0.006}, {"error", 0.002}, {"repetition", 0.002}}

// counters grow by so much a request.
var counters = []struct {
	name       string
	perRequest float64
}{
	{"vllm:prompt_tokens_total", 1155}, {"vllm:generation_tokens_total", 211}, {"vllm:num_preemptions_total", 0.01},
	{"vllm:prefix_cache_queries_total", 1155}, {"vllm:prefix_cache_hits_total", 400},
}

var gauges = []string{"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"}

// seriesPerModel is how many series a model has on its endpoint.
func seriesPerModel() int {
	n := len(reasons) + len(counters) + len(gauges)
	for _, h := range histograms {
		n += len(h.bounds) + 3 // +Inf, sum, count
	}
	return n
}

func tenantName(i int) string { return fmt.Sprintf("tenant-%02d", i) }
func modelName(i int) string  { return fmt.Sprintf("model-%02d", i) }

// requests is how many requests a tenant's model has had after a while: 20 to 26 a second, so that a window holds enough
// of them for a promise of 99 %.
func (w *workload) requests(tenant, model int, after time.Duration) float64 {
	rate := 20 + float64((tenant*w.models+model)%7)
	return math.Floor(rate * max(after, 0).Seconds())
}

// expose writes an endpoint's /metrics in the text format.
func (w *workload) expose(to io.Writer, tenant int, after time.Duration, f fault) {
	for _, h := range histograms {
		fmt.Fprintf(to, "# HELP %[1]s Of a request.\n# TYPE %[1]s histogram\n", h.name)
		for model := range w.models {
			w.histogram(to, h, tenant, model, after, f, "", "")
		}
	}
	fmt.Fprintf(to, "# HELP %[1]s Requests that ended, by how.\n# TYPE %[1]s counter\n", ended)
	for model := range w.models {
		for _, r := range reasons {
			fmt.Fprintf(to, "%s{%s,finished_reason=%q} %v\n", ended, labelsOf(model), r.name, math.Floor(r.share*w.requests(tenant, model, after)))
		}
	}
	for _, c := range counters {
		fmt.Fprintf(to, "# HELP %[1]s So far.\n# TYPE %[1]s counter\n", c.name)
		for model := range w.models {
			fmt.Fprintf(to, "%s{%s} %v\n", c.name, labelsOf(model), math.Floor(c.perRequest*w.requests(tenant, model, after)))
		}
	}
	for i, g := range gauges {
		fmt.Fprintf(to, "# HELP %[1]s Now.\n# TYPE %[1]s gauge\n", g)
		for model := range w.models {
			swing := 0.5 + 0.4*math.Sin(after.Seconds()/60+float64(tenant+model+i))
			fmt.Fprintf(to, "%s{%s} %.4f\n", g, labelsOf(model), swing)
		}
	}
}

func labelsOf(model int) string { return fmt.Sprintf(`engine="0",model_name=%q`, modelName(model)) }

// histogram writes the series of one histogram, with further labels and a timestamp where there are such.
func (w *workload) histogram(to io.Writer, h family, tenant, model int, after time.Duration, f fault, extra, at string) {
	good, bad := w.requests(tenant, model, after), 0.0
	if h.name == ttft && tenant == f.tenant && model == f.model && f.from > 0 && after > f.from {
		all := good
		good = w.requests(tenant, model, f.from)
		bad = all - good
	}
	labels := labelsOf(model) + extra
	// Each bucket grows by itself: rounded sums would let single buckets shrink, which is what a restart looks like.
	all, goodBelow, badBelow := 0.0, 0.0, 0.0
	bucket := func(le string, goodShare, badShare float64) {
		all += math.Floor(good*(goodShare-goodBelow)) + math.Floor(bad*(badShare-badBelow))
		goodBelow, badBelow = goodShare, badShare
		fmt.Fprintf(to, "%s_bucket{%s,le=%q} %v%s\n", h.name, labels, le, all, at)
	}
	for _, b := range h.bounds {
		bucket(boundary(b), h.share(b), h.share(b/badFactor))
	}
	bucket("+Inf", 1, 1)
	fmt.Fprintf(to, "%s_sum{%s} %v%s\n", h.name, labels, (good+badFactor*bad)*h.median, at)
	fmt.Fprintf(to, "%s_count{%s} %v%s\n", h.name, labels, all, at)
}

// share of the values at or below x.
func (h family) share(x float64) float64 {
	return 0.5 * math.Erfc(-math.Log(x/h.median)/(h.spread*math.Sqrt2))
}

// boundary is a bucket's boundary as Prometheus 3 spells it.
func boundary(b float64) string {
	s := strconv.FormatFloat(b, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
