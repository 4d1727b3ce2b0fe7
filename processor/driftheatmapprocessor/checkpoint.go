// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/coupling"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/heat"
)

// A checkpoint is the state as of one moment: the cells, and how far each input had come when they were so. It is cut into
// parts, of which those are written that have changed.

// The names of the parts.
const (
	headPart    = "head"
	spansPart   = "spans"
	enginesPart = "engines"
	cellsPart   = "cells/" // and the shard
	inputsPart  = "inputs/"
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

// save writes what has changed since the last checkpoint. What could not be written is written with the next one.
func (e *engine) save(ctx context.Context) {
	begin := e.now()
	taken := e.take()
	changed, err := taken.encode()
	if err == nil {
		err = e.store.Save(ctx, changed, nil)
	}
	if err != nil {
		e.mu.Lock()
		e.touchAll()
		e.mu.Unlock()
		e.own.saved(ctx, e.now().Sub(begin), 0, false)
		if ctx.Err() == nil {
			e.set.Logger.Error("the checkpoint was not written: what is learned now would be lost by a crash", zap.Error(err))
		}
		return
	}
	size := 0
	for _, part := range changed {
		size += len(part)
	}
	e.own.saved(ctx, e.now().Sub(begin), size, true)
}

// snapshot is what has changed, as of one moment.
type snapshot struct {
	head  headState
	spans []byte // nil where none came
	// engines is nil where none has changed.
	engines []servedState
	cells   map[int][]heat.CellState
	inputs  map[int][]intake.InputState
}

// take takes a snapshot that shares nothing with what goes on: to encode it takes longer than to copy it, and nobody is heard
// while the mutex is held.
func (e *engine) take() snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := snapshot{
		head:  headState{Heat: e.heat.Head(), Watermark: e.intake.Watermark.State()},
		spans: e.intake.TakeSpans(), cells: e.heat.TakeTouched(), inputs: e.intake.TakeInputs(),
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

// encode makes the parts of a checkpoint.
func (s *snapshot) encode() (parts map[string][]byte, err error) {
	parts = map[string][]byte{}
	put := func(name string, v any) {
		if err == nil {
			parts[name], err = checkpoint.Encode(v)
		}
	}
	put(headPart, s.head)
	if s.spans != nil {
		put(spansPart, s.spans)
	}
	if s.engines != nil {
		put(enginesPart, s.engines)
	}
	for shard, cells := range s.cells {
		put(cellsPart+strconv.Itoa(shard), cells)
	}
	for shard, inputs := range s.inputs {
		put(inputsPart+strconv.Itoa(shard), inputs)
	}
	return parts, err
}

// restore takes up the state that was written last. A state that is damaged is set aside: the processor starts empty and says
// so.
func (e *engine) restore(ctx context.Context, host component.Host) (known bool, err error) {
	if e.cfg.Storage == nil {
		return false, nil
	}
	e.client, err = checkpoint.Client(ctx, host, *e.cfg.Storage, component.KindProcessor, e.id, "")
	if err != nil {
		return false, err
	}
	e.store = checkpoint.New(e.client, "drift_heatmap")
	generation, problems, err := e.store.Load(ctx)
	if err != nil {
		return false, fmt.Errorf("storage: the last checkpoint cannot be read: %w", err)
	}
	for _, problem := range problems {
		e.set.Logger.Error("a checkpoint is damaged", zap.Error(problem))
		e.own.damaged.Add(ctx, 1)
	}
	if len(generation.Parts) == 0 {
		return false, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	left, err := e.takeUp(generation.Parts)
	if err != nil {
		e.set.Logger.Error("the last checkpoint is of no use, so the state begins empty: what was normal is not known any more",
			zap.Uint64("checkpoint", generation.Sequence), zap.Error(err))
		e.own.damaged.Add(ctx, 1)
		return false, e.begin()
	}
	inputs, _ := e.intake.Sizes()
	e.set.Logger.Info("the state is that of the last checkpoint", zap.Uint64("checkpoint", generation.Sequence),
		zap.Int("cells", e.heat.Len()), zap.Int("input_series", inputs), zap.Int("cells_left_out", left))
	e.touchAll()
	return true, nil
}

func (e *engine) takeUp(parts map[string][]byte) (left int, err error) {
	var head headState
	if err := checkpoint.Decode(parts[headPart], &head); err != nil {
		return 0, fmt.Errorf("%s: %w", headPart, err)
	}
	var cells []heat.CellState
	for name, part := range parts {
		switch {
		case strings.HasPrefix(name, cellsPart):
			var some []heat.CellState
			if err := checkpoint.Decode(part, &some); err != nil {
				return 0, fmt.Errorf("%s: %w", name, err)
			}
			cells = append(cells, some...)
		case strings.HasPrefix(name, inputsPart):
			var some []intake.InputState
			if err := checkpoint.Decode(part, &some); err != nil {
				return 0, fmt.Errorf("%s: %w", name, err)
			}
			if err := e.intake.RestoreInputs(some, e.now().UnixNano()); err != nil {
				return 0, fmt.Errorf("%s: %w", name, err)
			}
		case name == spansPart:
			var seen []byte
			if err := checkpoint.Decode(part, &seen); err != nil {
				return 0, fmt.Errorf("%s: %w", name, err)
			}
			e.intake.RestoreSpans(seen)
		}
	}
	if left, err = e.heat.Restore(head.Heat, cells, e.intake.Intern); err != nil {
		return left, err
	}
	if e.coupled != nil {
		if err := e.coupled.restore(&head.Coupling, parts[enginesPart], e.now().UnixNano()); err != nil {
			return left, fmt.Errorf("coupling: %w", err)
		}
	}
	if err := e.intake.Watermark.Restore(head.Watermark, e.now().UnixNano()); err != nil {
		return left, fmt.Errorf("%s: %w", headPart, err)
	}
	return left, nil
}

// touchAll makes the next checkpoint write everything.
func (e *engine) touchAll() {
	e.heat.Touch()
	e.intake.TouchAll()
	if e.coupled != nil {
		e.coupled.touched = true
	}
}
