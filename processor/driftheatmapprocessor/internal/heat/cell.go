// SPDX-License-Identifier: Apache-2.0

package heat

import (
	"math"

	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Identity is what a cell is of.
type Identity struct {
	SLO        *openslo.SLO
	Values     []string // of the dimensions, "" for an absent attribute
	Overflow   bool     // it stands for all for which there was no room
	dimensions []string
}

// Group calls f for every dimension that has a value.
func (id *Identity) Group(f func(key, value string)) {
	for i, v := range id.Values {
		if v != "" {
			f(id.dimensions[i], v)
		}
	}
}

// Cell is one promise in one combination of dimensions.
type Cell struct {
	Identity
	promise *promise
	key     string
	at      int // in Map.turns
	shard   uint8
	gone    bool
	newest  int64 // event time
	panes   window.Panes[sums]
	closing *sums // of the window that closes
	mixed   bool  // of a composite: the closing window has its parts
	before  *sums // a change: windows that had closed by then; nil where there were none
	normal  baseline.Cell
	canary  canary
	result  Result
}

// Result is what the window that closed last says.
type Result struct {
	baseline.Result
	End   int64 // 0 before the first
	Empty bool
}

// Result is what the window that closed last says.
func (c *Cell) Result() *Result { return &c.result }

// Static is what is promised.
func (c *Cell) Static() float64 { return c.promise.promised.Objective }

// Gone reports whether the cell was forgotten.
func (c *Cell) Gone() bool { return c.gone }

// Bytes is what the cell takes of memory, but for the open windows.
func (c *Cell) Bytes() int { return c.normal.Bytes() }

// sums is what happened in a window.
type sums struct {
	values           sketch.Distribution
	good, bad, total float64
	amounts          []float64 // of a rate, by interval; NaN where nothing was heard
}

func (a *sums) reset() {
	a.values.Reset()
	a.good, a.bad, a.total, a.amounts = 0, 0, 0, a.amounts[:0]
}

// pane is the open window that holds an event time.
func (c *Cell) pane(t int64) *sums {
	m := c.promise.of
	start := window.Start(t, m.length)
	c.newest = max(c.newest, t)
	m.lastEnd = max(m.lastEnd, start+int64(m.length))
	m.touched[c.shard] = true
	if c.Overflow {
		m.overflowed++
	}
	return c.panes.At(start, &c.promise.free)
}

// Cover notes nothing: which part of a window was observed is not asked.
func (c *Cell) Cover(int64, int64) {}

// AddValue adds a value in the base unit. Those that return false took nothing: there are too many bucket layouts.
func (c *Cell) AddValue(t int64, v float64) bool { return c.pane(t).values.Observe(v, 1) }

// AddExplicit adds explicit buckets. bounds is kept, counts is not.
func (c *Cell) AddExplicit(t int64, bounds []float64, counts []uint64, _ uint64) bool {
	return c.pane(t).values.AddExplicit(bounds, counts)
}

// AddExponential adds an exponential histogram.
func (c *Cell) AddExponential(t int64, e *sketch.Exponential, _ uint64) bool {
	return c.pane(t).values.AddExponential(e)
}

// AddUnknown notes nothing: values of which nothing is known do not say what is normal.
func (c *Cell) AddUnknown(int64, uint64) {}

// AddExpected notes nothing, for the same reason.
func (c *Cell) AddExpected(int64, float64) {}

// AddAmount adds to what a rate is made of.
func (c *Cell) AddAmount(t int64, v float64) {
	a := c.pane(t)
	at := int((t - window.Start(t, c.promise.of.length)) / int64(c.promise.interval))
	for len(a.amounts) <= at {
		a.amounts = append(a.amounts, math.NaN())
	}
	if math.IsNaN(a.amounts[at]) {
		a.amounts[at] = 0
	}
	a.amounts[at] += v
}

// AddGood adds good events of a ratio.
func (c *Cell) AddGood(t int64, n float64) { c.pane(t).good += n }

// AddBad adds bad events of a ratio.
func (c *Cell) AddBad(t int64, n float64) { c.pane(t).bad += n }

// AddTotal adds events of a ratio.
func (c *Cell) AddTotal(t int64, n float64) { c.pane(t).total += n }

// AddRaw adds an event that is good to a share.
func (c *Cell) AddRaw(t int64, good float64) {
	a := c.pane(t)
	a.good += good
	a.total++
}

// AddParts adds events of a ratio.
func (c *Cell) AddParts(t int64, good, total float64, _, _ bool) {
	if good != 0 || total != 0 {
		a := c.pane(t)
		a.good += good
		a.total += total
	}
}

// share is how many events of a window were good, of how many.
func (p *promise) share(a *sums) (good, total float64) {
	good, total = min(a.good, sketch.MaxCount), min(a.total, sketch.MaxCount)
	bad := min(a.bad, sketch.MaxCount)
	switch r := p.slo.Indicator.Ratio; {
	case r == nil || r.Raw != nil:
	case r.Total == nil:
		total = good + bad
	case r.Good == nil:
		good = total - bad
	}
	return min(max(good, 0), total), total
}

// settle makes a distribution of the intervals of a rate.
func (p *promise) settle(a *sums) {
	left := p.of.length
	for _, v := range a.amounts {
		length := min(p.interval, left)
		left -= length
		if !math.IsNaN(v) && length > 0 {
			rate := v / length.Seconds()
			a.values.Observe(max(min(rate, math.MaxFloat64), -math.MaxFloat64), 1)
		}
	}
}
