// SPDX-License-Identifier: Apache-2.0

package delta

import (
	"fmt"
	"math"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// The states of the trackers are plain values for a checkpoint; a tracker that has seen no point has none, which is nil.
// They are written as arrays, so the order of the fields is part of the format.

// NumberState is a Number.
type NumberState struct {
	_           struct{} `cbor:",toarray"`
	Start, Time int64
	Value       float64
}

// ExplicitState is an Explicit.
type ExplicitState struct {
	_           struct{} `cbor:",toarray"`
	Start, Time int64
	Last        sketch.ExplicitState
}

// ExponentialState is an Exponential.
type ExponentialState struct {
	_           struct{} `cbor:",toarray"`
	Start, Time int64
	Last        sketch.ExponentialState
}

// State returns the tracker as plain values.
func (n *Number) State() *NumberState {
	if !n.known {
		return nil
	}
	return &NumberState{Start: n.start, Time: n.time, Value: n.value}
}

// Restore makes the tracker what State was taken of. After an error it has seen nothing.
func (n *Number) Restore(s *NumberState) error {
	*n = Number{}
	if s == nil {
		return nil
	}
	if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
		return fmt.Errorf("last value %v is not finite", s.Value)
	}
	*n = Number{series: series{start: s.Start, time: s.Time, known: true}, value: s.Value}
	return nil
}

// State returns the tracker as plain values. The counts are the tracker's own, so they are good until the next Add.
func (e *Explicit) State() *ExplicitState {
	if !e.known {
		return nil
	}
	return &ExplicitState{Start: e.start, Time: e.time, Last: sketch.ExplicitState{Bounds: e.bounds, Counts: e.counts}}
}

// Restore makes the tracker what State was taken of. The counts of s become the tracker's. intern, which may be nil,
// returns the one slice that stands for all equal boundaries. After an error the tracker has seen nothing.
func (e *Explicit) Restore(s *ExplicitState, intern func([]float64) []float64) error {
	*e = Explicit{}
	if s == nil {
		return nil
	}
	bounds, counts := s.Last.Bounds, s.Last.Counts
	if _, ok := sketch.Total(counts); !ok || !sketch.Valid(bounds, counts) {
		return fmt.Errorf("%d counts and boundaries %v are no histogram", len(counts), bounds)
	}
	if intern != nil {
		bounds = intern(bounds)
	}
	*e = Explicit{series: series{start: s.Start, time: s.Time, known: true}, bounds: bounds, counts: counts}
	return nil
}

// State returns the tracker as plain values. The counts are the tracker's own, so they are good until the next Add.
func (e *Exponential) State() *ExponentialState {
	if !e.known {
		return nil
	}
	return &ExponentialState{Start: e.start, Time: e.time, Last: e.last.State()}
}

// Restore makes the tracker what State was taken of. The counts of s become the tracker's. After an error it has seen
// nothing.
func (e *Exponential) Restore(s *ExponentialState) error {
	*e = Exponential{}
	if s == nil {
		return nil
	}
	var last sketch.Exponential
	if err := last.Restore(s.Last); err != nil {
		return err
	}
	if n := last.Count(); n > sketch.MaxCount {
		return fmt.Errorf("%d events are more than %d", n, uint64(sketch.MaxCount))
	}
	*e = Exponential{series: series{start: s.Start, time: s.Time, known: true}, last: last}
	return nil
}
