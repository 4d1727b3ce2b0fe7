// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"math"

	"github.com/otelcol-llm/otelcol-llm/internal/twosample"
)

// Method is where an Estimate comes from.
type Method uint8

const (
	// Insufficient: there is no ground for an answer.
	Insufficient Method = iota
	// Histogram: the quantile of what was observed.
	Histogram
	// Fitted: the quantile of a Gamma distribution that demonstrably fits.
	Fitted
	// Open: the quantile of what was observed, interpolated in a wide bucket that the objective cuts, so that it cannot be told on
	// which side of it most values lie.
	Open
)

func (m Method) String() string { return [...]string{"insufficient", "histogram", "gamma", "open"}[m] }

// Estimate is a quantile, or why there is none.
type Estimate struct {
	Value   float64 // NaN when Insufficient
	Method  Method
	Samples float64 // how many values it rests upon; decayed ones count as much as they weigh
}

// Known reports whether there is an answer.
func (e Estimate) Known() bool { return e.Method != Insufficient }

const (
	// confidence is with which the largest of MinimumSamples values is no less than the quantile.
	confidence = 0.95
	// maxDistance is the Kolmogorov–Smirnov distance from which on a Gamma distribution does not fit, and maxDistanceRoot that
	// times the square root of the number of values.
	maxDistance, maxDistanceRoot = 0.05, 0.8
	// minEvidence is by how much the logarithm of the likelihood must be above that of a log-normal distribution: 20 times as
	// likely. What both fit is not known well enough: of a log-normal's P95 a Gamma misses a tenth.
	minEvidence = 3
	// minShape is below which a Gamma has its mode at zero, or hardly above, and few values decide where the tail is: a service
	// of which most requests are short, and some many times as long, looks like one.
	minShape = 1.5
	// minTail is how improbable the number of values beyond the fitted quantile may be, on either side.
	minTail = 0.025
)

// rounding is what sums of weights lose.
const rounding = 1e-9

// MinimumSamples is how many values a quantile takes at least, whatever their distribution: the fewest of which the
// outermost lies beyond the quantile with 95 % confidence (S. S. Wilks, Determination of sample sizes for setting
// tolerance limits, Ann. Math. Stat. 12, 1941): 59 for a P95 or a P5, 299 for a P99.
func MinimumSamples(q float64) int {
	if !(q > 0 && q < 1) {
		return math.MaxInt // no number of values says anything about the outermost one to come
	}
	return int(math.Ceil(math.Log(1-confidence) / math.Log(max(q, 1-q))))
}

// estimate is the q-quantile by the rule
//
//	minSamples                                                    the histogram answers
//	MinimumSamples(q), Gamma fits, and the tail agrees with it    the Gamma distribution answers
//	otherwise                                                     nothing does
//
// Gamma is never the only ground. Of its P99 for traffic with 2 % of requests delayed to 3 s, 71 % would be missing, and
// what shows that is the number of values beyond it. Below MinimumSamples(q) it cannot show, however well the rest fits:
// the P99 of 200 prompt lengths of a coding service would be a third off every second time. And other distributions look like a
// Gamma in a few values, so it must be much more likely than the log-normal that most resembles it.
func (d *Decayed) estimate(q float64, minSamples int) Estimate {
	e := Estimate{Value: math.NaN(), Samples: d.n}
	if d.n+rounding >= float64(max(minSamples, MinimumSamples(q))) {
		e.Value, e.Method = d.hist.quantile(q), Histogram
		return e
	}
	if g, ok := d.fit(q); ok {
		e.Value, e.Method = g.Quantile(q), Fitted
	}
	return e
}

// fit is a Gamma distribution that may answer for the q-quantile.
func (d *Decayed) fit(q float64) (g Gamma, ok bool) {
	if d.n+rounding < float64(MinimumSamples(q)) || d.hist.low > 0 {
		return g, false
	}
	if g, ok = FitGamma(d.sum/d.n, d.sumLog/d.n); !ok {
		return g, false
	}
	n := uint64(math.Round(d.n))
	beyond := min(uint64(math.Round(d.hist.above(g.Quantile(q)))), n)
	if twosample.Binomial(beyond, n, 1-q) < minTail || 1-twosample.Binomial(beyond+1, n, 1-q) < minTail {
		return g, false
	}
	if g.distance(&d.hist) >= min(maxDistance, maxDistanceRoot/math.Sqrt(d.n)) {
		return g, false
	}
	return g, g.Shape >= minShape && d.n*(g.likelihood(d.sum/d.n, d.sumLog/d.n)-logNormal(d.sumLog/d.n, d.hist.varianceLog(d.sumLog/d.n))) >= minEvidence
}
