// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tiny is an engine whose steps can be added up by hand: a second a step, a
// tenth a prefill token, a hundredth a decoding sequence.
func tiny() Config {
	c := DefaultConfig()
	c.BlockSize, c.Blocks, c.MaxModelLen = 4, 100, 400
	c.MaxNumSeqs, c.MaxNumBatchedTokens = 8, 8
	c.Step = StepCost{Base: 1, PerPrefillToken: 0.1, PerDecodeSeq: 0.01}
	return c
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// play submits in order and runs the engine dry.
func play(c Config, requests ...Request) (Stats, []Record) {
	var records []Record
	c.OnFinish = func(r Record) { records = append(records, r) }
	e := New(c)
	for _, r := range requests {
		e.AdvanceTo(r.Arrival)
		e.Submit(r)
	}
	e.AdvanceTo(Never)
	return e.Stats(), records
}

func TestChunkedPrefillThenOneTokenPerStep(t *testing.T) {
	// Scenario: 10 prompt tokens under a budget of 8 a step, 3 output tokens.
	// Guarantees: steps of 1.8, 1.2, 1.01, 1.01 s; the first token ends the second.
	s, records := play(tiny(), Request{ID: 1, PromptTokens: 10, OutputTokens: 3})
	require.Len(t, records, 1)
	r := records[0]
	assert.Equal(t, ms(0), r.Scheduled)
	assert.Equal(t, ms(3000), r.FirstToken)
	assert.Equal(t, ms(5020), r.End)
	assert.Equal(t, Stop, r.Reason)
	assert.EqualValues(t, 4, s.Steps)
	assert.InDelta(t, 3.0, s.TimeToFirstToken.Sum, 1e-9)
	assert.InDelta(t, 2.02, s.InterTokenLatency.Sum, 1e-9)
	assert.InDelta(t, 1.01, s.TimePerOutputToken.Sum, 1e-9)
	assert.EqualValues(t, 3, s.IterationTokens.Count, "the first chunk put nothing out")
	assert.EqualValues(t, 13, s.IterationTokens.Sum)
}

func TestRunningSequencesGoBeforeWaitingOnes(t *testing.T) {
	// Scenario: A decodes when B arrives with more prompt than a step's budget.
	// Guarantees: A keeps its token a step, B gets the 7 that are left of 8.
	_, records := play(tiny(),
		Request{ID: 1, PromptTokens: 4, OutputTokens: 4},
		Request{ID: 2, Arrival: ms(500), PromptTokens: 14, OutputTokens: 1})
	require.Len(t, records, 2)
	// Step 1: A's 4 tokens, 1.4 s. Steps 2 and 3: A's token and 7 of B's, 1.71 s each.
	assert.EqualValues(t, 2, records[0].ID)
	assert.Equal(t, ms(1400), records[0].Scheduled)
	assert.Equal(t, ms(4820), records[0].FirstToken)
	assert.EqualValues(t, 1, records[1].ID)
	assert.Equal(t, ms(5830), records[1].End)
}

func TestNewestIsPreemptedAndFindsItsOwnBlocksAgain(t *testing.T) {
	// Scenario: 4 blocks of 4 tokens; two sequences of 7 + 4 tokens need 6.
	// Guarantees: when A needs its third block, B is thrown out; A takes the tail
	// block of B, so that B, resumed after A has gone, finds only its first block
	// and computes 5 of 9 tokens again. Steps: 2.4 1.02 1.01 1.01 | 1.5 1.01.
	c := tiny()
	c.Blocks, c.MaxModelLen, c.MaxNumBatchedTokens = 4, 16, 100
	s, records := play(c,
		Request{ID: 1, PromptTokens: 7, OutputTokens: 4},
		Request{ID: 2, PromptTokens: 7, OutputTokens: 4})
	require.Len(t, records, 2)
	assert.Equal(t, ms(5440), records[0].End)
	assert.Equal(t, 0, records[0].Preemptions)
	assert.Equal(t, ms(7950), records[1].End)
	assert.Equal(t, 1, records[1].Preemptions)
	assert.EqualValues(t, 1, s.Preemptions)
	assert.EqualValues(t, 6, s.Steps)
	assert.EqualValues(t, 14, s.PrefixQueries, "a resumption is no query")
	assert.EqualValues(t, 0, s.PrefixHits)
	assert.EqualValues(t, 14, s.PromptTokens, "a prompt is counted once")
	assert.InDelta(t, 3.52, s.InterTokenLatency.Sum-(1.02*2+1.01*3), 1e-9,
		"B's wait from 3.42 to 6.94 s is an inter-token latency")
	assert.Equal(t, 4, s.FreeBlocks)
}

func TestSharedPrefixIsComputedOnce(t *testing.T) {
	// Scenario: the same 12 tokens twice, then 4 shared ones and 6 others.
	// Guarantees: the second computes its last block (a whole prompt out of the
	// cache would leave nothing to compute), the third finds one block.
	prefix := func(ids ...uint64) Prefix { return Prefix{IDs: ids, Tokens: 4} }
	s, records := play(tiny(),
		Request{ID: 1, PromptTokens: 12, OutputTokens: 1, Prefix: prefix(7, 8, 9)},
		Request{ID: 2, Arrival: ms(10000), PromptTokens: 12, OutputTokens: 1, Prefix: prefix(7, 8, 9)},
		Request{ID: 3, Arrival: ms(20000), PromptTokens: 10, OutputTokens: 1, Prefix: prefix(7, 5)})
	require.Len(t, records, 3)
	assert.Equal(t, []int{0, 8, 4}, []int{records[0].CachedTokens, records[1].CachedTokens, records[2].CachedTokens})
	assert.Equal(t, ms(10000)+ms(1400), records[1].FirstToken)
	assert.EqualValues(t, 34, s.PrefixQueries)
	assert.EqualValues(t, 12, s.PrefixHits)
	assert.EqualValues(t, 22, s.PromptComputed)
	assert.EqualValues(t, 12, s.PromptCached)
	assert.EqualValues(t, 22+3, s.IterationTokens.Sum, "cached tokens are no work of an iteration")
}

func TestMooncakeHashesCoverSeveralEngineBlocks(t *testing.T) {
	// Scenario: one hash stands for 8 tokens, a block holds 4.
	// Guarantees: two prompts that agree in the first hash share two blocks.
	s, _ := play(tiny(),
		Request{ID: 1, PromptTokens: 15, OutputTokens: 1, Prefix: Prefix{IDs: []uint64{0, 1}, Tokens: 8}},
		Request{ID: 2, Arrival: ms(10000), PromptTokens: 15, OutputTokens: 1, Prefix: Prefix{IDs: []uint64{0, 2}, Tokens: 8}})
	assert.EqualValues(t, 8, s.PrefixHits)
}

func TestHowRequestsEnd(t *testing.T) {
	f := func(name string, edit func(*Config), r Request, want Reason, tokens int) {
		t.Helper()
		c := tiny()
		edit(&c)
		_, records := play(c, r)
		require.Len(t, records, 1, name)
		assert.Equal(t, want, records[0].Reason, name)
		if tokens > 0 {
			assert.Equal(t, tokens, records[0].OutputTokens, name)
		}
	}
	r := Request{ID: 1, PromptTokens: 4, OutputTokens: 6}
	f("the answer ends by itself", func(*Config) {}, r, Stop, 6)
	f("max_tokens cuts", func(c *Config) { c.Outcomes.MaxTokens = 5 }, r, Length, 5)
	f("the client asked for no more", func(c *Config) { c.Outcomes.Length = 1 }, r, Length, 6)
	f("the model's length cuts", func(c *Config) { c.MaxModelLen = 7 }, r, Length, 3)
	f("abort", func(c *Config) { c.Outcomes.Abort = 1 }, r, Abort, 0)
	f("error", func(c *Config) { c.Outcomes.Error = 1 }, r, Error, 0)
	f("repetition", func(c *Config) { c.Outcomes.Repetition = 1 }, r, Repetition, 0)
}

func TestAbortsStayOutOfPerRequestMetricsUnlessAskedFor(t *testing.T) {
	f := func(report bool, want uint64) {
		t.Helper()
		c := tiny()
		c.Outcomes.Abort, c.ReportAborts = 1, report
		s, _ := play(c, Request{ID: 1, PromptTokens: 4, OutputTokens: 6})
		assert.EqualValues(t, 1, s.Finished[Abort])
		assert.Equal(t, want, s.Reported[Abort])
		assert.Equal(t, want, s.E2ELatency.Count)
		assert.EqualValues(t, 4, s.PromptTokens, "tokens are counted either way")
	}
	f(false, 0)
	f(true, 1)
}

func TestPromptThatDoesNotFitIsRefused(t *testing.T) {
	c := tiny()
	e := New(c)
	assert.False(t, e.Submit(Request{ID: 1, PromptTokens: c.MaxModelLen, OutputTokens: 1}))
	assert.False(t, e.Submit(Request{ID: 2, PromptTokens: 0, OutputTokens: 1}))
	assert.EqualValues(t, 2, e.Stats().Refused)
	assert.Equal(t, Never, e.Next())
}

func TestConditionsSlowStepsDown(t *testing.T) {
	c := tiny()
	c.Conditions = func(now time.Duration) Conditions {
		if now >= ms(1400) {
			return Conditions{Slowdown: 3}
		}
		return Conditions{}
	}
	_, records := play(c, Request{ID: 1, PromptTokens: 4, OutputTokens: 2})
	assert.Equal(t, ms(1400), records[0].FirstToken)
	assert.Equal(t, ms(1400+3030), records[0].End)
}

// load is a random but repeatable crowd with shared prefixes.
func load(seed int64, n int) []Request {
	rng := rand.New(rand.NewSource(seed))
	at := time.Duration(0)
	out := make([]Request, n)
	for i := range out {
		at += time.Duration(rng.ExpFloat64() * float64(300*time.Millisecond))
		out[i] = Request{ID: uint64(i), Arrival: at, PromptTokens: 1 + rng.Intn(120), OutputTokens: 1 + rng.Intn(60)}
		if rng.Intn(2) == 0 {
			out[i].Prefix = Prefix{Tokens: 16, IDs: []uint64{uint64(rng.Intn(3)), 100 + uint64(rng.Intn(5))}}
		}
	}
	return out
}

// crowded is an engine under pressure: it preempts, shares and evicts.
func crowded() Config {
	c := tiny()
	c.Blocks, c.MaxModelLen, c.MaxNumBatchedTokens = 60, 200, 64
	c.Step = StepCost{Base: 0.02, PerPrefillToken: 0.001, PerDecodeSeq: 0.001, PerContextToken: 0.00001}
	c.Outcomes = Outcomes{Abort: 0.05, Error: 0.02, Length: 0.2, MaxTokens: 40}
	return c
}

func checkConservation(t *testing.T, e *Engine) {
	t.Helper()
	s := e.Stats()
	finished := uint64(0)
	for _, n := range s.Finished {
		finished += n
	}
	require.Equal(t, s.Submitted, s.Refused+finished+uint64(s.Running+s.Waiting), "requests")
	require.Equal(t, s.PromptTokens, s.PromptComputed+s.PromptCached, "prompt tokens")
	require.Equal(t, s.PrefixQueries >= s.PrefixHits, true)

	used := 0
	for _, refs := range e.pool.refs {
		require.GreaterOrEqual(t, refs, int32(0))
		if refs > 0 {
			used++
		}
	}
	require.Equal(t, s.TotalBlocks, used+s.FreeBlocks, "blocks")
	links := 0
	for b := e.pool.next[e.pool.total()]; int(b) != e.pool.total(); b = e.pool.next[b] {
		require.Zero(t, e.pool.refs[b], "a used block on the free list")
		links++
	}
	require.Equal(t, s.FreeBlocks, links, "the free list")
	for _, h := range s.Histograms() {
		n := uint64(0)
		for _, c := range h.Counts {
			n += c
		}
		require.Equal(t, h.Count, n, "histogram")
	}
}

func TestNothingIsLostAtAnyTime(t *testing.T) {
	for seed := range int64(5) {
		e := New(crowded())
		for _, r := range load(seed, 400) {
			e.AdvanceTo(r.Arrival)
			e.Submit(r)
			checkConservation(t, e)
		}
		e.AdvanceTo(Never)
		checkConservation(t, e)
		s := e.Stats()
		assert.Zero(t, s.Running+s.Waiting)
		assert.Equal(t, s.TotalBlocks, s.FreeBlocks, "everything was given back")
		assert.Positive(t, s.Preemptions, "the case is meant to press")
		assert.Positive(t, s.PrefixHits, "the case is meant to share")
	}
}

func TestCadenceOfTicksChangesNothing(t *testing.T) {
	// Scenario: the same arrivals; time goes by from arrival to arrival, or in
	// ticks of any length between them.
	run := func(tick time.Duration) Stats {
		e := New(crowded())
		now := time.Duration(0)
		for _, r := range load(3, 300) {
			for ; tick > 0 && now < r.Arrival; now += tick {
				e.AdvanceTo(now)
			}
			e.AdvanceTo(r.Arrival)
			e.Submit(r)
		}
		e.AdvanceTo(Never)
		return e.Stats()
	}
	want := run(0)
	for _, tick := range []time.Duration{ms(1), ms(7), ms(50), time.Second} {
		assert.Equal(t, want, run(tick), "tick %v", tick)
	}
}

func TestStatsAreACopy(t *testing.T) {
	e := New(tiny())
	e.Submit(Request{ID: 1, PromptTokens: 4, OutputTokens: 2})
	before := e.Stats()
	e.AdvanceTo(Never)
	assert.Zero(t, before.TimeToFirstToken.Count)
	for _, h := range before.Histograms() {
		for _, n := range h.Counts {
			assert.Zero(t, n)
		}
	}
}

func TestTokenBucketsFollowTheModelLength(t *testing.T) {
	assert.Equal(t, []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000}, tokenBounds(2048))
	assert.Equal(t, []float64{1, 2}, tokenBounds(4))
}

func TestHistogramBoundsAreInclusive(t *testing.T) {
	h := newHistogram([]float64{1, 2})
	for _, v := range []float64{0, 1, 1.5, 2, 3} {
		h.observe(v)
	}
	assert.Equal(t, []uint64{2, 2, 1}, h.Counts)
}

func TestInvalidConfigurationsSayWhatWouldBeRight(t *testing.T) {
	f := func(edit func(*Config), want string) {
		t.Helper()
		c := DefaultConfig()
		edit(&c)
		assert.ErrorContains(t, c.Validate(), want)
	}
	assert.NoError(t, DefaultConfig().Validate())
	f(func(c *Config) { c.BlockSize = 0 }, "block_size: 0 is not at least 1")
	f(func(c *Config) { c.Blocks = 10 }, "max_model_len: 32768 does not fit the KV cache of blocks × block_size = 160 tokens")
	f(func(c *Config) { c.Step.Base = 0 }, "step.base: 0 is not above 0")
	f(func(c *Config) { c.Step.PerDecodeSeq = -1 }, "step.per_decode_seq: -1 is below 0")
	f(func(c *Config) { c.Outcomes.Abort = 2 }, "outcomes.abort: 2 is not a probability in [0, 1]")
	f(func(c *Config) { c.Outcomes.Abort, c.Outcomes.Error = 0.6, 0.6 }, "outcomes: abort + error + repetition = 1.2 is above 1")
	f(func(c *Config) { c.Outcomes.MaxTokens = 0 }, "outcomes.max_tokens: 0 is not at least 1")
}

// BenchmarkFleet runs 20 replicas under about 1.5 requests per second each with
// prompts of 1,000 and answers of 200 tokens, and says how much faster than real
// time that goes.
func BenchmarkFleet(b *testing.B) {
	const replicas, perReplica = 20, 1.5
	rng := rand.New(rand.NewSource(1))
	engines := make([]*Engine, replicas)
	for i := range engines {
		engines[i] = New(DefaultConfig())
	}
	var at time.Duration
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at += time.Duration(rng.ExpFloat64() / (replicas * perReplica) * float64(time.Second))
		e := engines[i%replicas]
		e.AdvanceTo(at)
		e.Submit(Request{ID: uint64(i), Arrival: at, PromptTokens: 500 + rng.Intn(1000), OutputTokens: 100 + rng.Intn(200)})
	}
	b.ReportMetric(at.Seconds()/b.Elapsed().Seconds(), "x_real_time")
	steps := uint64(0)
	for _, e := range engines {
		steps += e.stats.Steps
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
}

// Guarantees: what requests leave behind adds up by request, and is given back when the fault ends.
func TestRequestsLeaveBehindWhatAFaultSays(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Conditions = func(now time.Duration) Conditions {
		if now < time.Hour {
			return Conditions{Leaked: 5, LeaksPerRequest: 100}
		}
		return Conditions{}
	}
	e := New(cfg)
	for i := range 7 {
		at := time.Duration(i) * time.Minute
		e.AdvanceTo(at)
		require.True(t, e.Submit(Request{ID: uint64(i), Arrival: at, PromptTokens: 10, OutputTokens: 5}))
	}
	e.AdvanceTo(30 * time.Minute)
	assert.InDelta(t, 705, e.Leaked(30*time.Minute), 0)
	e.AdvanceTo(2 * time.Hour)
	assert.Zero(t, e.Leaked(2*time.Hour))
	assert.Zero(t, New(DefaultConfig()).Leaked(0))
}
