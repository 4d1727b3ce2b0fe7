// SPDX-License-Identifier: Apache-2.0

package slocatalogextension

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/doctest"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

func TestEverySampleIsRightAndMeasuredHere(t *testing.T) {
	require.NotEmpty(t, builtinNames())
	for _, name := range builtinNames() {
		c, err := load([]string{builtinScheme + name})
		require.NoError(t, err)
		assert.NotEmpty(t, c.SLOs)
		assert.NotEmpty(t, c.Policies)
		assert.Equal(t, []string{"builtin:" + name}, c.Files)
		for _, s := range c.SLOs {
			assert.True(t, s.Evaluated(), s.ID)
		}
	}
}

func TestTheVLLMSampleSaysWhatItMeans(t *testing.T) {
	c, err := load([]string{"builtin:vllm"})
	require.NoError(t, err)
	var got []string
	for _, s := range c.SLOs {
		got = append(got, strings.Join([]string{s.ID, string(s.Class), s.Target(), s.Unit, strings.Join(s.GroupBy, ",")}, " "))
	}
	assert.Equal(t, []string{
		"llm:vllm:availability:99.9 availability 0.9990 ratio model_name",
		"llm:vllm:e2e:p95 latency 30.0000 seconds model_name",
		"llm:vllm:kv-cache:p99 saturation 0.9500 ratio model_name",
		"llm:vllm:queue:p95 latency 0.5000 seconds model_name",
		"llm:vllm:tpot:p95 latency 0.1000 seconds model_name",
		"llm:vllm:ttft:p95 latency 1.0000 seconds model_name",
		"llm:vllm:ttft:p99 latency 2.5000 seconds model_name",
	}, got)
}

// Scenario: a threshold between two bucket boundaries could only be judged by interpolation. Guarantees: those of
// the sample stand on the boundaries that vLLM 0.30 publishes.
func TestTheVLLMSampleStandsOnBucketBoundaries(t *testing.T) {
	short := []float64{0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5}
	long := []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120}
	boundaries := map[string][]float64{
		"vllm:time_to_first_token_seconds":           {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10},
		"vllm:request_time_per_output_token_seconds": short,
		"vllm:e2e_request_latency_seconds":           long,
		"vllm:request_queue_time_seconds":            long,
	}
	c, err := load([]string{"builtin:vllm"})
	require.NoError(t, err)
	for _, s := range c.SLOs {
		if s.Class != openslo.ClassLatency {
			continue
		}
		on := slices.ContainsFunc(boundaries[s.Indicator.Threshold.Metric], func(le float64) bool {
			return math.Abs(le-s.Objective.Value) == 0
		})
		assert.True(t, on, "%s: %s", s.ID, s.Target())
	}
}

// Scenario: a reader copies an example of the README. Guarantees: it is valid.
func TestEveryExampleOfTheReadmeIsValid(t *testing.T) {
	assert.Equal(t, 2, doctest.Examples(t, "extensions", NewFactory()))
	_, err := openslo.Parse(openslo.Source{Name: "README.md", Data: []byte(document(t))})
	require.NoError(t, err)
}

// document is the README's example of an SLO file.
func document(t *testing.T) string {
	t.Helper()
	blocks := doctest.Blocks(t)
	i := slices.IndexFunc(blocks, func(b string) bool { return strings.HasPrefix(b, "apiVersion:") })
	require.GreaterOrEqual(t, i, 0)
	return blocks[i]
}

// Scenario: a problem in a file, as the README shows it. Guarantees: the README shows what is really said.
func TestTheReadmesProblemsAreReal(t *testing.T) {
	doc := strings.NewReplacer("target: 0.95", "target: 95", "{slo: chat-ttft}", "{slo: chat-tttf}").Replace(document(t))
	_, err := openslo.Parse(openslo.Source{Name: "chat.yaml", Data: []byte(doc)})
	require.Error(t, err)
	assert.Contains(t, doctest.README(t), "\n"+explain(err).Error()+"\n```")
}
