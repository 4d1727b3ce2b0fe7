// SPDX-License-Identifier: Apache-2.0

package twosample

// Fisher is the probability of at least bad of n events, if they were drawn from the same as refBad of refN: Fisher's
// exact test for a higher share, one-sided (R. A. Fisher, On the interpretation of χ² from contingency tables, JRSS 85,
// 1922). It is exact for any numbers, however small or large.
func Fisher(bad, n, refBad, refN uint64) float64 {
	all, allBad := n+refN, bad+refBad
	if n == 0 || refN == 0 || bad == 0 {
		return 1
	}
	// x of the n are bad, at least lowest.
	lowest := uint64(0)
	if n+allBad > all {
		lowest = n + allBad - all
	}
	if bad <= lowest {
		return 1
	}
	h := hypergeometric{drawn: float64(n), bad: float64(allBad), all: float64(all)}
	if float64(bad) > h.mean() {
		return upper(h, float64(bad))
	}
	h.bad = float64(all - allBad) // fewer bad ones are more good ones
	return max(1-upper(h, float64(n-bad+1)), 0)
}

// Binomial is the probability of at least bad of n events when each is bad with the probability share.
func Binomial(bad, n uint64, share float64) float64 {
	switch {
	case bad == 0 || n == 0:
		return 1
	case share <= 0 || bad > n:
		return 0
	case share >= 1:
		return 1
	}
	b := binomial{n: float64(n), p: share, q: 1 - share}
	if float64(bad) > b.mean() {
		return upper(b, float64(bad))
	}
	b.p, b.q = b.q, b.p // fewer bad ones are more good ones
	return max(1-upper(b, float64(n-bad+1)), 0)
}
