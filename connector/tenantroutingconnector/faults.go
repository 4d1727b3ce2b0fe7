// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
)

// faults lets what a destination fails on by its own fault be tried again for a while. A request that would fail for ever must
// not hold a queue's consumer for ever.
type faults[T comparable] struct {
	patience time.Duration

	mu    sync.Mutex
	since map[T]time.Time // by what is being sent: at most one thing for each consumer
}

func newFaults[T comparable](patience time.Duration) *faults[T] {
	return &faults[T]{patience: patience, since: map[T]time.Time{}}
}

// judge says what the retry is to hear of what a destination has answered.
func (f *faults[T]) judge(data T, err error, now time.Time) error {
	means := meaning(err)
	if means == ownFault && f.lasts(data, now) {
		means = notNow
	}
	switch means {
	case notNow:
		return errors.New(err.Error()) // which is not permanent
	case never:
		err = consumererror.NewPermanent(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.since, data)
	return err
}

// lasts reports whether a destination has failed by its own fault, and not for too long yet.
func (f *faults[T]) lasts(data T, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	first, known := f.since[data]
	if known || f.patience == 0 {
		return now.Sub(first) < f.patience
	}
	for d, at := range f.since {
		if now.Sub(at) > 2*f.patience {
			delete(f.since, d) // the retry has given up on it
		}
	}
	f.since[data] = now
	return true
}
