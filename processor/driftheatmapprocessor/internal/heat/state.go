// SPDX-License-Identifier: Apache-2.0

package heat

import (
	"fmt"
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/explain"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/twosample"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Shards is into how many parts the state of the cells is cut, so that a checkpoint writes only what has changed.
const Shards = 64

// The states are plain values for a checkpoint. They are written as arrays, so the order of the fields is part of the format.

// Head is what is not one of many.
type Head struct {
	_          struct{} `cbor:",toarray"`
	Window     int64
	Dimensions []string
	Begun      bool
	Next       int64
	LastEnd    int64
	Promises   []PromiseState
}

// PromiseState is a promise as a whole.
type PromiseState struct {
	_           struct{} `cbor:",toarray"`
	SLO         string
	Fingerprint uint64
	Whole       baseline.CellState
	Limit       float64
	Explained   []ExplanationState
	ExplainedAt int64
}

// PromisedState is what the cells of a promise were held against. It is no part of PromiseState: there are checkpoints without it.
type PromisedState struct {
	_              struct{} `cbor:",toarray"`
	SLO            string
	Quantile       float64
	HigherIsBetter bool
}

// Promised is what the cells of all promises are held against.
func (m *Map) Promised() (all []PromisedState) {
	for _, p := range m.promises {
		all = append(all, PromisedState{SLO: p.slo.ID, Quantile: p.promised.Quantile, HigherIsBetter: p.promised.HigherIsBetter})
	}
	return all
}

// ExplanationState is what explains a share of what is bad about a promise.
type ExplanationState struct {
	_                struct{} `cbor:",toarray"`
	Dimension, Value string
	Share            float64
}

// CellState is a cell.
type CellState struct {
	_             struct{} `cbor:",toarray"`
	SLO           string
	Values        []string
	Overflow      bool
	Newest        int64
	Normal        baseline.CellState
	Degraded      bool
	Worse, Better uint8
	By            [twosample.Tests]bool
	Effects       [twosample.Tests]float64
	Result        ResultState
	Panes         []PaneState
	Before        *PaneState // a change
}

// ResultState is what the window that closed last has said.
type ResultState struct {
	_                         struct{} `cbor:",toarray"`
	End                       int64
	Empty                     bool
	State                     baseline.State
	Methods                   [3]baseline.Method
	Observed, Dynamic, Frozen float64
}

// PaneState is an open window.
type PaneState struct {
	_                struct{} `cbor:",toarray"`
	Start            int64
	Values           *sketch.DistributionState
	Good, Bad, Total float64
	Amounts          []float64
}

// Head is the state that is not one of many. It shares nothing with what goes on.
func (m *Map) Head() Head {
	h := Head{Window: int64(m.length), Dimensions: m.opts.Dimensions, Begun: m.begun, Next: m.next, LastEnd: m.lastEnd}
	for _, p := range m.promises {
		st := PromiseState{SLO: p.slo.ID, Fingerprint: p.fingerprint, Whole: detached(p.whole.State()), Limit: p.limit, ExplainedAt: p.explainedAt}
		for _, x := range p.explained {
			st.Explained = append(st.Explained, ExplanationState{Dimension: x.Dimension, Value: x.Value, Share: x.Share})
		}
		h.Promises = append(h.Promises, st)
	}
	return h
}

func detached(s baseline.CellState) baseline.CellState {
	s.Dynamic.Weights, s.Frozen.Weights = slices.Clone(s.Dynamic.Weights), slices.Clone(s.Frozen.Weights)
	return s
}

// Touch makes everything count as changed.
func (m *Map) Touch() {
	for i := range m.touched {
		m.touched[i] = true
	}
}

// TakeTouched is the state of the shards with cells that have changed since the last call. The counts of open windows are the
// living ones.
func (m *Map) TakeTouched() map[int][]CellState {
	shards := map[int][]CellState{}
	for i, touched := range m.touched {
		if touched {
			shards[i] = nil
		}
	}
	m.touched = [Shards]bool{}
	for _, c := range m.turns {
		if states, touched := shards[int(c.shard)]; touched {
			shards[int(c.shard)] = append(states, c.state())
		}
	}
	return shards
}

func (c *Cell) state() CellState {
	r := &c.result
	st := CellState{
		SLO: c.SLO.ID, Values: c.Values, Overflow: c.Overflow, Newest: c.newest, Normal: detached(c.normal.State()),
		Degraded: c.canary.degraded, Worse: c.canary.worse, Better: c.canary.better, By: c.canary.by, Effects: c.canary.effects,
		Result: ResultState{
			End: r.End, Empty: r.Empty, State: r.State, Methods: [3]baseline.Method{r.Observed.Method, r.Dynamic.Method, r.Frozen.Method},
			Observed: r.Observed.Value, Dynamic: r.Dynamic.Value, Frozen: r.Frozen.Value,
		},
	}
	for _, pane := range c.panes.All() {
		st.Panes = append(st.Panes, pane.Acc.state(pane.Start))
	}
	if c.before != nil {
		before := c.before.state(0)
		st.Before = &before
	}
	return st
}

func (a *sums) state(start int64) PaneState {
	return PaneState{Start: start, Values: a.values.State(), Good: a.good, Bad: a.bad, Total: a.total, Amounts: slices.Clone(a.amounts)}
}

func (a *sums) restore(st *PaneState, intern func([]float64) []float64) error {
	a.good, a.bad, a.total, a.amounts = st.Good, st.Bad, st.Total, st.Amounts
	return a.values.Restore(st.Values, intern)
}

// Restore makes a map that has heard nothing what the states were taken of, and returns how many cells it left out: of
// promises that are no more, or measure something else; all, when windows or dimensions are others now. A promise of which is not known
// what its cells were held against is taken to be as it was. The slices of the states become the map's. intern returns the one slice that stands for all equal boundaries. After an error the map is of no use.
func (m *Map) Restore(h Head, promised []PromisedState, cells []CellState, intern func([]float64) []float64) (left int, err error) {
	same := h.Window == int64(m.length) && slices.Equal(h.Dimensions, m.opts.Dimensions)
	if !same {
		return len(cells), nil
	}
	m.begun, m.next, m.lastEnd = h.Begun, h.Next, h.LastEnd
	known := map[string]int{}
	for _, st := range h.Promises {
		i := slices.IndexFunc(m.promises, func(p *promise) bool { return p.slo.ID == st.SLO })
		if i < 0 || m.promises[i].fingerprint != st.Fingerprint || m.promises[i].judge == nil {
			continue
		}
		p := m.promises[i]
		if err := p.whole.Restore(st.Whole); err != nil {
			return 0, fmt.Errorf("slo %q: %w", st.SLO, err)
		}
		p.limit = st.Limit
		p.explainedAt = st.ExplainedAt
		for _, x := range st.Explained {
			p.explained = append(p.explained, explain.Explanation{Dimension: x.Dimension, Value: x.Value, Share: x.Share})
		}
		known[st.SLO] = i
	}
	was := map[string]baseline.Promise{}
	for _, st := range promised {
		was[st.SLO] = baseline.Promise{Quantile: st.Quantile, HigherIsBetter: st.HigherIsBetter}
	}
	for i := range cells {
		st := &cells[i]
		at, ok := known[st.SLO]
		if !ok {
			left++
			continue
		}
		if err := m.restore(m.promises[at], st, intern); err != nil {
			return left, fmt.Errorf("a cell of slo %q: %w", st.SLO, err)
		}
	}
	for id, before := range was {
		if at, ok := known[id]; ok {
			m.promises[at].adopt(before)
		}
	}
	return left, nil
}

func (m *Map) restore(p *promise, st *CellState, intern func([]float64) []float64) error {
	key := overflowKey
	if !st.Overflow {
		if len(st.Values) != len(m.opts.Dimensions) {
			return fmt.Errorf("%d values of %d dimensions", len(st.Values), len(m.opts.Dimensions))
		}
		key = keyOf(st.Values)
	}
	if p.cells[key] != nil {
		return fmt.Errorf("%q stands there twice", st.Values)
	}
	c := m.open(p, key, st.Values, st.Overflow)
	c.newest = st.Newest
	c.canary = canary{degraded: st.Degraded, worse: st.Worse, better: st.Better, by: st.By, effects: st.Effects}
	if err := c.normal.Restore(st.Normal); err != nil {
		return err
	}
	if st.Result.State > baseline.Degraded {
		return fmt.Errorf("state %d is none", st.Result.State)
	}
	c.result = p.resultOf(&st.Result)
	for i := range st.Panes {
		pane := &st.Panes[i]
		if pane.Start != window.Start(pane.Start, m.length) {
			return fmt.Errorf("no window of %v begins at %d", m.length, pane.Start)
		}
		if err := c.panes.At(pane.Start, &p.free).restore(pane, intern); err != nil {
			return err
		}
	}
	if st.Before != nil {
		c.before = &sums{}
		return c.before.restore(st.Before, intern)
	}
	return nil
}

func (p *promise) resultOf(st *ResultState) Result {
	r := Result{End: st.End, Empty: st.Empty}
	r.Static, r.State = p.promised.Objective, st.State
	r.Observed = baseline.Estimate{Value: st.Observed, Method: st.Methods[0]}
	r.Dynamic = baseline.Estimate{Value: st.Dynamic, Method: st.Methods[1]}
	r.Frozen = baseline.Estimate{Value: st.Frozen, Method: st.Methods[2]}
	r.Relate()
	return r
}
