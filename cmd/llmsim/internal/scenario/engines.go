// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"math"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/yamlkeys"
)

// readEngines reads the engine profiles that replicas refer to by name. The
// profile "default" is always there and may be redefined.
func readEngines(o *yamlkeys.Object) map[string]engine.Config {
	out := map[string]engine.Config{"default": engine.DefaultConfig()}
	for _, name := range o.Keys() {
		out[name] = readEngine(o.Object(name))
	}
	return out
}

func readEngine(o *yamlkeys.Object) engine.Config {
	c := engine.DefaultConfig()
	c.BlockSize = o.Int("block_size", c.BlockSize, 1)
	c.Blocks = o.Int("blocks", c.Blocks, 1)
	c.MaxNumSeqs = o.Int("max_num_seqs", c.MaxNumSeqs, 1)
	c.MaxNumBatchedTokens = o.Int("max_num_batched_tokens", c.MaxNumBatchedTokens, 1)
	c.MaxModelLen = o.Int("max_model_len", c.MaxModelLen, 1)
	c.ReportAborts = o.Bool("report_aborts", c.ReportAborts)

	step := o.Object("step")
	c.Step.Base = secondsOf(step, "base", c.Step.Base)
	c.Step.PerPrefillToken = secondsOf(step, "per_prefill_token", c.Step.PerPrefillToken)
	c.Step.PerDecodeSeq = secondsOf(step, "per_decode_seq", c.Step.PerDecodeSeq)
	c.Step.PerContextToken = secondsOf(step, "per_context_token", c.Step.PerContextToken)
	step.Done()

	out := o.Object("outcomes")
	c.Outcomes.Abort = out.Float("abort", 0, 0, 1)
	c.Outcomes.Error = out.Float("error", 0, 0, 1)
	c.Outcomes.Repetition = out.Float("repetition", 0, 0, 1)
	c.Outcomes.Length = out.Float("length", 0, 0, 1)
	c.Outcomes.MaxTokens = out.Int("max_tokens", c.Outcomes.MaxTokens, 1)
	out.Done()

	// What single keys cannot show, such as a model that outgrows the cache. The
	// engine names the keys as the scenario does.
	for _, err := range unjoin(c.Validate()) {
		key, problem, _ := strings.Cut(err.Error(), ": ")
		o.Problem(key, "%s", problem)
	}
	o.Done()
	return c
}

// secondsOf reads a duration as seconds.
func secondsOf(o *yamlkeys.Object, key string, def float64) float64 {
	return o.Duration(key, time.Duration(math.Round(def*1e9))).Seconds()
}

func unjoin(err error) []error {
	var many interface{ Unwrap() []error }
	if err == nil {
		return nil
	}
	if !errors.As(err, &many) {
		return []error{err}
	}
	var out []error
	for _, e := range many.Unwrap() {
		out = append(out, unjoin(e)...)
	}
	return out
}
