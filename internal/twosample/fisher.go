// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Fisher is the probability of at least bad of n events, if they were drawn from the same as refBad of refN: Fisher's
// exact test for a higher share, one-sided (R. A. Fisher, On the interpretation of χ² from contingency tables, JRSS 85,
// 1922). It is exact for any numbers, however small.
func Fisher(bad, n, refBad, refN uint64) float64 {
	all, allBad := n+refN, bad+refBad
	if n == 0 || refN == 0 || bad == 0 {
		return 1
	}
	// x of the n are bad: hypergeometric, from lowest to highest.
	lowest, highest := uint64(0), min(n, allBad)
	if n+allBad > all {
		lowest = n + allBad - all
	}
	if bad <= lowest {
		return 1
	}
	log := logChoose(allBad, bad) + logChoose(all-allBad, n-bad) - logChoose(all, n)
	p := math.Exp(log)
	// Terms fall away from the mean, so the tail that does not hold it is summed; it ends where terms no longer count.
	if float64(bad) > float64(n)*float64(allBad)/float64(all) {
		sum, term := 1.0, 1.0
		for x := bad; x < highest && term > sum*negligible; x++ {
			term *= float64(allBad-x) / float64(x+1) * float64(n-x) / float64(all-allBad+x+1-n)
			sum += term
		}
		return min(p*sum, 1)
	}
	sum, term := 0.0, 1.0
	for x := bad; x > lowest && term > sum*negligible; x-- {
		term *= float64(x) / float64(allBad-x+1) * float64(all-allBad+x-n) / float64(n-x+1)
		sum += term
	}
	return max(1-p*sum, 0)
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
	return mathext.RegIncBeta(float64(bad), float64(n-bad)+1, share)
}

const negligible = 1e-17

// logChoose is ln of n over k.
func logChoose(n, k uint64) float64 { return lgamma(n+1) - lgamma(k+1) - lgamma(n-k+1) }

func lgamma(n uint64) float64 {
	v, _ := math.Lgamma(float64(n))
	return v
}
