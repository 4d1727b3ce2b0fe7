// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/metadata"
)

// maxPendingEvents bounds the events that wait for their consumer. A GPU that is broken reports the same Xid again and again.
const maxPendingEvents = 1000

// outbox holds events until they are taken: unlike a scrape, nothing makes up for one that is lost. The engine's mutex guards
// pending and dropped; the pause belongs to the one who sends.
type outbox struct {
	emit.Pause
	pending []event
	dropped int64
	ready   chan struct{} // has an element when there is something new
}

func newOutbox() outbox { return outbox{ready: make(chan struct{}, 1)} }

// add adds an event; of what is too much, the oldest is dropped.
func (o *outbox) add(ev event) {
	if len(o.pending) >= maxPendingEvents {
		o.pending = slices.Delete(o.pending, 0, 1)
		o.dropped++
	}
	o.pending = append(o.pending, ev)
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// tell sends events as they come, until the context ends.
func (e *engine) tell(ctx context.Context) {
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.outbox.ready:
		case <-again.C:
		}
		e.sendEvents(ctx)
		again.Reset(max(e.outbox.Wait(), time.Second))
	}
}

// sendEvents sends what waits, unless the consumer is left alone for now. What it will never take is dropped.
func (e *engine) sendEvents(ctx context.Context) {
	if e.logs == nil || e.outbox.Paused(e.now()) {
		return
	}
	e.mu.Lock()
	n, lost := len(e.outbox.pending), e.outbox.dropped
	e.outbox.dropped = 0
	ld := e.records(e.outbox.pending)
	e.mu.Unlock()
	if lost > 0 {
		e.own.eventsDropped.Add(ctx, lost, e.own.only)
	}
	if n == 0 {
		return
	}
	of := e.report.StartLogsOp(ctx)
	err := e.logs.ConsumeLogs(of, ld)
	e.report.EndLogsOp(of, metadata.Type.String(), n, err)
	switch {
	case err == nil:
		e.outbox.Resume()
	case consumererror.IsPermanent(err):
		e.own.eventsDropped.Add(ctx, int64(n), e.own.only)
		e.log.Error("events were refused for good", zap.Int("events", n), zap.Error(err))
		e.outbox.Resume()
	default:
		e.outbox.Failed(e.now())
		if ctx.Err() == nil {
			e.log.Warn("events were not taken and are sent again", zap.Int("events", n), zap.Duration("after", e.outbox.Wait()), zap.Error(err))
		}
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	// What came meanwhile stands behind; of what was sent, some may have been dropped meanwhile.
	sent := max(n-int(e.outbox.dropped), 0)
	e.outbox.pending = slices.Delete(e.outbox.pending, 0, sent)
	e.outbox.dropped -= int64(n - sent)
}
