// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"fmt"
	"math"
	"slices"
)

// Verdict is what a comparison says.
type Verdict uint8

const (
	// InsufficientData: there are too few values on one side. It is no pass.
	InsufficientData Verdict = iota
	// NotWorse: enough values, and no harm that is both significant and large enough.
	NotWorse
	// Degraded: the candidate is worse, significantly and by an effect that matters.
	Degraded
)

func (v Verdict) String() string { return [...]string{"insufficient_data", "not_worse", "degraded"}[v] }

// Options of a comparison.
type Options struct {
	// Alpha is the level of significance after the correction for the number of comparisons.
	Alpha float64
	// MinSamples is how many values there must be on each side.
	MinSamples uint64
	// MinShift is the least shift that matters, as a share: 0.05 is 5 % worse.
	MinShift float64
	// MinExcess is the least difference of the shares beyond a threshold that matters: 0.0025 is one request in 400.
	MinExcess float64
	// OnlySignificant looks for the size of a shift only where there may be one: that takes longer than all else.
	OnlySignificant bool
}

// DefaultOptions are α = 1 %, 100 values a side, a shift of 5 %, and one request in 400.
func DefaultOptions() Options {
	return Options{Alpha: 0.01, MinSamples: 100, MinShift: 0.05, MinExcess: 0.0025}
}

// Validate names the option that is wrong.
func (o Options) Validate() error {
	switch {
	case !(o.Alpha > 0 && o.Alpha < 1):
		return fmt.Errorf("alpha: %v is not in (0, 1)", o.Alpha)
	case o.MinSamples < 20:
		return fmt.Errorf("min samples: %d is below 20, where the approximation of the test ends", o.MinSamples)
	case !(o.MinShift >= 0) || !(o.MinExcess >= 0):
		return fmt.Errorf("min shift %v, min excess %v: want numbers not below 0", o.MinShift, o.MinExcess)
	}
	return nil
}

// Promise is the promise that both are held against.
type Promise struct {
	Objective      float64 // NaN for none
	HigherIsBetter bool
}

// Shift is by how much the candidate as a whole is worse.
type Shift struct {
	// Effect is a share: 0.1 when it is 10 % slower, or has 10 % less of what should be high. It is NaN where it
	// was not looked for (Options.OnlySignificant).
	Effect float64
	P      float64 // Mann and Whitney's, one-sided
}

// Exceedance is how many values are beyond a threshold.
type Exceedance struct {
	Threshold                      float64
	ReferenceShare, CandidateShare float64
	P                              float64 // Fisher's, one-sided
}

// Excess is by how much the candidate's share is greater.
func (e Exceedance) Excess() float64 { return e.CandidateShare - e.ReferenceShare }

// Test is one of the tests of a comparison.
type Test uint8

// The tests of a comparison, and how many there are.
const (
	OfShift Test = iota
	OfObjective
	OfTail
	Tests
)

// Result is one comparison.
type Result struct {
	Reference, Candidate uint64
	// Shift of the whole distribution.
	Shift Shift
	// Objective is who misses the promised value.
	Objective Exceedance
	// Tail is who is beyond nearly all of the reference: a delay that hits one request in a hundred shows here even where
	// the objective is missed often, or is far away.
	Tail Exceedance
	// P is that of the whole comparison; Adjusted is P after the correction for the number of comparisons.
	P, Adjusted float64
	Verdict     Verdict
	// Found are the tests that a Degraded rests upon.
	Found [Tests]bool
}

// Effect is by how much the candidate is worse by one of the tests: about 0 where it is not. That of a tail knows that its threshold is
// a value of the reference, beyond which one more is to be expected.
func (r *Result) Effect(t Test) float64 {
	return [Tests]float64{r.Shift.Effect, r.Objective.Excess(), r.Tail.Excess() - 1/float64(max(r.Reference, 1))}[t]
}

// Least is the least effect that matters.
func (o Options) Least(t Test) float64 {
	return [Tests]float64{o.MinShift, o.MinExcess, o.MinExcess}[t]
}

// The tests of one comparison share its level (weighted Bonferroni). A shift needs most of it, because what separates a
// large share of requests by little is found by sample size alone; a tail is rare on one side and all there is on the
// other, and found at any level.
const (
	shiftWeight     = 0.6
	objectiveWeight = 0.2
	tailWeight      = 0.2
)

// beyondReference is how many values of the reference lie beyond the threshold of the tail. The test stays exact though the
// threshold is taken from one of the samples: that so many of the candidate are beyond the second largest of the reference
// is as probable as Fisher's test says (the precedence test: B. Epstein, Tables for the distribution of the number of
// exceedances, Ann. Math. Stat. 25, 1954).
const beyondReference = 1

// Compare tests whether the candidate is worse than the reference. The verdict is that of Decide.
func Compare(bins []Bin, p Promise, o Options) Result {
	var r Result
	if r.Reference, r.Candidate = sizes(bins); r.Reference < o.MinSamples || r.Candidate < o.MinSamples {
		r.P, r.Adjusted = 1, 1
		return r
	}
	objective := p.Objective
	plain := bins
	if p.HigherIsBetter {
		bins, objective = mirrored(bins), -objective
	}
	_, r.Shift.P = MannWhitney(bins)
	r.Shift.Effect = math.NaN()
	if !o.OnlySignificant || r.Shift.P/shiftWeight <= o.Alpha {
		if r.Shift.Effect = Ratio(plain) - 1; p.HigherIsBetter {
			r.Shift.Effect = -r.Shift.Effect
		}
	}
	r.Objective = exceedance(bins, objective, r.Reference, r.Candidate)
	r.Tail = exceedance(bins, tail(bins), r.Reference, r.Candidate)
	r.P = min(r.Shift.P/shiftWeight, r.Objective.P/objectiveWeight, r.Tail.P/tailWeight, 1)
	if p.HigherIsBetter {
		r.Objective.Threshold, r.Tail.Threshold = -r.Objective.Threshold, -r.Tail.Threshold
	}
	return r
}

// Decide corrects for the number of comparisons, which are all those made at one time, and says the verdict of each.
func Decide(results []Result, o Options) {
	var p []float64
	for i := range results {
		if results[i].enough(o) {
			p = append(p, results[i].P)
		}
	}
	adjusted := BenjaminiHochberg(p)
	// The level that the correction leaves: a test on its own has to be below that as well. It need not be the one with the
	// least P, which may have found what does not matter.
	found := 0
	for _, a := range adjusted {
		if a <= o.Alpha {
			found++
		}
	}
	level := o.Alpha * float64(found) / float64(max(len(p), 1))
	for i := range results {
		r := &results[i]
		if !r.enough(o) {
			r.Verdict = InsufficientData
			continue
		}
		r.Adjusted, adjusted = adjusted[0], adjusted[1:]
		r.Verdict, r.Found = NotWorse, [Tests]bool{}
		if r.Adjusted <= o.Alpha {
			r.find(level, o)
		}
	}
}

func (r *Result) enough(o Options) bool {
	return r.Reference >= o.MinSamples && r.Candidate >= o.MinSamples
}

// find notes which tests that are significant at the level have found an effect that is large enough.
func (r *Result) find(level float64, o Options) {
	for t, p := range [Tests]float64{r.Shift.P / shiftWeight, r.Objective.P / objectiveWeight, r.Tail.P / tailWeight} {
		if p <= level && r.Effect(Test(t)) >= o.Least(Test(t)) {
			r.Verdict, r.Found[t] = Degraded, true
		}
	}
}

// exceedance counts what lies beyond a threshold. A bin that the threshold cuts counts for the reference and not for the
// candidate: what cannot be told is not held against it.
func exceedance(bins []Bin, threshold float64, nr, nc uint64) Exceedance {
	e := Exceedance{Threshold: threshold, P: 1}
	if math.IsNaN(threshold) {
		return e
	}
	var r, c uint64
	for _, b := range bins {
		if b.Hi > threshold && b.Hi > threshold+1e-9*math.Abs(threshold) {
			r += b.Reference
			if b.Lo >= threshold-1e-9*math.Abs(threshold) {
				c += b.Candidate
			}
		}
	}
	e.ReferenceShare, e.CandidateShare = float64(r)/float64(nr), float64(c)/float64(nc)
	e.P = Fisher(c, nc, r, nr)
	return e
}

// tail is the least boundary of a bin of the reference beyond which no more than beyondReference of its values lie.
func tail(bins []Bin) float64 {
	var beyond uint64
	at := math.Inf(1)
	for i := len(bins) - 1; i >= 0; i-- {
		if bins[i].Reference == 0 {
			continue
		}
		if beyond > beyondReference {
			break
		}
		at = bins[i].Hi
		beyond += bins[i].Reference
	}
	return at
}

// mirrored are the bins of the negative values.
func mirrored(bins []Bin) []Bin {
	m := make([]Bin, len(bins))
	for i, b := range bins {
		m[i] = Bin{Lo: -b.Hi, Hi: -b.Lo, Reference: b.Reference, Candidate: b.Candidate}
	}
	slices.Reverse(m)
	return m
}
