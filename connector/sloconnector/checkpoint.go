// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// A checkpoint is the state as of one moment: what was judged, and how far each input had come when it was. It is cut into
// parts, of which those are written that have changed.

// The names of the parts.
const (
	headPart   = "head"
	spansPart  = "spans"
	seriesPart = "series/" // and the shard
	inputsPart = "inputs/"
)

// headState is what is not one of many.
type headState struct {
	_         struct{} `cbor:",toarray"`
	Judge     judge.Head
	Watermark window.WatermarkState
	Events    []judge.EventState // that no consumer has taken yet
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
			e.set.Logger.Error("the checkpoint was not written: what is judged now would be lost by a crash", zap.Error(err))
		}
		return
	}
	e.mu.Lock()
	e.judge.Saved()
	e.mu.Unlock()
	size := 0
	for _, part := range changed {
		size += len(part)
	}
	e.own.saved(ctx, e.now().Sub(begin), size, true)
}

// snapshot is what has changed, as of one moment.
type snapshot struct {
	head   headState
	spans  []byte // nil where none came
	series map[int][]judge.SeriesState
	inputs map[int][]intake.InputState
}

// take takes a snapshot that shares nothing with what goes on: to encode it takes longer than to copy it, and nobody is heard
// while the mutex is held.
func (e *engine) take() snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := snapshot{head: headState{Judge: e.judge.Head(), Watermark: e.intake.Watermark.State()}}
	for _, ev := range e.outbox.pending {
		s.head.Events = append(s.head.Events, ev.State())
	}
	for _, ev := range e.judge.Events() {
		s.head.Events = append(s.head.Events, ev.State())
	}
	s.spans, s.series, s.inputs = e.intake.TakeSpans(), e.judge.TakeTouched(), e.intake.TakeInputs()
	for _, series := range s.series {
		for i := range series {
			for k := range series[i].Panes {
				intake.Detach(series[i].Panes[k].Sums.Values)
			}
			for k := range series[i].Windows {
				intake.Detach(series[i].Windows[k].Sums.Values)
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
	for shard, series := range s.series {
		put(seriesPart+strconv.Itoa(shard), series)
	}
	for shard, inputs := range s.inputs {
		put(inputsPart+strconv.Itoa(shard), inputs)
	}
	return parts, err
}

// restore takes up the state that was written last. A state that is damaged is set aside: the connector starts empty and says
// so.
func (e *engine) restore(ctx context.Context, host component.Host) (known bool, err error) {
	if e.cfg.Storage == nil {
		return false, nil
	}
	e.client, err = checkpoint.Client(ctx, host, *e.cfg.Storage, component.KindConnector, e.id, "")
	if err != nil {
		return false, err
	}
	e.store = checkpoint.New(e.client, "slo")
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
		e.set.Logger.Error("the last checkpoint is of no use, so the state begins empty: error budgets, counters and open violations are not known any more",
			zap.Uint64("checkpoint", generation.Sequence), zap.Error(err))
		e.own.damaged.Add(ctx, 1)
		e.begin()
		return false, nil
	}
	inputs, _ := e.intake.Sizes()
	e.set.Logger.Info("the state is that of the last checkpoint", zap.Uint64("checkpoint", generation.Sequence),
		zap.Int("series", e.judge.Len()), zap.Int("input_series", inputs), zap.Int("series_left_out", left))
	e.touchAll()
	return true, nil
}

func (e *engine) takeUp(parts map[string][]byte) (left int, err error) {
	var head headState
	if err := checkpoint.Decode(parts[headPart], &head); err != nil {
		return 0, fmt.Errorf("%s: %w", headPart, err)
	}
	var series []judge.SeriesState
	for name, part := range parts {
		switch {
		case strings.HasPrefix(name, seriesPart):
			var some []judge.SeriesState
			if err := checkpoint.Decode(part, &some); err != nil {
				return 0, fmt.Errorf("%s: %w", name, err)
			}
			series = append(series, some...)
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
	if left, err = e.judge.Restore(head.Judge, series); err != nil {
		return left, err
	}
	if err := e.intake.Watermark.Restore(head.Watermark, e.now().UnixNano()); err != nil {
		return left, fmt.Errorf("%s: %w", headPart, err)
	}
	for i := range head.Events {
		e.outbox.pending = append(e.outbox.pending, head.Events[i].Event(e.judge))
	}
	return left, nil
}

// touchAll makes the next checkpoint write everything.
func (e *engine) touchAll() {
	e.judge.Touch()
	e.intake.TouchAll()
}
