// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"math"

	"github.com/lightstep/go-expohisto/mapping"
	"github.com/lightstep/go-expohisto/mapping/exponent"
	"github.com/lightstep/go-expohisto/mapping/logarithm"
)

const (
	// MaxBuckets bounds each side of an exponential histogram; a wider range costs resolution, not memory. It is six decades
	// at KeptScale.
	MaxBuckets = 640
	// MaxFineBuckets bounds each side at scales finer than KeptScale: what more of them would tell is not worth their memory.
	// OpenTelemetry's SDKs use 160, two of which fit beside each other here.
	MaxFineBuckets = 320
	// KeptScale is the resolution that is given up only for want of MaxBuckets: 32 buckets an octave, each 2.2 % wide, so
	// that the middle of one is at most 1.1 % off.
	KeptScale = 5
	// MaxScale is the finest resolution (base 2^(2^-20)) and where raw values begin.
	MaxScale = 20
	// MinScale is the coarsest resolution: every finite float fits into a few buckets.
	MinScale = -10
)

// Buckets is one side of an exponential histogram: Counts[i] values lie in (base^(Offset+i), base^(Offset+i+1)].
type Buckets struct {
	Offset int32
	Counts []uint64
}

// Exponential is an exponential histogram in plain values. Factor multiplies its boundaries, because buckets
// of milliseconds have no counterpart of the same scale in seconds; 0 stands for 1.
type Exponential struct {
	Scale              int32
	Factor             float64
	ZeroThreshold      float64
	ZeroCount          uint64
	Positive, Negative Buckets
}

// Count is the number of values.
func (e *Exponential) Count() uint64 {
	n := e.ZeroCount
	for _, c := range e.Positive.Counts {
		n += c
	}
	for _, c := range e.Negative.Counts {
		n += c
	}
	return n
}

// MaxInputBuckets bounds each side of a histogram that comes from outside. OpenTelemetry's SDKs send 160 at most.
const MaxInputBuckets = 4096

// Normalize takes the empty buckets at both ends away and reports whether the histogram can be one of floats: a scale
// that the specification allows, indexes that some float maps to, and a count that is counted exactly.
func (e *Exponential) Normalize() bool {
	if e.Scale < MinScale || e.Scale > MaxScale || !(e.ZeroThreshold >= 0) || e.ZeroCount > MaxCount {
		return false
	}
	lo, hi := indexes(e.Scale)
	n := e.ZeroCount
	for _, b := range [...]*Buckets{&e.Positive, &e.Negative} {
		b.trim()
		first, last := int64(b.Offset), int64(b.Offset)+int64(len(b.Counts))-1
		if len(b.Counts) > MaxInputBuckets || (len(b.Counts) > 0 && (first < lo || last > hi)) {
			return false
		}
		sum, ok := Total(b.Counts)
		if n += sum; !ok || n > MaxCount {
			return false
		}
	}
	return true
}

// indexes is the range of indexes that floats map to at a scale, and one more on each side for rounding.
func indexes(scale int32) (lo, hi int64) {
	return int64(index(scale, smallestNormal)) - 1, int64(index(scale, math.MaxFloat64)) + 1
}

// smallestNormal is the smallest float of full precision; smaller ones share its bucket.
const smallestNormal = 0x1p-1022

// AtMost splits the histogram at x. It allocates nothing.
func (e *Exponential) AtMost(x float64) Split {
	var s Split
	e.each(func(lo, hi float64, n uint64) { s.add(lo, hi, x, n) })
	return s
}

// each calls f for every bucket that holds values, from the lowest up.
func (e *Exponential) each(f func(lo, hi float64, n uint64)) {
	factor := e.factor()
	for i := len(e.Negative.Counts) - 1; i >= 0; i-- {
		if n := e.Negative.Counts[i]; n > 0 {
			at := e.Negative.Offset + int32(i)
			f(-factor*boundary(e.Scale, at+1), -factor*boundary(e.Scale, at), n)
		}
	}
	if e.ZeroCount > 0 {
		lo := -factor * e.ZeroThreshold
		if e.Negative.empty() {
			lo = 0 // what has no negative values is taken not to have small ones either
		}
		f(lo, factor*e.ZeroThreshold, e.ZeroCount)
	}
	for i, n := range e.Positive.Counts {
		if n > 0 {
			at := e.Positive.Offset + int32(i)
			f(factor*boundary(e.Scale, at), factor*boundary(e.Scale, at+1), n)
		}
	}
}

func (e *Exponential) factor() float64 {
	if e.Factor == 0 {
		return 1
	}
	return e.Factor
}

// observe adds n raw values.
func (e *Exponential) observe(v float64, n uint64) {
	side := &e.Positive
	switch {
	case v == 0:
		e.ZeroCount += n
		return
	case v < 0:
		side, v = &e.Negative, -v
	}
	if e.Positive.empty() && e.Negative.empty() {
		e.Scale = MaxScale
	}
	at := index(e.Scale, v)
	for !side.fits(at, at, e.Scale) {
		e.downscale(1)
		at >>= 1
	}
	side.add(at, n)
}

// merge adds o, whose Factor is the same.
func (e *Exponential) merge(o *Exponential) {
	e.ZeroCount += o.ZeroCount
	e.ZeroThreshold = math.Max(e.ZeroThreshold, o.ZeroThreshold)
	if o.Positive.empty() && o.Negative.empty() {
		return
	}
	if e.Positive.empty() && e.Negative.empty() {
		e.Scale = o.Scale
	}
	if e.Scale > o.Scale {
		e.downscale(e.Scale - o.Scale)
	}
	for !e.Positive.takes(&o.Positive, o.Scale, e.Scale) || !e.Negative.takes(&o.Negative, o.Scale, e.Scale) {
		e.downscale(1)
	}
	e.Positive.merge(&o.Positive, o.Scale-e.Scale)
	e.Negative.merge(&o.Negative, o.Scale-e.Scale)
}

// Copy makes e an independent copy of o, reusing its memory.
func (e *Exponential) Copy(o *Exponential) {
	e.Scale, e.Factor, e.ZeroThreshold, e.ZeroCount = o.Scale, o.Factor, o.ZeroThreshold, o.ZeroCount
	e.Positive.copy(&o.Positive)
	e.Negative.copy(&o.Negative)
}

// Sub takes o, an earlier state of the same cumulative histogram, away from e. o is brought to e's scale when it is
// finer. It reports false when a bucket would become negative or o is coarser than e; e is then of no use.
func (e *Exponential) Sub(o *Exponential) bool {
	if o.Positive.empty() && o.Negative.empty() {
		o.Scale = e.Scale
	}
	if o.Scale < e.Scale || o.ZeroCount > e.ZeroCount {
		return false
	}
	o.downscale(o.Scale - e.Scale)
	e.ZeroCount -= o.ZeroCount
	return e.Positive.sub(&o.Positive) && e.Negative.sub(&o.Negative)
}

func (b *Buckets) copy(o *Buckets) {
	b.Offset = o.Offset
	b.Counts = append(b.Counts[:0], o.Counts...)
}

func (b *Buckets) sub(o *Buckets) bool {
	for i, n := range o.Counts {
		if n == 0 {
			continue
		}
		at := int(o.Offset) + i - int(b.Offset)
		if at < 0 || at >= len(b.Counts) || b.Counts[at] < n {
			return false
		}
		b.Counts[at] -= n
	}
	return true
}

// downscale halves the resolution by times. Two neighbours become one bucket, so no boundary moves and counts
// stay exact; the coarser boundaries are a subset of the finer.
func (e *Exponential) downscale(by int32) {
	e.Scale -= by
	e.Positive.downscale(by)
	e.Negative.downscale(by)
}

func (e *Exponential) reset() {
	e.Scale, e.ZeroCount, e.ZeroThreshold = MaxScale, 0, 0
	e.Positive = Buckets{Counts: e.Positive.Counts[:0]}
	e.Negative = Buckets{Counts: e.Negative.Counts[:0]}
}

// empty reports whether no bucket holds a value.
func (b *Buckets) empty() bool {
	_, _, ok := b.span()
	return !ok
}

// trim takes the empty buckets at both ends away.
func (b *Buckets) trim() {
	first, last := 0, len(b.Counts)
	for last > 0 && b.Counts[last-1] == 0 {
		last--
	}
	for first < last && b.Counts[first] == 0 {
		first++
	}
	if first == last {
		b.Offset = 0
	} else if int64(b.Offset)+int64(first) <= math.MaxInt32 {
		b.Offset += int32(first)
	}
	b.Counts = append(b.Counts[:0], b.Counts[first:last]...)
}

// span is the lowest and highest index of a bucket that holds values.
func (b *Buckets) span() (lo, hi int32, ok bool) {
	first, last := 0, len(b.Counts)-1
	for first <= last && b.Counts[first] == 0 {
		first++
	}
	for last >= first && b.Counts[last] == 0 {
		last--
	}
	return b.Offset + int32(first), b.Offset + int32(last), first <= last
}

// most is how many buckets a side may have at a scale. It never falls as scales become coarser, so the scale of a merger is the
// one that all its values have together.
func most(scale int32) int64 {
	if scale > KeptScale {
		return MaxFineBuckets
	}
	return MaxBuckets
}

// fits reports whether the indexes lo to hi can be added at a scale.
func (b *Buckets) fits(lo, hi, scale int32) bool {
	if !b.empty() {
		lo = min(lo, b.Offset)
		hi = max(hi, b.Offset+int32(len(b.Counts))-1)
	}
	return int64(hi)-int64(lo) < most(scale)
}

// takes reports whether all of o, which is at the scale from, can be added at the scale to.
func (b *Buckets) takes(o *Buckets, from, to int32) bool {
	lo, hi, ok := o.span()
	return !ok || b.fits(lo>>(from-to), hi>>(from-to), to)
}

// add puts n values at an index that fits.
func (b *Buckets) add(at int32, n uint64) {
	if b.empty() {
		b.Offset = at
		b.Counts = append(b.Counts[:0], n)
		return
	}
	if at < b.Offset {
		grow := int(b.Offset - at)
		old := len(b.Counts)
		for range grow {
			b.Counts = append(b.Counts, 0)
		}
		copy(b.Counts[grow:], b.Counts[:old])
		clear(b.Counts[:grow])
		b.Offset = at
	}
	for int(at-b.Offset) >= len(b.Counts) {
		b.Counts = append(b.Counts, 0)
	}
	b.Counts[at-b.Offset] += n
}

func (b *Buckets) merge(o *Buckets, shift int32) {
	for i, n := range o.Counts {
		if n > 0 {
			b.add((o.Offset+int32(i))>>shift, n)
		}
	}
}

func (b *Buckets) downscale(by int32) {
	if b.empty() {
		b.Counts = b.Counts[:0]
		return
	}
	first := b.Offset >> by
	for i, n := range b.Counts {
		to := int((b.Offset+int32(i))>>by - first)
		if to == i {
			continue
		}
		b.Counts[i] = 0
		b.Counts[to] += n
	}
	b.Counts = b.Counts[:int((b.Offset+int32(len(b.Counts)-1))>>by-first)+1]
	b.Offset = first
}

// index is the bucket of v > 0 at a scale.
func index(scale int32, v float64) int32 { return mapper(scale).MapToIndex(v) }

// boundary is the lower boundary of a bucket, 0 and +Inf where floats end.
func boundary(scale, at int32) float64 {
	b, err := mapper(scale).LowerBoundary(at)
	switch {
	case err == nil:
		return b
	case at > 0:
		return math.Inf(1)
	default:
		return 0
	}
}

// mappers holds the mapping of every scale from MinScale to MaxScale.
var mappers = func() (all [MaxScale - MinScale + 1]mapping.Mapping) {
	for scale := int32(MinScale); scale <= MaxScale; scale++ {
		newMapping := logarithm.NewMapping
		if scale <= 0 {
			newMapping = exponent.NewMapping
		}
		m, err := newMapping(scale)
		if err != nil {
			panic(err) // the library's range is wider than ours; a test walks it
		}
		all[scale-MinScale] = m
	}
	return all
}()

func mapper(scale int32) mapping.Mapping {
	return mappers[min(max(scale, MinScale), MaxScale)-MinScale]
}
