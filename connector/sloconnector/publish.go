// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// publishMetrics tells what is new since the last call. When a consumer refuses a batch, all results are told again, after a
// pause: the counters among them are cumulative, so nothing is lost. What is told once only, and what would be missing for
// ever, is kept until it is taken.
func (e *engine) publishMetrics(ctx context.Context) {
	if e.untold.Paused(e.now()) || e.out.Metrics != nil && !e.out.Started.Metrics.Load() {
		return
	}
	var errs []error
	for more, first := true, true; more && len(errs) == 0; first = false {
		var once, again []*emit.Batch
		e.mu.Lock()
		if first {
			once = e.ends()
		}
		again, more = e.collect(first)
		e.mu.Unlock()
		if e.out.Metrics == nil {
			continue
		}
		if first {
			e.untold.Add(once)
			errs = e.untold.Send(ctx, e.out.Metrics)
		}
		for _, batch := range again {
			if err := e.out.Metrics.ConsumeMetrics(ctx, batch.Metrics()); err != nil {
				errs = append(errs, err)
			}
		}
	}
	err := errors.Join(errs...)
	if err == nil {
		e.untold.Resume()
	} else {
		e.untold.Failed(e.now())
	}
	e.mu.Lock()
	e.retell = e.retell || err != nil
	e.parts.dropped += e.untold.TakeDropped()
	e.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		e.set.Logger.Warn("results were not taken; all are told again", zap.Duration("after", e.untold.Wait()), zap.Error(err))
	}
}

// lagInterval is how often the lag is told where nothing is repeated: it is never what it was.
const lagInterval = 15 * time.Second

// ends writes what is told once only. The caller holds the mutex.
func (e *engine) ends() []*emit.Batch {
	out := emit.Pages{Scope: metadata.ScopeName, On: e.enabled}
	for _, r := range e.judge.TakeRetired() {
		e.retire(out.Next(), &r, e.now())
	}
	return append(out.Take(), e.parts.take()...)
}

// portion is how many results are written at once: the mutex is held, and all of it is in memory.
const portion = 2000

// collect writes a portion of the results with something to tell, and reports whether there are more. The first one says what
// has its turn, so that each result is told once in every refresh_interval. The caller holds the mutex.
func (e *engine) collect(first bool) (batches []*emit.Batch, more bool) {
	out, now, turn := emit.Pages{Scope: metadata.ScopeName, On: e.enabled}, e.now(), judge.Changed
	if first {
		turn = e.turn(now)
		e.judge.Turned(turn)
	}
	more = e.judge.Changes(portion, func(s *judge.Series, all bool) { e.series(out.Next(), s, all, now) },
		func(t *judge.Tally) { e.tally(out.Next(), t) })
	if first && (turn == judge.All || now.Sub(e.lagTold) >= cmp.Or(e.cfg.RefreshInterval, lagInterval)) {
		e.lagTold = now
		e.lag(out.Next(), now)
	}
	return out.Take(), more
}

// lag tells how far behind the verdicts are.
func (e *engine) lag(batch *emit.Batch, now time.Time) {
	since := e.begun
	if at := e.intake.Watermark.At(); at != window.Unset {
		since = time.Unix(0, at)
	}
	batch.Resource("", func(m pcommon.Map) { e.describeCollector(m) }).
		Series(func(pcommon.Map) {}).Gauge(lag, now.UnixNano(), now.Sub(since).Seconds())
}

// turn says which of the unchanged results are told: each second another share of them.
func (e *engine) turn(now time.Time) judge.Turn {
	switch {
	case e.retell:
		e.retell = false
		return judge.All
	case e.cfg.RefreshInterval == 0 || now.Sub(e.refreshed) < min(time.Second, e.cfg.RefreshInterval):
		return judge.Changed
	}
	e.refreshed = now
	e.turns++
	return judge.Turn{Of: max(uint64(e.cfg.RefreshInterval/time.Second), 1), Number: e.turns}
}

// series writes one judged series, in event time; not all of it where only its events have changed.
func (e *engine) series(batch *emit.Batch, s *judge.Series, all bool, now time.Time) {
	r, slo := s.Result(), s.SLO()
	at := r.End
	if at == 0 {
		// No input yet, so there is no event time: the promise is shown as of a window that no input can still belong to.
		at = window.Start(now.UnixNano(), s.Window()) - int64(s.Window())
	} else if all && s.Repeats(r.End) {
		// A verdict stands until the next one. Repeated with the time of its window, it would be lost to a backend that looks
		// back for five minutes before the next one comes.
		at = max(at, e.judge.Balanced())
	}
	to := e.of(batch, s.Identity)
	composite := len(slo.Indicator.Parts) > 0
	if s.First() != window.Unset && !composite { // the events of a composite are those of its parts
		e.events(to, s)
	}
	if !all {
		return
	}
	to.Gauge(objective, at, slo.TargetValue())
	verdict := s.State()
	to.StateSet(state, at, int(verdict))
	e.balance(to, s)
	e.completeness(to, at, &r)
	if r.State == judge.NoData {
		return
	}
	to.Gauge(sliValue, at, r.Value)
	to.Gauge(sliBound, at, r.Lower, "bound", "lower")
	to.Gauge(sliBound, at, r.Upper, "bound", "upper")
	if r.Unmeasured > 0 {
		e.warnOnce("not all events of an SLO were measured: those that are missing could be good or bad", slo,
			zap.Uint64("unmeasured", r.Unmeasured), zap.Float64("of", r.Total))
	} else if r.State == judge.AtRisk && !composite && !r.Incomplete {
		e.warnOnce("the source has no bucket boundary at the objective, so it cannot be told whether the promise is kept", slo,
			zap.Float64("missing_boundary", slo.TargetValue()), zap.String("unit", slo.Unit))
	}
}

// events writes how many events were good and bad.
func (e *engine) events(to emit.Series, s *judge.Series) {
	good, bad, at := s.Events()
	if at == window.Unset {
		return
	}
	to.Counter(sliEvents, s.First(), at, good, "outcome", "good")
	point := to.Counter(sliEvents, s.First(), at, bad, "outcome", "bad")
	if x, fresh := s.TakeWitness(); fresh {
		point.Exemplar(emit.Exemplar{TraceID: x.TraceID, SpanID: x.SpanID, Value: x.Value, Time: x.Time})
	}
}

// balance writes what the books of a series say.
func (e *engine) balance(to emit.Series, s *judge.Series) {
	b := &e.balances
	if !s.Balance(b) {
		return
	}
	gauge := func(m *emit.Metric, v float64, more ...string) {
		if !math.IsNaN(v) {
			to.Gauge(m, b.At, v, more...)
		}
	}
	gauge(remaining, b.Remaining)
	gauge(coverage, b.Coverage)
	for i, rate := range b.Burn {
		gauge(burnRate, rate, "window", burnWindows[i])
	}
}

// retire ends the series of a result of which nothing more is told: an alert on a promise that is no more must not go on.
func (e *engine) retire(batch *emit.Batch, r *judge.Retired, now time.Time) {
	to, slo := e.of(batch, r.Identity), r.SLO()
	if r.At == 0 {
		r.At = now.UnixNano()
	}
	if len(slo.Indicator.Parts) == 0 {
		to.Stale(sliEvents, r.At, "outcome", "good")
		to.Stale(sliEvents, r.At, "outcome", "bad")
	}
	to.Stale(objective, r.At)
	to.Stale(state, r.At)
	to.Stale(sliValue, r.At)
	to.Stale(sliBound, r.At, "bound", "lower")
	to.Stale(sliBound, r.At, "bound", "upper")
	if e.judge.Parts() > 0 {
		to.Stale(sliIncomplete, r.At)
	}
	kept := slo.TimeWindow.Duration.Count > 0
	if kept {
		to.Stale(remaining, r.At)
		to.Stale(coverage, r.At)
	}
	for i, w := range burnWindows {
		if !kept || judge.BurnWindows[i] <= slo.TimeWindow.Duration.Approx() {
			to.Stale(burnRate, r.At, "window", w)
		}
	}
	for _, policy := range r.Policies {
		to.Stale(violations, r.At, "slo.policy", policy)
	}
}

func (e *engine) tally(batch *emit.Batch, t *judge.Tally) {
	n, start, at := t.Count()
	if at == window.Unset {
		return
	}
	point := e.of(batch, t.Of()).Counter(violations, start, at, n, "slo.policy", t.Policy())
	if x, known := t.Witness(); known {
		point.Exemplar(emit.Exemplar{TraceID: x.TraceID, SpanID: x.SpanID, Value: x.Value, Time: x.Time})
	}
}

// of is where results go: who the tenant is, and which collector says so.
func (e *engine) of(batch *emit.Batch, of *judge.Identity) emit.Series {
	target := of.SLO().Target() // for some twenty points
	return batch.Resource(of.Tenant(e.tenants.Keys()), func(m pcommon.Map) { e.describeResource(m, of) }).
		Series(func(m pcommon.Map) { e.label(m, of, target) })
}

// ofPart is of for what another connector adds up: it has to tell the connectors of one Collector apart.
func (e *engine) ofPart(batch *emit.Batch, of *judge.Identity) emit.Series {
	target := of.SLO().Target()
	return batch.Resource("part"+of.Tenant(e.tenants.Keys()), func(m pcommon.Map) {
		e.describeResource(m, of)
		m.PutStr(componentKey, e.id.String())
	}).Series(func(m pcommon.Map) { e.label(m, of, target) })
}

func (e *engine) describeResource(m pcommon.Map, of *judge.Identity) {
	keys := e.tenants.Keys()
	of.Group(func(key, value string) {
		if slices.Contains(keys, key) {
			m.PutStr(key, value)
		}
	})
	e.describeCollector(m)
}

func (e *engine) describeCollector(m pcommon.Map) {
	if id, ok := e.set.Resource.Attributes().Get(instanceKey); ok {
		id.CopyTo(m.PutEmpty(instanceKey))
	}
}

// describe writes the canonical labels and the group, and the tenant where the group tells it.
func (e *engine) describe(m pcommon.Map, of *judge.Identity) { e.label(m, of, of.SLO().Target()) }

func (e *engine) label(m pcommon.Map, of *judge.Identity, target string) {
	emit.Label(m, of.SLO(), target, of, e.cfg.TenantFrom[0], of.Overflow())
}
