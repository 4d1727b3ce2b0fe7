// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLeastRecentlyFreedBlockIsReusedFirst(t *testing.T) {
	// Scenario: three blocks; two hold a prefix and are freed, tail first.
	// Guarantees: the never used block goes first, then the tail, then the head.
	p := newBlockPool(3)
	head, tail := p.take(), p.take()
	p.remember(head, 11)
	p.remember(tail, 12)
	p.release([]int32{head, tail})
	assert.Equal(t, int32(2), p.take())
	assert.Equal(t, tail, p.take())
	_, ok := p.lookup(12)
	assert.False(t, ok, "taking a block forgets what it held")
	_, ok = p.lookup(11)
	assert.True(t, ok)
}

func TestSharedBlockLeavesTheFreeListUntilAllHaveReleasedIt(t *testing.T) {
	p := newBlockPool(2)
	b := p.take()
	p.remember(b, 5)
	p.release([]int32{b})
	assert.Equal(t, 2, p.free)
	p.share(b)
	p.share(b)
	assert.Equal(t, 1, p.free)
	p.release([]int32{b})
	assert.Equal(t, 1, p.free)
	p.release([]int32{b})
	assert.Equal(t, 2, p.free)
}

func TestQueueKeepsOrderWithThePreemptedInFront(t *testing.T) {
	var q queue
	for id := range uint64(3) {
		q.pushBack(&sequence{Request: Request{ID: id}})
	}
	first := q.popFront()
	q.pushFront(first)
	for id := uint64(90); id < 100; id++ {
		q.pushFront(&sequence{Request: Request{ID: id}})
	}
	var got []uint64
	for q.len() > 0 {
		got = append(got, q.popFront().ID)
	}
	assert.Equal(t, []uint64{99, 98, 97, 96, 95, 94, 93, 92, 91, 90, 0, 1, 2}, got)
}
