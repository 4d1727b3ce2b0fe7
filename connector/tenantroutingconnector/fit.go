// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// lengths is room for the lengths of what contains an item, a varint for each level.
const lengths = 32

// largest is the size that an item may have, in bytes, where batches are bounded by bytes; 0 where they are not. Whatever else is in
// its batch, a queue would give up with it.
func (cfg *Config) largest() int {
	if !cfg.Queue.HasValue() {
		return 0
	}
	batch := cfg.Queue.Get().Batch.Get()
	if batch == nil || batch.Sizer != exporterhelper.RequestSizerTypeBytes {
		return 0
	}
	return int(batch.MaxSize)
}

// fit removes items that are larger than most bytes, with what says whose they are, and returns how many.
func fitRecords(ld plog.Logs, most int) (removed int) {
	var size plog.ProtoMarshaler
	for _, rl := range ld.ResourceLogs().All() {
		around := plog.NewResourceLogs()
		around.SetSchemaUrl(rl.SchemaUrl())
		rl.Resource().CopyTo(around.Resource())
		for _, sl := range rl.ScopeLogs().All() {
			scope := plog.NewScopeLogs()
			scope.SetSchemaUrl(sl.SchemaUrl())
			sl.Scope().CopyTo(scope.Scope())
			removed += fit(sl.LogRecords(), most-lengths-size.ResourceLogsSize(around)-size.ScopeLogsSize(scope), size.LogRecordSize)
		}
	}
	return removed
}

func fitSpans(td ptrace.Traces, most int) (removed int) {
	var size ptrace.ProtoMarshaler
	for _, rs := range td.ResourceSpans().All() {
		around := ptrace.NewResourceSpans()
		around.SetSchemaUrl(rs.SchemaUrl())
		rs.Resource().CopyTo(around.Resource())
		for _, ss := range rs.ScopeSpans().All() {
			scope := ptrace.NewScopeSpans()
			scope.SetSchemaUrl(ss.SchemaUrl())
			ss.Scope().CopyTo(scope.Scope())
			removed += fit(ss.Spans(), most-lengths-size.ResourceSpansSize(around)-size.ScopeSpansSize(scope), size.SpanSize)
		}
	}
	return removed
}

func fitPoints(md pmetric.Metrics, most int) (removed int) {
	var size pmetric.ProtoMarshaler
	for _, rm := range md.ResourceMetrics().All() {
		around := pmetric.NewResourceMetrics()
		around.SetSchemaUrl(rm.SchemaUrl())
		rm.Resource().CopyTo(around.Resource())
		for _, sm := range rm.ScopeMetrics().All() {
			scope := pmetric.NewScopeMetrics()
			scope.SetSchemaUrl(sm.SchemaUrl())
			sm.Scope().CopyTo(scope.Scope())
			left := most - lengths - size.ResourceMetricsSize(around) - size.ScopeMetricsSize(scope)
			for _, m := range sm.Metrics().All() {
				metric := pmetric.NewMetric()
				describe(m, metric)
				left := left - size.MetricSize(metric)
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					removed += fit(m.Gauge().DataPoints(), left, size.NumberDataPointSize)
				case pmetric.MetricTypeSum:
					removed += fit(m.Sum().DataPoints(), left, size.NumberDataPointSize)
				case pmetric.MetricTypeHistogram:
					removed += fit(m.Histogram().DataPoints(), left, size.HistogramDataPointSize)
				case pmetric.MetricTypeExponentialHistogram:
					removed += fit(m.ExponentialHistogram().DataPoints(), left, size.ExponentialHistogramDataPointSize)
				case pmetric.MetricTypeSummary:
					removed += fit(m.Summary().DataPoints(), left, size.SummaryDataPointSize)
				}
			}
		}
	}
	return removed
}

func fit[S points[P], P any](items S, most int, size func(P) int) (removed int) {
	items.RemoveIf(func(item P) bool {
		if size(item) <= most {
			return false
		}
		removed++
		return true
	})
	return removed
}
