// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/probe"
)

// reads is a reading at a time of processes with these IDs, in this order. Each holds its ID in bytes.
func (b *book) reads(at int64, ids ...uint64) {
	b.begin()
	for _, id := range ids {
		b.take(&probe.Process{ID: id, Live: id})
	}
	b.end(at)
}

// told are those that are told one by one, and since when they are counted.
func (b *book) told() map[uint64]int64 {
	all := map[uint64]int64{}
	for _, r := range b.records {
		all[r.values.ID] = r.since
	}
	return all
}

// Scenario: processes come beyond the limit, and are read in no order; one that is told ends.
// Guarantees: those that came first are told, also of those that came between two readings; the next one is told from when it came.
func TestThoseThatCameFirstAreTold(t *testing.T) {
	b := newBook(2, 0)
	b.reads(10, 4, 2, 3)
	assert.Equal(t, map[uint64]int64{2: 0, 3: 0}, b.told())
	assert.Equal(t, []uint64{1, 4}, []uint64{uint64(b.beyond), b.rest})
	b.reads(20, 9, 4, 3, 2)
	assert.Equal(t, []uint64{2, 13}, []uint64{uint64(b.beyond), b.rest})
	b.reads(30, 9, 4, 3)
	b.reads(40, 10, 9, 4, 3)
	assert.Equal(t, map[uint64]int64{3: 0, 4: 0}, b.told(), "what it has done was since then")
	assert.Equal(t, []uint64{2, 19}, []uint64{uint64(b.beyond), b.rest})
	b.reads(50, 10, 9)
	b.reads(60, 11, 10, 9)
	assert.Equal(t, map[uint64]int64{9: 10, 10: 30}, b.told())
	b.reads(70)
	assert.Empty(t, b.told())
	assert.Empty(t, b.waiting)
}

// Guarantees: in whatever order processes are read, come and end, no more are told than may be, who is told is until it ends, each is told
// from the reading on before which it came, nobody is told while one waits that came before, and nobody is remembered that has ended.
func TestWhoIsToldStays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const most = 3
		b, came, there, last := newBook(most, 0), map[uint64]int64{}, []uint64{}, uint64(0)
		for at := int64(1); at <= 12; at++ {
			for range rapid.IntRange(0, 3).Draw(rt, "come") {
				last++
				there, came[last] = append(there, last), at-1
			}
			there = slices.DeleteFunc(there, func(uint64) bool { return rapid.IntRange(0, 4).Draw(rt, "end") == 0 })
			before := b.told()
			b.reads(at, rapid.Permutation(there).Draw(rt, "order")...)
			told := b.told()
			assert.LessOrEqual(rt, len(told), most)
			assert.Equal(rt, len(there), len(told)+b.beyond)
			for _, id := range there {
				since, is := told[id]
				if is {
					assert.Equal(rt, came[id], since)
				} else {
					assert.NotContains(rt, before, id)
					assert.Contains(rt, b.waiting, id)
				}
			}
			for id := range told {
				for waiting := range b.waiting {
					_, was := before[id]
					assert.True(rt, was || id < waiting)
				}
			}
			assert.Len(rt, b.waiting, b.beyond)
		}
	})
}
