// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"fmt"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/delta"
	"github.com/otelcol-llm/otelcol-llm/internal/frame"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// served is an engine that serves a model: how far its metrics have come.
type served struct {
	by                    []string
	tokens, hits, queries delta.Number
	prompts, length       delta.Number // number of prompts, and their length in all
	since                 sinceSample
	batch, batchBefore    float64 // at the end of the interval and at its beginning; NaN where it is not known
	throughput            float64 // of the interval that this batch ends, 0 for none
	ended                 bool    // an interval, in this batch of points
	heard                 int64   // wall clock
}

// sinceSample is what was added since the last sample.
type sinceSample struct{ hits, queries, prompts, length float64 }

func newServed() *served { return &served{batch: math.NaN(), batchBefore: math.NaN()} }

// maxBatch is more requests at once than any engine works on.
const maxBatch = 1 << 20

// number takes a point that is one number, or says why it does not count.
func (s *served) number(c *coupled, r role, p pmetric.NumberDataPoint, isDelta bool) intake.Reason {
	v, why := intake.Measured(p)
	if why != intake.None {
		return why
	}
	at := pointOf(p)
	switch r {
	case batchRole:
		if v > maxBatch {
			return intake.Implausible
		}
		if s.ended && !math.IsNaN(s.batch) {
			c.sample(s) // a batch of points holds more than one scrape
		}
		s.batch = v
	case contextRole:
		s.since.prompts, s.since.length = 1, v
	case hitsRole:
		return added(&s.hits, at, v, isDelta, &s.since.hits)
	case queriesRole:
		return added(&s.queries, at, v, isDelta, &s.since.queries)
	case throughputRole:
		if s.ended {
			c.sample(s)
		}
		before := s.tokens.Last()
		if isDelta {
			if before != at.Start {
				s.batchBefore = math.NaN() // it is of another time
			}
			before = at.Start
		}
		var n float64
		why := added(&s.tokens, at, v, isDelta, &n)
		switch why {
		case intake.None, intake.Baseline, intake.Reset: // an interval begins, whatever became of the one before
			s.ended = true
			c.ended = append(c.ended, s)
		default:
		}
		if why != intake.None {
			return why
		}
		if before <= 0 || before >= at.Time {
			return intake.NoInterval
		}
		s.throughput = n / time.Duration(at.Time-before).Seconds()
	default:
	}
	return intake.None
}

const (
	// maxChange is how much larger one end of an interval may be than the other: beyond it, the interval is of no one batch size.
	maxChange = 1.5
	// maxTurns is how many times the requests that are worked on may be replaced in an interval. Then each lasts for half of it, and
	// what is worked on at both ends begins to say nothing of what was between.
	maxTurns = 2
)

// between is the batch size of the interval that has ended, false where both ends do not tell it.
func (s *served) between() (batch float64, ok bool) {
	low, high := min(s.batch, s.batchBefore), max(s.batch, s.batchBefore)
	batch = (low + high) / 2
	return batch, high <= maxChange*low && s.since.prompts <= maxTurns*batch // NaN is neither
}

// prompted takes a histogram that says how many prompts there were, and how long they were in all, or says why it does not count.
func (s *served) prompted(r role, at delta.Point, n uint64, hasSum bool, length float64, isDelta bool) intake.Reason {
	switch {
	case r != contextRole:
		return intake.UnsupportedShape
	case !hasSum:
		return intake.NoValue
	case math.IsNaN(length), math.IsInf(length, 0):
		return intake.NotFinite
	case length < 0:
		return intake.Negative
	case n > sketch.MaxCount, length > sketch.MaxCount, n == 0 && length > 0:
		return intake.Implausible
	}
	var prompts, tokens float64
	why := added(&s.prompts, at, float64(n), isDelta, &prompts)
	if other := added(&s.length, at, length, isDelta, &tokens); why == intake.None {
		why = other // both begin anew together, but a sum may show it alone
	}
	if why == intake.None {
		s.since.prompts += prompts
		s.since.length += tokens
	}
	return why
}

// added adds what a point says was added, or says why it tells nothing. Of a delta, the tracker only knows how far it has come: one
// that is sent again does not count.
func added(of *delta.Number, at delta.Point, v float64, isDelta bool, to *float64) intake.Reason {
	last := of.Last()
	n, outcome := of.Add(at, v)
	switch {
	case outcome == delta.Stale && isDelta && at.Time < last:
		return intake.Late
	case outcome == delta.Stale && isDelta:
		return intake.Duplicate
	case isDelta:
		n = v
	default:
		if why := intake.ReasonOf(outcome); why != intake.None {
			return why
		}
	}
	*to += n
	return intake.None
}

func pointOf(p interface {
	StartTimestamp() pcommon.Timestamp
	Timestamp() pcommon.Timestamp
}) delta.Point {
	return delta.Point{Start: int64(p.StartTimestamp()), Time: int64(p.Timestamp()), Since: math.MaxInt64} // the first says nothing
}

// servedState is an engine at rest. It is written as an array, so the order of the fields is part of the format.
type servedState struct {
	_                                      struct{} `cbor:",toarray"`
	ID                                     uint64
	By                                     []string
	Tokens, Hits, Queries, Prompts, Length *delta.NumberState
	Since                                  [4]float64
	Batch, BatchBefore                     float64
}

func (s *served) state(id uint64) servedState {
	return servedState{
		ID: id, By: s.by, Tokens: s.tokens.State(), Hits: s.hits.State(), Queries: s.queries.State(), Prompts: s.prompts.State(),
		Length: s.length.State(), Since: [4]float64{s.since.hits, s.since.queries, s.since.prompts, s.since.length},
		Batch: s.batch, BatchBefore: s.batchBefore,
	}
}

// restore makes an engine what its state was taken of.
func (s *served) restore(st *servedState) error {
	for of, state := range map[*delta.Number]*delta.NumberState{
		&s.tokens: st.Tokens, &s.hits: st.Hits, &s.queries: st.Queries, &s.prompts: st.Prompts, &s.length: st.Length,
	} {
		if err := of.Restore(state); err != nil {
			return err
		}
	}
	for _, v := range [...]float64{st.Since[0], st.Since[1], st.Since[2], st.Since[3]} {
		if !(v >= 0) || math.IsInf(v, 1) {
			return fmt.Errorf("%v since the last sample: want finite numbers not below 0", st.Since)
		}
	}
	for _, v := range [...]float64{st.Batch, st.BatchBefore} {
		if v < 0 || v > maxBatch {
			return fmt.Errorf("%v requests at once: want at most %d, none below 0", v, maxBatch)
		}
	}
	s.by = st.By
	s.since = sinceSample{st.Since[0], st.Since[1], st.Since[2], st.Since[3]}
	s.batch, s.batchBefore = st.Batch, st.BatchBefore
	return nil
}

// takeEngines is the state of all engines, nil where none has changed since the last call.
func (c *coupled) takeEngines() []servedState {
	if !c.touched {
		return nil
	}
	c.touched = false
	all := make([]servedState, 0, len(c.engines))
	for id, s := range c.engines {
		all = append(all, s.state(id))
	}
	return all
}

// restore takes up what was learned from the same metrics, told apart by the same attributes; otherwise it begins anew.
func (c *coupled) restore(st *couplingState, parts map[string][]byte, now int64) error {
	if !slices.Equal(st.By, c.cfg.By) || !slices.Equal(st.Metrics, c.names()) {
		return nil
	}
	c.told = st.Told
	if err := c.curves.Restore(st.Cells, len(st.By)); err != nil {
		return err
	}
	if _, ok := parts[enginesPart]; !ok {
		return nil
	}
	var all []servedState
	if err := frame.Get(parts, enginesPart, &all); err != nil {
		return err
	}
	for i := range all {
		if len(c.engines) >= c.max {
			break
		}
		s := &served{heard: now}
		if err := s.restore(&all[i]); err != nil {
			return fmt.Errorf("engine %x: %w", all[i].ID, err)
		}
		c.engines[all[i].ID] = s
	}
	return nil
}
