// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// Event writes what the log records of all events have: what opens is an error, what closes is information. at is in Unix
// nanoseconds.
func Event(r plog.LogRecord, name string, opened bool, at int64, text string) {
	r.SetTimestamp(pcommon.Timestamp(at))
	r.SetEventName(name)
	r.SetSeverityNumber(plog.SeverityNumberInfo)
	r.SetSeverityText("INFO")
	if opened {
		r.SetSeverityNumber(plog.SeverityNumberError)
		r.SetSeverityText("ERROR")
	}
	r.Body().SetStr(text)
}
