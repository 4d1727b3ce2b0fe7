// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/ledger"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/metadata"
)

// maxPendingEvents bounds the events that wait for their consumer. A GPU that is broken reports the same Xid again and again.
const maxPendingEvents = 1000

// The names of the log events.
const (
	eventXid              = "nvidia.gpu.xid"
	eventLost             = "nvidia.gpu.lost"
	eventRecovered        = "nvidia.gpu.recovered"
	eventDriverChanged    = "nvidia.driver.changed"
	eventMIGChanged       = "nvidia.gpu.mig.changed"
	eventProfilingStopped = "nvidia.gpu.profiling.stopped"
	eventProfilingResumed = "nvidia.gpu.profiling.resumed"
)

// event is a log event that waits to be told.
type event struct {
	name     string
	time     int64
	severity plog.SeverityNumber
	body     string
	uuid     string // of the GPU; empty where it is about all
	put      func(pcommon.Map)
}

// happened takes an event of the source, in a goroutine of the source.
func (e *engine) happened(ev gpu.Event) {
	if ev.Kind != gpu.Xid {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.book.Heard(ev)
	meaning := gpu.XidMeaning(ev.Code)
	body := fmt.Sprintf("Xid %d", ev.Code)
	if meaning != "" {
		body += ": " + meaning
	}
	e.note(event{name: eventXid, time: ev.Time, severity: plog.SeverityNumberError, body: body, uuid: ev.UUID, put: func(m pcommon.Map) {
		m.PutInt(gpu.AttributeXid, int64(ev.Code))
		if ev.Instance {
			m.PutInt("nvidia.mig.gpu_instance", int64(ev.GPUInstance))
			m.PutInt("nvidia.mig.compute_instance", int64(ev.ComputeInstance))
		}
	}})
}

// changed takes what is not as it was at the reading before. The caller holds the mutex.
func (e *engine) changed(c *ledger.Change, now int64) {
	ev := event{time: now, uuid: c.UUID, severity: plog.SeverityNumberInfo}
	switch c.Kind {
	case ledger.Lost:
		ev.name, ev.severity, ev.body = eventLost, plog.SeverityNumberError, "the GPU is lost: it does not answer any more, or needs a reset"
	case ledger.Recovered:
		ev.name, ev.body = eventRecovered, "the GPU answers again"
	case ledger.DriverChanged:
		ev.name, ev.body = eventDriverChanged, fmt.Sprintf("the driver was %s and is %s", c.From, c.To)
		ev.put = func(m pcommon.Map) {
			m.PutStr("hw.driver_version", c.To)
			m.PutStr("nvidia.driver.previous_version", c.From)
		}
	case ledger.MIGChanged:
		ev.name, ev.body = eventMIGChanged, "the GPU is not divided any more"
		if c.Divided {
			ev.body = fmt.Sprintf("the GPU is divided into %d MIG instances", len(c.Parts))
		}
		ev.put = func(m pcommon.Map) {
			m.PutBool("nvidia.mig.enabled", c.Divided)
			ids := m.PutEmptySlice("nvidia.mig.instances")
			for _, id := range c.Parts {
				ids.AppendEmpty().SetStr(id)
			}
		}
	case ledger.ProfilingStopped:
		ev.name, ev.severity = eventProfilingStopped, plog.SeverityNumberWarn
		ev.body = "profiling says 0 while the GPU is busy, and is not told: DCGM has to be restarted, or the GPU reset"
	case ledger.ProfilingResumed:
		ev.name, ev.body = eventProfilingResumed, "profiling is believed again"
	}
	e.note(ev)
}

// note puts an event into the outbox and tells the operator. The caller holds the mutex.
func (e *engine) note(ev event) {
	write := e.log.Info
	if ev.severity >= plog.SeverityNumberWarn {
		write = e.log.Warn
	}
	write(ev.body, zap.String("event", ev.name), zap.String("hw.id", ev.uuid))
	if e.logs != nil {
		e.outbox.Add(ev)
	}
}

// deliver hands events to the consumer.
func (e *engine) deliver(ctx context.Context, events []event) error {
	of := e.report.StartLogsOp(ctx)
	err := e.logs.ConsumeLogs(of, e.records(events))
	e.report.EndLogsOp(of, metadata.Type.String(), len(events), err)
	return err
}

// records makes log records of events, those of a device on its resource.
func (e *engine) records(events []event) plog.Logs {
	e.mu.Lock()
	defer e.mu.Unlock()
	ld := plog.NewLogs()
	scopes := map[string]plog.ScopeLogs{}
	observed := pcommon.NewTimestampFromTime(e.now())
	for i := range events {
		ev := &events[i]
		sh := e.writer.shown[ev.uuid]
		scope, ok := scopes[ev.uuid]
		if !ok {
			rl := ld.ResourceLogs().AppendEmpty()
			if sh != nil {
				sh.describe(rl.Resource().Attributes())
			} else if ev.uuid != "" {
				rl.Resource().Attributes().PutStr("hw.id", ev.uuid)
			}
			scope = rl.ScopeLogs().AppendEmpty()
			scope.SetSchemaUrl(metadata.SchemaURL)
			scope.Scope().SetName(metadata.ScopeName)
			scope.Scope().SetVersion(e.set.BuildInfo.Version)
			scopes[ev.uuid] = scope
		}
		r := scope.LogRecords().AppendEmpty()
		r.SetTimestamp(pcommon.Timestamp(ev.time))
		r.SetObservedTimestamp(observed)
		r.SetEventName(ev.name)
		r.SetSeverityNumber(ev.severity)
		r.SetSeverityText(strings.ToUpper(ev.severity.String()))
		r.Body().SetStr(ev.body)
		switch {
		case sh != nil:
			sh.label(r.Attributes())
		case ev.uuid != "":
			r.Attributes().PutStr("hw.id", ev.uuid)
		}
		if ev.put != nil {
			ev.put(r.Attributes())
		}
	}
	return ld
}
