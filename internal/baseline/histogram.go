// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"math"
	"slices"
)

const (
	// maxScale is the finest resolution: 32 buckets an octave, each 2.2 % wide, so that its middle is at most 1.1 % off.
	maxScale = 5
	// base is the width of a bucket at maxScale.
	base = 1.0218971486541166
	// minScale is where all floats fit into maxBuckets.
	minScale = -2
	// maxIndex is further than any float's index at maxScale.
	maxIndex = 1100 << maxScale
	// maxBuckets is six decades at maxScale. A wider range costs resolution, not memory.
	maxBuckets = 640
	// octavesBelow is how far down a source bucket that begins at zero is spread: what lies below is a thousandth of it.
	octavesBelow = 10
	// forgotten is the weight below which the outermost buckets go: that of a single value after 1,026 windows.
	forgotten = 1e-9
)

// histogram is an exponential histogram of weights, with the boundaries of an OTLP one:
// bucket i holds (2^(i/2^scale), 2^((i+1)/2^scale)].
type histogram struct {
	scale   int32
	offset  int32 // the index of weights[0]
	low     float32
	weights []float32 // low: values that are not above zero
}

// add spreads a weight evenly over (lo, hi]. Explicit buckets, which are wider, keep their distribution function so: it is
// linear inside of them, as Prometheus's histogram_quantile takes it. An open end counts in the first bucket beyond its boundary.
func (h *histogram) add(lo, hi, weight float64) {
	if math.IsInf(hi, 1) {
		hi = min(lo*base, math.MaxFloat64)
		lo = hi
	}
	if !(hi > 0) {
		h.low += float32(weight)
		return
	}
	lo = min(max(lo, hi/(1<<octavesBelow)), hi)
	first, last := h.reserve(lo, hi)
	if first == last {
		h.weights[first-h.offset] += float32(weight)
		return
	}
	density := weight / (hi - lo)
	from := lo
	for i := first; i <= last; i++ {
		to := hi
		if i < last {
			to = h.boundary(i + 1)
		}
		h.weights[i-h.offset] += float32(density * max(to-from, 0))
		from = to
	}
}

// addBucket adds the bucket of an OTLP exponential histogram that is at least as fine as this one can be.
func (h *histogram) addBucket(index, scale int32, weight float64) {
	if len(h.weights) == 0 {
		h.scale = maxScale
	}
	for {
		at := index >> (scale - h.scale)
		if h.covers(at, at) {
			h.weights[at-h.offset] += float32(weight)
			return
		}
		h.downscale()
	}
}

// reserve makes room for (lo, hi] and returns the buckets that it lies in.
func (h *histogram) reserve(lo, hi float64) (first, last int32) {
	if len(h.weights) == 0 {
		h.scale = maxScale
	}
	for {
		last = int32(math.Ceil(h.position(hi))) - 1
		first = min(int32(math.Floor(h.position(lo))), last)
		if h.covers(first, last) {
			return first, last
		}
		h.downscale()
	}
}

// covers makes the buckets first to last exist, if that is possible at this scale.
func (h *histogram) covers(first, last int32) bool {
	if n := len(h.weights); n > 0 {
		first, last = min(first, h.offset), max(last, h.offset+int32(n)-1)
	}
	if last-first >= maxBuckets {
		return false
	}
	h.grow(first, last)
	return true
}

// position is where x > 0 lies on the scale of indexes. A boundary that was rounded elsewhere is still that boundary.
func (h *histogram) position(x float64) float64 {
	at := math.Ldexp(math.Log2(x), int(h.scale))
	if whole := math.Round(at); math.Abs(at-whole) < 1e-6 {
		return whole
	}
	return at
}

func (h *histogram) boundary(i int32) float64 {
	return math.Exp2(math.Ldexp(float64(i), -int(h.scale)))
}

// grow makes the buckets from to to exist; they include those that do.
func (h *histogram) grow(from, to int32) {
	old := len(h.weights)
	if old == 0 {
		h.offset = from
	}
	before, size := int(h.offset-from), int(to-from)+1
	if size == old {
		return
	}
	h.weights = slices.Grow(h.weights, size-old)[:size]
	copy(h.weights[before:], h.weights[:old])
	clear(h.weights[:before])
	clear(h.weights[before+old:])
	h.offset = from
}

// downscale makes two neighbours one bucket, so that no boundary moves.
func (h *histogram) downscale() {
	first := h.offset >> 1
	var size int
	for i, w := range h.weights {
		to := int((h.offset+int32(i))>>1 - first)
		if to != i {
			h.weights[i] = 0
			h.weights[to] += w
		}
		size = to + 1
	}
	h.weights, h.offset = h.weights[:size], first
	h.scale--
}

// multiply makes every weight factor times what it was, and takes the outermost buckets away that are forgotten.
func (h *histogram) multiply(factor float64) {
	h.low *= float32(factor)
	for i := range h.weights {
		h.weights[i] *= float32(factor)
	}
	first, last := 0, len(h.weights)
	for last > 0 && h.weights[last-1] < forgotten {
		last--
	}
	for first < last && h.weights[first] < forgotten {
		first++
	}
	h.weights = h.weights[:copy(h.weights, h.weights[first:last])]
	h.offset += int32(first)
}

// merge adds o, whose scale may be another, times factor.
func (h *histogram) merge(o *histogram, factor float64) {
	h.low += float32(factor) * o.low
	if len(o.weights) > 0 && (h.scale == o.scale || len(h.weights) == 0) {
		h.scale = o.scale
		if h.covers(o.offset, o.offset+int32(len(o.weights))-1) {
			for i, w := range o.weights {
				h.weights[o.offset-h.offset+int32(i)] += float32(factor) * w
			}
			return
		}
	}
	for i, w := range o.weights {
		if w > 0 {
			at := o.offset + int32(i)
			h.add(o.boundary(at), o.boundary(at+1), factor*float64(w))
		}
	}
}

func (h *histogram) reset() { *h = histogram{weights: h.weights[:0]} }

// total is the sum of all weights.
func (h *histogram) total() float64 {
	sum := float64(h.low)
	for _, w := range h.weights {
		sum += float64(w)
	}
	return sum
}

// varianceLog is the variance of the logarithms about their mean, over the values above zero.
func (h *histogram) varianceLog(mean float64) float64 {
	var sum, weight float64
	for i, w := range h.weights {
		off := math.Ldexp(float64(h.offset)+float64(i)+0.5, -int(h.scale))*math.Ln2 - mean
		sum += float64(w) * off * off
		weight += float64(w)
	}
	return sum / weight
}

// quantile is the value of rank q·total: the middle of its bucket, or interpolated linearly where that is wide; NaN when
// there is none.
func (h *histogram) quantile(q float64) float64 {
	total := h.total()
	if total <= 0 {
		return math.NaN()
	}
	rank := q * total
	seen := float64(h.low)
	if seen > 0 && seen >= rank {
		return 0
	}
	last := 0
	for i, w := range h.weights {
		if w <= 0 {
			continue
		}
		if last = i; seen+float64(w) >= rank {
			break
		}
		seen += float64(w)
	}
	lo, hi := h.boundary(h.offset+int32(last)), h.boundary(h.offset+int32(last)+1)
	if hi <= narrow*lo {
		return middle(lo, hi)
	}
	// Rounding may leave the rank a hair above the last bucket.
	return lo + (hi-lo)*min(max(rank-seen, 0)/float64(h.weights[last]), 1)
}

// above is the weight of what is greater than x.
func (h *histogram) above(x float64) float64 {
	if !(x > 0) {
		sum := h.total()
		if x == 0 {
			sum -= float64(h.low)
		}
		return sum
	}
	if math.IsInf(x, 1) {
		return 0
	}
	at := int(math.Ceil(h.position(x))) - 1 - int(h.offset) // the bucket of x
	var sum float64
	for _, w := range h.weights[min(max(at+1, 0), len(h.weights)):] {
		sum += float64(w)
	}
	if at >= 0 && at < len(h.weights) {
		lo, hi := h.boundary(h.offset+int32(at)), h.boundary(h.offset+int32(at)+1)
		sum += float64(h.weights[at]) * min(max((hi-x)/(hi-lo), 0), 1)
	}
	return sum
}

// narrow is how far apart the edges of a bucket may be to be answered by its middle. Interpolation would do better on
// average, and worse than that where a few values share a bucket.
const narrow = 1.1

// middle is the value from which both edges are equally far, relative to them: by half the bucket's width, as in
// C. Masson, J. Rim, H. Lee, DDSketch, VLDB 2019.
func middle(lo, hi float64) float64 { return lo * (2 * hi / (lo + hi)) }
