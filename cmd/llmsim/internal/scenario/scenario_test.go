// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
)

func TestDefaultIsOneReplica(t *testing.T) {
	s := Default()
	require.Len(t, s.Replicas, 1)
	assert.Equal(t, engine.DefaultConfig(), s.Replicas[0].Engine)
	assert.Equal(t, "replica-0", s.Replicas[0].Labels[InstanceLabel])
	_, endless, err := s.Source(1)
	require.NoError(t, err)
	assert.True(t, endless)
}

func TestScenarioSaysEverything(t *testing.T) {
	s, err := Parse("s.yaml", []byte(`
model: m
routing: random
traffic: {rate: 2.5, shared_prefix: {tokens: 64, share: 0.5, groups: 3}}
engines:
  big: &big
    block_size: 32
    blocks: 100
    max_num_seqs: 4
    max_num_batched_tokens: 512
    max_model_len: 1000
    report_aborts: true
    step: {base: 5ms, per_prefill_token: 10us, per_decode_seq: 1us, per_context_token: 2ns}
    outcomes: {abort: 0.1, error: 0.2, repetition: 0.3, length: 0.4, max_tokens: 50}
  small: {<<: *big, blocks: 50}
replicas:
  - {engine: big, weight: 2, labels: {cloud.region: eu}}
  - {engine: small, count: 2, model: other, labels: {cloud.region: us, service.instance.id: s}}
faults:
  - {kind: latency, match: {cloud.region: us}, from: 1m, until: 2m, factor: 3}
`), 1)
	require.NoError(t, err)
	want := engine.Config{
		BlockSize: 32, Blocks: 100, MaxNumSeqs: 4, MaxNumBatchedTokens: 512, MaxModelLen: 1000, ReportAborts: true,
		Step:     engine.StepCost{Base: 0.005, PerPrefillToken: 0.00001, PerDecodeSeq: 0.000001, PerContextToken: 0.000000002},
		Outcomes: engine.Outcomes{Abort: 0.1, Error: 0.2, Repetition: 0.3, Length: 0.4, MaxTokens: 50},
	}
	require.Len(t, s.Replicas, 3)
	assert.Equal(t, Replica{Labels: map[string]string{"cloud.region": "eu", InstanceLabel: "replica-0"}, Model: "m", Weight: 2, Engine: want}, s.Replicas[0])
	want.Blocks = 50
	for i, id := range []string{"s-0", "s-1"} {
		assert.Equal(t, Replica{Labels: map[string]string{"cloud.region": "us", InstanceLabel: id}, Model: "other", Weight: 1, Engine: want}, s.Replicas[i+1])
	}
	assert.Equal(t, "random", s.Routing)
	assert.Equal(t, 2.5, s.Traffic.Rate)
	require.Len(t, s.Faults, 1)
	assert.Equal(t, time.Minute, s.Faults[0].From)
}

func TestEveryProblemIsReportedWithItsKeyAndWhatWouldBeRight(t *testing.T) {
	// Scenario: testdata/*.bad.yaml, each with the messages expected in comments
	// at its head, one a line.
	files, err := filepath.Glob("testdata/*.bad.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var want []string
		for _, line := range strings.Split(string(data), "\n") {
			if msg, ok := strings.CutPrefix(line, "# want: "); ok {
				want = append(want, file+": "+msg)
			}
		}
		require.NotEmpty(t, want, file)
		_, err = Load(file, 1)
		require.Error(t, err, file)
		assert.Equal(t, want, strings.Split(err.Error(), "\n"), file)
	}
}

func TestTracePathIsTakenFromTheScenariosFolder(t *testing.T) {
	s, err := Load("../../testdata/example.yaml", 1)
	require.NoError(t, err)
	source, endless, err := s.Source(1)
	require.NoError(t, err)
	assert.True(t, endless, "the example loops")
	row, ok := source.Next()
	assert.True(t, ok)
	assert.Equal(t, 374, row.PromptTokens)
}

func FuzzParse(f *testing.F) {
	f.Add("replicas: [{labels: {a: b}}]")
	f.Add("engines: &a {<<: *a}")
	f.Add("engines: {a: &a {<<: [*a, *a]}, b: *a}")
	f.Add("engines: {x: {step: {base: 1ms}}}")
	f.Fuzz(func(t *testing.T, in string) {
		s, err := Parse("f", []byte(in), 1)
		if err == nil && len(s.Replicas) == 0 {
			t.Fatal("no error and no replica")
		}
	})
}
