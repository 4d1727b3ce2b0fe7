// SPDX-License-Identifier: Apache-2.0

// Package coupling learns how an engine's throughput hangs together with how much it does at once, how long its prompts are
// and how much of them is cached, and where more at once stops paying.
//
// It takes plain values and time as a parameter. A Map is not safe for concurrent use.
package coupling

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/knee"
)

// Sample is what an engine did in an interval.
type Sample struct {
	Batch      float64 // requests at once
	Throughput float64 // a second
	Context    string  // the bucket of the prompts' length, "" where it is not known
	Hits       string  // the bucket of the share that was cached, likewise
}

// Map is all cells: a group of engines, a length of prompts and a share that is cached.
type Map struct {
	max   int
	decay float64 // what a sample weighs less with every window
	cells map[string]*Cell
	key   []byte
}

// New returns a map that has seen nothing, of max cells.
func New(maxCells int, decay float64) *Map {
	return &Map{max: maxCells, decay: decay, cells: map[string]*Cell{}}
}

// Cell is a curve of throughput over batch size.
type Cell struct {
	By            []string
	Context, Hits string
	steps         map[int32]*step
	told          Curve
}

// Curve is what is known of a cell when a window is over. It stands until the next one is: what is learned meanwhile is not
// told, so that one time has one answer.
type Curve struct {
	_       struct{} `cbor:",toarray"`
	Octaves []Octave // from the smallest batch up
	Knee    float64  // 0 where it is not known
}

// Octave is the mean throughput of a doubling of batch size, by its upper end.
type Octave struct {
	_                struct{} `cbor:",toarray"`
	UpTo, Throughput float64
}

// Has reports whether a doubling with an upper end is in the curve.
func (c Curve) Has(upTo float64) bool {
	return slices.ContainsFunc(c.Octaves, func(o Octave) bool { return o.UpTo <= upTo && upTo <= o.UpTo })
}

// step is the samples of about one batch size: their weight, and sums by it.
type step struct{ weight, batch, throughput, squares float64 }

func (s *step) fade(by float64) {
	s.weight *= by
	s.batch *= by
	s.throughput *= by
	s.squares *= by // of throughput
}

// perOctave is how many steps lie between a batch size and twice of it: each is 9 % wide.
const perOctave = 8

// forgotten is the weight from which on a step or a cell is none.
const forgotten = 0.01

// most is more throughput than anything has, and far from where sums of squares end.
const most = 1e30

// Add takes a sample of an engine of a group in. It reports false where there is no room for it.
func (m *Map) Add(by []string, s Sample) bool {
	if !(s.Batch >= 1) || !(s.Throughput > 0) || s.Batch > 1<<20 || s.Throughput > most {
		return true // an idle engine says nothing of what it could do
	}
	c := m.cell(by, s.Context, s.Hits)
	if c == nil {
		return false
	}
	at := stepOf(s.Batch)
	of := c.steps[at]
	if of == nil {
		of = &step{}
		c.steps[at] = of
	}
	of.weight++
	of.batch += s.Batch
	of.throughput += s.Throughput
	of.squares += s.Throughput * s.Throughput
	return true
}

// cell is the one of a group, a length and a share that is cached; nil where there is no room for it.
func (m *Map) cell(by []string, context, hits string) *Cell {
	m.key = m.key[:0]
	for _, text := range by {
		m.key = append(binary.AppendUvarint(m.key, uint64(len(text))), text...)
	}
	m.key = append(append(append(m.key, context...), 0), hits...)
	c := m.cells[string(m.key)]
	if c == nil && len(m.cells) < m.max {
		c = &Cell{By: slices.Clone(by), Context: context, Hits: hits, steps: map[int32]*step{}}
		m.cells[string(m.key)] = c
	}
	return c
}

func stepOf(batch float64) int32 { return int32(math.Round(perOctave * math.Log2(batch))) }

// Close forgets a little and tells each cell, with what was told of it before: a window is over. Cells go when nothing of them is
// left, and that was told.
func (m *Map) Close(tell func(c *Cell, before Curve)) {
	for key, c := range m.cells {
		for at, s := range c.steps {
			s.fade(m.decay)
			if s.weight < forgotten {
				delete(c.steps, at)
			}
		}
		before := c.told
		c.told = c.learned()
		tell(c, before)
		if len(c.steps) == 0 {
			delete(m.cells, key)
		}
	}
}

// Each calls f for every cell.
func (m *Map) Each(f func(*Cell)) {
	for _, c := range m.cells {
		f(c)
	}
}

// Len is the number of cells.
func (m *Map) Len() int { return len(m.cells) }

// Told is what was known when the last window was over.
func (c *Cell) Told() Curve { return c.told }

func (c *Cell) learned() (all Curve) {
	c.octaves(func(upTo, throughput float64) {
		all.Octaves = append(all.Octaves, Octave{UpTo: upTo, Throughput: throughput})
	})
	if batch, ok := c.knee(); ok {
		all.Knee = batch
	}
	return all
}

// knee is where more at once stops paying, false where that is not certain.
func (c *Cell) knee() (batch float64, ok bool) {
	steps := make([]knee.Step, 0, len(c.steps))
	for _, at := range slices.Sorted(maps.Keys(c.steps)) { // in another order, sums differ by their rounding
		s := c.steps[at]
		mean := s.throughput / s.weight
		steps = append(steps, knee.Step{
			Batch: s.batch / s.weight, Throughput: mean, Variance: max(s.squares/s.weight-mean*mean, 0), Samples: s.weight,
		})
	}
	return knee.Find(steps)
}

// octaves calls f for each doubling of batch size that has samples, with its upper end and the mean throughput in it, from the
// smallest up.
func (c *Cell) octaves(f func(upTo, throughput float64)) {
	var sums [21]step
	for _, at := range slices.Sorted(maps.Keys(c.steps)) { // in another order, sums differ by their rounding
		s := c.steps[at]
		of := &sums[min(max(int(math.Ceil(math.Log2(s.batch/s.weight)-1e-9)), 0), len(sums)-1)]
		of.weight += s.weight
		of.throughput += s.throughput
	}
	for i, s := range sums {
		if s.weight > 0 {
			f(math.Exp2(float64(i)), s.throughput/s.weight)
		}
	}
}

// CellState is a cell at rest, for a checkpoint. It is written as an array, so the order of the fields is part of the format.
type CellState struct {
	_             struct{} `cbor:",toarray"`
	By            []string
	Context, Hits string
	Steps         []StepState
	Told          Curve
}

// StepState is the samples of about one batch size.
type StepState struct {
	_                                  struct{} `cbor:",toarray"`
	At                                 int32
	Weight, Batch, Throughput, Squares float64 // sums
}

// State is the map at rest, in an order that does not depend on chance. It shares nothing with the living one.
func (m *Map) State() (all []CellState) {
	for _, key := range slices.Sorted(maps.Keys(m.cells)) {
		c := m.cells[key]
		st := CellState{By: c.By, Context: c.Context, Hits: c.Hits, Told: c.told}
		for _, at := range slices.Sorted(maps.Keys(c.steps)) {
			s := c.steps[at]
			st.Steps = append(st.Steps, StepState{At: at, Weight: s.weight, Batch: s.batch, Throughput: s.throughput, Squares: s.squares})
		}
		all = append(all, st)
	}
	return all
}

// Restore takes up what State was taken of, of groups that have as many values as by says. After an error the map is of no use.
func (m *Map) Restore(all []CellState, by int) error {
	for _, st := range all {
		if len(st.By) != by {
			return fmt.Errorf("a group has %d values, want %d", len(st.By), by)
		}
		c := m.cell(st.By, st.Context, st.Hits)
		if c == nil {
			continue // there is less room than there was
		}
		if err := st.Told.check(); err != nil {
			return err
		}
		c.told = st.Told
		for _, s := range st.Steps {
			batch, throughput := s.Batch/s.Weight, s.Throughput/s.Weight
			if !(s.Weight > 0) || math.IsInf(s.Weight, 1) || !(batch > 0) || !(throughput > 0) || math.IsInf(throughput, 1) ||
				!(s.Squares >= 0) || math.IsInf(s.Squares, 1) ||
				math.Abs(float64(s.At)-perOctave*math.Log2(batch)) > 1 {
				return fmt.Errorf("step %d with the sums %v of weights, %v of batch sizes, %v of throughputs and %v of their squares is none", s.At, s.Weight, s.Batch, s.Throughput, s.Squares)
			}
			c.steps[s.At] = &step{s.Weight, s.Batch, s.Throughput, s.Squares}
		}
	}
	return nil
}

func (c Curve) check() error {
	if !(c.Knee >= 0) || math.IsInf(c.Knee, 1) {
		return fmt.Errorf("a knee at %v: want a number not below 0", c.Knee)
	}
	for i, o := range c.Octaves {
		if !(o.UpTo > 0) || math.IsInf(o.UpTo, 1) || !(o.Throughput > 0) || math.IsInf(o.Throughput, 1) || (i > 0 && o.UpTo <= c.Octaves[i-1].UpTo) {
			return fmt.Errorf("octave %d up to %v with %v a second is none", i, o.UpTo, o.Throughput)
		}
	}
	return nil
}
