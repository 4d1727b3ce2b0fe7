// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"context"
	"math"
	"slices"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/leak"
	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
)

// The names of the log events.
const (
	leakOpened = "gpu.leak.opened"
	leakClosed = "gpu.leak.closed"
)

// maxPendingEvents bounds the events that wait for their consumer; of more, the oldest go.
const maxPendingEvents = 10_000

// publishEvents tells what has opened and closed. Events are kept until they are taken, since nothing makes up for one that
// is lost.
func (e *engine) publishEvents(ctx context.Context) {
	e.mu.Lock()
	fresh, dropped := e.fleet.TakeEvents(), 0
	if e.out.Logs != nil {
		e.events = append(e.events, fresh...)
		if dropped = max(len(e.events)-maxPendingEvents, 0); dropped > 0 {
			e.events = slices.Delete(e.events, 0, dropped)
		}
	} else {
		e.events = nil // left by a run that had a consumer
	}
	pending := slices.Clone(e.events)
	e.mu.Unlock()
	for i := range fresh {
		e.log(&fresh[i])
		e.tellGuard(&fresh[i])
	}
	if len(pending) > 0 && e.out.Started.Logs.Load() && !e.pause.Paused(e.now()) {
		dropped += e.send(ctx, pending)
	}
	if dropped > 0 {
		e.own.Dropped.Add(ctx, int64(dropped))
	}
	e.mu.Lock()
	e.own.Set(pendingGauge, len(e.events))
	e.mu.Unlock()
}

// send sends events, and returns how many of them nobody will ever take.
func (e *engine) send(ctx context.Context, events []leak.Event) (lost int) {
	err := e.out.Logs.ConsumeLogs(ctx, e.records(events))
	if err != nil && !consumererror.IsPermanent(err) {
		e.pause.Failed(e.now())
		if ctx.Err() == nil {
			e.set.Logger.Warn("events were not taken and are sent again", zap.Int("events", len(events)), zap.Duration("after", e.pause.Wait()), zap.Error(err))
		}
		return 0
	}
	if err != nil {
		lost = len(events)
		e.set.Logger.Error("events were refused for good", zap.Int("events", lost), zap.Error(err))
	}
	e.pause.Resume()
	e.mu.Lock()
	e.events = slices.Delete(e.events, 0, len(events)) // only the caller takes out, so they stand in front
	e.mu.Unlock()
	return lost
}

// records writes events as log records, those of one tenant on one resource.
func (e *engine) records(events []leak.Event) plog.Logs {
	ld := plog.NewLogs()
	scopes := map[string]plog.ScopeLogs{}
	observed := pcommon.NewTimestampFromTime(e.now())
	for i := range events {
		ev := &events[i]
		key := resourceKey(ev.Labels)
		scope, ok := scopes[key]
		if !ok {
			rl := ld.ResourceLogs().AppendEmpty()
			e.describeResource(rl.Resource().Attributes(), ev.Labels)
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

func record(r plog.LogRecord, ev *leak.Event) {
	r.SetTimestamp(pcommon.Timestamp(ev.Time))
	r.SetEventName(leakClosed)
	r.SetSeverityNumber(plog.SeverityNumberInfo)
	r.SetSeverityText("INFO")
	if ev.Opened {
		r.SetEventName(leakOpened)
		r.SetSeverityNumber(plog.SeverityNumberError)
		r.SetSeverityText("ERROR")
	}
	r.Body().SetStr(ev.Text)
	m := r.Attributes()
	label(m, ev.Process, ev.Device, ev.Executable, ev.Labels)
	m.PutStr("gpu.leak.id", ev.ID)
	number := func(key string, v float64) {
		if v >= 0 && !math.IsInf(v, 1) {
			m.PutDouble(key, v)
		}
	}
	number("gpu.leak.memory", ev.Memory)
	number("gpu.leak.headroom", ev.Left)
	if !ev.Opened {
		m.PutDouble("gpu.leak.duration", float64(ev.Time-ev.Since)*1e-9)
		return
	}
	number("gpu.leak.rate", ev.Rate)
	number("gpu.leak.rate.lower", ev.RateLow)
	number("gpu.leak.rate.upper", ev.RateHigh)
	number("gpu.leak.time_to_exhaustion", ev.Exhaustion)
	number("gpu.leak.time_to_exhaustion.lower", ev.ExhaustionLow)
	number("gpu.leak.time_to_exhaustion.upper", ev.ExhaustionHigh)
	number("gpu.memory.per_request", ev.PerRequest)
	number("gpu.memory.per_request.first_hour", ev.PerRequestFirst)
	number("gpu.leak.per_served_request", ev.PerServed)
	number("gpu.leak.kv_cache_headroom", ev.CacheFree)
	m.PutDouble("gpu.leak.observed_for", ev.Span.Seconds())
	m.PutBool("gpu.leak.at_equal_traffic", ev.Adjusted)
	if len(ev.Promises) > 0 {
		ids, within, by := m.PutEmptySlice(labels.SLOIDs), m.PutEmptySlice("gpu.leak.slo_breaks_in"), m.PutEmptySlice("gpu.leak.slo_breaks_by")
		for _, p := range ev.Promises {
			ids.AppendEmpty().SetStr(p.ID)
			within.AppendEmpty().SetDouble(p.Within)
			by.AppendEmpty().SetStr(p.By)
		}
	}
	if ev.Cause != "" {
		m.PutStr("gpu.leak.cause", ev.Cause)
		m.PutStr("gpu.leak.verify", ev.Verify)
	}
}
