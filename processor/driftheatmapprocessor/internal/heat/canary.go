// SPDX-License-Identifier: Apache-2.0

package heat

import (
	"math"

	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/twosample"
)

// canary is what comparisons have said of a candidate. One window in a hundred may err, so one does not accuse; and that a window
// did not find it again does not acquit: the effect itself must be gone.
type canary struct {
	degraded      bool
	worse, better uint8                    // comparisons in a row
	by            [twosample.Tests]bool    // which have found something
	effects       [twosample.Tests]float64 // of those, smoothed
	unknown       bool                     // the closing window could not be compared
}

const (
	// canaryEnter is how many comparisons in a row must find a candidate worse before it is degraded, canaryLeave in how many all
	// effects that were found must be below half of what matters before it is no more.
	canaryEnter = 2
	canaryLeave = 3
	// canarySmoothing is the weight of the newest effect. None counts as more than canaryMost times what matters, on either side,
	// so that a large one is not remembered for longer.
	canarySmoothing = 1. / 3
	canaryMost      = 2
)

// compare compares each candidate with the version that it is to replace, in the same combination of all other dimensions, or
// with what was before a change. The verdicts are corrected for the number of comparisons, which are those of all promises
// together.
func (m *Map) compare() {
	of := m.opts.Canary
	if of == nil {
		return
	}
	m.candidates, m.results = m.candidates[:0], m.results[:0]
	m.without = 0
	for _, p := range m.promises {
		for _, c := range p.cells {
			reference, compared := m.reference(c)
			if !compared {
				continue
			}
			m.bins = m.bins[:0]
			promise := twosample.Promise{Objective: p.promised.Objective, HigherIsBetter: p.promised.HigherIsBetter}
			switch {
			case reference == nil:
			case p.slo.Indicator.Threshold == nil:
				m.bins, promise = shares(m.bins, p, reference, c.closing), twosample.Promise{Objective: (goodAs + badAs) / 2}
			default:
				m.bins = twosample.Distributions(m.bins, &reference.values, &c.closing.values)
			}
			m.candidates = append(m.candidates, c)
			options := of.Options
			options.OnlySignificant = options.OnlySignificant && !c.canary.degraded // or there is no effect to be gone
			m.results = append(m.results, twosample.Compare(m.bins, promise, options))
		}
	}
	twosample.Decide(m.results, of.Options)
	for i, c := range m.candidates {
		c.accuse(&m.results[i], &of.Options)
	}
	clear(m.candidates)
}

// reference is what the closing window of a cell is compared with, nil for nothing, and whether it is compared at all.
func (m *Map) reference(c *Cell) (reference *sums, compared bool) {
	of := m.opts.Canary
	switch {
	case c.closing == nil || c.Overflow:
		return nil, false
	case of.Since == 0:
		if c.Values[of.Dimension] != of.Candidate {
			return nil, false
		}
		if r := m.beside(c, of.Dimension, of.Reference); r != nil {
			reference = r.closing
		}
		return reference, true
	case m.next <= of.Since:
		if m.next > of.Since-int64(of.Windows)*int64(m.length) {
			c.remember()
		}
		return nil, false
	case m.next-int64(m.length) < of.Since:
		return nil, false // the change is in its midst
	case !c.knownBefore(of.Options.MinSamples):
		m.without++
		return nil, false
	default:
		return c.before, true
	}
}

// knownBefore reports whether there is enough of what was before the change: it will never be more.
func (c *Cell) knownBefore(least uint64) bool {
	if c.before == nil {
		return false
	}
	if c.promise.slo.Indicator.Threshold != nil {
		return c.before.values.Count() >= least
	}
	_, total := c.promise.share(c.before)
	return total >= float64(least)
}

// Unmatched reports whether the window that closed last was after a change, and in none of its cells is known what was before.
func (m *Map) Unmatched() bool { return m.without > 0 && len(m.results) == 0 }

// remember adds the closing window to those before a change.
func (c *Cell) remember() {
	if c.before == nil {
		c.before = &sums{}
	}
	c.before.values.Merge(&c.closing.values)
	c.before.good += c.closing.good
	c.before.bad += c.closing.bad
	c.before.total += c.closing.total
}

// accuse takes a comparison's verdict in. A canary that cannot be compared does not pass.
func (c *Cell) accuse(r *twosample.Result, o *twosample.Options) {
	k := &c.canary
	switch r.Verdict {
	case twosample.Degraded:
		k.note(r, o)
		k.better = 0
		if k.worse++; k.worse >= canaryEnter {
			k.degraded, k.worse = true, 0
		}
	case twosample.NotWorse:
		k.worse = 0
		k.note(r, o)
		if k.better++; !k.gone(o) {
			k.better = 0
		}
		if !k.degraded || k.better >= canaryLeave {
			*k = canary{}
		}
	case twosample.InsufficientData:
		k.unknown = true
	}
}

// sentence is the state of a cell that would have another without the comparisons.
func (k *canary) sentence(s baseline.State) baseline.State {
	switch {
	case k.degraded:
		return baseline.Degraded
	case k.unknown && s == baseline.OK:
		return baseline.InsufficientData
	default:
		return s
	}
}

// note smooths the effects of the tests that have found something.
func (k *canary) note(r *twosample.Result, o *twosample.Options) {
	for t := range twosample.Tests {
		most := canaryMost * o.Least(t)
		effect := min(max(r.Effect(t), -most), most)
		switch {
		case k.by[t] && !math.IsNaN(effect):
			k.effects[t] += canarySmoothing * (effect - k.effects[t])
		case r.Found[t]:
			k.by[t], k.effects[t] = true, effect
		}
	}
}

// gone reports whether all effects that were found are below half of what matters.
func (k *canary) gone(o *twosample.Options) bool {
	for t := range twosample.Tests {
		if k.by[t] && k.effects[t] >= o.Least(t)/2 {
			return false
		}
	}
	return true
}

// beside is the cell that differs from another by the value of one dimension; nil for none.
func (m *Map) beside(c *Cell, dimension int, value string) *Cell {
	m.key = append(m.key[:0], 0)
	for i, v := range c.Values {
		if i == dimension {
			v = value
		}
		m.key = appendText(m.key, v)
	}
	return c.promise.cells[string(m.key)]
}

// Events of a ratio are compared as numbers, of which the greater is worse.
const goodAs, badAs = 1.0, 2.0

func shares(bins []twosample.Bin, p *promise, reference, candidate *sums) []twosample.Bin {
	rg, rn := p.share(reference)
	cg, cn := p.share(candidate)
	return append(bins,
		twosample.Bin{Lo: goodAs, Hi: goodAs, Reference: uint64(rg), Candidate: uint64(cg)},
		twosample.Bin{Lo: badAs, Hi: badAs, Reference: uint64(rn - rg), Candidate: uint64(cn - cg)})
}
