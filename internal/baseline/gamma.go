// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Gamma is a Gamma distribution: density proportional to x^(Shape−1)·exp(−x/Scale).
type Gamma struct {
	Shape, Scale float64
}

// FitGamma is the maximum likelihood Gamma distribution for values of which the mean and the mean of the logarithms are
// known: nothing else of them matters. With s = ln mean − meanLog the start is
//
//	a = (3 − s + √((s−3)² + 24s)) / 12s
//
// and the step is the generalised Newton of T. Minka, Estimating a Gamma distribution, 2002
// (https://tminka.github.io/papers/minka-gamma.pdf):
//
//	1/a ← 1/a + (meanLog − ln mean + ln a − ψ(a)) / (a²·(1/a − ψ′(a)))
//
// It reports false where there is none: values that are not above zero, or all the same.
func FitGamma(mean, meanLog float64) (Gamma, bool) {
	s := math.Log(mean) - meanLog
	if !(mean > 0) || !(s > 1e-9) || math.IsInf(mean, 1) || math.IsInf(meanLog, 0) {
		return Gamma{}, false
	}
	a := (3 - s + math.Sqrt((s-3)*(s-3)+24*s)) / (12 * s)
	for range 8 { // three do; beyond that only values that hardly differ need more
		next := 1 / (1/a + (math.Log(a)-s-mathext.Digamma(a))/(a*a*(1/a-trigamma(a))))
		done := math.Abs(next-a) <= 1e-12*a
		a = next
		if done {
			break
		}
	}
	if !(a > 0) || math.IsInf(a, 1) {
		return Gamma{}, false
	}
	return Gamma{Shape: a, Scale: mean / a}, true
}

// trigamma is ψ′, which is ζ(2, x).
func trigamma(x float64) float64 { return mathext.Zeta(2, x) }

// CDF is the share of values at or below x.
func (g Gamma) CDF(x float64) float64 {
	if x <= 0 {
		return 0
	}
	return mathext.GammaIncReg(g.Shape, x/g.Scale)
}

// Quantile is the value that the share q lies at or below, 0 < q < 1.
func (g Gamma) Quantile(q float64) float64 {
	return g.Scale * mathext.GammaIncRegInv(g.Shape, q)
}

// likelihood is the mean of the logarithm of the density, for values of which the mean and the mean of the logarithms are known.
func (g Gamma) likelihood(mean, meanLog float64) float64 {
	logGamma, _ := math.Lgamma(g.Shape)
	return (g.Shape-1)*meanLog - mean/g.Scale - g.Shape*math.Log(g.Scale) - logGamma
}

// logNormal is the same for the log-normal distribution that fits best.
func logNormal(meanLog, varianceLog float64) float64 {
	return -meanLog - math.Log(2*math.Pi*varianceLog)/2 - 0.5
}

// distance is the Kolmogorov–Smirnov distance of the histogram to g: the largest difference of their distribution
// functions, at the boundaries, where that of the histogram is known.
func (g Gamma) distance(h *histogram) float64 {
	total := h.total()
	seen := float64(h.low)
	var most float64
	for i, w := range h.weights {
		at := h.offset + int32(i)
		if i == 0 {
			most = math.Abs(g.CDF(h.boundary(at)) - seen/total)
		}
		seen += float64(w)
		most = max(most, math.Abs(g.CDF(h.boundary(at+1))-seen/total))
	}
	return most
}
