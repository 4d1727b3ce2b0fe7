// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"math"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/attrs"
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Spans and log records are events of their own: each says exactly what happened in one request.

// item is what an Intake needs of a span or log record.
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

// Traces takes a batch in, like Metrics.
func (e *Intake) Traces(ctx context.Context, td ptrace.Traces, now int64) {
	for _, rs := range td.ResourceSpans().All() {
		newest := window.Unset
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				var err error
				e.scratch.found, err = e.spans.Match(ctx, e.scratch.found, rs, ss, span)
				newest = max(newest, e.request(err, now, item{
					span.Attributes(), ss.Scope().Attributes(), rs.Resource().Attributes(),
					int64(span.EndTimestamp()), span.TraceID(), span.SpanID(),
				}))
			}
		}
		if newest != window.Unset {
			e.Watermark.Observe(attrs.Combine(tracesSource, attrs.Hash(rs.Resource().Attributes())), newest, now)
		}
	}
}

// Logs takes a batch in, like Metrics.
func (e *Intake) Logs(ctx context.Context, ld plog.Logs, now int64) {
	for _, rl := range ld.ResourceLogs().All() {
		newest := window.Unset
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				var err error
				e.scratch.found, err = e.records.Match(ctx, e.scratch.found, rl, sl, record)
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
			e.Watermark.Observe(attrs.Combine(logsSource, attrs.Hash(rl.Resource().Attributes())), newest, now)
		}
	}
}

// request counts a span or log record for every SLO that it serves (scratch.found), and returns its event time, or window.Unset
// for one that says nothing.
func (e *Intake) request(err error, now int64, it item) int64 {
	found := e.scratch.found
	if err != nil {
		e.options.Logger.Debug("a condition could not be evaluated", zap.Error(err))
	}
	switch {
	case len(found) == 0 && err != nil:
		e.Counts.Refuse(ConditionError, 1)
		return window.Unset
	case len(found) == 0:
		return window.Unset
	case it.at == 0:
		e.Counts.Refuse(NoTimestamp, 1)
		return window.Unset
	case it.at < 0 || e.Watermark.Ahead(it.at, now):
		e.Counts.Refuse(Future, 1)
		return window.Unset
	case e.recent.again(it.trace, it.span):
		e.Counts.Refuse(Duplicate, 1)
		return it.at
	}
	why, counted := None, false
	for i := range found {
		if r := e.one(found, i, it); r != None {
			why = r
		} else {
			counted = true
		}
	}
	if counted {
		e.Counts.Accepted++
	} else {
		e.Counts.Refuse(why, 1)
	}
	return it.at
}

// one counts an item for the i-th of the uses that it serves.
func (e *Intake) one(found []selection.Found, i int, it item) Reason {
	f := &found[i]
	use := f.Use
	why := valid(f)
	if why != None {
		return why
	}
	if e.excluded[use.SLO].cover(it.at) {
		return Excluded
	}
	keys := e.to.GroupBy(use.SLO)
	values := e.scratch.values[:0]
	for _, key := range keys {
		values = append(values, e.groupValue(key, it.attributes, it.scope, it.resource))
	}
	e.scratch.values = values
	s := e.to.Series(use.SLO, values)
	if e.to.Late(s, it.at) {
		return Late
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
			return None
		}
		if !s.AddValue(it.at, f.Value) {
			return LayoutLimit
		}
		bad = true
	case selection.Good:
		s.AddGood(it.at, 1)
	case selection.Bad:
		s.AddBad(it.at, 1)
		bad = true
	case selection.Total:
		s.AddTotal(it.at, 1)
		if inOne(e.slos.SLOs[use.SLO].Indicator.Ratio) {
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
		return UnsupportedShape
	}
	if bad && !it.trace.IsEmpty() {
		e.to.Exemplar(s, it.at, Exemplar{TraceID: it.trace, SpanID: it.span, Value: f.Value})
	}
	return None
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
func valid(f *selection.Found) Reason {
	switch use := f.Use; {
	case f.Err != nil:
		return ConditionError
	case !f.Counted:
		return None
	case !f.Has:
		return NoValue
	case math.IsNaN(f.Value), math.IsInf(f.Value, 0):
		return NotFinite
	case f.Value < 0 && f.Value == -use.Scale("", "") && (use.Range == nil || use.Range.Min > f.Value): // −1, in the unit of the source
		return Sentinel
	case use.Role == selection.RawSuccess || use.Role == selection.RawFailure:
		if f.Value < -ratioSlack || f.Value > 1+ratioSlack {
			return OutOfRange
		}
	case use.Rate > 0 && f.Value < 0, use.BelowZero(f.Value):
		return Negative
	case use.Range != nil && (f.Value < use.Range.Min || f.Value > use.Range.Max):
		return Implausible
	}
	return None
}

// groupValue is the value of a group-by key, looked up in the point, then the scope, then the resource. The tenant is resolved as
// it is everywhere, and what decides it is not looked up in points of a resource that has a tenant: anybody may write another one's
// name there, and results would be the other one's.
func (e *Intake) groupValue(key string, point, scope, resource pcommon.Map) string {
	switch {
	case key == labels.Tenant:
		return whole(e.options.Tenants.Of(point, scope, resource))
	case e.options.Tenants.Decides(key) && e.options.Tenants.Of(none, none, resource) != "":
		return e.value(key, none, none, resource)
	}
	return e.value(key, point, scope, resource)
}

// value is that of a key, looked up in the point, then the scope, then the resource.
func (e *Intake) value(key string, point, scope, resource pcommon.Map) string {
	v, ok := attrs.Lookup(key, point, scope, resource)
	if !ok {
		return ""
	}
	if e.options.Text != nil {
		return whole(e.options.Text(key, v))
	}
	return whole(v.AsString())
}

// whole is a text that a checkpoint and a backend can hold: the same, without a copy, where there is nothing to replace or to cut.
func whole(text string) string { return strings.ToValidUTF8(cut(text), "\uFFFD") }

// none are no attributes.
var none = pcommon.NewMap()

// maxText bounds the value of a key in bytes: it stands on every result of its group, again and again.
const maxText = 256

// cut is a text, or what of it is short enough.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
