// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"context"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/leak"
	"github.com/otelcol-llm/otelcol-llm/internal/attrs"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// objects are the kinds of what an application makes and releases, by the value of the attribute that tells them.
var objects = map[string]leak.Kind{"engine": leak.Engines, "context": leak.Contexts, "block": leak.Blocks}

// The signals that have sources of their own: what a resource tells in them may come later than its metrics, which do not wait for it.
var (
	logsSource   = attrs.String("logs")
	tracesSource = attrs.String("traces")
)

// maxSaid bounds what is remembered so that what is sent again does not count twice.
const maxSaid = 1 << 18

// happening is a log event, a span or a span event.
type happening struct {
	name                   string
	at                     int64
	point, scope, resource pcommon.Map
	failed                 bool
	id                     uint64 // besides name, time and attributes
}

// hearing is what is heard of a resource.
type hearing struct {
	*engine
	now, newest int64
}

// consumeLogs hears what applications say of the objects that they make and release.
func (e *engine) consumeLogs(ctx context.Context, ld plog.Logs) {
	e.hearObjects(ctx, func(now int64) {
		for _, rl := range ld.ResourceLogs().All() {
			h, resource := hearing{e, now, window.Unset}, rl.Resource().Attributes()
			for _, sl := range rl.ScopeLogs().All() {
				for _, r := range sl.LogRecords().All() {
					at := r.Timestamp()
					if at == 0 {
						at = r.ObservedTimestamp()
					}
					h.hears(&happening{name: r.EventName(), at: int64(at), point: r.Attributes(), scope: sl.Scope().Attributes(), resource: resource})
				}
			}
			h.end(logsSource, resource)
		}
	})
}

// consumeTraces hears the same of spans, which end when the object is there or is gone, and of span events, which have the attributes of
// their span. What has failed has made nothing.
func (e *engine) consumeTraces(ctx context.Context, td ptrace.Traces) {
	e.hearObjects(ctx, func(now int64) {
		for _, rs := range td.ResourceSpans().All() {
			h, resource := hearing{e, now, window.Unset}, rs.Resource().Attributes()
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					trace, id := span.TraceID(), span.SpanID()
					of := attrs.Combine(attrs.String(string(trace[:])), attrs.String(string(id[:])))
					h.hears(&happening{
						name: span.Name(), at: int64(span.EndTimestamp()), point: span.Attributes(), scope: ss.Scope().Attributes(), resource: resource,
						failed: span.Status().Code() == ptrace.StatusCodeError, id: of,
					})
					for i, ev := range span.Events().All() {
						h.hears(&happening{
							name: ev.Name(), at: int64(ev.Timestamp()), point: ev.Attributes(), scope: span.Attributes(), resource: resource, id: attrs.Combine(of, uint64(i)),
						})
					}
				}
			}
			h.end(tracesSource, resource)
		}
	})
}

// hearObjects judges what follows from a batch.
func (e *engine) hearObjects(ctx context.Context, hear func(now int64)) {
	begin := e.now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fleet == nil {
		return // not started
	}
	hear(begin.UnixNano())
	e.judge(begin.UnixNano())
	e.own.Consumed(ctx, &e.intake.Counts, e.now().Sub(begin))
}

// hears hears what is named as an object's making or release.
func (h *hearing) hears(of *happening) {
	step := 1.0
	if slices.Contains(h.cfg.Objects.Destroyed, of.name) {
		step = -1
	} else if !slices.Contains(h.cfg.Objects.Created, of.name) {
		return
	}
	why := h.object(of, h.now, step)
	if why != intake.NoTimestamp && why != intake.Future {
		h.newest = max(h.newest, of.at)
	}
	count(&h.intake.Counts, why)
}

// end notes how far a resource has come.
func (h *hearing) end(source uint64, resource pcommon.Map) {
	if h.newest != window.Unset {
		h.intake.Watermark.Observe(attrs.Combine(source, attrs.Hash(resource)), h.newest, h.now)
	}
}

// object gives what has happened to the fleet, or says why it does not count.
func (e *engine) object(of *happening, now int64, step float64) intake.Reason {
	value := func(key string) string {
		if v, ok := attrs.Lookup(key, of.point, of.scope, of.resource); ok {
			return strings.Clone(v.AsString())
		}
		return ""
	}
	kind, known := objects[value(e.cfg.Objects.Attribute)]
	switch {
	case of.at <= 0:
		return intake.NoTimestamp
	case e.intake.Watermark.Ahead(of.at, now):
		return intake.Future
	case !known || of.failed:
		return intake.NoValue
	}
	said := attrs.Combine(attrs.Hash(of.resource), attrs.Hash(of.scope), attrs.Hash(of.point), attrs.String(of.name), of.id, uint64(of.at))
	if _, again := e.said[said]; again {
		return intake.Duplicate
	}
	if len(e.said) >= maxSaid {
		return intake.SeriesLimit
	}
	w := e.called(value)
	w.Device, w.Instance = value("hw.id"), engineOf(value)
	why := e.hear(of.at, kind, w, step)
	if why == intake.None {
		e.said[said] = of.at
	}
	return why
}

// judge judges as far as the input has come. The caller holds the mutex.
func (e *engine) judge(now int64) {
	before := e.fleet.Late()
	e.fleet.Advance(e.intake.Watermark.Advance(now, window.Unset))
	late := e.fleet.Late()
	if late == before {
		return
	}
	for id, at := range e.said {
		if at < late {
			delete(e.said, id) // one that is sent again is late
		}
	}
}
