// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"time"
)

// Config describes one engine. Defaults are those of an H100-class GPU with a
// model of about 8 billion parameters.
type Config struct {
	// BlockSize is the number of tokens in a KV cache block.
	BlockSize int
	// Blocks is the number of KV cache blocks.
	Blocks int
	// MaxNumSeqs is the most sequences that run in one step.
	MaxNumSeqs int
	// MaxNumBatchedTokens is the token budget of a step, prefill and decode together.
	MaxNumBatchedTokens int
	// MaxModelLen is the most tokens, prompt and output, a sequence may have. A
	// longer prompt is refused before it reaches the queue, as vLLM's API server does.
	MaxModelLen int
	// Step is how long a step takes.
	Step StepCost
	// Outcomes decide how requests end.
	Outcomes Outcomes
	// ReportAborts puts aborted requests into the per-request metrics. vLLM leaves
	// them out (vllm-project/vllm issues 31503 and 55634), hence false by default.
	ReportAborts bool
	// Seed decides, together with a request's ID, everything that is drawn.
	Seed uint64
	// Conditions, when set, is asked at the start of every step for what ails the
	// engine at that simulated time. It must be a pure function.
	Conditions func(now time.Duration) Conditions
	// OnFinish, when set, is called with every request that leaves the engine.
	OnFinish func(Record)
}

// StepCost is the linear model of a step's duration, in seconds:
// base + prefill tokens, decoding sequences and tokens of context, each at its price.
type StepCost struct {
	Base            float64
	PerPrefillToken float64
	PerDecodeSeq    float64
	PerContextToken float64
}

// Conditions are what a fault may change about an engine. The zero value of a
// field means "nothing wrong", so a new kind of fault adds a field and touches no
// other kind.
type Conditions struct {
	// Slowdown multiplies the duration of a step; 0 and 1 both leave it alone.
	Slowdown float64
	// Leaked is the memory of its GPU, in bytes, that nobody gives back. It does not change what the engine does.
	Leaked float64
	// LeaksPerRequest is what each request that is finished now leaves behind besides. It is given back when this is 0.
	LeaksPerRequest float64
}

// DefaultConfig is what an engine has unless told otherwise.
func DefaultConfig() Config {
	return Config{
		BlockSize:           16,
		Blocks:              8192,
		MaxNumSeqs:          128,
		MaxNumBatchedTokens: 2048,
		MaxModelLen:         32768,
		Step:                StepCost{Base: 0.008, PerPrefillToken: 0.00006, PerDecodeSeq: 0.00005, PerContextToken: 0.00000002},
		Outcomes:            Outcomes{MaxTokens: 2048},
	}
}

// Validate reports every setting that an engine could not run with.
func (c Config) Validate() error {
	var errs []error
	positive := func(name string, v int) {
		if v < 1 {
			errs = append(errs, fmt.Errorf("%s: %d is not at least 1", name, v))
		}
	}
	positive("block_size", c.BlockSize)
	positive("blocks", c.Blocks)
	positive("max_num_seqs", c.MaxNumSeqs)
	positive("max_num_batched_tokens", c.MaxNumBatchedTokens)
	positive("max_model_len", c.MaxModelLen)
	if len(errs) == 0 && c.Blocks*c.BlockSize < c.MaxModelLen {
		// Such an engine would preempt its only sequence for ever; vLLM refuses to start.
		errs = append(errs, fmt.Errorf("max_model_len: %d does not fit the KV cache of blocks × block_size = %d tokens",
			c.MaxModelLen, c.Blocks*c.BlockSize))
	}
	if c.Step.Base <= 0 {
		errs = append(errs, fmt.Errorf("step.base: %v is not above 0", c.Step.Base))
	}
	for name, v := range map[string]float64{
		"step.per_prefill_token": c.Step.PerPrefillToken,
		"step.per_decode_seq":    c.Step.PerDecodeSeq,
		"step.per_context_token": c.Step.PerContextToken,
	} {
		if v < 0 {
			errs = append(errs, fmt.Errorf("%s: %v is below 0", name, v))
		}
	}
	return errors.Join(append(errs, c.Outcomes.validate())...)
}
