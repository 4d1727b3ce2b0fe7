// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"fmt"
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/delta"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// Shards is into how many parts the state of the input series is cut, so that a checkpoint writes only what has changed.
const Shards = 64

// InputState is an input series at rest. It is written as an array, so the order of the fields is part of the format.
type InputState struct {
	_           struct{} `cbor:",toarray"`
	ID          uint64
	Number      *delta.NumberState
	Explicit    *delta.ExplicitState
	Exponential *delta.ExponentialState
	Unknown     uint64
	Once        delta.OnceState
}

// TouchAll makes everything count as changed.
func (e *Intake) TouchAll() {
	for i := range e.inputs.touched {
		e.inputs.touched[i] = true
	}
	e.recent.touched = true
}

// TakeInputs is the state of the shards with input series that have changed since the last call. It shares nothing with what
// goes on.
func (e *Intake) TakeInputs() map[int][]InputState { return e.inputs.takeTouched() }

// TakeSpans are the spans that are remembered, nil where none came since the last call.
func (e *Intake) TakeSpans() []byte {
	if !e.recent.touched {
		return nil
	}
	e.recent.touched = false
	return e.recent.state()
}

// RestoreInputs takes up input series at a wall time. They find their SLOs with their next point.
func (e *Intake) RestoreInputs(states []InputState, now int64) error {
	return e.inputs.restore(states, now)
}

// RestoreSpans takes up what TakeSpans gave.
func (e *Intake) RestoreSpans(seen []byte) { e.recent.restore(seen) }

// Intern returns the one slice that stands for all equal boundaries.
func (e *Intake) Intern(bounds []float64) []float64 { return e.inputs.layouts.share(bounds).bounds }

func (s *inputs) takeTouched() map[int][]InputState {
	shards := map[int][]InputState{}
	for i, touched := range s.touched {
		if touched {
			shards[i] = nil
		}
	}
	s.touched = [Shards]bool{}
	for id, in := range s.series {
		shard := int(id % Shards)
		if states, touched := shards[shard]; touched {
			shards[shard] = append(states, in.state(id))
		}
	}
	return shards
}

// state is the input series at rest. It shares nothing with the living one.
func (in *Input) state(id uint64) InputState {
	st := InputState{ID: id, Number: in.number.State(), Explicit: in.explicit.State(), Unknown: in.unknown, Once: in.once.State()}
	if in.exponential != nil {
		st.Exponential = in.exponential.State()
	}
	if st.Explicit != nil {
		st.Explicit.Last.Counts = slices.Clone(st.Explicit.Last.Counts)
	}
	if st.Exponential != nil {
		detachBuckets(&st.Exponential.Last)
	}
	return st
}

func (s *inputs) restore(states []InputState, now int64) error {
	shared := func(bounds []float64) []float64 { return s.layouts.share(bounds).bounds }
	for i := range states {
		st := &states[i]
		in := &Input{unknown: st.Unknown, heard: now}
		s.series[st.ID] = in
		errs := []error{in.number.Restore(st.Number), in.explicit.Restore(st.Explicit, shared), in.once.Restore(st.Once)}
		if st.Exponential != nil {
			in.exponential = &delta.Exponential{}
			errs = append(errs, in.exponential.Restore(st.Exponential))
		}
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("input series %x: %w", st.ID, err)
		}
	}
	return nil
}

// Detach copies the counts of a state, which are those of the living.
func Detach(d *sketch.DistributionState) {
	if d == nil {
		return
	}
	for i := range d.Explicit {
		d.Explicit[i].Counts = slices.Clone(d.Explicit[i].Counts)
	}
	for i := range d.Exponential {
		detachBuckets(&d.Exponential[i])
	}
}

func detachBuckets(e *sketch.ExponentialState) {
	e.Positive.Counts, e.Negative.Counts = slices.Clone(e.Positive.Counts), slices.Clone(e.Negative.Counts)
}
