// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// State is the verdict on a window.
type State int8

// The states, in the order of States.
const (
	OK       State = iota
	AtRisk         // what was told cannot tell whether the objective was kept: the source's buckets are too coarse, or not all was told
	Violated       // proven to be missed
	NoData
)

// States are the values of the attribute state of slo.state.
var States = []string{OK: "ok", AtRisk: "at_risk", Violated: "violated", NoData: "no_data"}

func (s State) String() string { return States[s] }

// Result is what a closed window says.
type Result struct {
	_          struct{} `cbor:",toarray"`
	Start, End int64    // event time, [Start, End)
	State      State
	Incomplete bool // it was judged without all that a known part has heard: see Judge.Told
	// Value is the SLI: the quantile at the target of a threshold indicator, the ratio of a ratio indicator.
	// It lies in [Lower, Upper], which differ where the source's resolution leaves it open. NaN without data.
	Value, Lower, Upper float64
	// Good is the share of good events, which lies in [GoodLower, GoodUpper].
	Good, GoodLower, GoodUpper float64
	Total                      float64   // events
	Unmeasured                 uint64    // of them: their values are not known
	Exemplar                   *Exemplar // nil where none is known
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
	sum := a.summed()
	if sum.total <= 0 || sum.total < float64(p.minEvents()) {
		return
	}
	ratio := min(max(sum.good/sum.total, 0), 1)
	r.Value, r.Lower, r.Upper, r.Total = ratio, ratio, ratio, sum.total
	r.Good, r.GoodLower, r.GoodUpper = ratio, ratio, ratio
	r.State = OK
	if ratio < p.target()*(1-slack) {
		r.State = Violated
	}
}

func (p *promise) judgeThreshold(a *sums, r *Result) {
	unmeasured := a.unmeasured()
	total := a.n + unmeasured
	if a.n == 0 || total < uint64(p.minEvents()) {
		return
	}
	target := p.target()
	q := target
	if !p.slo.Objective.Op.AtMost() {
		q = 1 - target // 95 % at or above 80 tokens/s means that the 5th percentile is
	}
	e := a.values.Quantile(q, unmeasured)
	if a.partial {
		e.Lower, e.Upper = math.Inf(-1), math.Inf(1) // what is missing from the values may lie anywhere
	}
	n := float64(total)
	certain, possible := float64(a.good.Certain), float64(a.good.Possible+unmeasured)
	r.Value, r.Lower, r.Upper, r.Total, r.Unmeasured = e.Value, e.Lower, e.Upper, n, unmeasured
	r.Good, r.GoodLower, r.GoodUpper = float64(a.good.Rounded)/float64(a.n), certain/n, possible/n
	need := target * n * (1 - slack)
	switch {
	case possible < need:
		r.State = Violated
	case certain < need:
		r.State = AtRisk
	default:
		r.State = OK
	}
}

// unmeasured is how many events have no known value: those that came without, and those that should have come and did not.
// Engines leave aborted requests out of their histograms (https://github.com/vllm-project/vllm/issues/31503).
func (a *sums) unmeasured() uint64 {
	if missing := math.Round(a.expected) - float64(a.n); missing > float64(a.unknown) {
		return uint64(missing)
	}
	return a.unknown
}

// minEvents is how many events a window needs before it is judged.
func (p *promise) minEvents() int { return max(p.slo.MinEvents, 1) }
