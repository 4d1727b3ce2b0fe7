// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"math"
	"unsafe"
)

// CellState is a cell at rest, for checkpoints. It is written as an array, so the order of the fields is part of the
// format.
type CellState struct {
	_               struct{} `cbor:",toarray"`
	Dynamic, Frozen DecayedState
	Windows         uint16
	Since           int64
	Last, Worst     float64
	State           State
	Worse, Better   uint8
}

// DecayedState is a Decayed at rest.
type DecayedState struct {
	_              struct{} `cbor:",toarray"`
	At             int64
	N, Sum, SumLog float64
	Scale, Offset  int32
	Low            float32
	Weights        []float32
}

// State is the cell at rest. Its slices are the cell's own, so they are good until the next change.
func (c *Cell) State() CellState {
	return CellState{
		Dynamic: c.dynamic.State(), Frozen: c.frozen.State(), Windows: c.windows, Since: c.since, Last: c.last, Worst: c.worst,
		State: c.verdict.state, Worse: c.verdict.worse, Better: c.verdict.better,
	}
}

// Restore makes the cell what State was taken of. The slices of s become the cell's. After an error the cell is empty.
func (c *Cell) Restore(s CellState) error {
	*c = Cell{}
	if s.State > Degraded {
		return fmt.Errorf("state of a cell: %d is not a state", s.State)
	}
	if math.IsNaN(s.Last) || math.IsNaN(s.Worst) {
		return fmt.Errorf("observed %v, at worst %v: want numbers", s.Last, s.Worst)
	}
	var restored Cell
	if err := restored.dynamic.Restore(s.Dynamic); err != nil {
		return fmt.Errorf("dynamic baseline: %w", err)
	}
	if err := restored.frozen.Restore(s.Frozen); err != nil {
		return fmt.Errorf("frozen baseline: %w", err)
	}
	restored.windows, restored.since, restored.last, restored.worst = s.Windows, s.Since, s.Last, s.Worst
	restored.verdict = verdict{state: s.State, worse: s.Worse, better: s.Better}
	*c = restored
	return nil
}

// State is what is decayed at rest. Its slice is d's own.
func (d *Decayed) State() DecayedState {
	return DecayedState{
		At: d.at, N: d.n, Sum: d.sum, SumLog: d.sumLog,
		Scale: d.hist.scale, Offset: d.hist.offset, Low: d.hist.low, Weights: d.hist.weights,
	}
}

// Restore makes d what State was taken of. The slice of s becomes d's. After an error d is empty.
func (d *Decayed) Restore(s DecayedState) error {
	*d = Decayed{}
	for _, v := range [...]float64{s.N, s.Sum, s.SumLog, float64(s.Low)} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("sums %v, %v, %v and weight %v: want finite numbers", s.N, s.Sum, s.SumLog, s.Low)
		}
	}
	switch {
	case s.N < 0 || s.Low < 0:
		return fmt.Errorf("%v samples and a weight of %v at zero: want none below 0", s.N, s.Low)
	case s.Scale < minScale || s.Scale > maxScale:
		return fmt.Errorf("scale %d is not in [%d, %d]", s.Scale, minScale, maxScale)
	case len(s.Weights) > maxBuckets:
		return fmt.Errorf("%d buckets: want at most %d", len(s.Weights), maxBuckets)
	case len(s.Weights) > 0 && (s.Offset < -maxIndex || s.Offset > maxIndex):
		return fmt.Errorf("buckets from %d on: no float lies there", s.Offset)
	}
	for i, w := range s.Weights {
		if !(w >= 0) || math.IsInf(float64(w), 1) {
			return fmt.Errorf("weight %d is %v: want a finite number, not below 0", i, w)
		}
	}
	*d = Decayed{
		at: s.At, n: s.N, sum: s.Sum, sumLog: s.SumLog,
		hist: histogram{scale: s.Scale, offset: s.Offset, low: s.Low, weights: s.Weights},
	}
	return nil
}

// Bytes is what the cell takes of memory.
func (c *Cell) Bytes() int {
	return int(unsafe.Sizeof(*c)) + 4*(cap(c.dynamic.hist.weights)+cap(c.frozen.hist.weights))
}
