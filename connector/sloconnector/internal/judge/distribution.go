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

	// Of a threshold indicator: the values, how many of them are good, and how many events came without a value.
	Values  *sketch.Distribution
	Good    sketch.Split
	Unknown uint64

	// Of a ratio indicator. Its parts may have come to different judges, so any of them may be larger than the other.
	Ratio             bool
	GoodSum, TotalSum float64

	// Of an objective on a rate: what was added up.
	Rate   bool
	Amount float64
}

func (s *Series) tellDistribution(a *sums, start, end int64) {
	d := Distribution{Of: s.Identity, Start: start, End: end, Unknown: a.unmeasured()}
	switch {
	case s.promise.interval > 0:
		d.Rate, d.Amount = true, a.amount
	case s.slo.Indicator.Ratio != nil:
		d.Ratio, d.GoodSum, d.TotalSum = true, a.goodSum, a.totalSum
	default:
		d.Values, d.Good = &a.values, a.good
	}
	s.ledger.distributions(&d)
}
