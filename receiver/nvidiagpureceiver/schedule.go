// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// schedule says which groups are due. Groups whose intervals meet are read together.
type schedule struct {
	intervals [gpu.Groups]time.Duration // 0 is never
	next      [gpu.Groups]time.Time
}

// newSchedule schedules the groups of which something is read. The cheap group always is: it says which devices there are.
func newSchedule(cfg *Config, plans *[1 << gpu.Groups]plan) (s schedule) {
	for g := range gpu.Groups {
		if g == gpu.Cheap || !plans[1<<g].read.Empty() {
			s.intervals[g] = cfg.interval(g)
		}
	}
	return s
}

// due returns the groups that are due now, as bits, and moves them on. A group that is late is read once and not in turn for
// every time that it missed.
func (s *schedule) due(now time.Time) (groups int) {
	for g, interval := range s.intervals {
		if interval == 0 || now.Before(s.next[g]) {
			continue
		}
		groups |= 1 << g
		if s.next[g] = s.next[g].Add(interval); !s.next[g].After(now) {
			s.next[g] = now.Add(interval)
		}
	}
	return groups
}

// wait is how long nothing is due.
func (s *schedule) wait(now time.Time) time.Duration {
	var first time.Time
	for g, interval := range s.intervals {
		if interval != 0 && (first.IsZero() || s.next[g].Before(first)) {
			first = s.next[g]
		}
	}
	return max(first.Sub(now), 0)
}
