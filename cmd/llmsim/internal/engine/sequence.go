// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// Request is one arrival.
type Request struct {
	// ID tells requests apart; draws and unique block hashes derive from it.
	ID      uint64
	Arrival time.Duration
	// PromptTokens and OutputTokens are the lengths; what is really generated may
	// be less (max_tokens, an abort).
	PromptTokens, OutputTokens int
	// Prefix says which part of the prompt others may share.
	Prefix Prefix
}

// Prefix is the content of a prompt's beginning: the ID at index i stands for
// the tokens [i·Tokens, (i+1)·Tokens) and everything before them, as the
// hash_ids of a Mooncake trace do for 512 tokens each.
type Prefix struct {
	IDs    []uint64
	Tokens int
}

// Record is what is known of a request when it leaves the engine. Times are
// simulated; First and Last are zero when no token was generated.
type Record struct {
	ID                                             uint64
	Arrival, Scheduled, FirstToken, LastToken, End time.Duration
	PromptTokens, CachedTokens, OutputTokens       int
	MaxTokens, Preemptions                         int
	Reason                                         Reason
}

// sequence is a request inside the engine.
type sequence struct {
	Request
	fate fate

	blocks     []int32
	remembered int // blocks of the sequence that the pool was told of
	computed   int // tokens whose keys and values are in the cache
	generated  int

	cached      int // prompt tokens found in the cache at first scheduling
	preemptions int
	scheduled   time.Duration
	started     bool // was scheduled at least once
	first, last time.Duration
}

// tokens are all that are known: the prompt and what was generated so far.
func (s *sequence) tokens() int { return s.PromptTokens + s.generated }

// blockHash names the content of the sequence's block i together with all that
// is before it. Blocks beyond the shared prefix are the request's own: nobody
// else finds them, but the request itself does after a preemption.
func (s *sequence) blockHash(i, blockSize int) uint64 {
	end := (i + 1) * blockSize
	if s.Prefix.Tokens > 0 && end <= s.PromptTokens {
		if j := (end - 1) / s.Prefix.Tokens; j < len(s.Prefix.IDs) {
			return Mix(Mix(s.Prefix.IDs[j], 1), uint64(i)) | 1
		}
	}
	return Mix(Mix(s.ID, 2), uint64(i)) | 1
}

// queue is the waiting line. Arrivals join at the back, the preempted at the front.
type queue struct {
	items []*sequence
	head  int
}

func (q *queue) len() int         { return len(q.items) - q.head }
func (q *queue) front() *sequence { return q.items[q.head] }

func (q *queue) pushBack(s *sequence) {
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	q.items = append(q.items, s)
}

func (q *queue) pushFront(s *sequence) {
	if q.head == 0 {
		// Preemption is rare; a few spare places make the next ones cheap.
		const spare = 8
		grown := make([]*sequence, spare+len(q.items), spare+len(q.items)+1)
		copy(grown[spare:], q.items)
		q.items, q.head = grown, spare
	}
	q.head--
	q.items[q.head] = s
}

func (q *queue) popFront() *sequence {
	s := q.items[q.head]
	q.items[q.head] = nil
	q.head++
	if q.head > 1024 && q.head*2 > len(q.items) {
		q.items = append(q.items[:0], q.items[q.head:]...)
		q.head = 0
	}
	return s
}
