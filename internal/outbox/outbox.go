// SPDX-License-Identifier: Apache-2.0

// Package outbox holds events until their consumer takes them: unlike a measurement, nothing makes up for one that is lost.
package outbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
)

// Box holds events of type E in their order. Add is safe for concurrent use; Run and Flush are for one goroutine at a time.
type Box[E any] struct {
	limit   int
	deliver func(context.Context, []E) error
	lost    func(context.Context, int64)
	log     *zap.Logger
	now     func() time.Time

	mu      sync.Mutex
	pending []E
	dropped int64 // since the last sending

	pause emit.Pause    // of the one who sends
	ready chan struct{} // has an element when there is something new
}

// New makes a box of at most limit events. deliver hands events to the consumer, and may be called again with the same ones if it
// fails with an error that is not permanent; lost hears how many no consumer will see.
func New[E any](limit int, log *zap.Logger, deliver func(context.Context, []E) error, lost func(context.Context, int64)) *Box[E] {
	return &Box[E]{limit: limit, deliver: deliver, lost: lost, log: log, now: time.Now, ready: make(chan struct{}, 1)}
}

// Clock replaces the clock by which a consumer that refused is left alone.
func (b *Box[E]) Clock(now func() time.Time) { b.now = now }

// Len is the number of events that wait.
func (b *Box[E]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pending)
}

// Add adds an event; of what is too much, the oldest is dropped.
func (b *Box[E]) Add(event E) {
	b.mu.Lock()
	if len(b.pending) >= b.limit {
		b.pending = slices.Delete(b.pending, 0, 1)
		b.dropped++
	}
	b.pending = append(b.pending, event)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// Run sends events as they come, until the context ends.
func (b *Box[E]) Run(ctx context.Context) {
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.ready:
		case <-again.C:
		}
		b.Send(ctx)
		again.Reset(max(b.pause.Wait(), time.Second))
	}
}

// Flush sends what is left, even to a consumer that has just refused.
func (b *Box[E]) Flush(ctx context.Context) {
	b.pause.Resume()
	b.Send(ctx)
}

// Send sends what waits, unless the consumer is left alone for now. What it will never take is dropped.
func (b *Box[E]) Send(ctx context.Context) {
	if b.pause.Paused(b.now()) {
		return
	}
	b.mu.Lock()
	events, dropped := slices.Clone(b.pending), b.dropped
	b.dropped = 0
	b.mu.Unlock()
	if dropped > 0 {
		b.lost(ctx, dropped)
	}
	if len(events) == 0 {
		return
	}
	err := b.deliver(ctx, events)
	if err != nil && !consumererror.IsPermanent(err) {
		b.pause.Failed(b.now())
		if ctx.Err() == nil {
			b.log.Warn("events were not taken and are sent again", zap.Int("events", len(events)), zap.Duration("after", b.pause.Wait()), zap.Error(err))
		}
		return
	}
	if err != nil {
		b.lost(ctx, int64(len(events)))
		b.log.Error("events were refused for good", zap.Int("events", len(events)), zap.Error(err))
	}
	b.pause.Resume()
	b.mu.Lock()
	defer b.mu.Unlock()
	// What came meanwhile stands behind; of what was sent, some may have been dropped meanwhile.
	sent := max(len(events)-int(b.dropped), 0)
	b.pending = slices.Delete(b.pending, 0, sent)
	b.dropped -= int64(len(events) - sent)
}
