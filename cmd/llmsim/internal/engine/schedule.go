// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// schedule fills the batch of one step. Those who run come first, in the order
// in which they started; who waits gets what is left of the token budget, and
// nobody new is let in during a step that had to preempt.
func (e *Engine) schedule(now time.Duration) {
	budget := e.cfg.MaxNumBatchedTokens
	preempted := false
	for i := 0; i < len(e.running) && budget > 0; i++ {
		s := e.running[i]
		n := min(s.tokens()-s.computed, budget)
		for !e.grow(s, n) {
			preempted = true
			last := e.running[len(e.running)-1]
			e.running[len(e.running)-1] = nil
			e.running = e.running[:len(e.running)-1]
			e.preempt(last)
			if last == s {
				break
			}
		}
		if i == len(e.running) {
			break // it was the newest itself
		}
		e.run(s, n)
		budget -= n
	}
	if preempted {
		return
	}
	for budget > 0 && e.waiting.len() > 0 && len(e.running) < e.cfg.MaxNumSeqs {
		s := e.waiting.front()
		n, ok := e.admit(s, budget, now)
		if !ok {
			return // first come, first served: nobody overtakes for want of blocks
		}
		e.waiting.popFront()
		e.running = append(e.running, s)
		e.run(s, n)
		budget -= n
	}
}

func (e *Engine) run(s *sequence, n int) {
	e.batch = append(e.batch, share{seq: s, tokens: n})
	s.computed += n
	// A block can be found as soon as it is complete on paper: who comes later in
	// the same step may share it, for the step computes it before it is read.
	for full := s.computed / e.cfg.BlockSize; s.remembered < full; s.remembered++ {
		e.pool.remember(s.blocks[s.remembered], s.blockHash(s.remembered, e.cfg.BlockSize))
	}
}

// admit takes a waiting sequence's cached prefix and the blocks for its first
// chunk, all or nothing, and says how many tokens that chunk has.
func (e *Engine) admit(s *sequence, budget int, now time.Duration) (int, bool) {
	size := e.cfg.BlockSize
	// At least one token is always computed: without it there are no logits.
	var hits []int32
	idle := 0
	for i := 0; (i+1)*size < s.tokens(); i++ {
		b, ok := e.pool.lookup(s.blockHash(i, size))
		if !ok {
			break
		}
		if e.pool.idle(b) {
			idle++
		}
		hits = append(hits, b)
	}
	found := len(hits) * size
	n := min(s.tokens()-found, budget)
	need := ceilDiv(found+n, size) - len(hits)
	if need+idle > e.pool.free {
		return 0, false
	}
	for _, b := range hits {
		e.pool.share(b)
	}
	s.blocks = append(s.blocks[:0], hits...)
	s.computed, s.remembered = found, len(hits)
	for range need {
		s.blocks = append(s.blocks, e.pool.take())
	}
	if !s.started {
		// A resumed sequence finds its own blocks; vLLM keeps that out of these counters.
		s.started, s.scheduled, s.cached = true, now, found
		e.stats.PrefixQueries += uint64(s.PromptTokens)
		e.stats.PrefixHits += uint64(found)
	}
	return n, true
}

// grow makes room for n more tokens of a running sequence, or does nothing.
func (e *Engine) grow(s *sequence, n int) bool {
	need := ceilDiv(s.computed+n, e.cfg.BlockSize) - len(s.blocks)
	if need > e.pool.free {
		return false
	}
	for range need {
		s.blocks = append(s.blocks, e.pool.take())
	}
	return true
}

// preempt takes everything from a sequence but what it generated; it will
// compute the rest again when its turn comes, which is next.
func (e *Engine) preempt(s *sequence) {
	e.pool.release(s.blocks)
	s.blocks, s.computed, s.remembered = s.blocks[:0], 0, 0
	s.preemptions++
	e.stats.Preemptions++
	e.waiting.pushFront(s)
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
