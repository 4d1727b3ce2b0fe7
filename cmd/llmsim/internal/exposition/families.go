// SPDX-License-Identifier: Apache-2.0

package exposition

import (
	dto "github.com/prometheus/client_model/go"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
)

// pythonFamilies are what prometheus_client says of the interpreter. The
// simulator has none: collections are made up from the number of steps.
func pythonFamilies(b *builder, s engine.Stats) {
	generations := func(per ...float64) []*dto.Metric {
		var out []*dto.Metric
		for i, p := range per {
			out = append(out, counter(float64(uint64(float64(s.Steps)*p)), label("generation", string(rune('0'+i)))))
		}
		return out
	}
	b.family("python_gc_objects_collected_total", "Made up from the number of engine steps.", dto.MetricType_COUNTER, generations(3, 0.8, 0.2)...)
	b.family("python_gc_objects_uncollectable_total", "Always zero.", dto.MetricType_COUNTER, generations(0, 0, 0)...)
	b.family("python_gc_collections_total", "Made up from the number of engine steps.", dto.MetricType_COUNTER, generations(0.4, 0.04, 0.002)...)
	b.family("python_info", "The interpreter that this simulator stands in for.", dto.MetricType_GAUGE, gauge(1,
		label("implementation", "CPython"), label("major", "3"), label("minor", "12"), label("patchlevel", "0"), label("version", "3.12.0")))
}

// processFamilies are plausible and constant, but for the processor time, which
// is the simulated time spent in steps.
func processFamilies(b *builder, id Identity, s engine.Stats) {
	plain := func(name, help string, v float64) {
		b.family(name, help, dto.MetricType_GAUGE, gauge(v))
	}
	plain("process_virtual_memory_bytes", "Address space, a constant.", 12<<30)
	plain("process_resident_memory_bytes", "Memory in RAM, a constant.", 1<<30)
	plain("process_start_time_seconds", "When the simulation started, in seconds since 1970.", unixSeconds(id.Start))
	b.family("process_cpu_seconds_total", "Simulated seconds spent in engine steps.", dto.MetricType_COUNTER, counter(s.Busy.Seconds()))
	plain("process_open_fds", "Open files, a constant.", 44)
	plain("process_max_fds", "Limit of open files, a constant.", 65535)
}

// engineFamilies are about the engine as a whole.
func engineFamilies(b *builder, s engine.Stats) {
	const mfu = " Zero, as in vLLM without MFU metrics."
	b.counter("vllm:estimated_flops_per_gpu", "Floating point operations per GPU."+mfu, 0)
	b.counter("vllm:estimated_read_bytes_per_gpu", "Bytes read from memory per GPU."+mfu, 0)
	b.counter("vllm:estimated_write_bytes_per_gpu", "Bytes written to memory per GPU."+mfu, 0)

	b.gauge("vllm:num_requests_running", "Requests in the running batch.", float64(s.Running))
	b.gauge("vllm:num_requests_waiting", "Requests in the queue.", float64(s.Waiting))
	b.gauges("vllm:num_requests_waiting_by_reason", "Requests in the queue, by what they wait for.",
		one("reason", float64(s.Waiting), "capacity", "deferred"))
	b.gauges("vllm:engine_sleep_state", "1 for the state the engine is in; this one never sleeps.",
		one("sleep_state", 1, "awake", "weights_offloaded", "discard_all"))
	usage := 0.0
	if s.TotalBlocks > 0 {
		usage = 1 - float64(s.FreeBlocks)/float64(s.TotalBlocks)
	}
	b.gauge("vllm:kv_cache_usage_perc", "Share of the KV cache's blocks in use, from 0 to 1.", usage)

	b.counter("vllm:prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", float64(s.PrefixQueries))
	b.counter("vllm:prefix_cache_hits", "Prompt tokens found in the prefix cache.", float64(s.PrefixHits))
	const none = " Zero: the simulator has none."
	b.counter("vllm:external_prefix_cache_queries", "Prompt tokens looked up in another instance's cache."+none, 0)
	b.counter("vllm:external_prefix_cache_hits", "Prompt tokens found in another instance's cache."+none, 0)
	b.counter("vllm:mm_cache_queries", "Items looked up in the multi-modal cache."+none, 0)
	b.counter("vllm:mm_cache_hits", "Items found in the multi-modal cache."+none, 0)

	b.counter("vllm:num_preemptions", "Sequences thrown out for want of blocks.", float64(s.Preemptions))
	b.counter("vllm:prompt_tokens", "Prompt tokens of requests that got their first token.", float64(s.PromptTokens))
	bySource := []float64{float64(s.PromptComputed), float64(s.PromptCached), 0}
	b.counters("vllm:prompt_tokens_by_source", "Prompt tokens, by where their keys and values came from.", variants{
		label: "source", values: []string{"local_compute", "local_cache_hit", "external_kv_transfer"},
		at: func(i int) float64 { return bySource[i] },
	})
	b.counter("vllm:prompt_tokens_cached", "Prompt tokens that did not have to be computed.", float64(s.PromptCached))
	b.counter("vllm:generation_tokens", "Tokens generated.", float64(s.GenerationTokens))
}

// requestFamilies are about single requests; most are observed at their end.
func requestFamilies(b *builder, s engine.Stats) {
	var reasons []string
	for r := range engine.NumReasons {
		reasons = append(reasons, r.String())
	}
	b.counters("vllm:request_success", "Requests that ended, by how.", variants{
		label: "finished_reason", values: reasons,
		at: func(i int) float64 { return float64(s.Reported[i]) },
	})
	b.histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", s.RequestPromptTokens)
	b.histogram("vllm:request_generation_tokens", "Generated tokens of a request.", s.RequestGenerationTokens)
	b.histogram("vllm:iteration_tokens_total", "Tokens of an engine step that put something out.", s.IterationTokens)
	b.histogram("vllm:request_max_num_generation_tokens", "Generated tokens of a request's longest answer.", s.RequestMaxGenerationTokens)
	b.histogram("vllm:request_params_n", "Answers asked for.", s.RequestParamsN)
	b.histogram("vllm:request_params_max_tokens", "Most tokens asked for.", s.RequestParamsMaxTokens)
	b.histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.", s.TimeToFirstToken)
	b.histogram("vllm:inter_token_latency_seconds", "From one token to the next.", s.InterTokenLatency)
	b.histogram("vllm:request_time_per_output_token_seconds", "A request's mean time between tokens.", s.TimePerOutputToken)
	b.histogram("vllm:e2e_request_latency_seconds", "From arrival to the end.", s.E2ELatency)
	b.histogram("vllm:request_queue_time_seconds", "From arrival to the first scheduling.", s.QueueTime)
	b.histogram("vllm:request_inference_time_seconds", "From the first scheduling to the last token.", s.InferenceTime)
	b.histogram("vllm:request_prefill_time_seconds", "From the first scheduling to the first token.", s.PrefillTime)
	b.histogram("vllm:request_decode_time_seconds", "From the first to the last token.", s.DecodeTime)
	b.histogram("vllm:request_num_preemptions", "How often a request was preempted.", s.RequestPreemptions)
}

// one gives the first value v and the others zero.
func one(name string, v float64, values ...string) variants {
	return variants{label: name, values: values, at: func(i int) float64 {
		if i == 0 {
			return v
		}
		return 0
	}}
}
