// SPDX-License-Identifier: Apache-2.0

package exposition

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/exposition/facts"
)

var identity = Identity{Model: "Qwen/Qwen2.5-0.5B-Instruct", Start: time.Unix(1_700_000_000, 0)}

// after is an engine, with the model length of the golden's, after some requests.
func after(requests int) engine.Stats {
	cfg := engine.DefaultConfig()
	cfg.MaxModelLen = 2048
	cfg.Outcomes.Length = 0.5
	e := engine.New(cfg)
	for i := range requests {
		at := time.Duration(i) * 100 * time.Millisecond
		e.AdvanceTo(at)
		e.Submit(engine.Request{
			ID: uint64(i), Arrival: at, PromptTokens: 64 + i, OutputTokens: 10 + i,
			Prefix: engine.Prefix{IDs: []uint64{1}, Tokens: 64},
		})
	}
	e.AdvanceTo(engine.Never)
	return e.Stats()
}

func text(t *testing.T, s engine.Stats) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(&b, identity, s))
	return &b
}

func golden(t *testing.T) facts.File {
	t.Helper()
	f, err := os.Open("testdata/vllm_0.30.families.yaml")
	require.NoError(t, err)
	defer f.Close()
	want, err := facts.Load(f)
	require.NoError(t, err)
	require.NotEmpty(t, want.Source)
	return want
}

func TestEveryFamilyIsAsVLLM030HasIt(t *testing.T) {
	// Scenario: an engine before its first request, and one after many.
	// Guarantees: names, types, label names, enumerated values and bucket bounds
	// are those of the golden; none is missing and none is ours alone.
	for _, n := range []int{0, 50} {
		got, err := facts.Parse(text(t, after(n)))
		require.NoError(t, err)
		assert.Empty(t, facts.Diff(golden(t).Families, got))
	}
}

func TestGoldenIsWhatTheDumpSays(t *testing.T) {
	cases := os.Getenv("OTELCOL_LLM_CASES")
	if cases == "" {
		t.Skip("OTELCOL_LLM_CASES names no folder with engines/vllm_0.30.prom.txt")
	}
	f, err := os.Open(filepath.Join(cases, "engines", "vllm_0.30.prom.txt"))
	require.NoError(t, err)
	defer f.Close()
	dump, err := facts.Parse(f)
	require.NoError(t, err)
	assert.Empty(t, facts.Diff(dump, golden(t).Families))
}

func TestValuesSurviveTheWayThroughText(t *testing.T) {
	s := after(50)
	p := expfmt.NewTextParser(model.UTF8Validation)
	got, err := p.TextToMetricFamilies(text(t, s))
	require.NoError(t, err)

	h := got["vllm:time_to_first_token_seconds"].GetMetric()[0].GetHistogram()
	assert.EqualValues(t, 50, h.GetSampleCount())
	assert.InDelta(t, s.TimeToFirstToken.Sum, h.GetSampleSum(), 1e-12)
	last := uint64(0)
	for _, b := range h.GetBucket() {
		assert.GreaterOrEqual(t, b.GetCumulativeCount(), last)
		last = b.GetCumulativeCount()
	}
	assert.Equal(t, h.GetSampleCount(), last, "+Inf holds everything")

	bySource := 0.0
	for _, m := range got["vllm:prompt_tokens_by_source_total"].GetMetric() {
		bySource += m.GetCounter().GetValue()
	}
	assert.Equal(t, got["vllm:prompt_tokens_total"].GetMetric()[0].GetCounter().GetValue(), bySource)
	finished := 0.0
	for _, m := range got["vllm:request_success_total"].GetMetric() {
		finished += m.GetCounter().GetValue()
	}
	assert.EqualValues(t, 50, finished)
	assert.Positive(t, got["vllm:prefix_cache_hits_total"].GetMetric()[0].GetCounter().GetValue())
	assert.EqualValues(t, 1_700_000_000, got["vllm:num_preemptions_created"].GetMetric()[0].GetGauge().GetValue())
}

func TestSameStatsGiveTheSameBytes(t *testing.T) {
	assert.Equal(t, text(t, after(20)).String(), text(t, after(20)).String())
}

func BenchmarkWrite(b *testing.B) {
	s := after(50)
	var buf bytes.Buffer
	b.ReportAllocs()
	for b.Loop() {
		buf.Reset()
		if err := Write(&buf, identity, s); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(buf.Len()))
}
