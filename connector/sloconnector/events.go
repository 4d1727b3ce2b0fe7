// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// The names of the log events.
const (
	violationOpened = "slo.violation.opened"
	violationClosed = "slo.violation.closed"
	burnOpened      = "slo.burn_rate.opened"
	burnClosed      = "slo.burn_rate.closed"
)

// publishEvents tells what has opened and closed. Events are kept until they are taken, since nothing makes up for one that
// is lost; a consumer that will never take them is not asked again.
func (e *engine) publishEvents(ctx context.Context) {
	box := &e.outbox
	e.mu.Lock()
	fresh, dropped := e.judge.TakeEvents()
	if e.out.Logs != nil {
		box.pending = append(box.pending, fresh...)
		if over := len(box.pending) - maxPendingEvents; over > 0 {
			box.pending = slices.Delete(box.pending, 0, over)
			dropped += uint64(over)
		}
	} else {
		box.pending = nil // left by a run that had a consumer
	}
	pending := slices.Clone(box.pending)
	e.mu.Unlock()
	for i := range fresh {
		e.log(&fresh[i])
	}
	if len(pending) > 0 && e.out.Started.Logs.Load() && !box.Paused(e.now()) {
		dropped += e.sendEvents(ctx, pending)
	}
	if dropped > 0 {
		e.own.Dropped.Add(ctx, int64(dropped))
	}
	e.own.Set(pendingGauge, e.waiting())
}

func (e *engine) waiting() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.outbox.pending)
}

// told takes events that nobody waits for any more out of the outbox. Only the caller takes out, so they stand in front.
func (e *engine) told(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.outbox.pending = slices.Delete(e.outbox.pending, 0, n)
}

// sendEvents sends events and returns how many of them nobody will ever take.
func (e *engine) sendEvents(ctx context.Context, events []judge.Event) (lost uint64) {
	box := &e.outbox
	err := e.out.Logs.ConsumeLogs(ctx, e.logRecords(events))
	switch {
	case err == nil:
		e.told(len(events))
		box.Resume()
		box.refused = time.Time{}
	case consumererror.IsPermanent(err) && !box.refused.IsZero() && e.now().Sub(box.refused) >= believed:
		lost = uint64(len(events))
		e.told(len(events))
		e.set.Logger.Error("events were refused for good", zap.Uint64("events", lost), zap.Error(err))
		box.Resume()
		box.refused = time.Time{}
	case ctx.Err() == nil:
		if !consumererror.IsPermanent(err) {
			box.refused = time.Time{}
		} else if box.refused.IsZero() {
			box.refused = e.now()
		}
		box.Failed(e.now())
		e.set.Logger.Warn("events were not taken and are sent again",
			zap.Int("events", len(events)), zap.Duration("after", box.Wait()), zap.Error(err))
	}
	return lost
}

// log tells the operator at the console what an event tells the backends.
func (e *engine) log(ev *judge.Event) {
	fields := []zap.Field{
		zap.String("slo.policy", ev.Policy), zap.String("slo.violation.id", ev.ID), zap.String("reason", ev.Reason),
		zap.Time("event_time", time.Unix(0, ev.Time).UTC()),
	}
	ev.Of.Group(func(key, value string) { fields = append(fields, zap.String(key, value)) })
	switch {
	case ev.Kind == judge.BurnAlert && ev.Opened:
		e.set.Logger.Warn("an error budget is spent too fast", append(fields, zap.String("slo_id", ev.Of.SLO().ID), zap.String("severity", ev.Severity))...)
	case ev.Kind == judge.BurnAlert:
		e.set.Logger.Info("an error budget is not spent too fast any more", append(fields, zap.String("slo_id", ev.Of.SLO().ID))...)
	case ev.Opened:
		e.set.Logger.Warn("a promise is broken", fields...)
	case ev.Kept():
		e.set.Logger.Info("a promise is kept again", fields...)
	default:
		e.set.Logger.Info("a violation is closed", fields...)
	}
}

// logRecords writes events as log records, those of one tenant on one resource.
func (e *engine) logRecords(events []judge.Event) plog.Logs {
	ld := plog.NewLogs()
	scopes := map[string]plog.ScopeLogs{}
	observed := pcommon.NewTimestampFromTime(e.now())
	slos := e.catalog()
	for i := range events {
		ev := &events[i]
		key := ev.Of.Tenant(e.tenants.Keys())
		scope, ok := scopes[key]
		if !ok {
			rl := ld.ResourceLogs().AppendEmpty()
			e.describeResource(rl.Resource().Attributes(), ev.Of)
			scope = rl.ScopeLogs().AppendEmpty()
			scope.Scope().SetName(metadata.ScopeName)
			scopes[key] = scope
		}
		r := scope.LogRecords().AppendEmpty()
		r.SetObservedTimestamp(observed)
		e.record(r, ev, slos)
	}
	return ld
}

func eventName(ev *judge.Event) string {
	switch {
	case ev.Kind == judge.BurnAlert && ev.Opened:
		return burnOpened
	case ev.Kind == judge.BurnAlert:
		return burnClosed
	case ev.Opened:
		return violationOpened
	}
	return violationClosed
}

func (e *engine) record(r plog.LogRecord, ev *judge.Event, slos *openslo.Catalog) {
	emit.Event(r, eventName(ev), ev.Opened, ev.Time, ev.Reason)
	m := r.Attributes()
	e.describe(m, ev.Of)
	put := func(key, value string) {
		if value != "" {
			m.PutStr(key, value)
		}
	}
	put("slo.policy", ev.Policy)
	put("slo.severity", ev.Severity)
	ids := m.PutEmptySlice(labels.SLOIDs)
	for _, id := range ev.SLOs {
		ids.AppendEmpty().SetStr(id)
	}
	if ev.Kind == judge.BurnAlert {
		m.PutStr("slo.alert.id", ev.ID)
		put("slo.condition", ev.Condition)
		m.PutDouble("slo.burn_rate", ev.Observed)
		m.PutDouble("slo.burn_rate.threshold", ev.Threshold)
		m.PutStr("slo.burn_rate.window", openslo.GoDuration(ev.Window))
	} else {
		m.PutStr("slo.violation.id", ev.ID)
		m.PutInt("slo.windows", int64(ev.Windows))
		if !math.IsNaN(ev.Observed) {
			m.PutDouble("slo.observed", ev.Observed)
		}
	}
	m.PutStr("slo.reason", ev.Reason)
	if ev.Incomplete {
		m.PutBool("slo.incomplete", true)
	}
	put("slo.owner", ev.Of.SLO().Owner)
	put("slo.runbook", ev.Of.SLO().Runbook)
	if name := maintenance(slos, ev, time.Unix(0, ev.Time)); name != "" {
		m.PutStr("slo.maintenance", name)
	}
	r.SetTraceID(ev.Exemplar.TraceID)
	r.SetSpanID(ev.Exemplar.SpanID)
}
