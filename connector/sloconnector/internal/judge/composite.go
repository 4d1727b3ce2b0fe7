// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/budget"
)

// The SLI of a composite is the sum of its parts' ratios of good events, each by its share: a part weighs what was written,
// whatever its traffic. A part without data could have any ratio, so it widens the bounds.

// judgeParts gives the verdict of a composite on the window that its parts have closed.
func (s *Series) judgeParts(length time.Duration, start, end int64) Result {
	r := noResult
	r.Start, r.End = start, end
	var value, known, lower, upper float64
	for _, part := range s.promise.parts {
		of := part.series[s.key].resultOf(length)
		if of.End != end || of.State == NoData {
			upper += part.share
			continue
		}
		known += part.share
		value += part.share * of.Good
		lower += part.share * of.GoodLower
		upper += part.share * of.GoodUpper
		r.Total += of.Total
		if of.Exemplar != nil && (r.Exemplar == nil || of.State == Violated) {
			r.Exemplar = of.Exemplar
		}
	}
	if known == 0 {
		return r
	}
	target := s.promise.target()
	r.Value, r.Lower, r.Upper = value/known, lower, math.Min(upper, 1)
	r.Good, r.GoodLower, r.GoodUpper = r.Value, r.Lower, r.Upper
	switch {
	case r.Upper < target*(1-slack):
		r.State = Violated
	case r.Lower < target*(1-slack):
		r.State = AtRisk
	default:
		r.State = OK
	}
	return r
}

// mixed joins the books of a composite's parts, each given by of: the ratio is that of the parts with events, by their
// shares.
func (s *Series) mixed(of func(*Series) budget.Counts) (c budget.Counts) {
	var ratio, known float64
	c.Observed = math.MaxInt64
	for _, part := range s.promise.parts {
		one := of(part.series[s.key])
		c.Observed = min(c.Observed, one.Observed)
		if one.Total <= 0 {
			continue
		}
		c.Total += one.Total
		ratio += part.share * one.Good / one.Total
		known += part.share
	}
	if known > 0 {
		c.Good = ratio / known * c.Total
	}
	return c
}
