// SPDX-License-Identifier: Apache-2.0

//go:build enginetest

package enginetest

import (
	"bytes"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/exposition/facts"
)

// prompt is a request both are given: the real engine as token ids, the
// simulated one as lengths and the prefixes that the ids make.
type prompt struct {
	tokens []int
	output int
}

// content makes n token ids; other seeds make other ones.
func content(seed, n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 3 + (seed*131+i*7+i*i)%500
	}
	return out
}

// oneByOne are requests that leave neither a choice when they come one after the
// other: chunked prefills, and prefixes of whole blocks. The real engine's block
// size is not ours to choose, so lengths are in blocks.
func oneByOne(block int) []prompt {
	a := content(1, 4*block)
	return []prompt{
		{content(2, 2*block+5), 5},
		{a, 8},
		{a, 8}, // a whole prompt in the cache: all but the last block are hits
		{append(slices.Clone(a[:2*block]), content(3, block+3)...), 4},
		{content(4, 3*block-1), 1},
		{content(5, 13*block), 2}, // takes nearly the whole cache
		{a, 3},                    // so that this one finds what was evicted last
	}
}

// together are two requests that fill half of the cache each, until both need
// one block more: the newer one must give way, once.
func together(block int) []prompt {
	return []prompt{{content(6, 8*block-10), 40}, {content(7, 8*block-10), 40}}
}

// Families of the real engine that the simulator does not have, by their
// beginning: those after the end of the dump that it follows, and newer ones.
var notSimulated = []string{
	"http_", "vllm:cache_config_info", "vllm:request_prefill_kv_computed_tokens",
	"vllm:admission_rejections_", "vllm:prompt_tokens_cached_by_source_",
}

// Counted alike by both, whatever the machine's speed.
var (
	counters = []string{
		"vllm:prompt_tokens_total", "vllm:prompt_tokens_cached_total", "vllm:prompt_tokens_by_source_total",
		"vllm:generation_tokens_total", "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total",
		"vllm:num_preemptions_total", "vllm:request_success_total",
	}
	countHistograms = []string{
		"vllm:request_prompt_tokens", "vllm:request_generation_tokens", "vllm:request_max_num_generation_tokens",
		"vllm:request_params_n", "vllm:request_params_max_tokens", "vllm:request_num_preemptions",
	}
	timeHistograms = []string{
		"vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds", "vllm:request_time_per_output_token_seconds",
		"vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds", "vllm:request_inference_time_seconds",
		"vllm:request_prefill_time_seconds", "vllm:request_decode_time_seconds",
	}
)

func TestLlmsimSpeaksAndCountsAsTheEngineDoes(t *testing.T) {
	spans := receiveSpans(t)
	start := scrape(t)
	cache := cacheOf(t, start)
	t.Logf("engine: %d usable blocks of %d tokens", cache.blocks, cache.blockSize)

	sequence := oneByOne(cache.blockSize)
	for _, p := range sequence {
		complete(t, p)
	}
	middle := scrapeAfter(t, start, len(sequence))
	pair := together(cache.blockSize)
	complete(t, pair...)
	end := scrapeAfter(t, middle, len(pair))
	if file := os.Getenv("LLMSIM_ENGINE_DUMP"); file != "" {
		require.NoError(t, os.WriteFile(file, end.text, 0o644))
	}
	sim := simulate(t, cache, sequence, pair)

	t.Run("families", func(t *testing.T) {
		real, err := facts.Parse(bytes.NewReader(end.text))
		require.NoError(t, err)
		ours, err := facts.Parse(bytes.NewReader(sim.end.text))
		require.NoError(t, err)
		var wrong []string
		for _, d := range facts.Diff(real, ours) {
			name, missing := strings.CutSuffix(d, ": missing")
			if missing && slices.ContainsFunc(notSimulated, func(p string) bool { return strings.HasPrefix(name, p) }) {
				t.Logf("not simulated: %s", name)
				continue
			}
			wrong = append(wrong, d)
		}
		t.Logf("%d families of the engine, %d of llmsim", len(real), len(ours))
		assert.Empty(t, wrong, "want what the engine has")
	})
	t.Run("one by one", func(t *testing.T) {
		compare(t, start, middle, sim.start, sim.middle, append([]string{"vllm:iteration_tokens_total"}, countHistograms...))
	})
	t.Run("together", func(t *testing.T) {
		// Which step the second joins is the machine's matter, so iterations may differ.
		compare(t, middle, end, sim.middle, sim.end, countHistograms)
		assert.EqualValues(t, 1, growth(middle, end, "vllm:num_preemptions_total"), "the case is meant to preempt")
	})
	t.Run("aborts", func(t *testing.T) {
		// Scenario: a client reads the beginning of a stream and goes away.
		// Guarantees: the engine counts the prompt and no request, as llmsim does
		// unless report_aborts is set.
		before := scrape(t)
		resp := open(t, "/v1/completions", map[string]any{
			"model": "tiny", "prompt": content(9, 20), "max_tokens": 1500, "ignore_eos": true, "stream": true,
		})
		_, err := resp.Body.Read(make([]byte, 16))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		var after scraped
		require.Eventually(t, func() bool {
			after = scrape(t)
			return value(after, "vllm:num_requests_running") == 0 && growth(before, after, "vllm:prompt_tokens_total") == 20
		}, time.Minute, 100*time.Millisecond)
		generated := growth(before, after, "vllm:generation_tokens_total")
		t.Logf("went away after %v of 1500 tokens", generated)
		assert.Less(t, generated, 1500.0)
		assert.Zero(t, growth(before, after, "vllm:request_success_total"))
		assert.Zero(t, observations(before, after, "vllm:e2e_request_latency_seconds"))
		assert.EqualValues(t, 1, observations(before, after, "vllm:time_to_first_token_seconds"))
	})
	t.Run("spans", func(t *testing.T) {
		want := len(sequence) + len(pair)
		assert.Eventually(t, func() bool { return len(spans.attributes()) >= want }, time.Minute, 200*time.Millisecond)
		for _, real := range spans.attributes()[:1] { // they are alike
			t.Logf("engine: %v", real)
			for _, name := range real {
				assert.Contains(t, append(sim.spanAttributes, notInSpans...), name, "the engine says this, llmsim does not")
			}
			for _, name := range sim.spanAttributes {
				assert.Contains(t, append(real, onlyInSpans...), name, "llmsim says this, the engine does not")
			}
		}
	})
}

// compare holds what two engines counted between two scrapes against each other.
func compare(t *testing.T, before, after, simBefore, simAfter scraped, exact []string) {
	t.Helper()
	for _, name := range counters {
		want, got := growth(before, after, name), growth(simBefore, simAfter, name)
		t.Logf("%s: engine %v, llmsim %v", name, want, got)
		assert.Equal(t, want, got, name)
	}
	for _, name := range exact {
		want, got := buckets(before, after, name), buckets(simBefore, simAfter, name)
		t.Logf("%s: sum: engine %v, llmsim %v", name, growth(before, after, name), growth(simBefore, simAfter, name))
		assert.Equal(t, want, got, name)
		assert.Equal(t, growth(before, after, name), growth(simBefore, simAfter, name), name)
	}
	for _, name := range timeHistograms {
		// Durations are the machine's; how many were observed is not.
		want, got := observations(before, after, name), observations(simBefore, simAfter, name)
		t.Logf("%s: observations: engine %d, llmsim %d", name, want, got)
		assert.Equal(t, want, got, name)
	}
	for _, gauge := range []string{"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"} {
		assert.Zero(t, value(after, gauge), gauge)
		assert.Zero(t, value(simAfter, gauge), gauge)
	}
}

func complete(t *testing.T, ps ...prompt) {
	t.Helper()
	tokens := make([][]int, len(ps))
	for i, p := range ps {
		tokens[i] = p.tokens
		require.Equal(t, ps[0].output, p.output, "one request has one max_tokens")
	}
	post(t, "/v1/completions", map[string]any{
		"model": "tiny", "prompt": tokens, "max_tokens": ps[0].output, "ignore_eos": true, "temperature": 0,
	})
}

func base(t *testing.T) string {
	t.Helper()
	u := os.Getenv("LLMSIM_ENGINE_URL")
	require.NotEmpty(t, u, "LLMSIM_ENGINE_URL names no engine; cmd/llmsim/enginetest/run.sh starts one")
	resp, err := http.Get(u + "/health")
	require.NoError(t, err, "no engine; cmd/llmsim/enginetest/run.sh starts one")
	require.NoError(t, resp.Body.Close())
	return u
}
