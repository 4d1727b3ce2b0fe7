// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/frame"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// A checkpoint is the state as of one moment: what was judged, and how far each input had come when it was.

// The names of the parts besides those of the intake.
const (
	headPart   = "head"
	seriesPart = "series/" // and the shard
)

// headState is what is not one of many.
type headState struct {
	_         struct{} `cbor:",toarray"`
	Judge     judge.Head
	Watermark window.WatermarkState
	Events    []judge.EventState // that no consumer has taken yet
}

func newKeeper(e *engine) *frame.Keeper {
	return &frame.Keeper{
		State: e, Own: e.own, Logger: e.set.Logger, Now: func() time.Time { return e.now() }, Name: "slo", Costs: "what is judged now",
		Unknown: "error budgets, counters and open violations are not known any more",
	}
}

func (e *engine) save(ctx context.Context) { e.keeper.Save(ctx) }

func (e *engine) restore(ctx context.Context, host component.Host) (known bool, err error) {
	return e.keeper.Restore(ctx, host, e.cfg.Storage, component.KindConnector, e.id)
}

// snapshot is what has changed, as of one moment.
type snapshot struct {
	head   headState
	heard  frame.Heard
	series map[int][]judge.SeriesState
}

// Take takes a snapshot that shares nothing with what goes on.
func (e *engine) Take() frame.Snapshot {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &snapshot{head: headState{Judge: e.judge.Head(), Watermark: e.intake.Watermark.State()}}
	for _, ev := range e.outbox.pending {
		s.head.Events = append(s.head.Events, ev.State())
	}
	for _, ev := range e.judge.Events() {
		s.head.Events = append(s.head.Events, ev.State())
	}
	s.series, s.heard = e.judge.TakeTouched(), frame.TakeHeard(e.intake)
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

// Encode makes the parts of a checkpoint.
func (s *snapshot) Encode(to *frame.Parts) {
	to.Put(headPart, s.head)
	s.heard.Encode(to)
	frame.PutShards(to, seriesPart, s.series)
}

// Kept lets counters tell what is safe.
func (e *engine) Kept() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.judge.Saved()
}

// Lost makes the next checkpoint write everything.
func (e *engine) Lost() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.touchAll()
}

func (e *engine) touchAll() {
	e.judge.Touch()
	e.intake.TouchAll()
}

// Forget begins empty.
func (e *engine) Forget() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begin()
	return nil
}

// TakeUp takes up the parts of a checkpoint.
func (e *engine) TakeUp(parts map[string][]byte) ([]zap.Field, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var head headState
	if err := frame.Get(parts, headPart, &head); err != nil {
		return nil, err
	}
	series, err := frame.Shards[judge.SeriesState](parts, seriesPart)
	if err != nil {
		return nil, err
	}
	if err := frame.RestoreHeard(e.intake, parts, e.now().UnixNano()); err != nil {
		return nil, err
	}
	left, err := e.judge.Restore(head.Judge, series)
	if err != nil {
		return nil, err
	}
	if err := e.intake.Watermark.Restore(head.Watermark, e.now().UnixNano()); err != nil {
		return nil, fmt.Errorf("%s: %w", headPart, err)
	}
	for i := range head.Events {
		e.outbox.pending = append(e.outbox.pending, head.Events[i].Event(e.judge))
	}
	e.touchAll()
	e.parts.begin(e.judge.LateBefore())
	inputs, _ := e.intake.Sizes()
	return []zap.Field{zap.Int("series", e.judge.Len()), zap.Int("input_series", inputs), zap.Int("series_left_out", left)}, nil
}
