// SPDX-License-Identifier: Apache-2.0

package heat

import (
	"math"

	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Advance closes the windows that end at or before a watermark.
func (m *Map) Advance(watermark int64) {
	if watermark == window.Unset {
		return
	}
	length, last := int64(m.length), window.Start(watermark, m.length) // last: start of the window that stays open
	if !m.begun {
		oldest, ok := m.oldest()
		if !ok {
			return
		}
		m.next, m.begun = min(oldest, last), true
	}
	for m.next < last {
		oldest, ok := m.oldest()
		switch {
		case !ok:
			m.next = last
			m.closeEmpty()
		case oldest > m.next:
			m.next = min(oldest, last)
			m.closeEmpty()
		default:
			m.next += length
			m.close(m.next - length)
		}
	}
}

// oldest is the start of the oldest open window.
func (m *Map) oldest() (start int64, ok bool) {
	for _, c := range m.turns {
		if at, open := c.panes.Oldest(); open && (!ok || at < start) {
			start, ok = at, true
		}
	}
	return start, ok
}

// closeEmpty closes windows until m.next in which nothing was heard.
func (m *Map) closeEmpty() {
	for _, c := range m.turns {
		c.empty(m.next)
	}
	for _, p := range m.promises {
		p.explain(m.next)
	}
	m.expire()
}

// close closes the window that begins at start and ends at m.next.
func (m *Map) close(start int64) {
	for _, c := range m.turns {
		if c.closing = c.panes.Take(start); c.closing != nil {
			c.promise.settle(c.closing)
		} else if len(c.promise.parts) == 0 {
			c.empty(m.next)
		}
	}
	m.compare() // first: what is accused is no part of what is normal
	for _, p := range m.promises {
		p.close(m.next)
	}
	m.mix(m.next)
	for _, p := range m.promises {
		p.explain(m.next)
		for _, c := range p.cells {
			switch {
			case c.closing != nil:
				c.closing.reset()
				c.panes.Release(c.closing, &p.free)
				c.closing = nil
			case c.mixed:
				c.mixed = false
			default:
				continue
			}
			m.touched[c.shard] = true
			if m.opts.Closed != nil {
				m.opts.Closed(c)
			}
		}
	}
	m.expire()
}

// empty is a window without input: no data is not good data. It is told once.
func (c *Cell) empty(end int64) {
	if c.result.End == 0 {
		return // its first window is still open
	}
	told := c.result.Empty
	c.result.End, c.result.Empty, c.result.State = end, true, baseline.InsufficientData
	if m := c.promise.of; !told {
		m.touched[c.shard] = true
		if m.opts.Closed != nil {
			m.opts.Closed(c)
		}
	}
}

// close judges what the closing window of each cell says, and what it is to the promise as a whole.
func (p *promise) close(end int64) {
	ratio := p.slo.Indicator.Threshold == nil
	whole := &p.of.sum
	whole.Reset()
	var good, total float64
	for _, c := range p.cells {
		a := c.closing
		if a == nil {
			continue
		}
		c.normal.Accuse(c.canary.degraded)
		if ratio {
			g, n := p.share(a)
			good, total = good+g, total+n
			c.conclude(p.judge.CloseShare(&c.normal, end, g, n), end)
		} else {
			c.conclude(p.judge.Close(&c.normal, end, &a.values), end)
			whole.Merge(&a.values)
		}
	}
	switch {
	case ratio && total > 0:
		p.judge.CloseShare(&p.whole, end, good, total)
	case !ratio && whole.Count() > 0:
		r := p.judge.Close(&p.whole, end, whole)
		p.limit = r.Dynamic.Value
	}
}

// conclude takes over what the closing window says. What stands for many is never ok: what is good about one of them hides another.
func (c *Cell) conclude(r baseline.Result, end int64) {
	r.State = c.canary.sentence(r.State)
	if c.Overflow && r.State == baseline.OK {
		r.State = baseline.InsufficientData
	}
	c.canary.unknown = false
	c.result = Result{Result: r, End: end}
}

// bound is from where on a value is bad: beyond what is promised, or what was normal for the promise where that is tighter.
func (p *promise) bound() float64 {
	x := p.promised.Objective
	switch {
	case math.IsNaN(p.limit):
		return x
	case p.promised.HigherIsBetter:
		return max(x, p.limit)
	default:
		return min(x, p.limit)
	}
}

// bad is how many events of a closing window are bad, of how many.
func (p *promise) bad(a *sums) (bad, total uint64) {
	if p.slo.Indicator.Threshold == nil {
		g, n := p.share(a)
		return uint64(math.Round(n - g)), uint64(math.Round(n))
	}
	total = a.values.Count()
	within := a.values.AtMost(p.bound()).Rounded
	if p.promised.HigherIsBetter {
		return within, total
	}
	return total - within, total
}

// expire forgets the cells of which nothing was heard for too long.
func (m *Map) expire() {
	before := m.next - int64(m.opts.TTL)
	for i := len(m.turns) - 1; i >= 0; i-- {
		if c := m.turns[i]; c.newest < before && c.panes.Len() == 0 {
			m.retire(c)
			m.evicted++
		}
	}
}
