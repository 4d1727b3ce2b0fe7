// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// anyCount draws a number of any size up to a most, near its ends, or near where the bad ones are expected.
func anyCount(t *rapid.T, label string, expected, deviation, most float64) uint64 {
	z := rapid.Float64Range(-40, 40).Draw(t, label)
	near := math.Min(math.Max(math.Round(expected+z*deviation), 0), most)
	return rapid.OneOf(rapid.Just(uint64(near)), rapid.Uint64Range(0, uint64(most)), rapid.Uint64Range(0, min(20, uint64(most)))).Draw(t, label+" as")
}

func anySize(t *rapid.T, label string) uint64 {
	return rapid.Uint64Range(1, 1<<rapid.IntRange(1, 53).Draw(t, label+" bits")).Draw(t, label)
}

// Guarantees: for every number of events up to 2^53 and every share, the probability is one; more bad ones are no more probable,
// a greater share makes them no less so; and at least so many bad ones or at most so many good ones is the same.
func TestBinomialIsAProbability(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := anySize(t, "n")
		share := rapid.OneOf(rapid.Float64Range(1e-300, 1), rapid.Float64Range(0.0001, 0.01), rapid.SampledFrom([]float64{0.01, 0.05, 0.5, 0.95, 0.99})).Draw(t, "share")
		if share >= 1 {
			share = 0.5
		}
		bad := anyCount(t, "bad", float64(n)*share, math.Sqrt(float64(n)*share*(1-share)), float64(n))
		p := Binomial(bad, n, share)
		require.True(t, p >= 0 && p <= 1, "%v", p)
		const slack = 1 + 1e-7
		if bad < n {
			more := Binomial(bad+1, n, share)
			require.LessOrEqual(t, more, p*slack)
		}
		if greater := share * 1.001; greater < 1 {
			require.GreaterOrEqual(t, Binomial(bad, n, greater)*slack, p)
		}
		if bad > 0 && 1-(1-share) == share { // the complement of the share is no other number
			fewer := Binomial(n-bad+1, n, 1-share) // that less than bad ones are bad
			require.InDelta(t, 1, p+fewer, 1e-7)
		}
	})
}

// Guarantees: the same of Fisher's test; and it does not matter which of the two properties, bad and candidate, is called which.
func TestFisherIsAProbability(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, refN := anySize(t, "n"), anySize(t, "refN")
		share := rapid.Float64Range(0, 1).Draw(t, "share")
		expected := share * float64(n)
		bad := anyCount(t, "bad", expected, math.Sqrt(expected*(1-share)), float64(n))
		refBad := anyCount(t, "refBad", share*float64(refN), 0, float64(refN))
		p := Fisher(bad, n, refBad, refN)
		require.True(t, p >= 0 && p <= 1, "%v", p)
		const slack = 1 + 1e-7
		if bad < n && refBad > 0 {
			require.LessOrEqual(t, Fisher(bad+1, n, refBad-1, refN), p*slack)
		}
		if all := n + refN; bad+refBad > 0 && bad+refBad < all {
			require.InDelta(t, p, Fisher(bad, bad+refBad, n-bad, all-bad-refBad), 1e-7)
		}
		if n <= 1<<26 && refN <= 1<<26 {
			return
		}
		// Of many, each is about as if the share of the reference were known.
		if q := float64(refBad) / float64(refN); refN/n > 1<<20 && q > 0 && q < 1 && float64(refBad) > 1e9 {
			require.InDelta(t, Binomial(bad, n, q), p, 0.001)
		}
	})
}

// Guarantees: where the way of summing changes, the sum does not.
func TestTheSumDoesNotJump(t *testing.T) {
	for _, z := range []float64{0, 1, 5, 20} {
		for n := 100_000.0; n < 1e8; n *= 1.05 {
			b := binomial{n: math.Floor(n), p: 0.05, q: 0.95}
			at := math.Floor(b.mean()+z*math.Sqrt(b.variance())) + 1
			sum, term := 1.0, 1.0
			for x := at; term > sum*negligible; x++ {
				term *= b.next(x)
				sum += term
			}
			require.InEpsilon(t, math.Exp(b.log(at))*sum, upper(b, at), 1e-8, "%v of %v", at, n)
		}
	}
}

func BenchmarkBinomial(b *testing.B) {
	for name, n := range map[string]uint64{"300": 300, "100k": 100_000, "2^36": 1 << 36} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Binomial(n/20, n, 0.05)
			}
		})
	}
}
