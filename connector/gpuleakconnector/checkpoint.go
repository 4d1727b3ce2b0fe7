// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/leak"
	"github.com/otelcol-llm/otelcol-llm/internal/delta"
	"github.com/otelcol-llm/otelcol-llm/internal/frame"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// A checkpoint is the state as of one moment: what is known of processes and devices, and how far each counter had come.

// The names of the parts.
const (
	headPart      = "head"
	processesPart = "processes/" // and the shard
)

// headState is what is not one of many.
type headState struct {
	_         struct{} `cbor:",toarray"`
	Fleet     leak.Head
	Watermark window.WatermarkState
	Events    []leak.Event // that no consumer has taken yet
	Counters  map[uint64]delta.NumberState
}

func newKeeper(e *engine) *frame.Keeper {
	return &frame.Keeper{
		State: e, Own: e.own, Logger: e.set.Logger, Now: func() time.Time { return e.now() }, Name: "gpu_leak", Costs: "what memory did lately",
		Unknown: "each process is seen for the first time",
	}
}

// snapshot is all that is known, as of one moment: memory is heard of at every scrape, so there is nothing that has not changed.
type snapshot struct {
	head      headState
	processes map[int][]leak.ProcessState
}

// Take takes a snapshot that shares nothing with what goes on.
func (e *engine) Take() frame.Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &snapshot{}
	s.head.Fleet, s.processes = e.fleet.State()
	s.head.Watermark = e.intake.Watermark.State()
	s.head.Events = append(s.head.Events, e.events...)
	s.head.Counters = map[uint64]delta.NumberState{}
	for id, c := range e.counters {
		if st := c.number.State(); st != nil {
			s.head.Counters[id] = *st
		}
	}
	return s
}

// Encode makes the parts of a checkpoint.
func (s *snapshot) Encode(to *frame.Parts) {
	to.Put(headPart, s.head)
	frame.PutShards(to, processesPart, s.processes)
}

// Kept needs nothing: what is told does not wait for the checkpoint.
func (*engine) Kept() {}

// Lost needs nothing: each checkpoint is whole.
func (*engine) Lost() {}

// Forget begins empty.
func (e *engine) Forget() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.begin()
}

// TakeUp takes up the parts of a checkpoint.
func (e *engine) TakeUp(parts map[string][]byte) ([]zap.Field, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var head headState
	if err := frame.Get(parts, headPart, &head); err != nil {
		return nil, err
	}
	processes, err := frame.Shards[leak.ProcessState](parts, processesPart)
	if err != nil {
		return nil, err
	}
	left, err := e.fleet.Restore(head.Fleet, processes)
	if err != nil {
		return nil, err
	}
	if err := e.intake.Watermark.Restore(head.Watermark, e.now().UnixNano()); err != nil {
		return nil, fmt.Errorf("%s: %w", headPart, err)
	}
	e.events = head.Events
	for id, st := range head.Counters {
		if len(e.counters) >= e.cfg.MaxInputSeries {
			break
		}
		c := &counter{heard: e.now().UnixNano()}
		if err := c.number.Restore(&st); err != nil {
			return nil, fmt.Errorf("%s: %w", headPart, err)
		}
		e.counters[id] = c
	}
	return []zap.Field{zap.Int("processes", e.fleet.Len()), zap.Int("processes_left_out", left)}, nil
}
