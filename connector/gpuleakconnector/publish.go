// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/leak"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// publishMetrics tells what was judged since the last call. It is kept until it is taken.
func (e *engine) publishMetrics(ctx context.Context) {
	if e.outbox.Paused(e.now()) || e.out.Metrics != nil && !e.out.Started.Metrics.Load() {
		return
	}
	e.mu.Lock()
	fresh, lost := e.results.Take(), e.lost
	e.points, e.lost = 0, 0
	e.mu.Unlock()
	if e.out.Metrics == nil {
		return
	}
	e.outbox.Add(fresh)
	if err := errors.Join(e.outbox.Send(ctx, e.out.Metrics)...); err == nil {
		e.outbox.Resume()
	} else {
		e.outbox.Failed(e.now())
		if ctx.Err() == nil {
			e.set.Logger.Warn("results were not taken and are told again", zap.Duration("after", e.outbox.Wait()), zap.Error(err))
		}
	}
	if lost += e.outbox.TakeDropped(); lost > 0 {
		e.own.Dropped.Add(ctx, lost)
	}
}

// pointsOfPlace is about how many points the results of a process on a device are.
const pointsOfPlace = 10

// room is where results go, nil where there is none for more. The caller holds the mutex.
func (e *engine) room() *emit.Batch {
	if e.out.Metrics == nil {
		return nil
	}
	if e.points >= emit.MaxUntold {
		e.lost += pointsOfPlace
		return nil
	}
	e.points += pointsOfPlace
	return e.results.Next()
}

// judged is called by the fleet for each verdict.
func (e *engine) judged(p *leak.Place, at int64) {
	batch := e.room()
	if batch == nil || !p.Judged() {
		return
	}
	to, r := e.of(batch, p), &p.Result
	if p.Standing == leak.Given {
		to.StateSet(state, at, states[r.State])
	} else {
		to.Gauge(unjudged, at, 1, "reason", p.Standing.String())
		if p.Stood == leak.Given {
			staleVerdict(to, at)
		}
	}
	if p.Stood > leak.Given && p.Stood != p.Standing {
		to.Stale(unjudged, at, "reason", p.Stood.String())
	}
	gauge := func(m *emit.Metric, v float64, more ...string) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			to.Gauge(m, at, v, more...)
		}
	}
	gauge(rate, r.Rate.Value)
	gauge(rateBound, r.Rate.Low, "bound", "lower")
	gauge(rateBound, r.Rate.High, "bound", "upper")
	if r.State >= trend.Suspect {
		gauge(exhaustion, r.Exhaustion.Value)
		gauge(exhaustionBound, r.Exhaustion.Low, "bound", "lower")
		gauge(exhaustionBound, r.Exhaustion.High, "bound", "upper")
	}
	gauge(perRequest, r.PerRequest)
	gauge(perRequestFirst, r.PerRequestFirst)
	if p.Cause != nil {
		to.Gauge(causes, at, 1, "cause", p.Cause.Cause)
	}
	if before := p.Before; before != nil && (p.Cause == nil || p.Cause.Cause != before.Cause) {
		to.Gauge(causes, at, 0, "cause", before.Cause)
	}
	for _, was := range p.Promised {
		if !slices.ContainsFunc(p.Promises, func(is leak.Promise) bool { return is.ID == was.ID }) {
			to.Stale(breaks, at, "slo_id", was.ID)
		}
	}
	for _, is := range p.Promises {
		to.Gauge(breaks, at, is.Within, "slo_id", is.ID)
	}
}

// gone is called by the fleet for each of which nothing more is told.
func (e *engine) gone(p *leak.Place, at int64) {
	batch := e.room()
	if batch == nil || !p.Judged() {
		return
	}
	to := e.of(batch, p)
	staleVerdict(to, at)
	to.Stale(perRequest, at)
	to.Stale(perRequestFirst, at)
	if p.Standing > leak.Given {
		to.Stale(unjudged, at, "reason", p.Standing.String())
	}
	if p.Cause != nil {
		to.Stale(causes, at, "cause", p.Cause.Cause)
	}
	for _, is := range p.Promises {
		to.Stale(breaks, at, "slo_id", is.ID)
	}
}

// staleVerdict ends what is told where there is a verdict.
func staleVerdict(to emit.Series, at int64) {
	for _, m := range []*emit.Metric{state, rate, exhaustion} {
		to.Stale(m, at)
	}
	for _, bound := range []string{"lower", "upper"} {
		to.Stale(rateBound, at, "bound", bound)
		to.Stale(exhaustionBound, at, "bound", bound)
	}
}

// of is where the results of a place go.
func (e *engine) of(batch *emit.Batch, p *leak.Place) emit.Series {
	return batch.Resource(resourceKey(p.Of.Labels), func(m pcommon.Map) { e.describeResource(m, p.Of.Labels) }).
		Series(func(m pcommon.Map) { label(m, p.Of.ID, p.Device, p.Of.Executable, p.Of.Labels) })
}

func resourceKey(labels []leak.Label) string {
	var b strings.Builder
	for _, l := range labels {
		if l.Resource {
			b.WriteString(l.Key + "\x00" + l.Value + "\x00")
		}
	}
	return b.String()
}

// describeResource says whose data it is and which collector says so.
func (e *engine) describeResource(m pcommon.Map, labels []leak.Label) {
	for _, l := range labels {
		if l.Resource {
			m.PutStr(l.Key, l.Value)
		}
	}
	if id, ok := e.set.Resource.Attributes().Get("service.instance.id"); ok {
		id.CopyTo(m.PutEmpty("service.instance.id"))
	}
}

// label writes what tells processes and devices apart.
func label(m pcommon.Map, of leak.ID, device, executable string, labels []leak.Label) {
	m.EnsureCapacity(8 + len(labels))
	if device != "" {
		m.PutStr("hw.id", device)
	}
	if pid, err := strconv.ParseInt(of.PID, 10, 64); err == nil {
		m.PutInt("process.pid", pid)
	} else if of.PID != "" {
		m.PutStr("process.pid", of.PID)
	}
	if executable != "" {
		m.PutStr("process.executable.name", executable)
	}
	for _, l := range labels {
		m.PutStr(l.Key, l.Value)
	}
}
