// SPDX-License-Identifier: Apache-2.0

package heat

import (
	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/twosample"
)

// canary is what comparisons have said of a candidate. One window in a hundred may err, so one does not accuse.
type canary struct {
	degraded      bool
	worse, better uint8 // comparisons in a row
}

const (
	// canaryEnter is how many comparisons in a row must find a candidate worse before it is degraded, canaryLeave how many must
	// not before it is no more.
	canaryEnter = 2
	canaryLeave = 3
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
			m.results = append(m.results, twosample.Compare(m.bins, promise, of.Options))
		}
	}
	twosample.Decide(m.results, of.Options)
	for i, c := range m.candidates {
		c.accuse(m.results[i].Verdict)
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
	default:
		return c.before, m.next-int64(m.length) >= of.Since
	}
}

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
func (c *Cell) accuse(v twosample.Verdict) {
	k := &c.canary
	switch v {
	case twosample.Degraded:
		k.better = 0
		if k.worse++; k.worse >= canaryEnter {
			k.degraded, k.worse = true, 0
		}
	case twosample.NotWorse:
		k.worse = 0
		if k.better++; k.better >= canaryLeave {
			k.degraded, k.better = false, 0
		}
	case twosample.InsufficientData:
		if c.result.State == baseline.OK {
			c.result.State = baseline.InsufficientData
		}
	}
	if k.degraded {
		c.result.State = baseline.Degraded
	}
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
