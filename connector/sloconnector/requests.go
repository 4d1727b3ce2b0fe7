// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/attrs"
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Spans and log records are events of their own: each says exactly what happened in one request.

// item is what the engine needs of a span or log record.
type item struct {
	attributes, scope, resource pcommon.Map
	at                          int64 // event time: the end of a span
	trace                       pcommon.TraceID
	span                        pcommon.SpanID
}

// The signals that have sources of their own: a resource's spans may come later than its metrics, and neither waits for the
// other.
var (
	tracesSource = attrs.String("traces")
	logsSource   = attrs.String("logs")
)

func (e *engine) consumeTraces(ctx context.Context, td ptrace.Traces) {
	e.hear(ctx, func(now int64) { e.walkTraces(ctx, td, now) })
}

func (e *engine) walkTraces(ctx context.Context, td ptrace.Traces, now int64) {
	for _, rs := range td.ResourceSpans().All() {
		newest := window.Unset
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				var err error
				e.input.found, err = e.spans.Match(ctx, e.input.found, rs, ss, span)
				newest = max(newest, e.request(err, now, item{
					span.Attributes(), ss.Scope().Attributes(), rs.Resource().Attributes(),
					int64(span.EndTimestamp()), span.TraceID(), span.SpanID(),
				}))
			}
		}
		if newest != window.Unset {
			e.watermark.Observe(attrs.Combine(tracesSource, attrs.Hash(rs.Resource().Attributes())), newest, now)
		}
	}
}

func (e *engine) consumeLogs(ctx context.Context, ld plog.Logs) {
	e.hear(ctx, func(now int64) { e.walkLogs(ctx, ld, now) })
}

func (e *engine) walkLogs(ctx context.Context, ld plog.Logs, now int64) {
	for _, rl := range ld.ResourceLogs().All() {
		newest := window.Unset
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				var err error
				e.input.found, err = e.records.Match(ctx, e.input.found, rl, sl, record)
				at := record.Timestamp()
				if at == 0 {
					at = record.ObservedTimestamp()
				}
				newest = max(newest, e.request(err, now, item{
					record.Attributes(), sl.Scope().Attributes(), rl.Resource().Attributes(),
					int64(at), record.TraceID(), record.SpanID(),
				}))
			}
		}
		if newest != window.Unset {
			e.watermark.Observe(attrs.Combine(logsSource, attrs.Hash(rl.Resource().Attributes())), newest, now)
		}
	}
}

// request counts a span or log record for every SLO that it serves (input.found), and returns its event time, or window.Unset
// for one that says nothing.
func (e *engine) request(err error, now int64, it item) int64 {
	found := e.input.found
	if err != nil {
		e.set.Logger.Debug("a condition could not be evaluated", zap.Error(err))
	}
	switch {
	case len(found) == 0 && err != nil:
		e.counts.refuse(conditionError, 1)
		return window.Unset
	case len(found) == 0:
		return window.Unset
	case it.at == 0:
		e.counts.refuse(noTimestamp, 1)
		return window.Unset
	case it.at < 0 || e.watermark.Ahead(it.at, now):
		e.counts.refuse(future, 1)
		return window.Unset
	case e.spansSeen.again(it.trace, it.span):
		e.counts.refuse(duplicate, 1)
		return it.at
	}
	why, counted := none, false
	for i := range found {
		if r := e.one(found, i, it); r != none {
			why = r
		} else {
			counted = true
		}
	}
	if counted {
		e.counts.accepted++
	} else {
		e.counts.refuse(why, 1)
	}
	return it.at
}

// one counts an item for the i-th of the uses that it serves.
func (e *engine) one(found []selection.Found, i int, it item) reason {
	f := &found[i]
	use := f.Use
	why := valid(f)
	if why != none {
		return why
	}
	if e.judge.Excluded(use.SLO, it.at) {
		return excluded
	}
	keys := e.judge.GroupBy(use.SLO)
	values := e.input.values[:0]
	for _, key := range keys {
		values = append(values, e.groupValue(key, it.attributes, it.scope, it.resource))
	}
	e.input.values = values
	s := e.judge.Series(use.SLO, values)
	if e.judge.Late(s, it.at) {
		return tooLate
	}
	bad := false
	switch use.Role {
	case selection.Value:
		if use.Rate > 0 {
			amount := f.Value
			if !f.Counted {
				amount = 0
			}
			s.AddAmount(it.at, amount)
			return none
		}
		if !s.AddValue(it.at, f.Value) {
			return layoutLimit
		}
		bad = true
	case selection.Good:
		s.AddGood(it.at, 1)
	case selection.Bad:
		s.AddBad(it.at, 1)
		bad = true
	case selection.Total:
		s.AddTotal(it.at, 1)
		if inOne(s.SLO().Indicator.Ratio) {
			s.AddParts(it.at, 0, 0, true, true) // one that is not good has said so
		}
		bad = !serves(found, use.SLO, selection.Good) && !serves(found, use.SLO, selection.Bad)
	case selection.RawSuccess:
		s.AddRaw(it.at, f.Value)
		bad = f.Value < 1
	case selection.RawFailure:
		s.AddRaw(it.at, 1-f.Value)
		bad = f.Value > 0
	default:
		return unsupportedShape
	}
	if bad && !it.trace.IsEmpty() {
		s.AddExemplar(it.at, judge.Exemplar{TraceID: it.trace, SpanID: it.span, Value: f.Value})
	}
	return none
}

// inOne reports whether an item tells of both parts of a ratio.
func inOne(r *openslo.Ratio) bool {
	part := r.Good
	if part == nil {
		part = r.Bad
	}
	return part != nil && part.Signal == r.Total.Signal
}

// serves reports whether an item serves an SLO in a role.
func serves(found []selection.Found, slo int, role selection.Role) bool {
	for i := range found {
		if found[i].Use.SLO == slo && found[i].Use.Role == role {
			return true
		}
	}
	return false
}

// valid is why a value does not count, none if it does.
func valid(f *selection.Found) reason {
	switch use := f.Use; {
	case f.Err != nil:
		return conditionError
	case !f.Counted:
		return none
	case !f.Has:
		return noValue
	case math.IsNaN(f.Value), math.IsInf(f.Value, 0):
		return notFinite
	case f.Value < 0 && f.Value == -use.Scale("", "") && (use.Range == nil || use.Range.Min > f.Value): // −1, in the unit of the source
		return sentinel
	case use.Role == selection.RawSuccess || use.Role == selection.RawFailure:
		if f.Value < -ratioSlack || f.Value > 1+ratioSlack {
			return outOfRange
		}
	case use.Rate > 0 && f.Value < 0:
		return negative
	case use.Range != nil && (f.Value < use.Range.Min || f.Value > use.Range.Max):
		return implausible
	}
	return none
}

// groupValue is the value of a group-by key, looked up in the point, then the scope, then the resource; the tenant is
// resolved as it is everywhere.
func (e *engine) groupValue(key string, point, scope, resource pcommon.Map) string {
	if v, ok := attrs.Lookup(key, point, scope, resource); ok {
		return v.AsString()
	}
	if key == labels.Tenant {
		return e.tenants.Of(point, scope, resource)
	}
	return ""
}

// recent remembers which spans were heard lately, so that one that is sent again is found. It remembers at least the last
// half of its limit.
type recent struct {
	limit    int
	now, old map[uint64]struct{}
	touched  bool // since the last checkpoint
}

func newRecent(limit int) recent {
	return recent{limit: limit, now: map[uint64]struct{}{}, old: map[uint64]struct{}{}}
}

// again reports whether a span was heard before, and remembers it. Items without a span are never known.
func (r *recent) again(trace pcommon.TraceID, span pcommon.SpanID) bool {
	if r.limit == 0 || span.IsEmpty() {
		return false
	}
	var id [24]byte
	copy(id[:], trace[:])
	copy(id[16:], span[:])
	key := xxhash.Sum64(id[:])
	if _, known := r.now[key]; known {
		return true
	}
	if _, known := r.old[key]; known {
		return true
	}
	if 2*len(r.now) >= r.limit {
		r.now, r.old = r.old, r.now
		clear(r.now)
	}
	r.now[key] = struct{}{}
	r.touched = true
	return false
}

func (r *recent) len() int { return len(r.now) + len(r.old) }

// state is what is remembered, for a checkpoint.
func (r *recent) state() []byte {
	b := make([]byte, 0, 8*(len(r.now)+len(r.old)))
	for _, m := range []map[uint64]struct{}{r.old, r.now} {
		for key := range m {
			b = binary.LittleEndian.AppendUint64(b, key)
		}
	}
	return b
}

func (r *recent) restore(b []byte) {
	for ; len(b) >= 8 && len(r.old) < r.limit; b = b[8:] {
		r.old[binary.LittleEndian.Uint64(b)] = struct{}{}
	}
}
