// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"sync"
	"time"
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

// judge says what the retry is to hear of a destination's answer.
func (f *faults[T]) judge(data T, answer error, now time.Time) error {
	var again error
	if f.patience > 0 {
		again = patient(answer)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	first, known := f.since[data]
	switch {
	case again != nil && !known:
		for d, at := range f.since {
			if now.Sub(at) > 2*f.patience {
				delete(f.since, d) // the retry has given up on it
			}
		}
		f.since[data] = now
		return again
	case again != nil && now.Sub(first) < f.patience:
		return again
	}
	delete(f.since, data)
	return answer
}
