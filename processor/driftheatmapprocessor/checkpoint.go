// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/frame"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/coupling"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/heat"
)

// A checkpoint is the state as of one moment: the cells, what coupling has learned, and how far each input had come when they
// were so.

// The names of the parts besides those of the intake.
const (
	headPart     = "head"
	promisedPart = "promised" // there are checkpoints without
	enginesPart  = "engines"
	cellsPart    = "cells/" // and the shard
)

// headState is what is not one of many.
type headState struct {
	_         struct{} `cbor:",toarray"`
	Heat      heat.Head
	Watermark window.WatermarkState
	Coupling  couplingState
}

// couplingState is what was learned of engines, and from what.
type couplingState struct {
	_           struct{} `cbor:",toarray"`
	By, Metrics []string
	Told        int64 // end of the window of which it was told last
	Cells       []coupling.CellState
}

func newKeeper(e *engine) *frame.Keeper {
	return &frame.Keeper{
		State: e, Own: e.own, Logger: e.set.Logger, Now: func() time.Time { return e.now() }, Name: "drift_heatmap", Costs: "what is learned now",
		Unknown: "what was normal is not known any more",
	}
}

func (e *engine) save(ctx context.Context) { e.keeper.Save(ctx) }

func (e *engine) restore(ctx context.Context, host component.Host) (known bool, err error) {
	return e.keeper.Restore(ctx, host, e.cfg.Storage, component.KindProcessor, e.id)
}

// snapshot is what has changed, as of one moment.
type snapshot struct {
	head     headState
	promised []heat.PromisedState
	heard    frame.Heard
	engines  []servedState // nil where none has changed
	cells    map[int][]heat.CellState
}

// Take takes a snapshot that shares nothing with what goes on.
func (e *engine) Take() frame.Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &snapshot{
		head:     headState{Heat: e.heat.Head(), Watermark: e.intake.Watermark.State()},
		promised: e.heat.Promised(), heard: frame.TakeHeard(e.intake), cells: e.heat.TakeTouched(),
	}
	if c := e.coupled; c != nil {
		s.head.Coupling = couplingState{By: c.cfg.By, Metrics: c.names(), Told: c.told, Cells: c.curves.State()}
		s.engines = c.takeEngines()
	}
	for _, cells := range s.cells {
		for i := range cells {
			for k := range cells[i].Panes {
				intake.Detach(cells[i].Panes[k].Values)
			}
			if before := cells[i].Before; before != nil {
				intake.Detach(before.Values)
			}
		}
	}
	return s
}

// Encode makes the parts of a checkpoint.
func (s *snapshot) Encode(to *frame.Parts) {
	to.Put(headPart, s.head)
	to.Put(promisedPart, s.promised)
	s.heard.Encode(to)
	if s.engines != nil {
		to.Put(enginesPart, s.engines)
	}
	frame.PutShards(to, cellsPart, s.cells)
}

// Kept needs nothing: what is told does not wait for the checkpoint.
func (*engine) Kept() {}

// Lost makes the next checkpoint write everything.
func (e *engine) Lost() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.touchAll()
}

func (e *engine) touchAll() {
	e.heat.Touch()
	e.intake.TouchAll()
	if e.coupled != nil {
		e.coupled.touched = true
	}
}

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
	cells, err := frame.Shards[heat.CellState](parts, cellsPart)
	if err != nil {
		return nil, err
	}
	var promised []heat.PromisedState
	if _, ok := parts[promisedPart]; ok {
		if err := frame.Get(parts, promisedPart, &promised); err != nil {
			return nil, err
		}
	}
	if err := frame.RestoreHeard(e.intake, parts, e.now().UnixNano()); err != nil {
		return nil, err
	}
	left, err := e.heat.Restore(head.Heat, promised, cells, e.intake.Intern)
	if err != nil {
		return nil, err
	}
	if e.coupled != nil {
		if err := e.coupled.restore(&head.Coupling, parts, e.now().UnixNano()); err != nil {
			return nil, fmt.Errorf("coupling: %w", err)
		}
	}
	if err := e.intake.Watermark.Restore(head.Watermark, e.now().UnixNano()); err != nil {
		return nil, fmt.Errorf("%s: %w", headPart, err)
	}
	e.touchAll()
	inputs, _ := e.intake.Sizes()
	return []zap.Field{zap.Int("cells", e.heat.Len()), zap.Int("input_series", inputs), zap.Int("cells_left_out", left)}, nil
}
