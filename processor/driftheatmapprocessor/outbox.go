// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/metadata"
)

// maxBatchPoints bounds what is handed to the metrics consumer at once.
const maxBatchPoints = 2000

// pages are batches of a size that a consumer takes.
type pages struct {
	on  emit.Enabled
	all []*emit.Batch
}

// next is the batch that the next results go to.
func (p *pages) next() *emit.Batch {
	if n := len(p.all); n > 0 && p.all[n-1].Points() < maxBatchPoints {
		return p.all[n-1]
	}
	p.all = append(p.all, emit.NewBatch(metadata.ScopeName, p.on))
	return p.all[len(p.all)-1]
}

// take returns the batches that hold something.
func (p *pages) take() []*emit.Batch {
	all := slices.DeleteFunc(p.all, func(b *emit.Batch) bool { return b.Points() == 0 })
	p.all = nil
	return all
}

// What was not taken is sent again after a while that doubles from the first of these to the second.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// maxUntold bounds the points that wait for their consumer: a drained backlog closes a great many windows at once.
const maxUntold = 500_000

// outbox holds results until they are taken. It belongs to one goroutine at a time: the one that publishes, then Shutdown.
type outbox struct {
	batches []*emit.Batch // the oldest first
	dropped int64         // points
	next    time.Time     // not before
	wait    time.Duration
}

func (o *outbox) paused(now time.Time) bool { return now.Before(o.next) }

func (o *outbox) resume() { o.next, o.wait = time.Time{}, 0 }

func (o *outbox) failed(now time.Time) {
	o.wait = min(max(2*o.wait, firstRetry), lastRetry)
	o.next = now.Add(o.wait)
}

func (o *outbox) add(batches []*emit.Batch) {
	o.batches = append(o.batches, batches...)
	points := 0
	for i := len(o.batches) - 1; i >= 0; i-- {
		if points += o.batches[i].Points(); points <= maxUntold {
			continue
		}
		for _, b := range o.batches[:i+1] {
			o.dropped += int64(b.Points())
		}
		o.batches = slices.Clone(o.batches[i+1:])
		return
	}
}

// send sends all of it, and keeps what may be taken later. Whoever takes a batch may change it, even one that he then refuses.
func (o *outbox) send(ctx context.Context, to consumer.Metrics) (errs []error) {
	var left []*emit.Batch
	for _, b := range o.batches {
		md := pmetric.NewMetrics()
		b.Metrics().CopyTo(md)
		err := to.ConsumeMetrics(ctx, md)
		switch {
		case err == nil:
			continue
		case consumererror.IsPermanent(err):
			o.dropped += int64(b.Points())
		default:
			left = append(left, b)
		}
		errs = append(errs, err)
	}
	o.batches = left
	return errs
}

func (o *outbox) takeDropped() int64 {
	n := o.dropped
	o.dropped = 0
	return n
}
