// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/scenario"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/trace"
)

func parse(t testing.TB, text string) scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("s.yaml", []byte(text), 1)
	require.NoError(t, err)
	return s
}

func submitted(f *Fleet) []uint64 {
	var out []uint64
	for _, r := range f.Replicas {
		out = append(out, r.Engine.Stats().Submitted)
	}
	return out
}

func TestRouting(t *testing.T) {
	f := func(text string, check func([]uint64)) {
		t.Helper()
		fl := New(parse(t, text), trace.Poisson(6, nil, 1), 1, nil)
		fl.AdvanceTo(500 * time.Second)
		check(submitted(fl))
	}
	const slow = "\nfaults: [{kind: latency, match: {a: x}, factor: 20}]"
	f("replicas: [{count: 3}]", func(n []uint64) {
		assert.InDelta(t, n[0], n[2], 1)
	})
	f("routing: random\nreplicas: [{weight: 3}, {weight: 1}, {weight: 0}]", func(n []uint64) {
		assert.InEpsilon(t, 3, float64(n[0])/float64(n[1]), 0.1)
		assert.Zero(t, n[2])
	})
	f("routing: least_requests\nreplicas: [{labels: {a: x}}, {labels: {a: y}}]"+slow, func(n []uint64) {
		assert.Less(t, n[0]*2, n[1], "the slow one gets less")
	})
	f("routing: least_requests\nreplicas: [{count: 4}]", func(n []uint64) {
		for _, each := range n {
			assert.InEpsilon(t, 750, each, 0.15, "equal replicas share equally")
		}
	})
}

func TestTicksChangeNothingWhateverTheRouting(t *testing.T) {
	for _, routing := range scenario.Routings {
		s := parse(t, "routing: "+routing+`
traffic: {shared_prefix: {tokens: 128, share: 0.5, groups: 4}}
engines: {tight: {blocks: 600, max_model_len: 9600, outcomes: {abort: 0.05, error: 0.01, length: 0.3}}}
replicas: [{count: 3, engine: tight, labels: {a: x}}, {engine: tight, labels: {a: y}}]
faults: [{kind: latency, match: {a: y}, from: 20s, until: 60s, factor: 4}]`)
		play := func(tick time.Duration) []engine.Stats {
			source := trace.WithSharedPrefix(trace.Poisson(10, nil, 7), s.Traffic.SharedPrefix, 7)
			f := New(s, source, 7, nil)
			for at := tick; at <= 120*time.Second; at += tick {
				f.AdvanceTo(at)
			}
			var out []engine.Stats
			for _, r := range f.Replicas {
				out = append(out, r.Engine.Stats())
			}
			return out
		}
		want := play(120 * time.Second)
		for _, tick := range []time.Duration{50 * time.Millisecond, time.Second, 40 * time.Second} {
			require.Equal(t, want, play(tick), "%s, tick %v", routing, tick)
		}
	}
}

func TestRequestsAddUpAcrossTheFleet(t *testing.T) {
	rows, err := trace.Load("../../../../testdata/traffic/mooncake/conversation_200.jsonl")
	require.NoError(t, err)
	s := parse(t, "engines: {long: {max_model_len: 65536}}\nreplicas: [{count: 2, engine: long}]")
	f := New(s, trace.Replay(rows, false), 1, nil)
	for at := time.Duration(0); !f.Done(); at += time.Minute {
		f.AdvanceTo(at)
	}
	total, hits := uint64(0), uint64(0)
	for _, r := range f.Replicas {
		st := r.Engine.Stats()
		total += st.Refused
		for _, n := range st.Finished {
			total += n
		}
		hits += st.PrefixHits
		assert.Equal(t, st.TotalBlocks, st.FreeBlocks)
	}
	assert.EqualValues(t, 200, f.Arrived())
	assert.EqualValues(t, 200, total)
	assert.Positive(t, hits, "Mooncake's prompts share prefixes")
}

// BenchmarkExample replays the README's example, and says how much faster than
// real time its eight replicas go.
func BenchmarkExample(b *testing.B) {
	s, err := scenario.Load("../../testdata/example.yaml", 1)
	require.NoError(b, err)
	source, _, err := s.Source(1)
	require.NoError(b, err)
	f := New(s, source, 1, nil)
	b.ReportAllocs()
	for i := 1; b.Loop(); i++ {
		f.AdvanceTo(time.Duration(i) * time.Second)
	}
	b.ReportMetric(f.Now().Seconds()/b.Elapsed().Seconds(), "x_real_time")
}
