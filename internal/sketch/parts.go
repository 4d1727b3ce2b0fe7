// SPDX-License-Identifier: Apache-2.0

package sketch

// Explicit calls f for every layout of explicit buckets that holds values. f must not change or keep what it is given.
func (d *Distribution) Explicit(f func(bounds []float64, counts []uint64)) {
	for p := range d.explicit {
		if !p.empty() {
			p.tell(f)
		}
	}
}

// Exponential calls f for every exponential histogram that holds values, one a Factor. f must not change or keep it.
func (d *Distribution) Exponential(f func(*Exponential)) {
	for i := range d.exponential() {
		if e := &d.more.exponential[i]; e.Count() > 0 {
			f(e)
		}
	}
}

// Sub takes a part of a split away from it.
func (s Split) Sub(o Split) Split {
	return Split{s.Certain - o.Certain, s.Rounded - o.Rounded, s.Possible - o.Possible}
}

// Cut returns the k smallest values, and the others. A bucket in which the k-th lies is in both, each with its share.
func (e *Exponential) Cut(k uint64) (low, high *Exponential) {
	low, high = &Exponential{}, &Exponential{}
	low.Copy(e)
	high.Copy(e)
	take := func(n uint64) (below, above uint64) {
		below = min(n, k)
		k -= below
		return below, n - below
	}
	for i := len(e.Negative.Counts) - 1; i >= 0; i-- { // from the smallest up
		low.Negative.Counts[i], high.Negative.Counts[i] = take(e.Negative.Counts[i])
	}
	low.ZeroCount, high.ZeroCount = take(e.ZeroCount)
	for i, n := range e.Positive.Counts {
		low.Positive.Counts[i], high.Positive.Counts[i] = take(n)
	}
	for _, part := range []*Exponential{low, high} {
		part.Positive.trim()
		part.Negative.trim()
	}
	return low, high
}
