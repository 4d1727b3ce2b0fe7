// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// maxSerial bounds how much neighbours are taken to hang together: nearer to 1 no trend can be told from a walk at random.
const maxSerial = 0.97

// inflation is by how much more the statistic of Mann and Kendall varies where neighbours hang together, as the memory of a cache or a
// collector of garbage does: without it, every slow wave is a trend. It is that of K. H. Hamed and A. R. Rao, A modified
// Mann–Kendall trend test for autocorrelated data, J. Hydrology 204, 1998, for the ranks of what is left of y without its trend.
//
// They take the correlation at every lag from the data, of which a few dozen say little. Here it is that at lag 1 to the power of
// the lag, freed of the bias that such short series have (F. H. C. Marriott and J. A. Pope, Bias in the estimation of
// autocorrelations, Biometrika 41, 1954; with a trend taken out: G. H. Orcutt and H. S. Winokur, First order
// autoregression, Econometrica 37, 1969).
func (sc *scratch) inflation(x, y []float64, f fit) float64 {
	n := float64(len(y))
	sc.residuals = sc.residuals[:0]
	for i := range y {
		sc.residuals = append(sc.residuals, y[i]-f.intercept-f.slope*x[i])
	}
	rho := (n*sc.lag1(sc.residuals) + 2) / (n - 4)
	return hamedRao(len(y), min(max(rho, 0), maxSerial))
}

// hamedRao is their factor for n values whose correlation is rho at lag 1.
func hamedRao(n int, rho float64) float64 {
	sum, power := 0.0, 1.0
	for k := 1; k < n-2; k++ {
		power *= rho
		left := float64(n - k)
		sum += left * (left - 1) * (left - 2) * power
	}
	of := float64(n)
	return 1 + 2*sum/(of*(of-1)*(of-2))
}

// lag1 is the correlation of the ranks of values with those of the values before them.
func (sc *scratch) lag1(values []float64) float64 {
	sc.rank(values)
	mean := float64(len(values)+1) / 2
	var with, all float64
	for i, r := range sc.ranks {
		d := r - mean
		all += d * d
		if i > 0 {
			with += d * (sc.ranks[i-1] - mean)
		}
	}
	if all == 0 {
		return 0
	}
	return with / all
}

// rank fills sc.ranks; what is equal shares the middle of its ranks.
func (sc *scratch) rank(values []float64) {
	sc.order = sc.order[:0]
	for i := range values {
		sc.order = append(sc.order, i)
	}
	slices.SortFunc(sc.order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	sc.ranks = append(sc.ranks[:0], values...)
	for i := 0; i < len(sc.order); {
		k := i
		for k < len(sc.order) && values[sc.order[k]] == values[sc.order[i]] {
			k++
		}
		for _, at := range sc.order[i:k] {
			sc.ranks[at] = float64(i+k+1) / 2
		}
		i = k
	}
}

// drift is a slope where neighbours hang together so much that y is a walk rather than noise around a line, as memory that is taken in
// blocks: the steps are then what is independent. p is how probable it is that so many of them rise, if as many would fall (the sign
// test: W. J. Dixon and A. M. Mood, JASA 41, 1946). Where y is noise, that finds less than Kendall's test, and no more than it may.
func drift(x, y []float64) (rate Estimate, p float64) {
	var up, moved int
	var squares float64
	n := float64(len(y) - 1)
	each := (y[len(y)-1] - y[0]) / n
	for i := 1; i < len(y); i++ {
		d := y[i] - y[i-1]
		squares += (d - each) * (d - each)
		switch {
		case d > 0:
			up, moved = up+1, moved+1
		case d < 0:
			moved++
		}
	}
	time := x[len(x)-1] - x[0]
	half := halfWidth95 * math.Sqrt(squares/(n-1)*n) / time
	rate.Value = (y[len(y)-1] - y[0]) / time
	rate.Low, rate.High = rate.Value-half, rate.Value+half
	if up == 0 {
		return rate, 1
	}
	return rate, 1 - distuv.Binomial{N: float64(moved), P: 0.5}.CDF(float64(up-1))
}
