// SPDX-License-Identifier: Apache-2.0

package gpuguardreceiver

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
	"github.com/otelcol-llm/otelcol-llm/receiver/gpuguardreceiver/internal/metadata"
)

// records makes log records of actions.
func (r *guardReceiver) records(actions []gpuaction.Action) plog.Logs {
	ld := plog.NewLogs()
	scope := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	scope.Scope().SetName(metadata.ScopeName)
	scope.Scope().SetVersion(r.set.BuildInfo.Version)
	observed := pcommon.NewTimestampFromTime(time.Now())
	for i := range actions {
		a := &actions[i]
		record := scope.LogRecords().AppendEmpty()
		record.SetTimestamp(pcommon.Timestamp(a.At))
		record.SetObservedTimestamp(observed)
		record.SetEventName(gpuaction.EventName)
		severity := severityOf(a)
		record.SetSeverityNumber(severity)
		record.SetSeverityText(strings.ToUpper(severity.String()))
		record.Body().SetStr(a.Text())
		put(record.Attributes(), a.Attributes())
	}
	return ld
}

// severityOf is a warning where somebody was touched, and an error where that did not end well.
func severityOf(a *gpuaction.Action) plog.SeverityNumber {
	switch a.Outcome {
	case gpuaction.Termed, gpuaction.Exited, gpuaction.Killed, gpuaction.Stopped:
		return plog.SeverityNumberWarn
	case gpuaction.Stuck, gpuaction.Interrupted:
		return plog.SeverityNumberError
	default:
		return plog.SeverityNumberInfo
	}
}

func put(to pcommon.Map, all []gpuaction.Attribute) {
	to.EnsureCapacity(len(all))
	for _, of := range all {
		switch value := of.Value.(type) {
		case string:
			to.PutStr(of.Key, value)
		case int64:
			to.PutInt(of.Key, value)
		case float64:
			to.PutDouble(of.Key, value)
		case bool:
			to.PutBool(of.Key, value)
		}
	}
}
