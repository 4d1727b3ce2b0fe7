// SPDX-License-Identifier: Apache-2.0

package trace

import "math/rand/v2"

// SharedPrefix describes system prompts: a share of the requests begins with one
// of a number of groups' common tokens.
type SharedPrefix struct {
	// Tokens is the length of the common beginning; 0 turns it off.
	Tokens int
	// Share is the probability that a request has one.
	Share float64
	// Groups is how many different ones there are.
	Groups int
}

type prefixed struct {
	Source
	p   SharedPrefix
	rng *rand.Rand
}

// WithSharedPrefix gives prefixes to the rows of a source that have none of
// their own. A prompt that is shorter than the prefix stays as it is.
func WithSharedPrefix(s Source, p SharedPrefix, seed uint64) Source {
	if p.Tokens == 0 {
		return s
	}
	return &prefixed{Source: s, p: p, rng: rand.New(rand.NewPCG(seed, 0x707265666978))}
}

func (s *prefixed) Next() (Row, bool) {
	row, ok := s.Source.Next()
	// Both are drawn for every row, so that one row's length moves no other's fate.
	has, group := s.rng.Float64() < s.p.Share, s.rng.IntN(max(s.p.Groups, 1))
	if ok && has && row.Prefix == nil && row.PromptTokens >= s.p.Tokens {
		row.Prefix, row.PrefixTokens = []uint64{uint64(group)}, s.p.Tokens
	}
	return row, ok
}
