// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/heat"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/metadata"
)

// publish tells what is new since the last call. What windows have said is kept until it is taken; what is merely repeated is
// not.
func (e *engine) publish(ctx context.Context) {
	if e.outbox.Paused(e.now()) {
		return
	}
	e.mu.Lock()
	fresh, repeated := e.collect()
	lost := e.lost
	e.lost = 0
	e.mu.Unlock()
	if e.metrics == nil {
		return
	}
	e.outbox.Add(fresh)
	errs := e.outbox.Send(ctx, e.metrics)
	for _, batch := range repeated {
		errs = append(errs, e.metrics.ConsumeMetrics(ctx, batch.Metrics()))
	}
	if err := errors.Join(errs...); err == nil {
		e.outbox.Resume()
	} else {
		e.outbox.Failed(e.now())
		if ctx.Err() == nil {
			e.set.Logger.Warn("results were not taken and are told again", zap.Duration("after", e.outbox.Wait()), zap.Error(err))
		}
	}
	if lost += e.outbox.TakeDropped(); lost > 0 {
		e.own.dropped.Add(ctx, lost)
	}
}

// collect takes what windows have said, and the cells whose turn it is to be told again. The caller holds the mutex.
func (e *engine) collect() (fresh, repeated []*emit.Batch) {
	now := e.now()
	for _, id := range e.heat.TakeRetired() {
		e.retire(&id, now)
	}
	fresh, e.points = e.results.Take(), 0
	if interval := e.cfg.RefreshInterval; interval > 0 && now.Sub(e.refreshed) >= min(time.Second, interval) {
		e.refreshed = now
		e.turns++
		out := emit.Pages{Scope: metadata.ScopeName, On: e.enabled}
		e.heat.Each(e.turns, max(uint64(interval/time.Second), 1), func(c *heat.Cell) {
			if c.Result().End != 0 {
				e.cell(out.Next(), c)
			}
		})
		repeated = out.Take()
	}
	return fresh, repeated
}

// room is where the results of windows go, nil where there is no room for n more points.
func (e *engine) room(n int) *emit.Batch {
	if e.metrics == nil {
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
	if batch := e.room(pointsOfCell); batch != nil {
		e.cell(batch, c)
	}
}

// cell writes the results of a cell, stamped with the end of the window.
func (e *engine) cell(batch *emit.Batch, c *heat.Cell) {
	r := c.Result()
	to := e.of(batch, &c.Identity)
	to.StateSet(state, r.End, states[r.State])
	to.Gauge(baselines, r.End, c.Static(), "baseline", "static")
	if r.Empty {
		return
	}
	gauge := func(m *emit.Metric, v float64, more ...string) {
		if !math.IsNaN(v) {
			to.Gauge(m, r.End, v, more...)
		}
	}
	gauge(observed, r.Observed.Value)
	gauge(deviation, r.Deviation)
	gauge(baselines, r.Dynamic.Value, "baseline", "dynamic")
	gauge(baselines, r.Frozen.Value, "baseline", "frozen")
	gauge(ratio, r.Drift)
}

// explained is called by the map for what explains a deviation.
func (e *engine) explained(x *heat.Explanation) {
	batch := e.room(1)
	if batch == nil {
		return
	}
	to := e.of(batch, &heat.Identity{SLO: x.SLO}) // it is about all tenants, so it is none's
	if math.IsNaN(x.Share) {
		to.Stale(explanation, x.End, "dimension", x.Dimension, "value", x.Value)
		return
	}
	to.Gauge(explanation, x.End, x.Share, "dimension", x.Dimension, "value", x.Value)
}

// retire ends the series of a cell of which nothing more is told.
func (e *engine) retire(id *heat.Identity, now time.Time) {
	batch := e.room(pointsOfCell)
	if batch == nil {
		return
	}
	to, at := e.of(batch, id), now.UnixNano()
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
	slo := id.SLO
	m.EnsureCapacity(12)
	m.PutStr(labels.SLOID, slo.ID)
	m.PutStr(labels.Service, slo.Service)
	m.PutStr(labels.Class, string(slo.Class))
	m.PutStr(labels.Target, target)
	m.PutStr(labels.Unit, slo.Unit)
	var whose string
	id.Group(func(key, value string) {
		m.PutStr(key, value)
		if key == labels.Tenant || (key == e.cfg.TenantFrom[0] && whose == "") {
			whose = value
		}
	})
	if whose != "" {
		m.PutStr(labels.Tenant, whose)
	}
	if id.Overflow {
		m.PutBool("otel.metric.overflow", true)
	}
}
