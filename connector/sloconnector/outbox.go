// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
)

// What was not taken is sent again after a while that doubles from the first of these to the second.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// pause is the time in which a consumer that refused is left alone. The zero value is none.
type pause struct {
	next time.Time // not before
	wait time.Duration
}

func (p *pause) paused(now time.Time) bool { return now.Before(p.next) }

func (p *pause) failed(now time.Time) {
	p.wait = min(max(2*p.wait, firstRetry), lastRetry)
	p.next = now.Add(p.wait)
}

// maxPendingEvents bounds the events that wait for their consumer.
const maxPendingEvents = 10_000

// outbox holds events until they are taken. The pause belongs to one goroutine at a time: the one that publishes events, then
// Shutdown. The engine's mutex guards pending, since a checkpoint keeps what is in it.
type outbox struct {
	pause
	pending []judge.Event
	refused time.Time // since when the consumer says that it will never take them; zero while it does not
}

// believed is how long a consumer must say that it will never take events before they are let go: a token that has expired,
// or a backend that is being set up, says so, too.
const believed = time.Hour

// maxUntold bounds the points that wait for their consumer: a drained backlog closes a great many panes at once.
const maxUntold = 500_000

// untold holds what is told once only, distributions and the ends of series, until it is taken.
type untold struct {
	pause
	batches []*emit.Batch // the oldest first
	dropped int64         // points
}

func (u *untold) add(batches []*emit.Batch) {
	u.batches = append(u.batches, batches...)
	points := 0
	for i := len(u.batches) - 1; i >= 0; i-- {
		if points += u.batches[i].Points(); points <= maxUntold {
			continue
		}
		for _, b := range u.batches[:i+1] {
			u.dropped += int64(b.Points())
		}
		u.batches = append([]*emit.Batch(nil), u.batches[i+1:]...)
		return
	}
}

// send sends all of it, and keeps what may be taken later. Whoever takes a batch may change it, even one that he then refuses.
func (u *untold) send(ctx context.Context, to consumer.Metrics) (errs []error) {
	var left []*emit.Batch
	for _, b := range u.batches {
		md := pmetric.NewMetrics()
		b.Metrics().CopyTo(md)
		err := to.ConsumeMetrics(ctx, md)
		switch {
		case err == nil:
			continue
		case consumererror.IsPermanent(err):
			u.dropped += int64(b.Points())
		default:
			left = append(left, b)
		}
		errs = append(errs, err)
	}
	u.batches = left
	return errs
}

func (u *untold) takeDropped() int64 {
	n := u.dropped
	u.dropped = 0
	return n
}
