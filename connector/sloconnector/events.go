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
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
)

// The names of the log events.
const (
	violationOpened = "slo.violation.opened"
	violationClosed = "slo.violation.closed"
)

const (
	// maxPendingEvents bounds the violation events that wait for their consumer.
	maxPendingEvents = 10_000
	// Events that were not taken are sent again after a while that doubles from the first of these to the second.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// outbox holds violation events until they are taken. It belongs to one goroutine at a time: the one that publishes
// events, then Shutdown.
type outbox struct {
	pending []judge.Event
	next    time.Time // not before
	wait    time.Duration
}

// publishEvents tells which violations have opened and closed. Events are kept until they are taken, since nothing makes up
// for one that is lost; a consumer that will never take them is not asked again.
func (e *engine) publishEvents(ctx context.Context) {
	e.mu.Lock()
	fresh, dropped := e.judge.TakeEvents()
	e.mu.Unlock()
	for i := range fresh {
		e.log(&fresh[i])
	}
	if e.logs == nil {
		return
	}
	box := &e.outbox
	box.pending = append(box.pending, fresh...)
	if over := len(box.pending) - maxPendingEvents; over > 0 {
		box.pending = slices.Delete(box.pending, 0, over)
		dropped += uint64(over)
	}
	if len(box.pending) > 0 && !e.now().Before(box.next) {
		dropped += e.sendEvents(ctx)
	}
	if dropped > 0 {
		e.own.dropped.Add(ctx, int64(dropped))
	}
	e.own.gauges[pendingGauge].value.Store(int64(len(box.pending)))
}

// sendEvents sends what is pending and returns how many events nobody will ever take.
func (e *engine) sendEvents(ctx context.Context) (lost uint64) {
	box := &e.outbox
	err := e.logs.ConsumeLogs(ctx, e.records(box.pending))
	switch {
	case err == nil:
		box.pending, box.wait, box.next = nil, 0, time.Time{}
	case consumererror.IsPermanent(err):
		lost = uint64(len(box.pending))
		e.set.Logger.Error("violation events were refused for good", zap.Uint64("events", lost), zap.Error(err))
		box.pending, box.wait, box.next = nil, 0, time.Time{}
	case ctx.Err() == nil:
		box.wait = min(max(2*box.wait, firstRetry), lastRetry)
		box.next = e.now().Add(box.wait)
		e.set.Logger.Warn("violation events were not taken and are sent again",
			zap.Int("events", len(box.pending)), zap.Duration("after", box.wait), zap.Error(err))
	}
	return lost
}

// log tells the operator at the console what a violation event tells the backends.
func (e *engine) log(ev *judge.Event) {
	fields := []zap.Field{
		zap.String("slo.policy", ev.Policy), zap.String("slo.violation.id", ev.ID), zap.String("reason", ev.Reason),
		zap.Time("event_time", time.Unix(0, ev.Time).UTC()),
	}
	ev.Of.Group(func(key, value string) { fields = append(fields, zap.String(key, value)) })
	switch {
	case ev.Opened:
		e.set.Logger.Warn("a promise is broken", fields...)
	case ev.Kept():
		e.set.Logger.Info("a promise is kept again", fields...)
	default:
		e.set.Logger.Info("a violation is closed", fields...)
	}
}

// records writes violation events as log records, those of one tenant on one resource.
func (e *engine) records(events []judge.Event) plog.Logs {
	ld := plog.NewLogs()
	scopes := map[string]plog.ScopeLogs{}
	observed := pcommon.NewTimestampFromTime(e.now())
	for i := range events {
		ev := &events[i]
		key := ev.Of.Tenant(tenantKeys)
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
		record(r, ev)
	}
	return ld
}

func record(r plog.LogRecord, ev *judge.Event) {
	r.SetTimestamp(pcommon.Timestamp(ev.Time))
	r.SetEventName(violationClosed)
	r.SetSeverityNumber(plog.SeverityNumberInfo)
	r.SetSeverityText("INFO")
	if ev.Opened {
		r.SetEventName(violationOpened)
		r.SetSeverityNumber(plog.SeverityNumberError)
		r.SetSeverityText("ERROR")
	}
	r.Body().SetStr(ev.Reason)
	m := r.Attributes()
	describe(m, ev.Of)
	m.PutStr("slo.violation.id", ev.ID)
	m.PutStr("slo.policy", ev.Policy)
	ids := m.PutEmptySlice(labels.SLOIDs)
	for _, id := range ev.SLOs {
		ids.AppendEmpty().SetStr(id)
	}
	if !math.IsNaN(ev.Observed) {
		m.PutDouble("slo.observed", ev.Observed)
	}
	m.PutInt("slo.windows", int64(ev.Windows))
	m.PutStr("slo.reason", ev.Reason)
	r.SetTraceID(ev.Exemplar.TraceID)
	r.SetSpanID(ev.Exemplar.SpanID)
}
