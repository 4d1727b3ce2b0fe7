// SPDX-License-Identifier: Apache-2.0

package window

import (
	"math"
	"time"
)

// Unset is a watermark before any input.
const Unset int64 = math.MinInt64

// WatermarkOptions are the settings of a Watermark.
type WatermarkOptions struct {
	// Lateness is how far the watermark stays behind the newest event time of a source.
	Lateness time.Duration
	// IdleTimeout is how long a source may be silent, or repeat itself, before it stops holding the watermark back.
	IdleTimeout time.Duration
	// MaxAhead is how far event time may be ahead of the wall clock before it is refused, so that one wrong
	// clock cannot make everybody else late.
	MaxAhead time.Duration
	// MaxLag is how far a source may lag behind the fastest before the others stop waiting for it, so that one wrong
	// clock cannot keep every window open either.
	MaxLag time.Duration
	// MaxSources bounds the number of sources that are told apart; beyond it the others share one.
	MaxSources int
}

// Watermark says up to which event time the input is taken to be complete. Every source (a resource: a replica, an
// agent) has its own: the slowest live one counts, an idle one does not. It never goes back, so nobody waits for a
// source that comes in behind it: what such a source says is late already.
type Watermark struct {
	opts     WatermarkOptions
	sources  map[uint64]*source
	waiting  queue // the live sources that others wait for
	at       int64
	newest   int64 // newest event time of all sources
	heard    int64 // wall time of the newest progress of all sources
	swept    int64 // wall time at which idle sources were last looked for
	overflow uint64
}

const (
	// overflowSource is shared by the sources beyond MaxSources.
	overflowSource = 0
	// sweepEvery is how often idle sources are looked for, in wall time.
	sweepEvery = int64(time.Second)
)

// NewWatermark returns a watermark that has seen nothing.
func NewWatermark(opts WatermarkOptions) *Watermark {
	return &Watermark{opts: opts, sources: map[uint64]*source{}, at: Unset, newest: Unset, heard: Unset, swept: math.MinInt64 / 2}
}

// Ahead reports whether an event time is too far ahead of the wall clock to be believed.
func (w *Watermark) Ahead(event, now int64) bool { return event > now+int64(w.opts.MaxAhead) }

// Observe notes an event time of a source. It does not move the watermark: a batch is heard as a whole before
// Advance closes anything, so that the order of points inside a batch has no say.
func (w *Watermark) Observe(id uint64, event, now int64) {
	s := w.sources[id]
	if s == nil && len(w.sources) >= w.opts.MaxSources {
		w.overflow++
		id = overflowSource
		s = w.sources[id]
	}
	switch {
	case s == nil:
		s = &source{newest: event, at: outside}
		w.sources[id] = s
	case event <= s.newest:
		return // a clock that stands still is no sign of life
	default:
		s.newest = event
	}
	s.heard = now
	if s.at != outside || event >= w.at {
		w.waiting.moved(s)
	}
	w.newest = max(w.newest, event)
	w.heard = max(w.heard, now)
}

// Advance moves the watermark as far as the sources allow at the wall time now, and returns it. lastEnd is the end
// of the youngest window that holds data, or Unset.
//
// While a source lives, the watermark is the slowest live source's newest event time less Lateness. Once all are
// idle, event time is taken to go on at the pace of the wall clock, so that an outage is noticed when it happens
// while a drained backlog does not look like one; and windows that hold data close as soon as the wall clock is
// past their end by Lateness, since a replay would otherwise never finish.
func (w *Watermark) Advance(now, lastEnd int64) int64 {
	if w.newest == Unset {
		return w.at
	}
	if now-w.swept >= sweepEvery {
		w.sweep(now)
	}
	for len(w.waiting) > 0 && w.newest-w.waiting[0].newest > int64(w.opts.MaxLag) {
		w.waiting.drop(w.waiting[0])
	}
	lateness := int64(w.opts.Lateness)
	if len(w.waiting) > 0 {
		w.at = max(w.at, min(w.waiting[0].newest, now)-lateness)
		return w.at
	}
	onward := w.newest - lateness + (now - w.heard)
	w.at = max(w.at, onward, min(lastEnd, now-lateness))
	return w.at
}

// sweep stops waiting for idle sources. They are remembered a while longer: one that repeats an old time is not new.
func (w *Watermark) sweep(now int64) {
	w.swept = now
	full := len(w.sources) >= w.opts.MaxSources
	for id, s := range w.sources {
		silence := now - s.heard
		if silence < int64(w.opts.IdleTimeout) {
			continue
		}
		w.waiting.drop(s)
		if full || silence > int64(w.opts.IdleTimeout+w.opts.MaxLag) {
			delete(w.sources, id)
		}
	}
}

// At is the watermark as of the last Advance, or Unset.
func (w *Watermark) At() int64 { return w.at }

// Sources is the number of sources that are waited for, and of those known that are not: idle or too far behind.
func (w *Watermark) Sources() (waiting, others int) {
	return len(w.waiting), len(w.sources) - len(w.waiting)
}

// Overflowed is how often a source had to share because there were more than MaxSources.
func (w *Watermark) Overflowed() uint64 { return w.overflow }
