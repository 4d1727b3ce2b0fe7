// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/coupling"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/heat"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/metadata"
)

// output is the way out by a metrics pipeline. The engine starts with the first of its pipelines, so another may start later, or never.
// It is of the one goroutine that publishes, then of Shutdown.
type output struct {
	to   consumer.Metrics
	open atomic.Bool // it has started
	emit.Untold
}

// publish tells what is new since the last call, by every metrics pipeline. What windows have said is kept until it is taken; what is
// merely repeated is not.
func (e *engine) publish(ctx context.Context) {
	ready := func(out *output) bool { return out.open.Load() && !out.Paused(e.now()) }
	if len(e.outputs) > 0 && !slices.ContainsFunc(e.outputs, ready) {
		return
	}
	e.mu.Lock()
	fresh, repeated := e.collect()
	lost := e.lost
	e.lost = 0
	e.mu.Unlock()
	for _, out := range e.outputs {
		if out.Add(fresh); ready(out) {
			e.send(ctx, out, repeated)
		}
		lost += out.TakeDropped()
	}
	if lost > 0 {
		e.own.Dropped.Add(ctx, lost)
	}
}

// send tells one pipeline what waits for it, and what is repeated.
func (e *engine) send(ctx context.Context, out *output, repeated []*emit.Batch) {
	errs := out.Send(ctx, out.to)
	for _, batch := range repeated {
		md := pmetric.NewMetrics() // whoever takes it may change it
		batch.Metrics().CopyTo(md)
		errs = append(errs, out.to.ConsumeMetrics(ctx, md))
	}
	err := errors.Join(errs...)
	if err == nil {
		out.Resume()
		return
	}
	out.Failed(e.now())
	if ctx.Err() == nil {
		e.set.Logger.Warn("results were not taken and are told again", zap.Duration("after", out.Wait()), zap.Error(err))
	}
}

// collect takes what windows have said, and the cells whose turn it is to be told again. The caller holds the mutex.
func (e *engine) collect() (fresh, repeated []*emit.Batch) {
	now := e.now()
	for _, id := range e.heat.TakeRetired() {
		e.retire(&id, e.last(now))
	}
	fresh, e.points = e.results.Take(), 0
	if interval := e.cfg.RefreshInterval; interval > 0 && now.Sub(e.refreshed) >= min(time.Second, interval) {
		e.refreshed = now
		e.turns++
		repeated = e.again(e.turns, max(uint64(interval/time.Second), 1))
	}
	return fresh, repeated
}

// again writes the number-th of so many shares of what stands until the next window closes. It carries the last whole minute
// that is complete: with the time of its window, it would be lost to a backend that looks back for five minutes before the
// next one is told. The caller holds the mutex.
func (e *engine) again(number, of uint64) []*emit.Batch {
	out := emit.Pages{Scope: metadata.ScopeName, On: e.enabled}
	minute := window.Unset
	if at := e.intake.Watermark.At(); at != window.Unset {
		minute = window.Start(at, time.Minute)
	}
	e.heat.Each(number, of, func(c *heat.Cell) {
		if end := c.Result().End; end != 0 {
			e.cell(out.Next(), c, max(end, minute))
		}
	})
	if number%of == 0 {
		e.heat.EachExplanation(func(x *heat.Explanation) { e.explanation(out.Next(), x, max(x.End, minute)) })
		if c := e.coupled; c != nil && c.told != 0 {
			c.curves.Each(func(of *coupling.Cell) { e.curve(out.Next(), of, max(c.told, minute)) })
		}
	}
	return out.Take()
}

// room is where the results of windows go, nil where there is no room for n more points.
func (e *engine) room(n int) *emit.Batch {
	if len(e.outputs) == 0 {
		return nil
	}
	if e.points >= emit.MaxUntold {
		e.lost += int64(n)
		return nil
	}
	batch := e.results.Next()
	e.points += n
	return batch
}

// pointsOfCell is about how many points the results of a cell are.
const pointsOfCell = 10

// closed is called by the map for each cell of which a window says something.
func (e *engine) closed(c *heat.Cell) {
	if r := c.Result(); r.Open != (baseline.Span{}) {
		e.notices.leftOpen(c.SLO, r.Open)
	}
	if batch := e.room(pointsOfCell); batch != nil {
		e.cell(batch, c, c.Result().End)
	}
}

// cell writes the results of a cell as of an event time: the end of the window, or a later one at which they still stand. What
// the window does not say any more ends with it: a backend that looks back would go on to show what an earlier one said.
func (e *engine) cell(batch *emit.Batch, c *heat.Cell, at int64) {
	r := c.Result()
	to := e.of(batch, &c.Identity)
	to.StateSet(state, at, states[r.State])
	to.Gauge(baselines, at, c.Static(), "baseline", "static")
	gauge := func(m *emit.Metric, v float64, ends bool, more ...string) {
		switch {
		case !r.Empty && !math.IsNaN(v):
			to.Gauge(m, at, v, more...)
		case ends && at == r.End:
			to.Stale(m, at, more...)
		}
	}
	gauge(observed, r.Observed.Value, true)
	gauge(deviation, r.Deviation, true)
	// What is normal is not known at first, and known from then on.
	gauge(baselines, r.Dynamic.Value, r.Empty, "baseline", "dynamic")
	gauge(baselines, r.Frozen.Value, r.Empty, "baseline", "frozen")
	gauge(ratio, r.Drift, r.Empty)
}

// explained is called by the map for what explains a deviation.
func (e *engine) explained(x *heat.Explanation) {
	if batch := e.room(1); batch != nil {
		e.explanation(batch, x, x.End)
	}
}

// explanation writes what explains a deviation, or that it does so no more.
func (e *engine) explanation(batch *emit.Batch, x *heat.Explanation, at int64) {
	to := e.of(batch, &heat.Identity{SLO: x.SLO}) // it is about all tenants, so it is none's
	if math.IsNaN(x.Share) {
		to.Stale(explanationMetric, at, "dimension", x.Dimension, "value", x.Value)
		return
	}
	to.Gauge(explanationMetric, at, x.Share, "dimension", x.Dimension, "value", x.Value)
}

// tellAfter is the least time between two different values of a series: backends refuse two for one instant.
const tellAfter = int64(time.Millisecond)

// last is an event time after all that was told: a series that ends in the wall clock's time could not begin again in a replay.
func (e *engine) last(now time.Time) int64 {
	if at := e.intake.Watermark.At(); at != window.Unset {
		return at + tellAfter
	}
	return now.UnixNano()
}

// retire ends the series of a cell of which nothing more is told.
func (e *engine) retire(id *heat.Identity, at int64) {
	batch := e.room(pointsOfCell)
	if batch == nil {
		return
	}
	to := e.of(batch, id)
	for _, m := range []*emit.Metric{observed, deviation, ratio, state} {
		to.Stale(m, at)
	}
	for _, name := range []string{"static", "dynamic", "frozen"} {
		to.Stale(baselines, at, "baseline", name)
	}
}

// of is where the results of a cell go.
func (e *engine) of(batch *emit.Batch, id *heat.Identity) emit.Series {
	target := id.SLO.Target()
	return e.resource(batch, id.Group).Series(func(m pcommon.Map) { e.label(m, id, target) })
}

// resource says who the tenant is, where a group tells it, and which collector says so.
func (e *engine) resource(batch *emit.Batch, group func(func(key, value string))) *emit.Resource {
	var id strings.Builder
	keys := e.tenants.Keys()
	group(func(k, v string) {
		if slices.Contains(keys, k) {
			id.WriteString(k + "\x00" + v + "\x00")
		}
	})
	return batch.Resource(id.String(), func(m pcommon.Map) {
		group(func(k, v string) {
			if slices.Contains(keys, k) {
				m.PutStr(k, v)
			}
		})
		if of, ok := e.set.Resource.Attributes().Get("service.instance.id"); ok {
			of.CopyTo(m.PutEmpty("service.instance.id"))
		}
	})
}

// label writes the canonical labels and the dimensions, and the tenant where they tell it.
func (e *engine) label(m pcommon.Map, id *heat.Identity, target string) {
	emit.Label(m, id.SLO, target, id, e.cfg.TenantFrom[0], id.Overflow)
	e.sign(m)
}

// sign tells the results of processors apart that are set up in another way: those with a name carry it.
func (e *engine) sign(m pcommon.Map) {
	if e.id.Name() != "" {
		m.PutStr(componentKey, e.id.String())
	}
}

const componentKey = "otelcol.component.id"
