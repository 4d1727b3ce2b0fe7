// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Estimate is a value and the interval in which it lies, in 95 of 100 cases.
type Estimate struct{ Value, Low, High float64 }

// Known reports whether there is one.
func (e Estimate) Known() bool { return !math.IsNaN(e.Value) }

var unknown = Estimate{math.NaN(), math.NaN(), math.NaN()}

// halfWidth95 is that of an interval of 95 % of a normal distribution, in standard deviations.
var halfWidth95 = distuv.UnitNormal.Quantile(0.975)

// kendall is Mann and Kendall's statistic: how many pairs rise minus how many fall, and its variance where nothing does, with
// regard to ties (H. B. Mann, Nonparametric tests against trend, Econometrica 13, 1945; M. G. Kendall, Rank Correlation Methods,
// 1975).
type kendall struct{ s, variance float64 }

// p is how probable it is that so many rise, if nothing does; inflation is what the variance is multiplied by. It is one-sided,
// and has the correction for continuity.
func (k kendall) p(inflation float64) float64 {
	if k.variance == 0 || k.s <= 0 {
		return 1
	}
	return distuv.UnitNormal.Survival((k.s - 1) / math.Sqrt(k.variance*inflation))
}

// fit is a slope by Theil and Sen: the median of the slopes of all pairs. It holds up to 29 % of wild values (H. Theil, A
// rank-invariant method of linear and polynomial regression analysis, 1950; P. K. Sen, Estimates of the regression coefficient
// based on Kendall's tau, JASA 63, 1968).
type fit struct {
	slope, intercept float64
	kendall          kendall
}

// scratch is what the calculations need of memory. It is used over and over.
type scratch struct {
	slopes, sorted, residuals, ranks, sums, squares, costs []float64
	order                                                  []int
	treads                                                 []tread
	columns                                                [explanations + 2][]float64
	takes                                                  [explanations]float64 // that traffic was found to explain last
}

// theilSen fits y over x, which rises. There are at least two values. The slopes of all pairs are left in sc.slopes.
func (sc *scratch) theilSen(x, y []float64) (f fit) {
	sc.slopes = sc.slopes[:0]
	for i := range y {
		for k := i + 1; k < len(y); k++ {
			d := y[k] - y[i]
			switch {
			case d > 0:
				f.kendall.s++
			case d < 0:
				f.kendall.s--
			}
			sc.slopes = append(sc.slopes, d/(x[k]-x[i]))
		}
	}
	n := float64(len(y))
	f.kendall.variance = n * (n - 1) * (2*n + 5)
	sc.sorted = append(sc.sorted[:0], y...)
	slices.Sort(sc.sorted)
	for i := 0; i < len(y); {
		k := i
		for k < len(y) && sc.sorted[k] == sc.sorted[i] {
			k++
		}
		ties := float64(k - i)
		i = k
		f.kendall.variance -= ties * (ties - 1) * (2*ties + 5)
	}
	f.kendall.variance /= 18
	f.slope = sc.nth(len(sc.slopes) / 2)
	if len(sc.slopes)%2 == 0 {
		f.slope = (f.slope + slices.Max(sc.slopes[:len(sc.slopes)/2])) / 2
	}
	f.intercept = middle(sc.sorted) - f.slope*middle(x)
	return f
}

// interval is that of the slope (Sen 1968), for a variance that is multiplied by inflation. Where there are too few pairs for one, it is
// without bounds.
func (sc *scratch) interval(f fit, inflation float64) (low, high float64) {
	pairs := float64(len(sc.slopes))
	wide := halfWidth95 * math.Sqrt(f.kendall.variance*inflation)
	lower, upper := int(math.RoundToEven((pairs-wide)/2))-1, int(math.RoundToEven((pairs+wide)/2))
	low, high = math.Inf(-1), math.Inf(1)
	if lower >= 0 {
		low = sc.nth(lower)
	}
	if upper < len(sc.slopes) {
		high = sc.nth(upper)
	}
	return low, high
}

// nth is the slope that k others are not above, which then stands at k, those below before it (C. A. R. Hoare, Algorithm 65: find,
// CACM 4, 1961). Sorting two thousand of them takes eight times as long.
func (sc *scratch) nth(k int) float64 {
	v := sc.slopes
	for lo, hi := 0, len(v)-1; lo < hi; {
		pivot := v[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for v[j] > pivot {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i, j = i+1, j-1
			}
		}
		if k <= j {
			hi = j
		} else if k >= i {
			lo = i
		} else {
			break
		}
	}
	return v[k]
}

// middle is the median of what is sorted.
func middle(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// median is that of values in any order.
func (sc *scratch) median(values []float64) float64 {
	sc.sorted = append(sc.sorted[:0], values...)
	slices.Sort(sc.sorted)
	return middle(sc.sorted)
}
