// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"time"
)

// Counts are what happened in a span of event time.
type Counts struct {
	// Good and Total are events, slices of time, or summed ratios: 0 <= Good <= Total.
	Good, Total float64
	// Observed is how much of the span was observed.
	Observed time.Duration
}

// Add is both together.
func (c Counts) Add(o Counts) Counts {
	observed := c.Observed + o.Observed
	if observed < 0 && c.Observed > 0 && o.Observed > 0 {
		observed = math.MaxInt64
	}
	return Counts{Good: c.Good + o.Good, Total: c.Total + o.Total, Observed: observed}
}

// Bad is what was not good.
func (c Counts) Bad() float64 { return max(c.Total-c.Good, 0) }

// Remaining is the share of the error budget that is left when target, in [0, 1), is the objective:
// 1 is untouched, 0 spent, below 0 overspent. Few events make a small budget: one bad event of ten at 0.99 spends ten
// budgets. ok is false without events, because no data is not good data, and for a target that leaves no budget.
func (c Counts) Remaining(target float64) (v float64, ok bool) {
	rate, ok := c.BurnRate(target)
	if !ok {
		return 0, false
	}
	return 1 - rate, true
}

// BurnRate is how many times faster than the objective allows the budget is spent: 1 spends it exactly by the end of
// the time window. See https://sre.google/workbook/alerting-on-slos/ (chapter 5, "Alert on Burn Rate").
// ok is as for Remaining.
func (c Counts) BurnRate(target float64) (v float64, ok bool) {
	if !(c.Total > 0) || !(target >= 0 && target < 1) {
		return 0, false
	}
	return c.Bad() / c.Total / (1 - target), true
}

// maxCount is far beyond anything that is counted, and far enough from infinity that no sum reaches it.
const maxCount = 1e300

// clean is c as a ring can keep it: whole seconds, Good <= Total. ok is false for what would spoil every later sum
// (NaN, infinite, negative) and for nothing at all.
func (c Counts) clean() (n counted, ok bool) {
	if !(c.Good >= 0 && c.Total >= 0 && c.Total <= maxCount) {
		return counted{}, false
	}
	seconds := min(max(c.Observed.Round(time.Second)/time.Second, 0), math.MaxUint32)
	n = counted{seconds: uint32(seconds), good: min(c.Good, c.Total), total: c.Total}
	return n, !n.empty()
}

// counted is what a slot keeps of Counts.
type counted struct {
	seconds     uint32
	good, total float64
}

func (n *counted) add(o counted) {
	n.seconds = uint32(min(uint64(n.seconds)+uint64(o.seconds), math.MaxUint32))
	n.good += o.good
	n.total += o.total
}

func (n counted) empty() bool { return n == counted{} }

func (n counted) counts() Counts {
	return Counts{Good: n.good, Total: n.total, Observed: time.Duration(n.seconds) * time.Second}
}
