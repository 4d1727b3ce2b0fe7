// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"cmp"
	"math"
	"slices"
)

// Promise is an SLO that a leak will break.
type Promise struct {
	_  struct{} `cbor:",toarray"`
	ID string   // slo_id
	// Within is in how many seconds, at the latest.
	Within float64
}

// Objective is an SLO as far as a leak can break it.
type Objective struct {
	ID, Service string
	// PerRequest is the most memory a request may take, for an SLO on gpu.memory.per_request; 0 for one on anything else.
	PerRequest float64
}

// maxPromises bounds what an event names: the first that break.
const maxPromises = 20

// breaks are the promises that a leak will break: those on memory per request when that has grown to what was promised, at the traffic of
// now, and all of the service when nothing of the device is left, be it for its KV cache or for a request.
func breaks(p *Place, all []Objective) (broken []Promise) {
	r := &p.Result
	for i := range all {
		o, within := &all[i], math.Inf(1)
		switch {
		case o.PerRequest > 0 && r.PerRequest > 0 && r.Rate.Value > 0 && (o.Service == p.Of.Service || p.Of.Service == ""):
			within = max((o.PerRequest/r.PerRequest-1)*p.Memory()/r.Rate.Value, 0)
		case o.PerRequest == 0 && o.Service != "" && o.Service == p.Of.Service && r.Exhaustion.Known():
			within = r.Exhaustion.Value
		}
		if !math.IsInf(within, 1) {
			broken = append(broken, Promise{ID: o.ID, Within: within})
		}
	}
	slices.SortStableFunc(broken, func(a, b Promise) int { return cmp.Or(cmp.Compare(a.Within, b.Within), cmp.Compare(a.ID, b.ID)) })
	return broken[:min(len(broken), maxPromises)]
}
