// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"math"
	"sort"
)

// Split says how many values of a distribution lie at or below a point x. Buckets end at boundaries, so when
// x is none of them the true number is only bounded:
//
//	Certain <= true number <= Possible
//
// Rounded is the one number to count with: a bucket that x cuts goes as a whole to the side on which more of
// its width lies. Whole buckets keep the count mergeable to the event, which interpolation would not.
type Split struct {
	Certain, Rounded, Possible uint64
}

// Add returns the sum of two splits at the same x.
func (s Split) Add(o Split) Split {
	return Split{s.Certain + o.Certain, s.Rounded + o.Rounded, s.Possible + o.Possible}
}

// Exact reports whether x was a boundary of every bucket that counts.
func (s Split) Exact() bool { return s.Certain == s.Possible }

// relativeTolerance is how far two boundaries may be apart and still be one number: 800 ms · 0.001 and 0.8 s
// differ in the last bit.
const relativeTolerance = 1e-9

// same reports whether a and b are one number up to rounding.
func same(a, b float64) bool {
	if a == b || math.IsInf(a, 0) || math.IsInf(b, 0) {
		return a == b
	}
	return math.Abs(a-b) <= relativeTolerance*math.Max(math.Abs(a), math.Abs(b))
}

// add puts n values of the bucket (lo, hi] into the split at x.
func (s *Split) add(lo, hi, x float64, n uint64) {
	switch {
	case hi < x || same(hi, x):
		s.Certain += n
		s.Rounded += n
		s.Possible += n
	case lo > x || same(lo, x):
	default:
		s.Possible += n
		// An open end has no width to compare: values beyond the last boundary count as above it, and values
		// before the first as above x too, which errs on the side of a broken latency promise.
		if !math.IsInf(lo, 0) && !math.IsInf(hi, 0) && x-lo >= hi-x {
			s.Rounded += n
		}
	}
}

// Valid reports whether bounds and counts form an explicit histogram: one count more than bounds, bounds
// finite and strictly increasing.
func Valid(bounds []float64, counts []uint64) bool {
	if len(counts) != len(bounds)+1 {
		return false
	}
	for i, b := range bounds {
		if math.IsNaN(b) || math.IsInf(b, 0) || (i > 0 && b <= bounds[i-1]) {
			return false
		}
	}
	return true
}

// MaxCount bounds what a single point may count: every count up to it is exact in a float, and sums of them do not
// wrap.
const MaxCount = 1 << 53

// Total adds counts up. It reports false when one of them or the sum is above MaxCount, which no counter of events
// reaches.
func Total(counts []uint64) (sum uint64, ok bool) {
	for _, n := range counts {
		if n > MaxCount {
			return 0, false
		}
		if sum += n; sum > MaxCount {
			return 0, false
		}
	}
	return sum, true
}

// lowest is the lower edge of the first explicit bucket. Nearly all measurements are not negative, and a first
// boundary above zero says that this one is such (Prometheus's histogram_quantile assumes the same).
func lowest(bounds []float64) float64 {
	if len(bounds) > 0 && bounds[0] > 0 {
		return 0
	}
	return math.Inf(-1)
}

// edges returns the lower and upper edge of explicit bucket i.
func edges(bounds []float64, i int) (lo, hi float64) {
	lo, hi = lowest(bounds), math.Inf(1)
	if i > 0 {
		lo = bounds[i-1]
	}
	if i < len(bounds) {
		hi = bounds[i]
	}
	return lo, hi
}

// ExplicitAtMost splits explicit buckets at x. It allocates nothing.
func ExplicitAtMost(bounds []float64, counts []uint64, x float64) Split {
	// Only the buckets around x need a comparison: those before lie below it as a whole.
	i := sort.SearchFloat64s(bounds, x)
	if i > 0 && same(bounds[i-1], x) {
		i--
	}
	var below uint64
	for _, n := range counts[:i] {
		below += n
	}
	s := Split{below, below, below}
	if i < len(counts) && counts[i] > 0 {
		lo, hi := edges(bounds, i)
		s.add(lo, hi, x, counts[i])
	}
	return s
}

// SumFits reports whether a sum can be that of the values in explicit buckets: no smaller than with every value on the lower
// edge of its bucket, and no larger than with every value on the upper edge. Engines have told sums in another unit than
// their boundaries (https://github.com/vllm-project/vllm/issues/8115).
func SumFits(bounds []float64, counts []uint64, sum float64) bool {
	if math.IsNaN(sum) {
		return false
	}
	var least, most float64
	for i, n := range counts {
		if n > 0 {
			lo, hi := edges(bounds, i)
			least += float64(n) * lo
			most += float64(n) * hi
		}
	}
	if math.IsInf(sum, 0) { // of an infinite value, which only an open-ended bucket holds
		return sum == least || sum == most
	}
	tolerance := sumTolerance * math.Max(math.Abs(sum), 1)
	return sum >= least-tolerance && sum <= most+tolerance
}

// sumTolerance is for what a sum of many floats loses to rounding.
const sumTolerance = 1e-6
