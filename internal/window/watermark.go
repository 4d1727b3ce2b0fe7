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
	// IdleTimeout is how long a source may be silent before it stops holding the watermark back.
	IdleTimeout time.Duration
	// MaxAhead is how far event time may be ahead of the wall clock before it is refused, so that one wrong
	// clock cannot make everybody else late.
	MaxAhead time.Duration
	// MaxSources bounds the number of sources that are told apart; beyond it the others share one.
	MaxSources int
}

// Watermark says up to which event time the input is taken to be complete. Every source (a resource: a replica, an
// agent) has its own: the slowest live one counts, an idle one does not. It never goes back.
type Watermark struct {
	opts     WatermarkOptions
	sources  map[uint64]source
	at       int64
	newest   int64 // newest event time of all sources
	heard    int64 // wall time of the newest input of all sources
	overflow bool  // MaxSources was reached
}

type source struct {
	newest int64 // event time
	heard  int64 // wall time
}

// overflowSource is shared by the sources beyond MaxSources.
const overflowSource = 0

// NewWatermark returns a watermark that has seen nothing.
func NewWatermark(opts WatermarkOptions) *Watermark {
	return &Watermark{opts: opts, sources: map[uint64]source{}, at: Unset, newest: Unset, heard: Unset}
}

// Ahead reports whether an event time is too far ahead of the wall clock to be believed.
func (w *Watermark) Ahead(event, now int64) bool { return event > now+int64(w.opts.MaxAhead) }

// Observe notes an event time of a source. It does not move the watermark: a batch is heard as a whole before
// Advance closes anything, so that the order of points inside a batch has no say.
func (w *Watermark) Observe(id uint64, event, now int64) {
	s, known := w.sources[id]
	if !known {
		if len(w.sources) >= w.opts.MaxSources {
			w.overflow = true
			id = overflowSource
			s, known = w.sources[id]
		}
		if !known {
			s.newest = Unset
		}
	}
	s.newest = max(s.newest, event)
	s.heard = now
	w.sources[id] = s
	w.newest = max(w.newest, event)
	w.heard = max(w.heard, now)
}

// Advance moves the watermark as far as the sources allow at the wall time now, and returns it. lastEnd is the end
// of the youngest window that holds data, or Unset.
//
// While a source lives, the watermark is the slowest live source's newest event time less Lateness. Once all are
// idle, event time is taken to go on at the pace of the wall clock, so that an outage is noticed when it happens
// while a drained backlog does not look like one; and windows that hold data close as soon as the wall clock is
// past their end, since a replay would otherwise never finish.
func (w *Watermark) Advance(now, lastEnd int64) int64 {
	if w.newest == Unset {
		return w.at
	}
	slowest, live := int64(math.MaxInt64), false
	for id, s := range w.sources {
		if now-s.heard >= int64(w.opts.IdleTimeout) {
			delete(w.sources, id) // an idle source has no say; when it speaks again, it is new
			continue
		}
		live = true
		slowest = min(slowest, s.newest)
	}
	if live {
		w.at = max(w.at, slowest-int64(w.opts.Lateness))
		return w.at
	}
	onward := w.newest - int64(w.opts.Lateness) + (now - w.heard)
	w.at = max(w.at, onward, min(lastEnd, now))
	return w.at
}

// At is the watermark as of the last Advance, or Unset.
func (w *Watermark) At() int64 { return w.at }

// Sources is the number of live sources.
func (w *Watermark) Sources() int { return len(w.sources) }

// Overflowed reports whether sources were merged because there were more than MaxSources.
func (w *Watermark) Overflowed() bool { return w.overflow }
