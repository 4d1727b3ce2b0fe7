// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"fmt"
	"math"
	"unsafe"
)

// SeriesState is a series at rest, for checkpoints. It is written as an array, so the order of the fields is part of the format.
type SeriesState struct {
	_                   struct{} `cbor:",toarray"`
	Newest, Since, Anew int64
	Last, Low           point
	First               perRequest
	Cells               []CellState
	State, Least, Most  State
	Worse, Better       int64
	Proof               proof
}

// CellState is a cell at rest.
type CellState struct {
	_                                struct{} `cbor:",toarray"`
	At                               int64
	Level                            uint8
	N, Loads, Caches                 uint32
	Bytes, Load, Peak, Cache, Served float64
}

// State is the series at rest. It shares nothing with the series.
func (s *Series) State() SeriesState {
	v := &s.verdict
	st := SeriesState{
		Newest: s.newest, Since: s.since, Anew: s.anew, Last: s.last, Low: s.low, First: s.first,
		State: v.state, Least: v.least, Most: v.most, Worse: v.worse, Better: v.better, Proof: v.proof,
		Cells: make([]CellState, len(s.cells)),
	}
	for i, c := range s.cells {
		st.Cells[i] = CellState{
			At: c.at, Level: c.level, N: c.n, Loads: c.loads, Caches: c.caches,
			Bytes: c.bytes, Load: c.load, Peak: c.peak, Cache: c.cache, Served: c.served,
		}
	}
	return st
}

// Restore makes the series what State was taken of. After an error it is empty.
func (s *Series) Restore(st SeriesState) error {
	*s = Series{}
	if max(st.State, st.Least, st.Most) > Leaking {
		return fmt.Errorf("state of a series: %d, %d, %d: want at most %d", st.State, st.Least, st.Most, Leaking)
	}
	for _, v := range [...]float64{st.Last.Value, st.Low.Value, st.First.Bytes, st.First.Running, st.Proof.Work, st.Proof.Bytes, st.Proof.Rate, st.Proof.Rise,
		st.Proof.Running, st.Proof.Cache, st.Proof.PerRunning, st.Proof.PerKV, st.Proof.Every} {
		if !valid(v) {
			return fmt.Errorf("values %v, %v, sums %v, %v and what a leak was found by %v: want finite numbers, not below 0", st.Last.Value, st.Low.Value, st.First.Bytes, st.First.Running, st.Proof)
		}
	}
	cells := make([]cell, len(st.Cells))
	for i, c := range st.Cells {
		for _, v := range [...]float64{c.Bytes, c.Load, c.Peak, c.Cache, c.Served} {
			if !valid(v) {
				return fmt.Errorf("cell %d: %v: want finite numbers, not below 0", i, v)
			}
		}
		cells[i] = cell{
			at: c.At, level: c.Level, n: c.N, loads: c.Loads, caches: c.Caches,
			bytes: c.Bytes, load: c.Load, peak: c.Peak, cache: c.Cache, served: c.Served,
		}
		switch {
		case c.Level > topLevel || c.At&(1<<c.Level-1) != 0 || c.At < -maxIndex || c.At > maxIndex:
			return fmt.Errorf("cell %d: level %d at %d: is no cell", i, c.Level, c.At)
		case i > 0 && cells[i-1].end() > c.At:
			return fmt.Errorf("cell %d: begins at %d, within the one before", i, c.At)
		case st.Newest < c.At || cells[i].end() <= start(st.Newest, topLevel):
			return fmt.Errorf("cell %d: at %d: is not remembered at %d", i, c.At, st.Newest)
		}
	}
	if len(cells) > 0 && cells[len(cells)-1].at != st.Newest {
		return fmt.Errorf("newest cell at %d: want %d", cells[len(cells)-1].at, st.Newest)
	}
	*s = Series{
		cells: cells, newest: st.Newest, since: st.Since, anew: st.Anew, last: st.Last, low: st.Low, first: st.First,
		verdict: verdict{state: st.State, least: st.Least, most: st.Most, worse: st.Worse, better: st.Better, proof: st.Proof},
	}
	return nil
}

// maxIndex is beyond all times.
const maxIndex = math.MaxInt64 / 4

// Bytes is what the series takes of memory.
func (s *Series) Bytes() int { return int(unsafe.Sizeof(*s)) + cap(s.cells)*int(unsafe.Sizeof(cell{})) }
