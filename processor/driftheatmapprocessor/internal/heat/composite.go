// SPDX-License-Identifier: Apache-2.0

package heat

import "github.com/otelcol-llm/otelcol-llm/internal/baseline"

// A composite has a cell where all of its parts have one with the same values of the dimensions: it is judged there by what they
// say of the same window, and knows nothing by itself but its state. Where a part has none, the others are not the promise.

// part is a promise that a composite is made of.
type part struct {
	of    *promise
	share float64
}

// join finds the parts of a composite among all promises.
func (p *promise) join(all []*promise) {
	for _, one := range p.slo.Indicator.Parts {
		for _, other := range all {
			if other.slo.ID == one.ID {
				other.promised.Shares = true
				p.parts = append(p.parts, part{other, one.Share})
			}
		}
	}
}

// mix judges the composites on the window that their parts have closed.
func (m *Map) mix(end int64) {
	for _, p := range m.promises {
		if len(p.parts) == 0 {
			continue
		}
		for _, c := range m.turns { // those of the first part may be all that there are
			if c.promise == p.parts[0].of && c.closing != nil {
				m.mixCell(p, c, end)
			}
		}
		for _, c := range p.cells {
			if !c.mixed {
				c.empty(end)
			}
		}
	}
}

// mixCell judges a composite in the cell of its first part.
func (m *Map) mixCell(p *promise, first *Cell, end int64) {
	m.parts = m.parts[:0]
	for _, one := range p.parts {
		c := one.of.cells[first.key]
		if c == nil || c.closing == nil {
			return
		}
		m.parts = append(m.parts, baseline.Part{Weight: one.share, Shares: c.result.Shares})
	}
	c := p.cells[first.key]
	if c == nil {
		if !first.Overflow && !m.room(first.Values) {
			return // there is no room for what its parts' cells say as well
		}
		c = m.open(p, first.key, first.Values, first.Overflow)
	}
	c.newest, c.mixed = end-1, true
	c.conclude(p.judge.CloseMixed(&c.normal, m.parts), end)
}
