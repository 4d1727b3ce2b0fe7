// SPDX-License-Identifier: Apache-2.0

package emit

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// MaxBatchPoints bounds what is handed to a metrics consumer at once: what is held in memory while it is encoded, and sent.
// Batches without a bound would not pass the 4 MiB that gRPC takes by default.
const MaxBatchPoints = 2000

// Pages are batches of a size that a consumer takes.
type Pages struct {
	Scope string // instrumentation scope
	On    Enabled
	all   []*Batch
}

// Next is the batch that the next results go to.
func (p *Pages) Next() *Batch {
	if n := len(p.all); n > 0 && p.all[n-1].Points() < MaxBatchPoints {
		return p.all[n-1]
	}
	p.all = append(p.all, NewBatch(p.Scope, p.On))
	return p.all[len(p.all)-1]
}

// Take returns the batches that hold something.
func (p *Pages) Take() []*Batch {
	all := slices.DeleteFunc(p.all, func(b *Batch) bool { return b.Points() == 0 })
	p.all = nil
	return all
}

// What was not taken is sent again after a while that doubles from the first of these to the second.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// Pause is the time in which a consumer that refused is left alone. The zero value is none.
type Pause struct {
	next time.Time // not before
	wait time.Duration
}

// Paused reports whether the consumer is still left alone.
func (p *Pause) Paused(now time.Time) bool { return now.Before(p.next) }

// Wait is how long it is left alone after the last refusal.
func (p *Pause) Wait() time.Duration { return p.wait }

// Failed begins a pause that is longer than the one before.
func (p *Pause) Failed(now time.Time) {
	p.wait = min(max(2*p.wait, firstRetry), lastRetry)
	p.next = now.Add(p.wait)
}

// Resume ends it.
func (p *Pause) Resume() { *p = Pause{} }

// MaxUntold bounds the points that wait for their consumer: a drained backlog closes a great many windows at once.
const MaxUntold = 500_000

// Untold holds what is told once only until it is taken. It is not safe for concurrent use.
type Untold struct {
	Pause
	batches []*Batch // the oldest first
	dropped int64    // points
}

// Add adds batches; of what is too much, the oldest is dropped.
func (u *Untold) Add(batches []*Batch) {
	u.batches = append(u.batches, batches...)
	points := 0
	for i := len(u.batches) - 1; i >= 0; i-- {
		if points += u.batches[i].Points(); points <= MaxUntold {
			continue
		}
		for _, b := range u.batches[:i+1] {
			u.dropped += int64(b.Points())
		}
		u.batches = slices.Clone(u.batches[i+1:])
		return
	}
}

// Len is the number of batches that wait.
func (u *Untold) Len() int { return len(u.batches) }

// Send sends all of it, and keeps what may be taken later. Whoever takes a batch may change it, even one that he then refuses.
func (u *Untold) Send(ctx context.Context, to consumer.Metrics) (errs []error) {
	var left []*Batch
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

// TakeDropped is how many points were dropped since the last call.
func (u *Untold) TakeDropped() int64 {
	n := u.dropped
	u.dropped = 0
	return n
}
