// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"math"
	"math/rand/v2"
	"time"
)

// Lengths drawn where no trace gives any: log-normal, near the medians of a
// production chat service (Azure conv: 1,020 prompt and 129 output tokens).
const (
	promptMedian, promptSigma, promptMax = 1000, 0.9, 16384
	outputMedian, outputSigma, outputMax = 130, 0.8, 2048
)

type poisson struct {
	rng  *rand.Rand
	rate float64
	rows []Row
	now  float64 // seconds
}

// Poisson draws arrivals at rate per simulated second, for ever. Lengths and
// prefixes are drawn from rows, or from log-normal distributions without any.
func Poisson(rate float64, rows []Row, seed uint64) Source {
	return &poisson{rng: rand.New(rand.NewPCG(seed, 0x706f6973736f6e)), rate: rate, rows: rows}
}

func (p *poisson) Next() (Row, bool) {
	p.now += p.rng.ExpFloat64() / p.rate
	var row Row
	if len(p.rows) > 0 {
		row = p.rows[p.rng.IntN(len(p.rows))]
	} else {
		row.PromptTokens = p.logNormal(promptMedian, promptSigma, promptMax)
		row.OutputTokens = p.logNormal(outputMedian, outputSigma, outputMax)
	}
	row.At = time.Duration(p.now * float64(time.Second))
	return row, true
}

func (p *poisson) logNormal(median, sigma float64, limit int) int {
	return min(max(int(median*math.Exp(sigma*p.rng.NormFloat64())), 1), limit)
}
