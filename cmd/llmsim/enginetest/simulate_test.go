// SPDX-License-Identifier: Apache-2.0

//go:build enginetest

package enginetest

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/clock"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/exposition"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/spans"
)

// Attributes of the engine's spans that only a client's sampling parameters
// explain, and what llmsim says beyond vLLM 0.32.
var (
	notInSpans  = []string{"gen_ai.request.temperature", "gen_ai.request.top_p"}
	onlyInSpans = []string{"gen_ai.response.model", "gen_ai.usage.cached_tokens"}
)

// simulation is llmsim's side: what it exposes at the same three moments, and
// what its spans say.
type simulation struct {
	start, middle, end scraped
	spanAttributes     []string
}

// simulate gives llmsim the same prompts: a sequence one after the other, and
// then a pair at once.
func simulate(t *testing.T, c cache, sequence, pair []prompt) simulation {
	t.Helper()
	var out simulation
	cfg := engine.DefaultConfig()
	cfg.BlockSize, cfg.Blocks, cfg.MaxModelLen, cfg.MaxNumBatchedTokens, cfg.MaxNumSeqs = c.blockSize, c.blocks, 2048, 256, 8
	cfg.Outcomes.Length = 1 // max_tokens is what each generates
	cfg.OnFinish = func(r engine.Record) {
		td := spans.Build([]spans.Finished{{Record: r, Model: "tiny"}}, clock.Clock{Speed: 1}, 1)
		out.spanAttributes = nil
		for name := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().All() {
			out.spanAttributes = append(out.spanAttributes, name)
		}
		slices.Sort(out.spanAttributes)
	}
	require.NoError(t, cfg.Validate())
	e := engine.New(cfg)
	expose := func() scraped {
		var b bytes.Buffer
		require.NoError(t, exposition.Write(&b, exposition.Identity{Model: "tiny", Start: time.Unix(0, 0)}, e.Stats()))
		return parse(t, b.Bytes())
	}
	id := uint64(0)
	submit := func(p prompt, at time.Duration) {
		e.AdvanceTo(at)
		require.True(t, e.Submit(engine.Request{
			ID: id, Arrival: at, PromptTokens: len(p.tokens), OutputTokens: p.output,
			Prefix: engine.Prefix{IDs: prefixIDs(p.tokens, c.blockSize), Tokens: c.blockSize},
		}))
		id++
	}

	out.start = expose()
	at := time.Duration(0)
	for _, p := range sequence {
		submit(p, at)
		at += time.Hour
	}
	e.AdvanceTo(at)
	out.middle = expose()
	for _, p := range pair {
		submit(p, at)
	}
	e.AdvanceTo(engine.Never)
	out.end = expose()
	return out
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
