// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
)

// Reason says why a sample was refused.
type Reason int

// The reasons.
const (
	OutOfBounds Reason = iota
	TooOld
	OutOfOrder
	Duplicate
	InFuture
	SeriesLimit
	Invalid
	Reasons
)

// ReasonNames are the values of the attribute reason.
var ReasonNames = [Reasons]string{
	OutOfBounds: "out_of_bounds", TooOld: "too_old", OutOfOrder: "out_of_order", Duplicate: "duplicate",
	InFuture: "in_future", SeriesLimit: "series_limit", Invalid: "invalid",
}

// maxAhead is how far ahead of the clock a sample may be, as in Prometheus. One that was further would become the newest,
// and all that is true would lie behind it, beyond the out-of-order window.
const maxAhead = 10 * time.Minute

// Appender is a transaction that takes what it can: a sample that is refused is counted and does not keep the others out.
type Appender struct {
	storage.AppenderV2
	Refusals

	families *Families
	family   string // the last that was looked up
	given    *given
	order    *sync.Mutex
}

// Refusals are what was not taken.
type Refusals struct {
	// Refused counts samples, by reason.
	Refused [Reasons]int64
	// RefusedExemplars counts exemplars of samples that were taken.
	RefusedExemplars int64
	// Example is the first sample that was refused, for people; the zero value when there is none.
	Example Refusal
}

// Refusal is a sample that was refused.
type Refusal struct {
	Series string
	Time   time.Time
	Err    error
}

// Append begins a transaction. It ends with Commit or Rollback, one of which has to be called, and is for one goroutine. There is one at
// a time; others wait for its end.
//
// The TSDB would take more, and lose some when they have samples of one series, as when a backlog is drained: it writes two
// transactions in one order into its log and in the other into memory, or the samples of one into the log before the series that the
// other has made, and leaves out at the next start what is then out of order or of no series. The first of an empty database it even
// refuses without a word.
func (s *Store) Append(ctx context.Context) *Appender {
	s.order.Lock()
	s.given.reset()
	return &Appender{AppenderV2: s.AppenderV2(ctx), families: s.Families, given: &s.given, order: &s.order}
}

// Commit ends a transaction: what it has is in the log, and is found.
func (a *Appender) Commit() error {
	defer a.order.Unlock()
	return a.AppenderV2.Commit()
}

// Rollback ends a transaction as if it had not been.
func (a *Appender) Rollback() error {
	defer a.order.Unlock()
	return a.AppenderV2.Rollback()
}

// Takes is the time of the samples that are worth appending: older ones would be deleted at once, and newer ones are refused.
func (s *Store) Takes(now time.Time) (oldest, newest time.Time) {
	return now.Add(-s.opts.Retention), now.Add(maxAhead)
}

// Ahead is how far the newest sample is ahead of the clock, when it is further than a sample may be that comes now: a clock was wrong
// when it came. 0 is for when it is not.
func (s *Store) Ahead(now time.Time) time.Duration {
	if newest := s.Head().MaxTime(); newest > now.Add(maxAhead).UnixMilli() {
		return time.UnixMilli(newest).Sub(now).Round(time.Second)
	}
	return 0
}

// Append never returns an error: it has counted it.
func (a *Appender) Append(ref storage.SeriesRef, ls labels.Labels, st, t int64, v float64, h *histogram.Histogram, fh *histogram.FloatHistogram, opts storage.AOptions) (storage.SeriesRef, error) {
	if n := len(opts.Exemplars); n > 0 {
		opts.Exemplars = slices.DeleteFunc(opts.Exemplars, func(e exemplar.Exemplar) bool { return tellable(e.Labels) != nil })
		a.RefusedExemplars += int64(n - len(opts.Exemplars))
	}
	ref, err := a.AppenderV2.Append(ref, ls, st, t, v, h, fh, opts)
	if err == nil {
		if opts.MetricFamilyName != a.family {
			a.family = opts.MetricFamilyName
			a.families.put(a.family, opts.Metadata)
		}
		a.again(ref, ls, t, v, h)
		return ref, nil
	}
	var partial *storage.AppendPartialError
	if errors.As(err, &partial) {
		a.RefusedExemplars += int64(len(partial.ExemplarErrors))
		a.again(ref, ls, t, v, h)
		return ref, nil
	}
	a.refuse(ls, t, err)
	return 0, nil
}

// again counts a sample that the transaction has given another value before: the TSDB keeps the first, and says nothing.
func (a *Appender) again(ref storage.SeriesRef, ls labels.Labels, t int64, v float64, h *histogram.Histogram) {
	if !a.given.agrees(ref, t, v, h) {
		a.refuse(ls, t, storage.ErrDuplicateSampleForTimestamp)
	}
}

func (a *Appender) refuse(ls labels.Labels, t int64, err error) {
	a.Refused[reasonOf(err)]++
	if a.Example.Err == nil {
		a.Example = Refusal{Series: ls.String(), Time: time.UnixMilli(t).UTC(), Err: err}
	}
}

func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, errSeriesLimit):
		return SeriesLimit
	case errors.Is(err, storage.ErrOutOfBounds):
		return OutOfBounds
	case errors.Is(err, storage.ErrTooOldSample):
		return TooOld
	case errors.Is(err, storage.ErrOutOfOrderSample):
		return OutOfOrder
	case errors.Is(err, storage.ErrDuplicateSampleForTimestamp):
		return Duplicate
	}
	return Invalid
}
