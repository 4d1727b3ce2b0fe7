// SPDX-License-Identifier: Apache-2.0

//go:build enginetest

package enginetest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/exposition"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/exposition/facts"
)

// prompt is a request both are given: the real engine as token ids, the
// simulated one as lengths and the prefix that they make.
type prompt struct {
	tokens []int
	output int
}

// prompts exercise what both count alike: lengths, and prefixes of whole blocks.
// The real engine's block size is not ours to choose, so lengths are in blocks.
func prompts(block int) []prompt {
	content := func(seed, n int) []int {
		out := make([]int, n)
		for i := range out {
			out[i] = 3 + (seed*131+i*7+i*i)%500
		}
		return out
	}
	a := content(1, 4*block)
	return []prompt{
		{content(2, 2*block+5), 5},
		{a, 8},
		{a, 8}, // a whole prompt in the cache: all but the last block are hits
		{append(slices.Clone(a[:2*block]), content(3, block+3)...), 4},
		{content(4, 3*block-1), 1},
	}
}

func url(t *testing.T) string {
	t.Helper()
	u := os.Getenv("LLMSIM_ENGINE_URL")
	require.NotEmpty(t, u, "LLMSIM_ENGINE_URL names no engine; cmd/llmsim/enginetest/run.sh starts one")
	return u
}

func scrape(t *testing.T) []byte {
	t.Helper()
	resp, err := http.Get(url(t) + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return body
}

func families(t *testing.T, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.UTF8Validation)
	out, err := p.TextToMetricFamilies(bytes.NewReader(text))
	require.NoError(t, err)
	return out
}

func complete(t *testing.T, p prompt) {
	t.Helper()
	body, err := json.Marshal(map[string]any{
		"model": "tiny", "prompt": p.tokens, "max_tokens": p.output, "ignore_eos": true, "temperature": 0,
	})
	require.NoError(t, err)
	resp, err := http.Post(url(t)+"/v1/completions", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	require.Equal(t, http.StatusOK, resp.StatusCode, string(answer))
}

// blockSize is what the engine says of its cache.
func blockSize(t *testing.T, text []byte) int {
	t.Helper()
	mf := families(t, text)["vllm:cache_config_info"]
	require.NotNil(t, mf, "vllm:cache_config_info")
	for _, l := range mf.GetMetric()[0].GetLabel() {
		if l.GetName() == "block_size" {
			n, err := strconv.Atoi(l.GetValue())
			require.NoError(t, err)
			return n
		}
	}
	t.Fatal("vllm:cache_config_info has no block_size")
	return 0
}

// simulate gives llmsim the same prompts, one after the other.
func simulate(t *testing.T, block int, ps []prompt) []byte {
	t.Helper()
	cfg := engine.DefaultConfig()
	cfg.BlockSize, cfg.Blocks, cfg.MaxModelLen = block, 4096, 2048
	cfg.Outcomes.Length = 1 // max_tokens is what each generates
	e := engine.New(cfg)
	for i, p := range ps {
		at := time.Duration(i) * time.Hour
		e.AdvanceTo(at)
		e.Submit(engine.Request{
			ID: uint64(i), Arrival: at, PromptTokens: len(p.tokens), OutputTokens: p.output,
			Prefix: engine.Prefix{IDs: prefixIDs(p.tokens, block), Tokens: block},
		})
	}
	e.AdvanceTo(engine.Never)
	var b bytes.Buffer
	require.NoError(t, exposition.Write(&b, exposition.Identity{Model: "tiny", Start: time.Unix(0, 0)}, e.Stats()))
	return b.Bytes()
}

// prefixIDs hashes every whole block with all that is before it.
func prefixIDs(tokens []int, block int) []uint64 {
	var out []uint64
	h := uint64(0)
	for i, tok := range tokens {
		h = engine.Mix(h, uint64(tok))
		if (i+1)%block == 0 {
			out = append(out, h)
		}
	}
	return out
}

// Families of the real engine that the simulator does not have, by their
// beginning: they are not in the dump that it follows.
var notSimulated = []string{"http_", "vllm:cache_config_info", "vllm:lora_requests_info", "vllm:request_prefill_kv_computed_tokens", "vllm:kv_block_"}

func TestLlmsimSpeaksAsTheEngineDoes(t *testing.T) {
	before := scrape(t)
	block := blockSize(t, before)
	ps := prompts(block)
	for _, p := range ps {
		complete(t, p)
	}
	var after []byte
	require.Eventually(t, func() bool { // counters follow the answer by a moment
		after = scrape(t)
		b, a := families(t, before), families(t, after)
		return delta(b, a, "vllm:request_success_total") == float64(len(ps))
	}, 30*time.Second, 200*time.Millisecond)
	if file := os.Getenv("LLMSIM_ENGINE_DUMP"); file != "" {
		require.NoError(t, os.WriteFile(file, after, 0o644))
	}
	simulated := simulate(t, block, ps)

	t.Run("families", func(t *testing.T) {
		real, err := facts.Parse(bytes.NewReader(after))
		require.NoError(t, err)
		ours, err := facts.Parse(bytes.NewReader(simulated))
		require.NoError(t, err)
		var unknown []string
		for _, d := range facts.Diff(real, ours) {
			name, missing := strings.CutSuffix(d, ": missing")
			if missing && slices.ContainsFunc(notSimulated, func(p string) bool { return strings.HasPrefix(name, p) }) {
				t.Logf("not simulated: %s", name)
				continue
			}
			unknown = append(unknown, d)
		}
		t.Logf("%d families of the engine, %d of llmsim", len(real), len(ours))
		assert.Empty(t, unknown, "want what the engine has")
	})

	t.Run("counts", func(t *testing.T) {
		// Sequential requests leave both no choice: what they count must be equal.
		// Durations are the machine's and are not compared.
		b, a, s := families(t, before), families(t, after), families(t, simulated)
		for _, name := range []string{
			"vllm:prompt_tokens_total", "vllm:prompt_tokens_cached_total", "vllm:generation_tokens_total",
			"vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total", "vllm:num_preemptions_total",
			"vllm:request_success_total", "vllm:prompt_tokens_by_source_total",
			"vllm:request_prompt_tokens", "vllm:request_generation_tokens", "vllm:request_max_num_generation_tokens",
			"vllm:request_params_n", "vllm:request_params_max_tokens", "vllm:request_num_preemptions", "vllm:iteration_tokens_total",
		} {
			got, want := delta(nil, s, name), delta(b, a, name)
			assert.Equal(t, want, got, name)
			t.Logf("%s: engine %v, llmsim %v", name, want, got)
		}
		for _, name := range []string{
			"vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds", "vllm:request_time_per_output_token_seconds",
			"vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds", "vllm:request_inference_time_seconds",
			"vllm:request_prefill_time_seconds", "vllm:request_decode_time_seconds", "vllm:iteration_tokens_total",
		} {
			got, want := observations(s, name), observations(a, name)-observations(b, name)
			assert.Equal(t, want, got, name)
			t.Logf("%s: engine %d observations, llmsim %d", name, want, got)
		}
	})
}

// delta is how much a family grew: the sum of a counter's series or a
// histogram's sum.
func delta(before, after map[string]*dto.MetricFamily, name string) float64 {
	total := func(m map[string]*dto.MetricFamily) (v float64) {
		for _, each := range m[name].GetMetric() {
			v += each.GetCounter().GetValue() + each.GetHistogram().GetSampleSum()
		}
		return v
	}
	return total(after) - total(before)
}

func observations(m map[string]*dto.MetricFamily, name string) (n uint64) {
	for _, each := range m[name].GetMetric() {
		n += each.GetHistogram().GetSampleCount()
	}
	return n
}
