// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"time"
)

// Never is the time of an event that does not come.
const Never = time.Duration(math.MaxInt64)

// Engine is one replica. It is not safe for concurrent use.
type Engine struct {
	cfg     Config
	pool    *blockPool
	waiting queue
	running []*sequence
	stats   Stats

	// next is when something happens by itself: the end of the step in flight, or
	// the start of one when the engine is idle and somebody waits.
	next   time.Duration
	inStep bool
	batch  []share // the step in flight

	left float64 // by finished requests, in bytes
}

// share is one sequence's part of a step.
type share struct {
	seq    *sequence
	tokens int
}

// New returns an idle engine at simulated time 0. The configuration must be valid.
func New(cfg Config) *Engine {
	return &Engine{
		cfg:   cfg,
		pool:  newBlockPool(cfg.Blocks),
		stats: newStats(cfg.MaxModelLen),
		next:  Never,
	}
}

// Submit hands the engine an arrival. Arrivals come in order of time, and the
// engine has been advanced to the arrival's time before. It reports whether the
// request was accepted; a prompt that leaves no room for one token is refused.
//
// An arrival at the very time at which a step ends is there before the next step
// is scheduled, because AdvanceTo stops short of its argument.
func (e *Engine) Submit(r Request) bool {
	e.stats.Submitted++
	if r.PromptTokens < 1 || r.PromptTokens >= e.cfg.MaxModelLen {
		e.stats.Refused++
		return false
	}
	e.waiting.pushBack(&sequence{Request: r, fate: e.cfg.Outcomes.draw(e.cfg.Seed, r, e.cfg.MaxModelLen)})
	if e.next == Never {
		e.next = r.Arrival
	}
	return true
}

// AdvanceTo lets everything happen that happens before t.
func (e *Engine) AdvanceTo(t time.Duration) {
	for e.next < t {
		now := e.next
		if e.inStep {
			e.endStep(now)
		}
		e.beginStep(now)
	}
}

// Next is when the engine next does something by itself, or Never.
func (e *Engine) Next() time.Duration { return e.next }

// InFlight is the number of requests that wait or run.
func (e *Engine) InFlight() int { return e.waiting.len() + len(e.running) }

// Leaked is the memory of its GPU, in bytes, that nobody gives back at a time that
// was reached.
func (e *Engine) Leaked(now time.Duration) float64 {
	if e.cfg.Conditions == nil {
		return 0
	}
	c := e.cfg.Conditions(now)
	if c.LeaksPerRequest == 0 {
		return c.Leaked
	}
	return c.Leaked + e.left
}

// Stats returns a copy of all counters, which the caller owns.
func (e *Engine) Stats() Stats {
	s := e.stats.clone()
	s.Running, s.Waiting = len(e.running), e.waiting.len()
	s.TotalBlocks, s.FreeBlocks = e.pool.total(), e.pool.free
	return s
}

func (e *Engine) beginStep(now time.Duration) {
	if e.InFlight() == 0 {
		e.next, e.inStep = Never, false
		return
	}
	e.schedule(now)
	d := e.duration(now)
	e.stats.Busy += d
	e.next, e.inStep = now+d, true
}

// duration prices the batch. An empty batch (nobody could be given blocks) costs
// the base: the engine looks again after that long.
func (e *Engine) duration(now time.Duration) time.Duration {
	prefill, decode, context := 0, 0, 0
	for _, b := range e.batch {
		if b.tokens == 1 && b.seq.generated > 0 {
			decode++
		} else {
			prefill += b.tokens
		}
		context += b.seq.computed
	}
	c := e.cfg.Step
	seconds := c.Base + c.PerPrefillToken*float64(prefill) + c.PerDecodeSeq*float64(decode) + c.PerContextToken*float64(context)
	if e.cfg.Conditions != nil {
		if f := e.cfg.Conditions(now).Slowdown; f > 0 {
			seconds *= f
		}
	}
	// At least a nanosecond, so that time cannot stand still.
	return max(time.Duration(math.Round(seconds*1e9)), 1)
}

// endStep gives every sequence that has caught up with its own tokens one more.
func (e *Engine) endStep(now time.Duration) {
	promptComputed, newTokens, finished := 0, 0, false
	for _, b := range e.batch {
		s := b.seq
		if s.computed < s.tokens() {
			continue // a chunk of its prefill; more to come
		}
		s.generated++
		newTokens++
		if s.generated == 1 {
			s.first = now
			promptComputed += s.PromptTokens - s.cached
			e.stats.firstToken(s, now)
		} else {
			e.stats.InterTokenLatency.observe(seconds(now - s.last))
		}
		s.last = now
		finished = finished || s.generated >= s.fate.tokens
	}
	e.stats.step(promptComputed, newTokens)
	if finished {
		e.leave(now)
	}
	e.batch = e.batch[:0]
}

// leave takes the finished out of the running, keeping the order of the rest.
func (e *Engine) leave(now time.Duration) {
	leaves := 0.0
	if e.cfg.Conditions != nil {
		leaves = e.cfg.Conditions(now).LeaksPerRequest
	}
	if leaves == 0 {
		e.left = 0 // the process began anew
	}
	rest := e.running[:0]
	for _, s := range e.running {
		if s.generated < s.fate.tokens {
			rest = append(rest, s)
			continue
		}
		e.pool.release(s.blocks)
		s.blocks = nil
		e.left += leaves
		e.stats.finish(s, now, e.cfg.ReportAborts)
		if e.cfg.OnFinish != nil {
			e.cfg.OnFinish(s.record(now))
		}
	}
	clear(e.running[len(rest):])
	e.running = rest
}

func (s *sequence) record(now time.Duration) Record {
	return Record{
		ID: s.ID, Arrival: s.Arrival, Scheduled: s.scheduled, FirstToken: s.first, LastToken: s.last, End: now,
		PromptTokens: s.PromptTokens, CachedTokens: s.cached, OutputTokens: s.generated,
		MaxTokens: s.fate.maxTokens, Preemptions: s.preemptions, Reason: s.fate.reason,
	}
}

func seconds(d time.Duration) float64 { return d.Seconds() }
