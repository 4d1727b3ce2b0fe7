// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// Scenario: the promise is kept in one window in the middle of the fault, or before it is known that the fault has ended.
// Guarantees: what it has cost is told when it is kept again for the last time, whichever comes first.
func TestWhatIsKeptAgainBeforeTheFaultIsOverHasACost(t *testing.T) {
	n := narrator{out: &bytes.Buffer{}, catalog: &openslo.Catalog{}}
	told := func(event, why string) bool {
		r := plog.NewLogRecord()
		r.SetEventName(event)
		r.Body().SetStr(why)
		r.Attributes().PutStr("slo_id", "llm:chat:ttft:p95")
		n.tellEvent(r)
		return n.kept != nil
	}
	const opened, closed = "slo.violation.opened", "slo.violation.closed"
	assert.False(t, told(opened, "missed"))
	assert.True(t, told(closed, "kept again: it was 0.2"))
	assert.False(t, told(opened, "missed"), "it is broken once more")
	assert.False(t, told(closed, "the promise was taken out"))
	assert.True(t, told(closed, "kept again: it was 0.2"))
	assert.Equal(t, "llm:chat:ttft:p95", n.kept.slo)
}

// Guarantees: a line that is not whole yet is told once, when it is.
func TestALineIsToldWhenItIsWhole(t *testing.T) {
	var out bytes.Buffer
	n := narrator{out: &out, catalog: &openslo.Catalog{}}
	line := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"eventName":"slo.violation.opened","body":{"stringValue":"missed"}}]}]}]}`
	f := func(unread string, lines int) {
		t.Helper()
		assert.NoError(t, n.tellEvents([]byte(unread)))
		assert.Equal(t, lines, bytes.Count(out.Bytes(), []byte("BROKEN")))
	}
	f(line[:20], 0)
	assert.Zero(t, n.read)
	f(line+"\n"+line[:20], 1)
	assert.Equal(t, int64(len(line)+1), n.read, "the rest is read again")
	f(line+"\n", 2)
}
