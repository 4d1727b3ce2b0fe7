// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// State is the verdict on a window.
type State int

// The states, in the order of States.
const (
	OK       State = iota
	AtRisk         // the source's buckets cannot tell whether the objective was kept
	Violated       // proven to be missed
	NoData
)

// States are the values of the attribute state of slo.state.
var States = []string{OK: "ok", AtRisk: "at_risk", Violated: "violated", NoData: "no_data"}

func (s State) String() string { return States[s] }

// Result is what a closed window says.
type Result struct {
	Start, End int64 // event time, [Start, End)
	State      State
	// Value is the SLI: the quantile at the target of a threshold indicator, the ratio of a ratio indicator.
	// It lies in [Lower, Upper], which differ where the source's resolution leaves it open. NaN without data.
	Value, Lower, Upper float64
	Total               float64 // events
	Exemplar            Exemplar
}

// noResult is the verdict without data.
var noResult = Result{State: NoData, Value: math.NaN(), Lower: math.NaN(), Upper: math.NaN()}

// slack keeps the rounding of target · total from deciding: 0.95 · 20 is not exactly 19.
const slack = 1e-9

// judge gives the verdict on the sums of a window.
func (p *promise) judge(a *sums, start, end int64) Result {
	r := noResult
	r.Start, r.End = start, end
	if p.slo.Indicator.Ratio != nil {
		p.judgeRatio(a, &r)
	} else {
		p.judgeThreshold(a, &r)
	}
	r.Exemplar = a.worst
	return r
}

// target is the share of good events that a single window must have: a Timeslices objective judges its slices by
// timeSliceTarget, and target is for the share of good slices.
func (p *promise) target() float64 {
	if o := &p.slo.Objective; p.slo.Budgeting == openslo.Timeslices && o.TimeSliceTarget > 0 {
		return o.TimeSliceTarget
	}
	return p.slo.Objective.Target
}

func (p *promise) judgeRatio(a *sums, r *Result) {
	if a.totalSum <= 0 {
		return
	}
	ratio := min(max(a.goodSum/a.totalSum, 0), 1)
	r.Value, r.Lower, r.Upper, r.Total = ratio, ratio, ratio, a.totalSum
	r.State = OK
	if ratio < p.target()*(1-slack) {
		r.State = Violated
	}
}

func (p *promise) judgeThreshold(a *sums, r *Result) {
	if a.n == 0 {
		return
	}
	target := p.target()
	q := target
	if !p.slo.Objective.Op.AtMost() {
		q = 1 - target // 95 % at or above 80 tokens/s means that the 5th percentile is
	}
	e := a.values.Quantile(q)
	if a.partial {
		e.Lower, e.Upper = math.Inf(-1), math.Inf(1) // what is missing from the values may lie anywhere
	}
	r.Value, r.Lower, r.Upper, r.Total = e.Value, e.Lower, e.Upper, float64(a.n)
	need := target * float64(a.n) * (1 - slack)
	switch {
	case float64(a.good.Possible) < need:
		r.State = Violated
	case float64(a.good.Certain) < need:
		r.State = AtRisk
	default:
		r.State = OK
	}
}
