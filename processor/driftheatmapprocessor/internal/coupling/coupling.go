// SPDX-License-Identifier: Apache-2.0

// Package coupling learns how an engine's throughput hangs together with how much it does at once, how long its prompts are
// and how much of them is cached, and where more at once stops paying.
//
// It takes plain values and time as a parameter. A Map is not safe for concurrent use.
package coupling

import (
	"encoding/binary"
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
}

// step is the samples of about one batch size.
type step struct{ weight, batch, throughput float64 }

// perOctave is how many steps lie between a batch size and twice of it: each is 9 % wide.
const perOctave = 8

// forgotten is the weight from which on a step or a cell is none.
const forgotten = 0.01

// Add takes a sample of an engine of a group in. It reports false where there is no room for it.
func (m *Map) Add(by []string, s Sample) bool {
	if !(s.Batch >= 1) || !(s.Throughput > 0) || s.Batch > 1<<20 || math.IsInf(s.Throughput, 1) {
		return true // an idle engine says nothing of what it could do
	}
	m.key = m.key[:0]
	for _, text := range by {
		m.key = append(binary.AppendUvarint(m.key, uint64(len(text))), text...)
	}
	m.key = append(append(append(m.key, s.Context...), 0), s.Hits...)
	c := m.cells[string(m.key)]
	if c == nil {
		if len(m.cells) >= m.max {
			return false
		}
		c = &Cell{By: slices.Clone(by), Context: s.Context, Hits: s.Hits, steps: map[int32]*step{}}
		m.cells[string(m.key)] = c
	}
	at := int32(math.Round(perOctave * math.Log2(s.Batch)))
	of := c.steps[at]
	if of == nil {
		of = &step{}
		c.steps[at] = of
	}
	of.weight++
	of.batch += s.Batch
	of.throughput += s.Throughput
	return true
}

// Close tells each cell and forgets a little: a window is over. Cells go when nothing of them is left.
func (m *Map) Close(tell func(*Cell)) {
	for key, c := range m.cells {
		tell(c)
		for at, s := range c.steps {
			s.weight *= m.decay
			s.batch *= m.decay
			s.throughput *= m.decay
			if s.weight < forgotten {
				delete(c.steps, at)
			}
		}
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

// Knee is where more at once stops paying, false where that is not known.
func (c *Cell) Knee() (batch float64, ok bool) {
	points := make([]knee.Point, 0, len(c.steps))
	for _, s := range c.steps {
		points = append(points, knee.Point{Batch: s.batch / s.weight, Throughput: s.throughput / s.weight})
	}
	p, ok := knee.Find(points)
	return p.Batch, ok
}

// Octaves calls f for each doubling of batch size that has samples, with its upper end and the mean throughput in it, from the
// smallest up.
func (c *Cell) Octaves(f func(upTo, throughput float64)) {
	var sums [21]step
	for _, s := range c.steps {
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
	Steps         [][3]float64 // weight and the sums of batch sizes and throughputs
}

// State is the map at rest. It shares nothing with the living one.
func (m *Map) State() (all []CellState) {
	for _, c := range m.cells {
		st := CellState{By: c.By, Context: c.Context, Hits: c.Hits}
		for _, s := range c.steps {
			st.Steps = append(st.Steps, [3]float64{s.weight, s.batch, s.throughput})
		}
		all = append(all, st)
	}
	return all
}

// Restore takes cells in that have as many groups as by says. What is no number is left out.
func (m *Map) Restore(all []CellState, by int) {
	for _, st := range all {
		if len(st.By) != by {
			continue
		}
		for _, s := range st.Steps {
			weight, batch, throughput := s[0], s[1]/s[0], s[2]/s[0]
			if !(weight > 0) || weight > 1e15 || !(batch >= 1) || batch > 1<<20 || !(throughput > 0) || math.IsInf(throughput, 1) {
				continue
			}
			m.Add(st.By, Sample{Batch: batch, Throughput: throughput, Context: st.Context, Hits: st.Hits})
			if c := m.cells[string(m.key)]; c != nil {
				*c.steps[int32(math.Round(perOctave*math.Log2(batch)))] = step{weight, s[1], s[2]}
			}
		}
	}
}
