// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// Stats are an engine's counters, named after what vLLM calls them.
type Stats struct {
	// Submitted = Refused + ΣFinished + Running + Waiting, at any time.
	Submitted, Refused uint64
	// Finished counts every request that left, Reported those of them which the
	// per-request metrics know of.
	Finished, Reported [NumReasons]uint64
	Running, Waiting   int

	TotalBlocks, FreeBlocks int

	// PromptTokens = PromptComputed + PromptCached; counted with the first token.
	PromptTokens, PromptComputed, PromptCached uint64
	GenerationTokens                           uint64
	// PrefixQueries and PrefixHits are in tokens, counted at first scheduling.
	PrefixQueries, PrefixHits uint64
	Preemptions               uint64
	Steps                     uint64
	// Busy is the time spent in steps, simulated.
	Busy time.Duration

	RequestPromptTokens, RequestGenerationTokens, RequestMaxGenerationTokens Histogram
	RequestParamsN, RequestParamsMaxTokens, RequestPreemptions               Histogram
	IterationTokens                                                          Histogram

	TimeToFirstToken, InterTokenLatency, TimePerOutputToken Histogram
	E2ELatency, QueueTime, InferenceTime                    Histogram
	PrefillTime, DecodeTime                                 Histogram
}

// Bucket bounds of vLLM. Those of token counts follow from max_model_len.
var (
	firstTokenBounds  = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	tokenTimeBounds   = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	requestTimeBounds = []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680}
	iterationBounds   = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	paramsNBounds     = []float64{1, 2, 5, 10, 20}
	preemptionBounds  = []float64{1, 2, 3, 4, 5, 10, 20}
)

// tokenBounds are 1, 2, 5, 10 … up to max_model_len.
func tokenBounds(maxModelLen int) []float64 {
	var out []float64
	for decade := 1; ; decade *= 10 {
		for _, m := range []int{1, 2, 5} {
			if m*decade > maxModelLen {
				return out
			}
			out = append(out, float64(m*decade))
		}
	}
}

func newStats(maxModelLen int) Stats {
	tokens := tokenBounds(maxModelLen)
	return Stats{
		RequestPromptTokens:        newHistogram(tokens),
		RequestGenerationTokens:    newHistogram(tokens),
		RequestMaxGenerationTokens: newHistogram(tokens),
		RequestParamsMaxTokens:     newHistogram(tokens),
		RequestParamsN:             newHistogram(paramsNBounds),
		RequestPreemptions:         newHistogram(preemptionBounds),
		IterationTokens:            newHistogram(iterationBounds),
		TimeToFirstToken:           newHistogram(firstTokenBounds),
		InterTokenLatency:          newHistogram(tokenTimeBounds),
		TimePerOutputToken:         newHistogram(tokenTimeBounds),
		E2ELatency:                 newHistogram(requestTimeBounds),
		QueueTime:                  newHistogram(requestTimeBounds),
		InferenceTime:              newHistogram(requestTimeBounds),
		PrefillTime:                newHistogram(requestTimeBounds),
		DecodeTime:                 newHistogram(requestTimeBounds),
	}
}

// step counts one step. vLLM observes iteration_tokens only for steps that put
// something out, and counts what was computed of a prompt, all chunks together,
// in the step that ends its prefill.
func (s *Stats) step(promptComputed, newTokens int) {
	s.Steps++
	if newTokens == 0 {
		return
	}
	s.GenerationTokens += uint64(newTokens)
	s.IterationTokens.observe(float64(promptComputed + newTokens))
}

func (s *Stats) firstToken(q *sequence, now time.Duration) {
	s.PromptTokens += uint64(q.PromptTokens)
	s.PromptCached += uint64(q.cached)
	s.PromptComputed += uint64(q.PromptTokens - q.cached)
	s.TimeToFirstToken.observe(seconds(now - q.Arrival))
}

func (s *Stats) finish(q *sequence, now time.Duration, reportAborts bool) {
	reason := q.fate.reason
	s.Finished[reason]++
	if reason == Abort && !reportAborts {
		return
	}
	s.Reported[reason]++
	s.RequestPromptTokens.observe(float64(q.PromptTokens))
	s.RequestGenerationTokens.observe(float64(q.generated))
	s.RequestMaxGenerationTokens.observe(float64(q.generated))
	s.RequestParamsMaxTokens.observe(float64(q.fate.maxTokens))
	s.RequestParamsN.observe(1)
	s.RequestPreemptions.observe(float64(q.preemptions))
	s.E2ELatency.observe(seconds(now - q.Arrival))
	s.QueueTime.observe(seconds(q.scheduled - q.Arrival))
	s.InferenceTime.observe(seconds(q.last - q.scheduled))
	s.PrefillTime.observe(seconds(q.first - q.scheduled))
	s.DecodeTime.observe(seconds(q.last - q.first))
	// A single token has no time between tokens; vLLM observes zero.
	perToken := 0.0
	if q.generated > 1 {
		perToken = seconds(q.last-q.first) / float64(q.generated-1)
	}
	s.TimePerOutputToken.observe(perToken)
}

// Histograms lists the histograms of s, so that copying forgets none.
func (s *Stats) Histograms() []*Histogram {
	return []*Histogram{
		&s.RequestPromptTokens, &s.RequestGenerationTokens, &s.RequestMaxGenerationTokens,
		&s.RequestParamsN, &s.RequestParamsMaxTokens, &s.RequestPreemptions, &s.IterationTokens,
		&s.TimeToFirstToken, &s.InterTokenLatency, &s.TimePerOutputToken,
		&s.E2ELatency, &s.QueueTime, &s.InferenceTime, &s.PrefillTime, &s.DecodeTime,
	}
}

func (s *Stats) clone() Stats {
	c := *s
	for _, h := range c.Histograms() {
		h.Counts = append([]uint64(nil), h.Counts...)
	}
	return c
}
