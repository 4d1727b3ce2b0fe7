// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/xpdata/pref"
	"go.opentelemetry.io/collector/pipeline"
)

// tracesRouter is what the Collector sees.
type tracesRouter struct{ *router[ptrace.Traces] }

// ConsumeTraces routes a batch.
func (r tracesRouter) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	return r.consume(ctx, td)
}

var tracesShape = &shape[ptrace.Traces, ptrace.ResourceSpansSlice, ptrace.ResourceSpans]{
	empty: func() ptrace.Traces {
		td := ptrace.NewTraces()
		pref.MarkPipelineOwnedTraces(td)
		return td
	},
	resources: ptrace.Traces.ResourceSpans,
	items: func(rs ptrace.ResourceSpans) (n int) {
		for _, ss := range rs.ScopeSpans().All() {
			n += ss.Spans().Len()
		}
		return n
	},
	each: func(rs ptrace.ResourceSpans, f func(item, scope pcommon.Map) bool) bool {
		for _, ss := range rs.ScopeSpans().All() {
			if !eachOf(ss.Spans(), ss.Scope().Attributes(), f) {
				return false
			}
		}
		return true
	},
	divide: divideSpans,
}

var tracesSignal = &signal[ptrace.Traces]{
	id:    pipeline.SignalTraces,
	items: ptrace.Traces.SpanCount,
	bytes: (&ptrace.ProtoMarshaler{}).TracesSize,
	fit:   fitSpans,
	clone: func(td ptrace.Traces) ptrace.Traces {
		c := tracesShape.empty()
		td.CopyTo(c)
		return c
	},
	split:   tracesShape.split,
	join:    tracesShape.join,
	markAll: tracesShape.markAll,
	own:     pref.MarkPipelineOwnedTraces,
	free:    pref.UnrefTraces,
	export: func(set exporter.Settings, cfg *Config, push sendFunc[ptrace.Traces], opts ...exporterhelper.Option) (*exporting[ptrace.Traces], error) {
		e, err := exporterhelper.NewTraces(context.Background(), set, cfg, consumer.ConsumeTracesFunc(push), opts...)
		if err != nil {
			return nil, err
		}
		return &exporting[ptrace.Traces]{e, e.ConsumeTraces}, nil
	},
}

func divideSpans(rs ptrace.ResourceSpans, to func(item, scope pcommon.Map) ptrace.ResourceSpans) {
	for _, ss := range rs.ScopeSpans().All() {
		scopes := map[ptrace.ResourceSpans]ptrace.ScopeSpans{}
		movePoints(ss.Spans(), func(item pcommon.Map) ptrace.SpanSlice {
			part := to(item, ss.Scope().Attributes())
			scope, ok := scopes[part]
			if !ok {
				part.SetSchemaUrl(rs.SchemaUrl())
				scope = part.ScopeSpans().AppendEmpty()
				scope.SetSchemaUrl(ss.SchemaUrl())
				ss.Scope().CopyTo(scope.Scope())
				scopes[part] = scope
			}
			return scope.Spans()
		})
	}
}
