// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/metadata"
)

// handoff is what lies between the one who reads and the consumer of metrics. A consumer may block for hours, as an exporter
// without a queue does that retries; to read, to tell the guard and to give handles back must not wait for it. One reading is
// with the consumer and one waits at most. Beyond that none is written, so that the next one ends all that has gone meanwhile.
type handoff struct {
	ready chan struct{} // has an element when something waits

	mu      sync.Mutex
	waiting []pmetric.Metrics
	sending bool

	// Of the one who reads.
	owed    int   // groups, as bits, of readings that were dropped since the last one that was not
	dropped int64 // readings since the consumer kept up
}

func newHandoff() handoff { return handoff{ready: make(chan struct{}, 1)} }

func (h *handoff) put(pages []pmetric.Metrics) {
	if len(pages) == 0 {
		return
	}
	h.mu.Lock()
	h.waiting = append(h.waiting, pages...)
	h.mu.Unlock()
	select {
	case h.ready <- struct{}{}:
	default:
	}
}

// take takes what waits; none says that nothing is sent any more.
func (h *handoff) take() []pmetric.Metrics {
	h.mu.Lock()
	defer h.mu.Unlock()
	pages := h.waiting
	h.waiting, h.sending = nil, len(pages) > 0
	return pages
}

// room says whether a reading may wait, and whether nothing lies before it.
func (h *handoff) room() (room, idle bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.waiting) == 0, len(h.waiting) == 0 && !h.sending
}

// room says whether the reading that begins is for the consumer of metrics, too, and tells the operator where that changes.
func (e *engine) room(ctx context.Context) bool {
	room, idle := e.handoff.room()
	switch {
	case !room:
		e.own.dropped.Add(ctx, 1, e.own.only)
		if e.handoff.dropped++; e.handoff.dropped == 1 {
			e.log.Warn("the metrics pipeline takes nothing: GPUs are read on, for events and the guard, and what it should have had is dropped")
		}
	case idle && e.handoff.dropped > 0:
		e.log.Info("the metrics pipeline takes what is read again", zap.Int64("scrapes_dropped", e.handoff.dropped))
		e.handoff.dropped = 0
	}
	return room
}

// put lets metrics wait for their consumer, if there is one.
func (e *engine) put(pages []pmetric.Metrics) {
	if e.metrics != nil {
		e.handoff.put(pages)
	}
}

// handOn hands metrics on until the context ends.
func (e *engine) handOn(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.handoff.ready:
			e.send(ctx)
		}
	}
}

// send hands on what waits. What is not taken is lost: the next reading says it anew.
func (e *engine) send(ctx context.Context) {
	for pages := e.handoff.take(); len(pages) > 0; pages = e.handoff.take() {
		for _, page := range pages {
			points := page.DataPointCount()
			of := e.report.StartMetricsOp(ctx)
			err := e.metrics.ConsumeMetrics(of, page)
			e.report.EndMetricsOp(of, metadata.Type.String(), points, err)
			if err != nil && ctx.Err() == nil {
				e.log.Warn("a scrape was not taken", zap.Int("points", points), zap.Error(err))
			}
		}
	}
}
