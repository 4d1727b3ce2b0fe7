// SPDX-License-Identifier: Apache-2.0

package twosample

import "math"

// MannWhitney tests whether the candidate's values tend to be greater (H. B. Mann, D. R. Whitney, On a test of whether one of
// two random variables is stochastically larger than the other, Ann. Math. Stat. 18, 1947). u is the number of pairs in which
// the candidate's is, ties counting half; p is the probability of such a u or a greater one, if both were drawn from the
// same: one-sided, by the normal approximation with the corrections for ties and for continuity. That is good from some 20
// values on each side; Compare asks for more, so there is no exact form here.
func MannWhitney(bins []Bin) (u, p float64) {
	nr, nc := sizes(bins)
	if nr == 0 || nc == 0 {
		return 0, 1
	}
	var below, ties float64
	for _, b := range bins {
		u += float64(b.Candidate) * (below + float64(b.Reference)/2)
		below += float64(b.Reference)
		t := float64(b.Reference + b.Candidate)
		ties += t * (t*t - 1)
	}
	r, c := float64(nr), float64(nc)
	n := r + c
	variance := r * c / 12 * (n + 1 - ties/(n*(n-1)))
	if variance <= 0 {
		return u, 1 // all the same
	}
	return u, math.Erfc((u-r*c/2-0.5)/math.Sqrt(2*variance)) / 2
}

// Ratio is the factor by which the candidate is greater: that by which it has to be divided for half of all pairs to have
// the greater value on either side, the estimator that belongs to the test (J. L. Hodges, E. L. Lehmann, Estimates of
// location based on rank tests, Ann. Math. Stat. 34, 1963), here of the logarithms. It is found by halving an interval.
// NaN when a side is empty. What is compared is above zero.
func Ratio(bins []Bin) float64 {
	nr, nc := sizes(bins)
	if nr == 0 || nc == 0 {
		return math.NaN()
	}
	half := float64(nr) * float64(nc) / 2
	lo, hi := -maxLogRatio, maxLogRatio
	for hi-lo > 1e-5 {
		if at := (lo + hi) / 2; greater(bins, math.Exp(-at)) > half {
			lo = at
		} else {
			hi = at
		}
	}
	return math.Exp((lo + hi) / 2)
}

// maxLogRatio is beyond what anybody compares: a factor of a million.
const maxLogRatio = 14.0

// greater is the number of pairs in which factor times the candidate's value is greater. Values are even in their bin; the
// candidate's stand on three points of it.
func greater(bins []Bin, factor float64) float64 {
	var pairs, below float64
	at := 0 // the first bin that does not lie below x as a whole
	for _, b := range bins {
		if b.Candidate == 0 {
			continue
		}
		lo, hi := b.finite()
		for _, part := range [...]float64{1.0 / 6, 0.5, 5.0 / 6} {
			x := factor * (lo + (hi-lo)*part)
			for at < len(bins) {
				if _, end := bins[at].finite(); end >= x {
					break
				}
				below += float64(bins[at].Reference)
				at++
			}
			rank := below
			if at < len(bins) {
				from, to := bins[at].finite()
				switch n := float64(bins[at].Reference); {
				case to > from:
					rank += n * min(max((x-from)/(to-from), 0), 1)
				case x >= to:
					rank += n / 2 // a tie
				}
			}
			pairs += float64(b.Candidate) * rank / 3
		}
	}
	return pairs
}

// finite are the edges, with an open one where the other is.
func (b Bin) finite() (lo, hi float64) {
	lo, hi = b.Lo, b.Hi
	if math.IsInf(hi, 1) {
		hi = lo
	}
	if math.IsInf(lo, -1) {
		lo = hi
	}
	return lo, hi
}
