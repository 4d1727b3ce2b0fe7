// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"cmp"
	"math"
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// Bin is how many values of each set lie in (Lo, Hi], or are Lo where both are the same. Which of them are greater is not
// known: they count as ties.
type Bin struct {
	Lo, Hi               float64
	Reference, Candidate uint64
}

// Distributions appends the common bins of two distributions to bins, in ascending order. Buckets that overlap become one
// bin, so of two exponential histograms the coarser decides, and equal explicit boundaries stay as they are.
func Distributions(bins []Bin, reference, candidate *sketch.Distribution) []Bin {
	from := len(bins)
	bins = appendBuckets(bins, reference, func(n uint64) (uint64, uint64) { return n, 0 })
	bins = appendBuckets(bins, candidate, func(n uint64) (uint64, uint64) { return 0, n })
	return join(bins, from)
}

// Values appends the bins of raw values to bins, in ascending order: one for each different value.
func Values(bins []Bin, reference, candidate []float64) []Bin {
	from := len(bins)
	for _, v := range reference {
		bins = append(bins, Bin{Lo: v, Hi: v, Reference: 1})
	}
	for _, v := range candidate {
		bins = append(bins, Bin{Lo: v, Hi: v, Candidate: 1})
	}
	return join(bins, from)
}

func appendBuckets(bins []Bin, d *sketch.Distribution, of func(uint64) (reference, candidate uint64)) []Bin {
	add := func(lo, hi float64, n uint64) {
		if n > 0 {
			r, c := of(n)
			bins = append(bins, Bin{Lo: lo, Hi: hi, Reference: r, Candidate: c})
		}
	}
	d.Explicit(func(bounds []float64, counts []uint64) {
		lo := math.Inf(-1)
		if len(bounds) > 0 && bounds[0] > 0 {
			lo = 0
		}
		for i, n := range counts {
			hi := math.Inf(1)
			if i < len(bounds) {
				hi = bounds[i]
			}
			add(lo, hi, n)
			lo = hi
		}
	})
	d.Exponential(func(e *sketch.Exponential) {
		factor := e.Factor
		if factor == 0 {
			factor = 1
		}
		boundary := func(offset int32, i int) float64 {
			return factor * math.Exp2(math.Ldexp(float64(offset)+float64(i), -int(e.Scale)))
		}
		for i, n := range e.Negative.Counts {
			add(-boundary(e.Negative.Offset, i+1), -boundary(e.Negative.Offset, i), n)
		}
		add(min(0, -factor*e.ZeroThreshold), factor*e.ZeroThreshold, e.ZeroCount)
		for i, n := range e.Positive.Counts {
			add(boundary(e.Positive.Offset, i), boundary(e.Positive.Offset, i+1), n)
		}
	})
	return bins
}

// join sorts the bins from an index on, and makes one of those that overlap.
func join(bins []Bin, from int) []Bin {
	fresh := bins[from:]
	slices.SortFunc(fresh, func(a, b Bin) int { return cmp.Or(cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Hi, b.Hi)) })
	last := -1
	for _, b := range fresh {
		if last >= 0 {
			if of := &fresh[last]; of.overlaps(b) {
				of.Hi = max(of.Hi, b.Hi)
				of.Reference += b.Reference
				of.Candidate += b.Candidate
				continue
			}
		}
		last++
		fresh[last] = b
	}
	return bins[:from+last+1]
}

// overlaps reports whether next, which does not begin before b, has values in common with it. Boundaries that differ by
// rounding are the same.
func (b Bin) overlaps(next Bin) bool {
	if next.Lo == next.Hi {
		return next.Hi <= b.Hi
	}
	return next.Lo == b.Lo || next.Lo < b.Hi-1e-9*math.Abs(next.Lo)
}

// sizes are the numbers of values.
func sizes(bins []Bin) (reference, candidate uint64) {
	for _, b := range bins {
		reference += b.Reference
		candidate += b.Candidate
	}
	return reference, candidate
}
