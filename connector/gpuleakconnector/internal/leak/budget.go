// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"maps"
	"math"
	"slices"
	"time"
)

// budgets are the error budgets of promises, by slo_id and then by group: a promise is kept or broken for each.
type budgets map[string]map[uint64]*budget

// budget is what was said last of one.
type budget struct {
	heard     int64
	remaining float64                   // NaN where nothing was said
	burn      [len(burnWindows)]float64 // likewise below 0
}

// burnWindows are the spans of burn rates, in the order in which they are asked how fast a budget is spent now: an hour is neither a blip
// nor yesterday.
var burnWindows = [...]string{"1h", "30m", "6h", "5m", "1d", "3d"}

const (
	// maxBudgets bounds the promises, and the groups of each.
	maxBudgets = 1024
	// budgetTTL is how long what was said of a budget counts.
	budgetTTL = int64(time.Hour)
)

func (b budgets) take(o *observation) {
	w := o.where
	of := b[w.SLO][w.Series]
	if of == nil {
		if len(b) >= maxBudgets || len(b[w.SLO]) >= maxBudgets {
			b.expire(o.at)
		}
		if b[w.SLO] == nil && len(b) >= maxBudgets || len(b[w.SLO]) >= maxBudgets {
			return
		}
		of = b.put(w.SLO, w.Series)
	}
	of.heard = max(of.heard, o.at)
	if o.kind == Remaining {
		of.remaining = o.value
	} else if i := slices.Index(burnWindows[:], w.Window); i >= 0 {
		of.burn[i] = o.value
	}
}

// put adds a budget of which nothing was said.
func (b budgets) put(slo string, group uint64) *budget {
	if b[slo] == nil {
		b[slo] = map[uint64]*budget{}
	}
	of := &budget{remaining: math.NaN()}
	for i := range of.burn {
		of.burn[i] = -1
	}
	b[slo][group] = of
	return of
}

func (b budgets) expire(at int64) {
	for slo, groups := range b {
		maps.DeleteFunc(groups, func(_ uint64, of *budget) bool { return at-of.heard > budgetTTL })
		if len(groups) == 0 {
			delete(b, slo)
		}
	}
}

// rate is how fast a budget is spent now, 0 where that is not known.
func (b *budget) rate() float64 {
	for _, rate := range b.burn {
		if rate >= 0 {
			return rate
		}
	}
	return 0
}

// spent is in how many seconds the first budget of a promise is spent if it burns on as it does; +Inf where none is. One that burns at 1 or
// below is never: as much leaves the window as comes in. One that is spent already is not spent again, and where all are, already is true.
func (b budgets) spent(slo string, window time.Duration, at int64) (first float64, already bool) {
	first = math.Inf(1)
	spent, left := 0, 0
	for _, of := range b[slo] {
		if at-of.heard > budgetTTL || math.IsNaN(of.remaining) {
			continue
		}
		if of.remaining <= 0 {
			spent++
			continue
		}
		left++
		if rate := of.rate(); rate > 1 {
			first = min(first, of.remaining*window.Seconds()/rate)
		}
	}
	return first, spent > 0 && left == 0
}
