// SPDX-License-Identifier: Apache-2.0

// Package delta turns cumulative series into what was added since their last point.
//
// A reset (a start time that is not before the last point, or a count that fell, be it that of one bucket only) makes the point a new baseline:
// one point is dropped, and no spike is made of a restart
// (https://opentelemetry.io/docs/specs/otel/metrics/data-model/#resets-and-gaps). The trackers take plain values.
package delta

import (
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// Outcome is what a cumulative point was.
type Outcome int

const (
	// Added: the difference to the last point is known.
	Added Outcome = iota
	// Baseline: the first point of a series that began before anybody looked. It says nothing yet.
	Baseline
	// Reset: the series began anew; the point is the new baseline.
	Reset
	// Stale: the point is not newer than the last one. It changes nothing.
	Stale
)

func (o Outcome) String() string { return [...]string{"added", "baseline", "reset", "stale"}[o] }

// Point says where a cumulative point stands in time, in Unix nanoseconds.
type Point struct {
	Start, Time int64 // Start is 0 where the source does not know it
	// Since is the earliest start from which a series' first point counts as a whole, because everything in
	// it belongs to the window of Time. Older beginnings only give a baseline.
	Since int64
}

// series is the part of a tracker that does not depend on the shape of the values.
type series struct {
	start, time int64
	known       bool
}

// place classifies a point by its times alone: Added means that the values may be compared.
func (s *series) place(p Point) Outcome {
	switch {
	case !s.known && p.Start > 0 && p.Start < p.Time && p.Start >= p.Since:
		return Added
	case !s.known:
		return Baseline
	case p.Time <= s.time:
		return Stale
	case s.start > 0 && p.Start >= s.time:
		return Reset
	default:
		return Added
	}
}

func (s *series) keep(p Point) { s.start, s.time, s.known = p.Start, p.Time, true }

// Last is the time of the last point, 0 before the first.
func (s *series) Last() int64 { return s.time }

// Number tracks a cumulative monotonic number.
type Number struct {
	series
	value float64
}

// Add takes the next point and returns what was added since the last.
func (n *Number) Add(p Point, value float64) (float64, Outcome) {
	outcome := n.place(p)
	if outcome == Stale {
		return 0, Stale
	}
	before := n.value
	if outcome == Added && value < before {
		outcome = Reset
	}
	n.keep(p)
	n.value = value
	return value - before, outcome
}

// Explicit tracks a cumulative explicit histogram.
type Explicit struct {
	series
	bounds []float64
	counts []uint64
}

// Add takes the next point and returns the counts added since the last, which mean nothing unless the outcome is Added.
// They are written into into, grown where it is too short: trackers by the hundred thousand share one scratch. bounds is
// kept, so it must not be written to again; counts is copied. Other boundaries than before are a reset.
func (e *Explicit) Add(p Point, bounds []float64, counts, into []uint64) (added []uint64, outcome Outcome) {
	added, outcome = into[:0], e.place(p)
	if outcome == Stale {
		return added, Stale
	}
	if !slices.Equal(e.bounds, bounds) {
		if e.known && outcome == Added {
			outcome = Reset
		}
		e.bounds = bounds
	}
	if len(e.counts) != len(counts) { // an empty list of boundaries equals nil
		e.counts = make([]uint64, len(counts))
	}
	for i, n := range counts {
		if n < e.counts[i] && outcome == Added {
			outcome = Reset
		}
		added = append(added, n-e.counts[i])
	}
	copy(e.counts, counts)
	e.keep(p)
	return added, outcome
}

// Bounds are the boundaries of the last point, as they were given.
func (e *Explicit) Bounds() []float64 { return e.bounds }

// Exponential tracks a cumulative exponential histogram.
type Exponential struct {
	series
	last sketch.Exponential
}

// Add takes the next point, which is copied, and makes into, which must be another histogram, what was added since the
// last.
func (e *Exponential) Add(p Point, h, into *sketch.Exponential) Outcome {
	outcome := e.place(p)
	if outcome == Stale {
		return Stale
	}
	// A growing range makes the source coarser; a finer scale than before can only be a new beginning.
	if outcome == Added && e.known && h.Scale > e.last.Scale && e.last.Count() > e.last.ZeroCount {
		outcome = Reset
	}
	into.Copy(h)
	if outcome == Added && e.known && !into.Sub(&e.last) {
		outcome = Reset
	}
	e.last.Copy(h)
	e.keep(p)
	return outcome
}
