// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"sync"
	"time"
)

// generation is how long a set of series is added to before the next begins: a series is active for one to two of them.
const generation = 10 * time.Minute

// Series bounds how many different series there are at a time. It is safe for concurrent use.
type Series struct {
	limit int

	mu      sync.Mutex
	current map[uint64]struct{} // seen since began
	before  map[uint64]struct{} // seen in the generation before, and not since
	began   time.Time
}

// NewSeries returns a limiter of so many series.
func NewSeries(limit int) *Series {
	return &Series{limit: limit, current: map[uint64]struct{}{}}
}

// Lock lets one caller ask for many series at once.
func (s *Series) Lock(now time.Time) {
	s.mu.Lock()
	s.turn(now)
}

// Unlock is for after the last Admit.
func (s *Series) Unlock() { s.mu.Unlock() }

// Admit reports whether a series is active, or there is room for it. The caller has locked.
func (s *Series) Admit(id uint64) bool {
	if _, ok := s.current[id]; ok {
		return true
	}
	if _, ok := s.before[id]; ok {
		delete(s.before, id)
	} else if len(s.current)+len(s.before) >= s.limit {
		return false
	}
	s.current[id] = struct{}{}
	return true
}

// Active is how many series there are.
func (s *Series) Active(now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now)
	return len(s.current) + len(s.before)
}

// turn begins a generation when its time has come.
func (s *Series) turn(now time.Time) {
	age := now.Sub(s.began)
	if age < generation {
		return
	}
	s.before, s.current = s.current, map[uint64]struct{}{}
	if age >= 2*generation {
		s.before = nil
	}
	s.began = now
}
