// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
)

// The names of the log events.
const (
	violationOpened = "slo.violation.opened"
	violationClosed = "slo.violation.closed"
)

// records writes violation events as log records, those of one tenant on one resource.
func (e *engine) records(events []judge.Event) plog.Logs {
	ld := plog.NewLogs()
	scopes := map[string]plog.ScopeLogs{}
	observed := pcommon.NewTimestampFromTime(e.now())
	for i := range events {
		ev := &events[i]
		key := ev.Series.Tenant(tenantKeys)
		scope, ok := scopes[key]
		if !ok {
			rl := ld.ResourceLogs().AppendEmpty()
			e.describeResource(rl.Resource().Attributes(), ev.Series)
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
	labels(m, ev.Series)
	m.PutStr("slo.violation.id", ev.ID)
	m.PutStr("slo.policy", ev.Policy)
	ids := m.PutEmptySlice("slo.ids")
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
