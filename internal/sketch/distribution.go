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
	first explicit // nearly all distributions have one layout of explicit buckets and nothing else
	more  *layouts // nil without
}

// layouts are those besides the first.
type layouts struct {
	explicit    []explicit
	exponential []Exponential // one a Factor
}

// explicit are the layouts of explicit buckets.
func (d *Distribution) explicit(yield func(*explicit) bool) {
	if d.first.counts == nil || !yield(&d.first) || d.more == nil {
		return
	}
	for i := range d.more.explicit {
		if !yield(&d.more.explicit[i]) {
			return
		}
	}
}

// exponential are the exponential histograms.
func (d *Distribution) exponential() []Exponential {
	if d.more == nil {
		return nil
	}
	return d.more.exponential
}

// Count is the number of values.
func (d *Distribution) Count() (n uint64) {
	for p := range d.explicit {
		n += p.count()
	}
	for i := range d.exponential() {
		n += d.more.exponential[i].Count()
	}
	return n
}

// AddExplicit adds explicit buckets; counts has one element more than bounds (see Valid). bounds is kept, counts
// is copied. It reports false, adding nothing, when the distribution already holds MaxLayouts layouts.
func (d *Distribution) AddExplicit(bounds []float64, counts []uint64) bool {
	p := d.explicitOf(bounds)
	if p == nil {
		return false
	}
	p.add(counts)
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
	return true
}

// Merge adds all of o. It reports false when o holds a layout for which there is no room; what had room is in.
func (d *Distribution) Merge(o *Distribution) bool {
	ok := true
	for from := range o.explicit {
		if p := d.explicitOf(from.bounds); p != nil {
			p.merge(from)
		} else {
			ok = false
		}
	}
	for i := range o.exponential() {
		ok = d.AddExponential(&o.more.exponential[i]) && ok
	}
	return ok
}

// Reset empties the distribution. Layouts that were used keep their memory; one that was not used since the last Reset
// goes, so that a source which changed its boundaries does not count against MaxLayouts for ever.
func (d *Distribution) Reset() {
	if m := d.more; m != nil {
		m.explicit = slices.DeleteFunc(m.explicit, func(p explicit) bool { return p.empty() })
		for i := range m.explicit {
			clear(m.explicit[i].counts)
		}
		m.exponential = slices.DeleteFunc(m.exponential, func(e Exponential) bool { return e.Count() == 0 })
		for i := range m.exponential {
			m.exponential[i].reset()
		}
		if len(m.explicit)+len(m.exponential) == 0 {
			d.more = nil
		}
	}
	if !d.first.empty() {
		clear(d.first.counts)
		return
	}
	d.first = explicit{}
	if d.more != nil && len(d.more.explicit) > 0 {
		d.first = d.more.explicit[0]
		d.more.explicit = slices.Delete(d.more.explicit, 0, 1)
	}
}

// room reports whether there is room for another layout.
func (d *Distribution) room() bool {
	n := len(d.exponential())
	for range d.explicit {
		n++
	}
	return n < MaxLayouts
}

func (d *Distribution) others() *layouts {
	if d.more == nil {
		d.more = &layouts{}
	}
	return d.more
}

// explicitOf is the layout that has the boundaries, nil when there is no room for it.
func (d *Distribution) explicitOf(bounds []float64) *explicit {
	for p := range d.explicit {
		if p.of(bounds) {
			return p
		}
	}
	switch {
	case !d.room():
		return nil
	case d.first.counts == nil:
		d.first = newExplicit(bounds)
		return &d.first
	}
	m := d.others()
	m.explicit = append(m.explicit, newExplicit(bounds))
	return &m.explicit[len(m.explicit)-1]
}

func (d *Distribution) exponentialOf(factor float64) *Exponential {
	for i := range d.exponential() {
		if e := &d.more.exponential[i]; e.Factor == factor {
			return e
		}
	}
	if !d.room() {
		return nil
	}
	m := d.others()
	m.exponential = append(m.exponential, Exponential{Factor: factor, Scale: MaxScale})
	return &m.exponential[len(m.exponential)-1]
}

// AtMost splits the distribution at x.
func (d *Distribution) AtMost(x float64) (s Split) {
	d.Explicit(func(bounds []float64, counts []uint64) { s = s.Add(ExplicitAtMost(bounds, counts, x)) })
	for i := range d.exponential() {
		s = s.Add(d.more.exponential[i].AtMost(x))
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
	count := d.Count()
	if count == 0 {
		nan := math.NaN()
		return Estimate{nan, nan, nan}
	}
	n := float64(count)
	rank := math.Max(rankOf(q, n), n*relativeTolerance)
	e := Estimate{Lower: math.Inf(-1), Upper: math.Inf(1)}
	kth := kthOf(q, count+unknown)
	atLeast := kth > unknown // even with all unknown ones below
	atMost := kth <= count   // even with all unknown ones above
	if d.more == nil {       // nothing has to be joined
		e.Value = d.first.interpolate(rank)
		if atLeast {
			e.Lower, _ = d.first.kth(kth - unknown)
		}
		if atMost {
			_, e.Upper = d.first.kth(kth)
		}
		return e
	}
	buckets := d.buckets()
	e.Value = interpolate(buckets, rank)
	if atLeast {
		e.Lower = kthSmallest(buckets, kth-unknown, func(b bucket) float64 { return b.lo })
	}
	if atMost {
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

func (d *Distribution) buckets() (all []bucket) {
	for p := range d.explicit {
		for i := range p.len() {
			if n := p.at(i); n > 0 {
				lo, hi := edges(p.bounds, i)
				all = append(all, bucket{lo, hi, n})
			}
		}
	}
	for i := range d.exponential() {
		d.more.exponential[i].each(func(lo, hi float64, n uint64) { all = append(all, bucket{lo, hi, n}) })
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
