// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Promise is an SLO that a leak will break.
type Promise struct {
	_  struct{} `cbor:",toarray"`
	ID string   // slo_id
	// Within is in how many seconds, at the latest, and By is what happens then.
	Within float64
	By     string
}

// What breaks a promise.
const (
	// ByExhaustion: nothing of the device is left.
	ByExhaustion = "exhaustion"
	// ByBurn: its error budget is spent, if it burns on as it does.
	ByBurn = "burn_rate"
	// ByMemory: a request takes more memory than was promised.
	ByMemory = "memory_per_request"
)

// Objective is an SLO as far as a leak can break it.
type Objective struct {
	ID, Service string
	// PerRequest is the most memory a request may take, for an SLO on gpu.memory.per_request; 0 for one on anything else.
	PerRequest float64
	// Window is the time that its error budget is for; 0 where that is not known.
	Window time.Duration
}

// maxPromises bounds what an event names: the first that break.
const maxPromises = 20

// breaks are the promises that a leak will break: those on memory per request when that has grown to what was promised, at the traffic of
// now, and all of the service when nothing of the device is left, be it for its KV cache or for a request. Where a budget is spent before at
// the present burn, it is then. What is broken already, by whatever that was, a leak does not break.
func (f *Fleet) breaks(p *Place, all []Objective, at int64) (broken []Promise) {
	r := &p.Result
	for i := range all {
		o, first := &all[i], Promise{Within: math.Inf(1)}
		sooner := func(within float64, by string) {
			if within < first.Within {
				first = Promise{ID: o.ID, Within: within, By: by}
			}
		}
		mine := o.Service != "" && o.Service == p.Of.Service
		burnt, already := f.budgets.spent(o.ID, o.Window, at)
		if already || o.PerRequest > 0 && r.PerRequest >= o.PerRequest {
			continue
		}
		if o.PerRequest > 0 && r.PerRequest > 0 && r.Rate.Value > 0 && (mine || p.Of.Service == "") {
			sooner((o.PerRequest/r.PerRequest-1)*p.Memory()/r.Rate.Value, ByMemory)
		}
		if mine && o.PerRequest == 0 && r.Exhaustion.Known() {
			sooner(r.Exhaustion.Value, ByExhaustion)
		}
		if mine {
			sooner(burnt, ByBurn)
		}
		if !math.IsInf(first.Within, 1) {
			broken = append(broken, first)
		}
	}
	slices.SortStableFunc(broken, func(a, b Promise) int { return cmp.Or(cmp.Compare(a.Within, b.Within), cmp.Compare(a.ID, b.ID)) })
	return broken[:min(len(broken), maxPromises)]
}
