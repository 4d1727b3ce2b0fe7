// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// maxBatchPoints bounds what is handed to the metrics consumer at once: a batch of all results of ten thousand groups would
// not pass the 4 MiB that gRPC takes by default.
const maxBatchPoints = 8000

// tenantKeys are the attributes by which tenants are told apart; results keep them on their resource.
var tenantKeys = []string{"k8s.namespace.name", "service.namespace", "service.name", labels.Tenant}

// publishMetrics tells what is new since the last call. When a consumer refuses a batch, all results are told again: the
// counters among them are cumulative, so nothing is lost.
func (e *engine) publishMetrics(ctx context.Context) {
	e.mu.Lock()
	batches := e.collect()
	e.mu.Unlock()
	if e.metrics == nil {
		return
	}
	var errs []error
	for _, batch := range batches {
		errs = append(errs, e.metrics.ConsumeMetrics(ctx, batch.Metrics()))
	}
	if err := errors.Join(errs...); err != nil {
		e.mu.Lock()
		e.retell = true
		e.mu.Unlock()
		if ctx.Err() == nil {
			e.set.Logger.Warn("results were not taken; all are told again", zap.Error(err))
		}
	}
}

// collect writes the series with something to tell, and in turns all the others, so that each is told once in every
// refresh_interval. The caller holds the mutex.
func (e *engine) collect() []*emit.Batch {
	batches := []*emit.Batch{emit.NewBatch(metadata.ScopeName, emit.Enabled{})}
	to := func() *emit.Batch {
		last := batches[len(batches)-1]
		if last.Points() >= maxBatchPoints {
			last = emit.NewBatch(metadata.ScopeName, emit.Enabled{})
			batches = append(batches, last)
		}
		return last
	}
	now := e.now()
	for _, r := range e.judge.TakeRetired() {
		e.retire(to(), &r)
	}
	e.judge.Changes(e.turn(now), func(s *judge.Series) { e.series(to(), s, now) }, func(t *judge.Tally) { e.tally(to(), t) })
	if batches[0].Points() == 0 {
		return nil
	}
	return batches
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

// series writes one judged series, in event time.
func (e *engine) series(batch *emit.Batch, s *judge.Series, now time.Time) {
	r, slo := s.Result(), s.SLO()
	at := r.End
	if at == 0 {
		// No input yet, so there is no event time: the promise is shown as of a window that no input can still belong to.
		at = window.Start(now.UnixNano(), s.Window()) - int64(s.Window())
	}
	to := e.of(batch, s.Identity)
	if s.First() != window.Unset {
		good, bad, told := s.Events()
		to.Counter(sliEvents, s.First(), told, good, "outcome", "good")
		to.Counter(sliEvents, s.First(), told, bad, "outcome", "bad")
	}
	to.Gauge(objective, at, slo.TargetValue())
	to.StateSet(state, at, int(r.State))
	if r.State == judge.NoData {
		return
	}
	to.Gauge(sliValue, at, r.Value)
	to.Gauge(sliBound, at, r.Lower, "bound", "lower")
	to.Gauge(sliBound, at, r.Upper, "bound", "upper")
	if r.State == judge.AtRisk {
		e.warnOfShortResolution(slo)
	}
}

// retire ends the series of a result of which nothing more is told: an alert on a promise that is no more must not go on.
func (e *engine) retire(batch *emit.Batch, r *judge.Retired) {
	to := e.of(batch, r.Identity)
	to.Stale(sliEvents, r.At, "outcome", "good")
	to.Stale(sliEvents, r.At, "outcome", "bad")
	to.Stale(objective, r.At)
	to.Stale(state, r.At)
	to.Stale(sliValue, r.At)
	to.Stale(sliBound, r.At, "bound", "lower")
	to.Stale(sliBound, r.At, "bound", "upper")
	for _, policy := range r.Policies {
		to.Stale(violations, r.At, "slo.policy", policy)
	}
}

// warnOfShortResolution says, once an SLO, that its verdict is only a bound.
func (e *engine) warnOfShortResolution(slo *openslo.SLO) {
	if e.warned[slo.ID] {
		return
	}
	e.warned[slo.ID] = true
	e.set.Logger.Warn("the source has no bucket boundary at the objective, so it cannot be told whether the promise is kept",
		zap.String("slo_id", slo.ID), zap.Float64("missing_boundary", slo.TargetValue()), zap.String("unit", slo.Unit))
}

func (e *engine) tally(batch *emit.Batch, t *judge.Tally) {
	n, start, at := t.Count()
	if at == window.Unset {
		return
	}
	e.of(batch, t.Of()).Counter(violations, start, at, n, "slo.policy", t.Policy())
}

// of is where results go: who the tenant is, and which collector says so.
func (e *engine) of(batch *emit.Batch, of *judge.Identity) emit.Series {
	return batch.Resource(of.Tenant(tenantKeys), func(m pcommon.Map) { e.describeResource(m, of) }).
		Series(func(m pcommon.Map) { describe(m, of) })
}

func (e *engine) describeResource(m pcommon.Map, of *judge.Identity) {
	of.Group(func(key, value string) {
		if slices.Contains(tenantKeys, key) {
			m.PutStr(key, value)
		}
	})
	if id, ok := e.set.Resource.Attributes().Get("service.instance.id"); ok {
		id.CopyTo(m.PutEmpty("service.instance.id"))
	}
}

// describe writes the canonical labels and the group.
func describe(m pcommon.Map, of *judge.Identity) {
	slo := of.SLO()
	m.EnsureCapacity(8)
	m.PutStr(labels.SLOID, slo.ID)
	m.PutStr(labels.Service, slo.Service)
	m.PutStr(labels.Class, string(slo.Class))
	m.PutStr(labels.Target, slo.Target())
	m.PutStr(labels.Unit, slo.Unit)
	of.Group(func(key, value string) { m.PutStr(key, value) })
	if of.Overflow() {
		m.PutBool("otel.metric.overflow", true)
	}
}
