// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// Distribution is what a closed pane of a series held, in the form that another judge of the same SLO can add to its own. It
// is good until the call that is given it returns.
type Distribution struct {
	Of         *Identity
	Start, End int64 // event time, [Start, End)

	// Of a threshold indicator: the values (see Exponential), and how many events came without one or should have been
	// measured.
	Values   *sketch.Distribution
	Unknown  uint64
	Expected float64

	// Of a ratio indicator. Its parts may have come to different judges, so any of them may be larger than the other. Part
	// says that good or bad events have come as far as the total, Whole that the total has come as far as they.
	Ratio, Part, Whole bool
	GoodSum, TotalSum  float64

	// Of an objective on a rate: what was added up.
	Rate   bool
	Amount float64

	judged bool // good is of the values of the one exponential histogram
	good   sketch.Split
}

// Outcome says what is known of the values of a histogram that its buckets do not tell: raw values, and those of finer
// histograms that were added to a coarser one, were judged before they went into its buckets.
type Outcome int

// The outcomes. Those in between could be good or bad, and count as what they rather are.
const (
	ByValue Outcome = iota // what the buckets tell
	Good
	RatherGood
	RatherBad
	Bad
)

// Outcomes are the names of outcomes.
var Outcomes = []string{ByValue: "", Good: "good", RatherGood: "rather_good", RatherBad: "rather_bad", Bad: "bad"}

func (o Outcome) String() string { return Outcomes[o] }

// split is that of n events of one outcome.
func (o Outcome) split(n uint64) (s sketch.Split) {
	if o == Good {
		s.Certain = n
	}
	if o <= RatherGood {
		s.Rounded = n
	}
	if o <= RatherBad {
		s.Possible = n
	}
	return s
}

// Exponential calls f for the exponential histograms of a threshold indicator, cut where their values have different outcomes:
// the better a value keeps the objective, the better its outcome.
func (d *Distribution) Exponential(f func(*sketch.Exponential, Outcome)) {
	d.Values.Exponential(func(e *sketch.Exponential) {
		if !d.judged {
			f(e, ByValue)
			return
		}
		n, g := e.Count(), d.good
		outcomes := []Outcome{Good, RatherGood, RatherBad, Bad}
		counts := []uint64{g.Certain, g.Rounded - g.Certain, g.Possible - g.Rounded, n - g.Possible}
		if !d.Of.slo.Objective.Op.AtMost() { // from the smallest up
			slices.Reverse(outcomes)
			slices.Reverse(counts)
		}
		for i, o := range outcomes {
			if counts[i] == 0 {
				continue
			}
			if counts[i] == e.Count() {
				f(e, o)
				return
			}
			var part *sketch.Exponential
			part, e = e.Cut(counts[i])
			f(part, o)
		}
	})
}

func (s *Series) tellDistribution(a *pane, start, end int64) {
	d := Distribution{Of: s.Identity, Start: start, End: end}
	sum := a.summed()
	switch {
	case s.promise.interval > 0:
		d.Rate, d.Amount = true, sum.amount
	case s.slo.Indicator.Ratio != nil:
		d.Ratio, d.GoodSum, d.TotalSum = true, sum.good, sum.total
		d.Part, d.Whole = sum.partAt >= sum.totalAt, sum.totalAt >= sum.partAt
	default:
		d.Values, d.Unknown, d.Expected = &a.values, a.unknown, a.expected
		d.good = a.good
		histograms := 0
		a.values.Explicit(func(bounds []float64, counts []uint64) {
			n, _ := sketch.Total(counts)
			d.good = d.good.Sub(s.asGood(sketch.ExplicitAtMost(bounds, counts, s.slo.Objective.Value), n))
		})
		a.values.Exponential(func(*sketch.Exponential) { histograms++ })
		d.judged = histograms == 1
	}
	s.promise.ledger.distributions(&d)
}
