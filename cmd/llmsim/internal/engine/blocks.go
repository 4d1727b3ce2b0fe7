// SPDX-License-Identifier: Apache-2.0

package engine

// blockPool is the paged KV cache. A block is used (somebody refers to it) or
// free; a free block may still hold a prefix worth finding again. Free blocks
// are handed out least recently freed first, as in vLLM's block pool, so cached
// prefixes are forgotten only when room is needed.
//
// Unlike vLLM's, the pool keeps one block per hash: of two sequences that
// compute the same prefix at once, the second one's copy cannot be found.
type blockPool struct {
	refs   []int32
	hashes []uint64 // 0: holds no complete block
	byHash map[uint64]int32
	// The free list is doubly linked through these; index len(refs) is its sentinel.
	next, prev []int32
	free       int
}

func newBlockPool(n int) *blockPool {
	p := &blockPool{
		refs:   make([]int32, n),
		hashes: make([]uint64, n),
		byHash: map[uint64]int32{},
		next:   make([]int32, n+1),
		prev:   make([]int32, n+1),
		free:   n,
	}
	for i := range p.next {
		p.next[i] = int32((i + 1) % (n + 1))
		p.prev[i] = int32((i + n) % (n + 1))
	}
	return p
}

func (p *blockPool) total() int { return len(p.refs) }

// lookup finds the block that holds a hash, be it in use or free.
func (p *blockPool) lookup(hash uint64) (int32, bool) {
	b, ok := p.byHash[hash]
	return b, ok
}

// idle says whether taking this block would cost a free one.
func (p *blockPool) idle(block int32) bool { return p.refs[block] == 0 }

// share takes one more reference on a cached block.
func (p *blockPool) share(block int32) {
	if p.refs[block] == 0 {
		p.unlink(block)
	}
	p.refs[block]++
}

// take hands out the least recently freed block and forgets what it held.
// The caller has made sure that there is one.
func (p *blockPool) take() int32 {
	b := p.next[p.total()]
	p.unlink(b)
	p.refs[b] = 1
	if h := p.hashes[b]; h != 0 {
		delete(p.byHash, h)
		p.hashes[b] = 0
	}
	return b
}

// remember makes a complete block findable.
func (p *blockPool) remember(block int32, hash uint64) {
	if _, taken := p.byHash[hash]; taken || p.hashes[block] != 0 {
		return
	}
	p.hashes[block] = hash
	p.byHash[hash] = block
}

// release drops one reference on each block, the last block first: a prefix is
// worth more the nearer it is to the start, so tails are reused first.
func (p *blockPool) release(blocks []int32) {
	for i := len(blocks) - 1; i >= 0; i-- {
		b := blocks[i]
		if p.refs[b]--; p.refs[b] == 0 {
			p.append(b)
		}
	}
}

func (p *blockPool) unlink(b int32) {
	p.next[p.prev[b]] = p.next[b]
	p.prev[p.next[b]] = p.prev[b]
	p.free--
}

func (p *blockPool) append(b int32) {
	sentinel := int32(p.total())
	last := p.prev[sentinel]
	p.next[last], p.prev[b] = b, last
	p.next[b], p.prev[sentinel] = sentinel, b
	p.free++
}
