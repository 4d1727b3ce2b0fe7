// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
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

// maxPendingEvents bounds the violation events that wait for their consumer.
const maxPendingEvents = 10_000

// tenantKeys are the attributes by which tenants are told apart; results keep them on their resource.
var tenantKeys = []string{"k8s.namespace.name", "service.namespace", "service.name", "tenant"}

// publish tells what is new since the last call. Counters are cumulative, so a batch that a consumer refuses is made
// good by the next; events are kept until they are taken.
func (e *engine) publish(ctx context.Context) {
	e.mu.Lock()
	batch := e.collect()
	fresh := e.judge.TakeEvents()
	e.mu.Unlock()

	e.pending = append(e.pending, fresh...)
	if over := len(e.pending) - maxPendingEvents; over > 0 {
		e.pending = slices.Delete(e.pending, 0, over)
		e.own.dropped.Add(ctx, int64(over))
	}
	for i := range fresh {
		e.log(&fresh[i])
	}
	if e.metrics != nil && batch.Points() > 0 {
		if err := e.metrics.ConsumeMetrics(ctx, batch.Metrics()); err != nil {
			e.set.Logger.Warn("results were not taken; the next ones make them good", zap.Error(err))
		}
	}
	if e.logs == nil {
		e.pending = nil
		return
	}
	if len(e.pending) > 0 {
		if err := e.logs.ConsumeLogs(ctx, e.records(e.pending)); err != nil {
			e.set.Logger.Warn("violation events were not taken and are sent again", zap.Int("events", len(e.pending)), zap.Error(err))
			return
		}
		e.pending = nil
	}
}

// collect writes the series with something to tell, and from time to time all of them.
func (e *engine) collect() *emit.Batch {
	batch := emit.NewBatch(metadata.ScopeName)
	now := e.now()
	all := e.cfg.RefreshInterval > 0 && now.Sub(e.refreshed) >= e.cfg.RefreshInterval
	if all {
		e.refreshed = now
	}
	e.judge.Each(func(s *judge.Series) {
		if s.Dirty || all {
			s.Dirty = false
			e.series(batch, s)
		}
	})
	e.judge.EachTally(func(t *judge.Tally) {
		if t.Dirty || all {
			t.Dirty = false
			e.tally(batch, t)
		}
	})
	return batch
}

// series writes one judged series, in event time.
func (e *engine) series(batch *emit.Batch, s *judge.Series) {
	r, slo := s.Result(), s.SLO()
	at := max(r.End, s.Newest())
	if at <= 0 {
		return // nothing has happened yet, so there is no time at which to tell it
	}
	to := e.resource(batch, s)
	label := func(m pcommon.Map) { labels(m, s) }
	if s.Newest() != window.Unset {
		good, bad := s.Events()
		for _, o := range [...]struct {
			outcome string
			n       uint64
		}{{"good", good}, {"bad", bad}} {
			m := to.Counter(sliEvents, s.First(), s.Newest(), o.n)
			label(m)
			m.PutStr("outcome", o.outcome)
		}
	}
	if r.End > 0 {
		at = r.End
	}
	label(to.Gauge(objective, at, slo.TargetValue()))
	to.StateSet(state, at, int(r.State), label)
	if r.State == judge.NoData {
		return
	}
	label(to.Gauge(sliValue, at, r.Value))
	for _, b := range [...]struct {
		bound string
		value float64
	}{{"lower", r.Lower}, {"upper", r.Upper}} {
		m := to.Gauge(sliBound, at, b.value)
		label(m)
		m.PutStr("bound", b.bound)
	}
	e.warnOfShortResolution(s)
}

// warnOfShortResolution says, once an SLO, that its verdict is only a bound.
func (e *engine) warnOfShortResolution(s *judge.Series) {
	slo := s.SLO()
	if s.Result().State != judge.AtRisk || e.warned[slo.ID] {
		return
	}
	e.warned[slo.ID] = true
	e.set.Logger.Warn("the source has no bucket boundary at the objective, so it cannot be told whether the promise is kept",
		zap.String("slo_id", slo.ID), zap.Float64("missing_boundary", slo.TargetValue()), zap.String("unit", slo.Unit))
}

func (e *engine) tally(batch *emit.Batch, t *judge.Tally) {
	s := t.Series()
	at := max(t.Newest(), s.Newest())
	if at <= 0 {
		return
	}
	start := at
	if s.First() != window.Unset {
		start = s.First()
	}
	m := e.resource(batch, s).Counter(violations, start, at, t.Count())
	labels(m, s)
	m.PutStr("slo.policy", t.Policy())
}

// resource is where a series' results go: who the tenant is, and which collector says so.
func (e *engine) resource(batch *emit.Batch, s *judge.Series) *emit.Resource {
	return batch.Resource(s.Tenant(tenantKeys), func(m pcommon.Map) { e.describeResource(m, s) })
}

func (e *engine) describeResource(m pcommon.Map, s *judge.Series) {
	s.Group(func(key, value string) {
		if slices.Contains(tenantKeys, key) {
			m.PutStr(key, value)
		}
	})
	if id, ok := e.set.Resource.Attributes().Get("service.instance.id"); ok {
		id.CopyTo(m.PutEmpty("service.instance.id"))
	}
}

// labels writes the canonical labels and the group.
func labels(m pcommon.Map, s *judge.Series) {
	slo := s.SLO()
	m.EnsureCapacity(8)
	m.PutStr("slo_id", slo.ID)
	m.PutStr("service", slo.Service)
	m.PutStr("slo_class", string(slo.Class))
	m.PutStr("target", slo.Target())
	m.PutStr("unit", slo.Unit)
	s.Group(func(key, value string) {
		if !slices.Contains(canonical, key) {
			m.PutStr(key, value)
		}
	})
	if s.Overflow() {
		m.PutBool("otel.metric.overflow", true)
	}
}

// log tells the operator at the console what a violation event tells the backends.
func (e *engine) log(ev *judge.Event) {
	fields := []zap.Field{
		zap.String("slo.policy", ev.Policy), zap.String("slo.violation.id", ev.ID), zap.String("reason", ev.Reason),
		zap.Time("event_time", time.Unix(0, ev.Time).UTC()),
	}
	ev.Series.Group(func(key, value string) { fields = append(fields, zap.String(key, value)) })
	if !math.IsNaN(ev.Observed) {
		fields = append(fields, zap.Float64("slo.observed", ev.Observed))
	}
	if ev.Opened {
		e.set.Logger.Warn("a promise is broken", fields...)
	} else {
		e.set.Logger.Info("a promise is kept again", fields...)
	}
}
