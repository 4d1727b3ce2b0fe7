// SPDX-License-Identifier: Apache-2.0

package window

import (
	"cmp"
	"fmt"
	"slices"
)

// WatermarkState is a Watermark as plain values, for a checkpoint. It is written as an array, so the order of the fields
// is part of the format. Wall times are not in it: they say nothing about a time in which nobody listened.
type WatermarkState struct {
	_       struct{} `cbor:",toarray"`
	At      int64
	Newest  int64
	Sources []SourceState
}

// SourceState is one clock of the input.
type SourceState struct {
	_       struct{} `cbor:",toarray"`
	ID      uint64
	Newest  int64
	Waiting bool // whether the others wait for it
}

// State returns the watermark as plain values, its sources in the order of their ids.
func (w *Watermark) State() WatermarkState {
	s := WatermarkState{At: w.at, Newest: w.newest, Sources: make([]SourceState, 0, len(w.sources))}
	for id, of := range w.sources {
		s.Sources = append(s.Sources, SourceState{ID: id, Newest: of.newest, Waiting: of.at != outside})
	}
	slices.SortFunc(s.Sources, func(a, b SourceState) int { return cmp.Compare(a.ID, b.ID) })
	return s
}

// Restore makes a watermark that has seen nothing what State was taken of. Every source counts as heard now, the wall
// time: those that others waited for have an idle timeout to come back in, and the time in between is no outage of
// theirs. After an error the watermark has seen nothing.
func (w *Watermark) Restore(s WatermarkState, now int64) error {
	seen := make(map[uint64]struct{}, len(s.Sources))
	for _, of := range s.Sources {
		if _, twice := seen[of.ID]; twice {
			return fmt.Errorf("source %x stands there twice", of.ID)
		}
		if of.Newest > s.Newest {
			return fmt.Errorf("source %x was heard at %d, after the newest event %d", of.ID, of.Newest, s.Newest)
		}
		seen[of.ID] = struct{}{}
	}
	w.at, w.newest = s.At, s.Newest
	if s.Newest == Unset {
		return nil
	}
	w.heard = now
	for _, of := range s.Sources {
		w.restore(of, now)
	}
	return nil
}

// restore takes a source in, as Observe does. Beyond a limit that is lower than before the others share one.
func (w *Watermark) restore(of SourceState, now int64) {
	own := len(w.sources)
	if w.sources[overflowSource] != nil {
		own--
	}
	if own >= w.opts.MaxSources {
		of.ID = overflowSource
	}
	s := w.sources[of.ID]
	if s == nil {
		s = &source{newest: of.Newest, at: outside}
		w.sources[of.ID] = s
	}
	s.newest, s.heard = max(s.newest, of.Newest), now
	if of.Waiting || s.at != outside {
		w.waiting.moved(s)
	}
}
