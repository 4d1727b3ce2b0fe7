// SPDX-License-Identifier: Apache-2.0

package baseline

import "math"

// Share is how many of some events were good. Those of a baseline weigh less than one.
type Share struct{ Good, Total float64 }

// Shares are those of a window and of its baselines, zero where there is no baseline yet: what a composite is made of. Of the window's
// events, Bad were certainly bad, and Open more may have been.
type Shares struct {
	Observed, Dynamic, Frozen Share
	Bad, Open                 float64
}

// Part is a promise that a composite is made of. The weights of all parts add up to 1.
type Part struct {
	Weight float64
	Shares
}

// shares are those of the window, and of the baselines before it.
func (j *Judge) shares(c *Cell) Shares {
	s := Shares{Observed: j.good(&j.window), Dynamic: j.good(&c.dynamic)}
	s.Bad = s.Observed.Total - s.Observed.Good
	if int(c.windows) >= j.options.Reference {
		s.Frozen = j.good(&c.frozen)
	}
	return s
}

// good is the share of values that keep the objective, read from all histograms alike.
func (j *Judge) good(d *Decayed) Share {
	if j.promise.Quantile == 0 { // sum is that of good events
		return Share{d.sum, d.n}
	}
	return Share{min(max(d.n-j.beyond(d, j.promise.Objective), 0), d.n), d.n}
}

// CloseMixed says what a window means for a composite: a promise about the mean of its parts' shares of good events, each by its
// weight. It is known where the shares of all parts are. Its baselines are those of the parts, so of the cell only the state is
// used. As in CloseShare, what is compared is the bad ones, in units of what the promise allows.
//
// A mean of shares is no share of any events, so there is no exact test. It is normal with the sum of its parts' variances, each
// estimated with half an event more on either side (F. J. Anscombe, On estimating binomial response relations, Biometrika 43,
// 1956): few bad events make it wide, so that it errs on the side of not being certain.
func (j *Judge) CloseMixed(c *Cell, parts []Part) Result {
	r := Result{Static: j.promise.Objective}
	var variance, dynamic, frozen float64
	r.Observed, variance = j.mixed(parts, func(p *Part) Share { return p.Observed })
	r.Dynamic, dynamic = j.mixed(parts, func(p *Part) Share { return p.Dynamic })
	r.Frozen, frozen = j.mixed(parts, func(p *Part) Share { return p.Frozen })
	allowed := max(1-j.promise.Objective, math.SmallestNonzeroFloat64)
	compare := func(reference, observed, variance float64) finding {
		if math.IsNaN(reference) || math.IsNaN(observed) {
			return finding{}
		}
		worse := reference - observed
		return finding{effect: worse / allowed, chance: math.Erfc(worse/math.Sqrt(2*variance)) / 2}
	}
	against := func(reference, variance float64) finding { return compare(reference, r.Observed.Value, variance) }
	var found findings
	if r.Observed.Known() {
		found = findings{
			known: true, unseen: j.unseen(c, r), lasting: compare(r.Static, r.Dynamic.Value, dynamic),
			dynamic: against(r.Dynamic.Value, variance+dynamic), frozen: against(r.Frozen.Value, variance+frozen),
		}
		best, wide := j.mixed(parts, func(p *Part) Share { return Share{p.Observed.Total - p.Bad, p.Observed.Total} })
		found.static = compare(r.Static, best.Value, wide)
		least, wide := j.mixed(parts, func(p *Part) Share { return Share{max(p.Observed.Total-p.Bad-p.Open, 0), p.Observed.Total} })
		if most := j.options.Chance; found.static.chance >= most && compare(r.Static, least.Value, wide).chance < most {
			found.static, found.open, r.Observed.Method = finding{}, true, Open
		}
	}
	known := r.Frozen.Known()
	if r = j.conclude(c, r, found); known {
		c.since = 1 // the reference of the parts is complete
	} else {
		if c.since == 1 { // it begins anew
			c.windows, c.since = 0, 0
		}
		if j.isReference(c, r, found) {
			j.seen(c, r.Observed.Value)
		}
	}
	return r
}

// mixed is the mean of the parts' shares and its variance.
func (j *Judge) mixed(parts []Part, of func(*Part) Share) (e Estimate, variance float64) {
	e = Estimate{Samples: math.Inf(1)}
	for i := range parts {
		s, w := of(&parts[i]), parts[i].Weight
		if s.Total+rounding < float64(j.options.MinSamples) {
			return unknown, 0
		}
		e.Samples = min(e.Samples, s.Total)
		e.Value += w * s.Good / s.Total
		p := (s.Good + 0.5) / (s.Total + 1)
		variance += w * w * p * (1 - p) / (s.Total + 1)
	}
	e.Method = Histogram
	return e, variance
}
