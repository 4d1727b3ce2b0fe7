// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
)

// Reason is why a request finished, as vLLM names it.
type Reason uint8

// The reasons, in the order in which vLLM exposes them.
const (
	Stop Reason = iota
	Length
	Abort
	Error
	Repetition
	NumReasons
)

var reasonNames = [NumReasons]string{"stop", "length", "abort", "error", "repetition"}

func (r Reason) String() string { return reasonNames[r] }

// Outcomes are the odds of how a request ends. What is left of 1 after Abort,
// Error and Repetition is a request that gets its answer.
type Outcomes struct {
	// Abort is the share of requests whose client goes away half-way.
	Abort float64
	// Error is the share of requests that the engine fails half-way.
	Error float64
	// Repetition is the share that repetition detection ends half-way.
	Repetition float64
	// Length is the share of answered requests whose client asked for no more
	// tokens than the trace says were generated, so that they end by length.
	Length float64
	// MaxTokens is the client's max_tokens for everyone else.
	MaxTokens int
}

func (o Outcomes) validate() error {
	var errs []error
	for _, p := range []struct {
		name  string
		value float64
	}{{"abort", o.Abort}, {"error", o.Error}, {"repetition", o.Repetition}, {"length", o.Length}} {
		if p.value < 0 || p.value > 1 {
			errs = append(errs, fmt.Errorf("outcomes.%s: %v is not a probability in [0, 1]", p.name, p.value))
		}
	}
	if sum := o.Abort + o.Error + o.Repetition; len(errs) == 0 && sum > 1 {
		errs = append(errs, fmt.Errorf("outcomes: abort + error + repetition = %v is above 1", sum))
	}
	if o.MaxTokens < 1 {
		errs = append(errs, fmt.Errorf("outcomes.max_tokens: %d is not at least 1", o.MaxTokens))
	}
	return errors.Join(errs...)
}

// fate is how a request will end, fixed on arrival: it depends on the seed and
// the request alone, so a fault that reorders steps changes no request's fate.
type fate struct {
	reason    Reason
	tokens    int // generated when it ends
	maxTokens int // what the client asked for
}

func (o Outcomes) draw(seed uint64, r Request, maxModelLen int) fate {
	room := maxModelLen - r.PromptTokens
	want := max(r.OutputTokens, 1)
	f := fate{reason: Stop, tokens: want, maxTokens: o.MaxTokens}
	if uniform(seed, r.ID, 0) < o.Length {
		f.maxTokens = want
	}
	if limit := min(f.maxTokens, room); f.tokens >= limit {
		f.reason, f.tokens = Length, limit
	}
	half := 1 + int(uniform(seed, r.ID, 1)*float64(f.tokens))
	switch u := uniform(seed, r.ID, 2); {
	case u < o.Abort:
		f.reason, f.tokens = Abort, min(half, f.tokens)
	case u < o.Abort+o.Error:
		f.reason, f.tokens = Error, min(half, f.tokens)
	case u < o.Abort+o.Error+o.Repetition:
		f.reason, f.tokens = Repetition, min(half, f.tokens)
	}
	return f
}

// uniform draws from [0, 1) by hashing, not from a stream: a stream would tie
// every draw to how many were drawn before it.
func uniform(seed, id, salt uint64) float64 {
	return float64(Mix(Mix(seed^0x6c6c6d73696d, id), salt)>>11) / (1 << 53)
}

// Mix is the finaliser of splitmix64 over both words.
func Mix(a, b uint64) uint64 {
	z := a*0x9e3779b97f4a7c15 + b + 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}
