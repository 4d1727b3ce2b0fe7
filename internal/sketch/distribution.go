// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"math"
	"slices"
	"sort"
)

// MaxLayouts bounds how many different bucket layouts one Distribution holds beside each other. Replicas of one
// service have one or, during a rollout, two.
const MaxLayouts = 8

// Distribution is a set of values known by their buckets. The zero value is empty and ready. Sources with
// different boundaries stay apart inside and are only joined when a question is asked.
type Distribution struct {
	explicit    []explicit
	exponential []Exponential // one a Factor
	count       uint64
}

type explicit struct {
	bounds []float64 // borrowed from the first AddExplicit; callers must not change it
	counts []uint64
}

// Count is the number of values.
func (d *Distribution) Count() uint64 { return d.count }

// AddExplicit adds explicit buckets; counts has one element more than bounds (see Valid). bounds is kept, counts
// is copied. It reports false, adding nothing, when the distribution already holds MaxLayouts layouts.
func (d *Distribution) AddExplicit(bounds []float64, counts []uint64) bool {
	for i := range d.explicit {
		p := &d.explicit[i]
		if !slices.Equal(p.bounds, bounds) {
			continue
		}
		for j, n := range counts {
			p.counts[j] += n
			d.count += n
		}
		return true
	}
	if !d.room() {
		return false
	}
	d.explicit = append(d.explicit, explicit{bounds: bounds, counts: slices.Clone(counts)})
	for _, n := range counts {
		d.count += n
	}
	return true
}

// AddExponential adds an exponential histogram, copying its counts. It reports false, adding nothing, when the
// distribution already holds MaxLayouts layouts.
func (d *Distribution) AddExponential(e *Exponential) bool {
	p := d.exponentialOf(e.factor())
	if p == nil {
		return false
	}
	p.merge(e)
	d.count += e.Count()
	return true
}

// Observe adds n values equal to v, which is finite. It reports false, adding nothing, when the distribution
// already holds MaxLayouts layouts.
func (d *Distribution) Observe(v float64, n uint64) bool {
	p := d.exponentialOf(1)
	if p == nil {
		return false
	}
	p.observe(v, n)
	d.count += n
	return true
}

// Merge adds all of o. It reports false when o holds a layout for which there is no room; what had room is in.
func (d *Distribution) Merge(o *Distribution) bool {
	ok := true
	for i := range o.explicit {
		ok = d.AddExplicit(o.explicit[i].bounds, o.explicit[i].counts) && ok
	}
	for i := range o.exponential {
		ok = d.AddExponential(&o.exponential[i]) && ok
	}
	return ok
}

// Reset empties the distribution. Layouts that were used keep their memory; one that was not used since the last Reset
// goes, so that a source which changed its boundaries does not count against MaxLayouts for ever.
func (d *Distribution) Reset() {
	d.explicit = slices.DeleteFunc(d.explicit, func(p explicit) bool { return !anyPositive(p.counts) })
	for i := range d.explicit {
		clear(d.explicit[i].counts)
	}
	d.exponential = slices.DeleteFunc(d.exponential, func(e Exponential) bool { return e.Count() == 0 })
	for i := range d.exponential {
		d.exponential[i].reset()
	}
	d.count = 0
}

func (d *Distribution) room() bool { return len(d.explicit)+len(d.exponential) < MaxLayouts }

func (d *Distribution) exponentialOf(factor float64) *Exponential {
	for i := range d.exponential {
		if d.exponential[i].Factor == factor {
			return &d.exponential[i]
		}
	}
	if !d.room() {
		return nil
	}
	d.exponential = append(d.exponential, Exponential{Factor: factor, Scale: MaxScale})
	return &d.exponential[len(d.exponential)-1]
}

// AtMost splits the distribution at x.
func (d *Distribution) AtMost(x float64) Split {
	var s Split
	for i := range d.explicit {
		s = s.Add(ExplicitAtMost(d.explicit[i].bounds, d.explicit[i].counts, x))
	}
	for i := range d.exponential {
		s = s.Add(d.exponential[i].AtMost(x))
	}
	return s
}

// Estimate is what a distribution says about one of its quantiles. The true quantile lies in [Lower, Upper];
// an infinite edge means that the source's last boundary is the most that can be said ("at least").
type Estimate struct {
	Value, Lower, Upper float64
}

// bucket is n values in (lo, hi].
type bucket struct {
	lo, hi float64
	n      uint64
}

// Quantile estimates the q-quantile, 0 <= q <= 1: the value of rank q·Count, interpolated linearly inside its
// bucket as Prometheus's histogram_quantile does
// (https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile). Inside an open-ended
// bucket the finite edge is the estimate. An empty distribution gives NaN.
//
// unknown is how many values there are besides of which nothing is known: they may lie anywhere, which widens the bounds and
// leaves the estimate to the known ones.
func (d *Distribution) Quantile(q float64, unknown uint64) Estimate {
	if d.count == 0 {
		nan := math.NaN()
		return Estimate{nan, nan, nan}
	}
	buckets := d.buckets()
	n := float64(d.count)
	rank := rankOf(q, n)
	e := Estimate{Value: interpolate(buckets, math.Max(rank, n*relativeTolerance)), Lower: math.Inf(-1), Upper: math.Inf(1)}
	kth := kthOf(q, d.count+unknown)
	if kth > unknown { // even with all unknown ones below
		e.Lower = kthSmallest(buckets, kth-unknown, func(b bucket) float64 { return b.lo })
	}
	if kth <= d.count { // even with all unknown ones above
		e.Upper = kthSmallest(buckets, kth, func(b bucket) float64 { return b.hi })
	}
	return e
}

// rankOf is q·n, without the rounding of it: 0.95 · 20 is not exactly 19, and rank 20 may lie in a bucket far away.
func rankOf(q, n float64) float64 {
	rank := math.Min(math.Max(q*n, 0), n)
	if whole := math.Round(rank); math.Abs(rank-whole) <= n*relativeTolerance {
		return whole
	}
	return rank
}

// kthOf is which of n values the q-quantile is, counted from the smallest.
func kthOf(q float64, n uint64) uint64 { return max(uint64(math.Ceil(rankOf(q, float64(n)))), 1) }

func (d *Distribution) buckets() []bucket {
	var all []bucket
	for _, p := range d.explicit {
		for i, n := range p.counts {
			if n > 0 {
				lo, hi := edges(p.bounds, i)
				all = append(all, bucket{lo, hi, n})
			}
		}
	}
	for i := range d.exponential {
		d.exponential[i].each(func(lo, hi float64, n uint64) { all = append(all, bucket{lo, hi, n}) })
	}
	return all
}

// kthSmallest is the k-th smallest value if every value stood on the given edge of its bucket: with the lower
// edges nothing can be smaller, with the upper edges nothing larger.
func kthSmallest(buckets []bucket, k uint64, edge func(bucket) float64) float64 {
	slices.SortFunc(buckets, func(a, b bucket) int {
		switch ea, eb := edge(a), edge(b); {
		case ea < eb:
			return -1
		case ea > eb:
			return 1
		}
		return 0
	})
	var seen uint64
	for _, b := range buckets {
		if seen += b.n; seen >= k {
			return edge(b)
		}
	}
	return edge(buckets[len(buckets)-1])
}

// interpolate inverts the distribution function, which is linear between two edges of any bucket.
func interpolate(buckets []bucket, rank float64) float64 {
	points := make([]float64, 0, 2*len(buckets))
	for _, b := range buckets {
		points = append(points, b.lo, b.hi)
	}
	slices.Sort(points)
	points = slices.Compact(points)
	at := sort.Search(len(points), func(i int) bool { return cumulative(buckets, points[i]) >= rank })
	if at == len(points) {
		at--
	}
	hi := points[at]
	if at == 0 {
		return hi
	}
	lo := points[at-1]
	switch {
	case math.IsInf(hi, 1):
		return lo
	case math.IsInf(lo, -1):
		return hi
	}
	before, after := cumulative(buckets, lo), cumulative(buckets, hi)
	if after <= before {
		return hi
	}
	return lo + (hi-lo)*math.Min((rank-before)/(after-before), 1)
}

// cumulative is the number of values at or below x, with the values of a bucket spread evenly over its width.
func cumulative(buckets []bucket, x float64) float64 {
	var sum float64
	for _, b := range buckets {
		switch {
		case b.hi <= x:
			sum += float64(b.n)
		case b.lo < x && !math.IsInf(b.lo, -1) && !math.IsInf(b.hi, 1):
			sum += float64(b.n) * (x - b.lo) / (b.hi - b.lo)
		}
	}
	return sum
}
