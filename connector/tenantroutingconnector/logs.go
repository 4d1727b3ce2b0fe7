// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/xpdata/pref"
	"go.opentelemetry.io/collector/pipeline"
)

// logsRouter is what the Collector sees.
type logsRouter struct{ *router[plog.Logs] }

// ConsumeLogs routes a batch.
func (r logsRouter) ConsumeLogs(ctx context.Context, ld plog.Logs) error { return r.consume(ctx, ld) }

var logsShape = &shape[plog.Logs, plog.ResourceLogsSlice, plog.ResourceLogs]{
	empty: func() plog.Logs {
		ld := plog.NewLogs()
		pref.MarkPipelineOwnedLogs(ld)
		return ld
	},
	resources: plog.Logs.ResourceLogs,
	items: func(rl plog.ResourceLogs) (n int) {
		for _, sl := range rl.ScopeLogs().All() {
			n += sl.LogRecords().Len()
		}
		return n
	},
	each: func(rl plog.ResourceLogs, f func(item, scope pcommon.Map) bool) bool {
		for _, sl := range rl.ScopeLogs().All() {
			if !eachOf(sl.LogRecords(), sl.Scope().Attributes(), f) {
				return false
			}
		}
		return true
	},
	divide: divideRecords,
}

var logsSignal = &signal[plog.Logs]{
	id:    pipeline.SignalLogs,
	items: plog.Logs.LogRecordCount,
	bytes: (&plog.ProtoMarshaler{}).LogsSize,
	fit:   fitRecords,
	clone: func(ld plog.Logs) plog.Logs {
		c := logsShape.empty()
		ld.CopyTo(c)
		return c
	},
	split:   logsShape.split,
	join:    logsShape.join,
	markAll: logsShape.markAll,
	own:     pref.MarkPipelineOwnedLogs,
	free:    pref.UnrefLogs,
	export: func(set exporter.Settings, cfg *Config, push sendFunc[plog.Logs], opts ...exporterhelper.Option) (*exporting[plog.Logs], error) {
		e, err := exporterhelper.NewLogs(context.Background(), set, cfg, consumer.ConsumeLogsFunc(push), opts...)
		if err != nil {
			return nil, err
		}
		return &exporting[plog.Logs]{e, e.ConsumeLogs}, nil
	},
}

func divideRecords(rl plog.ResourceLogs, to func(item, scope pcommon.Map) plog.ResourceLogs) {
	for _, sl := range rl.ScopeLogs().All() {
		scopes := map[plog.ResourceLogs]plog.ScopeLogs{}
		movePoints(sl.LogRecords(), func(item pcommon.Map) plog.LogRecordSlice {
			part := to(item, sl.Scope().Attributes())
			scope, ok := scopes[part]
			if !ok {
				part.SetSchemaUrl(rl.SchemaUrl())
				scope = part.ScopeLogs().AppendEmpty()
				scope.SetSchemaUrl(sl.SchemaUrl())
				sl.Scope().CopyTo(scope.Scope())
				scopes[part] = scope
			}
			return scope.LogRecords()
		})
	}
}
