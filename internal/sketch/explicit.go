// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"encoding/binary"
	"math"
	"slices"
	"sync"
)

// explicit are explicit buckets of one layout. Their counts are kept as narrow as they fit, since there are several of them a
// series, and nearly all series count some hundreds of events a minute.
type explicit struct {
	bounds []float64 // borrowed from the first AddExplicit; callers must not change it
	counts []byte    // of 2, 4 or 8 bytes each, little endian; nil where there is no layout
}

// newExplicit is a layout without a value.
func newExplicit(bounds []float64) explicit {
	return explicit{bounds: bounds, counts: make([]byte, narrowest*(len(bounds)+1))}
}

const narrowest = 2

func (p *explicit) len() int { return len(p.bounds) + 1 }

// of reports whether these are the boundaries of the layout. Callers mostly share them.
func (p *explicit) of(bounds []float64) bool {
	return p.counts != nil && len(p.bounds) == len(bounds) &&
		(len(bounds) == 0 || &p.bounds[0] == &bounds[0] || slices.Equal(p.bounds, bounds))
}

// at is the count of the i-th bucket.
func (p *explicit) at(i int) uint64 {
	switch n := p.len(); len(p.counts) {
	case 2 * n:
		return uint64(binary.LittleEndian.Uint16(p.counts[2*i:]))
	case 4 * n:
		return uint64(binary.LittleEndian.Uint32(p.counts[4*i:]))
	default:
		return binary.LittleEndian.Uint64(p.counts[8*i:])
	}
}

// set makes v the count of the i-th bucket, and all counts as wide as v needs.
func (p *explicit) set(i int, v uint64) {
	n := p.len()
	switch {
	case len(p.counts) == 8*n:
		binary.LittleEndian.PutUint64(p.counts[8*i:], v)
	case len(p.counts) == 4*n && v <= math.MaxUint32:
		binary.LittleEndian.PutUint32(p.counts[4*i:], uint32(v))
	case len(p.counts) == 2*n && v <= math.MaxUint16:
		binary.LittleEndian.PutUint16(p.counts[2*i:], uint16(v))
	default:
		wide := explicit{bounds: p.bounds, counts: make([]byte, 2*len(p.counts))}
		for j := range n {
			wide.set(j, p.at(j))
		}
		*p = wide
		p.set(i, v)
	}
}

// add adds counts, one a bucket.
func (p *explicit) add(counts []uint64) {
	for i, n := range counts {
		if n > 0 {
			p.set(i, p.at(i)+n)
		}
	}
}

// merge adds what o, which is of the same layout, holds.
func (p *explicit) merge(o *explicit) {
	for i := range o.len() {
		if n := o.at(i); n > 0 {
			p.set(i, p.at(i)+n)
		}
	}
}

func (p *explicit) count() (n uint64) {
	for i := range p.len() {
		n += p.at(i)
	}
	return n
}

// empty reports whether no bucket holds a value.
func (p *explicit) empty() bool {
	for _, b := range p.counts {
		if b != 0 {
			return false
		}
	}
	return true
}

// wide appends the counts to a slice.
func (p *explicit) wide(into []uint64) []uint64 {
	for i := range p.len() {
		into = append(into, p.at(i))
	}
	return into
}

// scratch are slices for the counts of a layout.
var scratch = sync.Pool{New: func() any { return new([]uint64) }}

// tell calls f with the layout, its counts as numbers. f must not keep them.
func (p *explicit) tell(f func(bounds []float64, counts []uint64)) {
	counts := scratch.Get().(*[]uint64)
	*counts = p.wide((*counts)[:0])
	f(p.bounds, *counts)
	scratch.Put(counts)
}

// kth are the edges of the bucket that holds the k-th smallest value: the last one that holds any, where there are fewer.
func (p *explicit) kth(k uint64) (lo, hi float64) {
	at := 0
	var seen uint64
	for i := range p.len() {
		if n := p.at(i); n > 0 {
			at = i
			if seen += n; seen >= k {
				break
			}
		}
	}
	return edges(p.bounds, at)
}

// interpolate is what interpolate says of buckets none of which overlap.
func (p *explicit) interpolate(rank float64) float64 {
	at, before, seen := 0, 0.0, 0.0
	for i := range p.len() {
		if n := float64(p.at(i)); n > 0 {
			at, before = i, seen
			if seen += n; seen >= rank {
				break
			}
		}
	}
	lo, hi := edges(p.bounds, at)
	switch {
	case math.IsInf(hi, 1):
		return lo
	case math.IsInf(lo, -1):
		return hi
	}
	return lo + (hi-lo)*math.Min((rank-before)/(seen-before), 1)
}
