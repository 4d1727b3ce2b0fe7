// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottllog"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlspan"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// Found is a span or log record as a use sees it. What it amounts to:
//
//	Err != nil     an expression could not be evaluated, or its value is no number
//	!Counted       it is input, and adds nothing
//	!Has           it has no such value, e.g. no such attribute
//	else           Value, which may be NaN or infinite
type Found struct {
	Use     *Use
	Value   float64 // in the base unit; 1 for good, bad and total, and where the spec has no value expression
	Has     bool
	Counted bool
	Err     error // an *Error
}

// events finds what the SLOs of a catalog make of items that come one by one.
type events[K transformContext] struct {
	*compiled[K]
	root node[K]
}

func newEvents[K transformContext](catalog *openslo.Catalog, signal openslo.Signal, l *language[K]) (events[K], error) {
	c, err := compile(catalog, signal, l)
	e := events[K]{compiled: c}
	for i := range c.uses {
		e.root.add(i, &c.programs[i])
	}
	return e, err
}

// Uses are all uses of the signal, by Use.Index, in the order of the catalog's SLOs. They must not be written to.
func (e *events[K]) Uses() []Use { return e.uses }

func (e *events[K]) match(w *walk[K], open func() K, into []Found) ([]Found, error) {
	var memory [32]int
	into = into[:0]
	var last *measure[K]
	var lastValue reading
	for _, i := range w.find(&e.root, open, memory[:0]) {
		use, p := &e.uses[i], &e.programs[i]
		f := Found{Use: use, Value: 1, Has: true, Counted: true}
		if p.counted != nil {
			f.Counted, f.Err = p.counted.cond.Eval(w.ctx, w.context(open))
			if f.Err != nil {
				f = Found{Use: use, Err: &Error{i, "counted", f.Err}}
			}
		}
		if f.Counted && p.value != nil {
			if p.value != last { // the objectives of an SLO have it in common
				last, lastValue = p.value, p.value.read(w, open)
			}
			f.Value, f.Has = lastValue.in(use), lastValue.has
			if lastValue.err != nil {
				f.Err = &Error{i, "value", lastValue.err}
			}
		}
		into = append(into, f)
	}
	return into, w.err()
}

// Spans finds what the SLOs of a catalog make of spans.
type Spans struct {
	events[*ottlspan.TransformContext]
}

// ForTraces compiles the trace selectors of all SLOs that are measured here. Errors are those of ForMetrics.
func ForTraces(catalog *openslo.Catalog, set component.TelemetrySettings) (*Spans, error) {
	parser, err := spanParser(set)
	if err != nil {
		return nil, err
	}
	e, err := newEvents(catalog, openslo.SignalTraces, newLanguage(parser, spanPaths))
	return &Spans{e}, err
}

// Match returns what a span is to the uses that it serves, in their order, in the memory of into. A condition that cannot
// be evaluated does not hold; those are the errors.
func (s *Spans) Match(ctx context.Context, into []Found, rs ptrace.ResourceSpans, ss ptrace.ScopeSpans, span ptrace.Span) ([]Found, error) {
	w := walk[*ottlspan.TransformContext]{
		ctx: ctx, at: place{span.Name(), span.Attributes(), ss.Scope().Attributes(), rs.Resource().Attributes()},
	}
	defer w.close()
	return s.match(&w, func() *ottlspan.TransformContext { return ottlspan.NewTransformContextPtr(rs, ss, span) }, into)
}

// Records finds what the SLOs of a catalog make of log records.
type Records struct {
	events[*ottllog.TransformContext]
}

// ForLogs compiles the log selectors of all SLOs that are measured here. Errors are those of ForMetrics.
func ForLogs(catalog *openslo.Catalog, set component.TelemetrySettings) (*Records, error) {
	parser, err := logParser(set)
	if err != nil {
		return nil, err
	}
	e, err := newEvents(catalog, openslo.SignalLogs, newLanguage(parser, logPaths))
	return &Records{e}, err
}

// Match returns what a log record is to the uses that it serves, like that of Spans.
func (r *Records) Match(ctx context.Context, into []Found, rl plog.ResourceLogs, sl plog.ScopeLogs, record plog.LogRecord) ([]Found, error) {
	w := walk[*ottllog.TransformContext]{
		ctx: ctx, at: place{record.EventName(), record.Attributes(), sl.Scope().Attributes(), rl.Resource().Attributes()},
	}
	defer w.close()
	return r.match(&w, func() *ottllog.TransformContext { return ottllog.NewTransformContextPtr(rl, sl, record) }, into)
}
