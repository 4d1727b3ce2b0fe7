// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// Distribution is what a closed pane of a series held, in the form that another judge of the same SLO can add to its own. It
// is good until the call that is given it returns.
type Distribution struct {
	Of         *Identity
	Start, End int64 // event time, [Start, End)

	// Of a threshold indicator: the values, and how many events came without one or should have been measured. Where Exact
	// is set, GoodExactly of the values that are in an exponential histogram are good: those that keep the objective best.
	Values      *sketch.Distribution
	Exact       bool
	GoodExactly uint64
	Unknown     uint64
	Expected    float64

	// Of a ratio indicator. Its parts may have come to different judges, so any of them may be larger than the other.
	Ratio             bool
	GoodSum, TotalSum float64

	// Of an objective on a rate: what was added up.
	Rate   bool
	Amount float64
}

func (s *Series) tellDistribution(a *sums, start, end int64) {
	d := Distribution{Of: s.Identity, Start: start, End: end}
	switch {
	case s.promise.interval > 0:
		d.Rate, d.Amount = true, a.amount
	case s.slo.Indicator.Ratio != nil:
		d.Ratio, d.GoodSum, d.TotalSum = true, a.goodSum, a.totalSum
	default:
		d.Values, d.Unknown, d.Expected = &a.values, a.unknown, a.expected
		left, histograms := a.good, 0
		a.values.Explicit(func(bounds []float64, counts []uint64) {
			n, _ := sketch.Total(counts)
			left = left.Sub(s.asGood(sketch.ExplicitAtMost(bounds, counts, s.slo.Objective.Value), n))
		})
		a.values.Exponential(func(*sketch.Exponential) { histograms++ })
		d.Exact, d.GoodExactly = histograms == 1 && left.Exact(), left.Rounded
	}
	s.ledger.distributions(&d)
}
