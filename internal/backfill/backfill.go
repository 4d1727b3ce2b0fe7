// SPDX-License-Identifier: Apache-2.0

// Package backfill asks a Prometheus API what had happened to an SLO before somebody began to watch it, so that its error
// budget does not begin falsely full.
//
// What it brings is an estimate, where the slo connector counts: Prometheus extrapolates increases to the edges of a
// step, looks at gauges once a minute, and knows nothing of what happened between a series' last sample and a restart.
// Labels are those that Prometheus has: an attribute that stands on a resource only is absent there.
package backfill

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/promsli"
)

// ErrUnsupported is what an error is where Prometheus cannot be asked, or has nothing that would answer: to ask again is
// of no use. All other errors can be of another day.
var ErrUnsupported = errors.New("no history")

// API is what is needed of Prometheus's API, v1.API for one.
type API interface {
	QueryRange(ctx context.Context, query string, r v1.Range, opts ...v1.Option) (model.Value, v1.Warnings, error)
}

// Request asks for an SLO's events in a Span.
type Request struct {
	SLO     *openslo.SLO
	GroupBy []string // attribute keys
	Span
	MaxSeries int           // how many groups are taken; DefaultMaxSeries where it is 0
	Kinds     promsli.Kinds // of metrics, where their names do not say it
}

// DefaultMaxSeries is how many groups are taken where a Request does not say it.
const DefaultMaxSeries = 10_000

// Slot is what happened in one step.
type Slot struct {
	Start  time.Time
	Length time.Duration
	// Good and Total are in what the SLO's budgetingMethod counts: events for Occurrences, whole ones but for the readings
	// of a ready ratio, and time slices for the others. 0 <= Good <= Total.
	Good, Total float64
	// Observed is for how much of Length there were samples, in cells of five minutes.
	Observed time.Duration
}

// Series is the past of a group. A step that Prometheus has no events of has no slot; one in which it looked and nothing
// happened has one with a Total of 0.
type Series struct {
	Values []string // of GroupBy, in its order; "" where it is absent
	Slots  []Slot   // from the oldest to the youngest
}

// Answer is what Prometheus knows.
type Answer struct {
	Series   []Series
	Withheld map[Reason]int // what was not taken, nil where all was
	Warnings []string       // of Prometheus, e.g. that a part of its stores did not answer
}

// Reason says why something was not taken of an answer.
type Reason string

// The reasons.
const (
	Implausible Reason = "implausible"  // NaN, infinite, negative or told twice; by slot
	Unmatched   Reason = "unmatched"    // a total without its good part; by slot
	OffStep     Reason = "off_step"     // a time that was not asked for; by sample
	SeriesLimit Reason = "series_limit" // beyond MaxSeries; by group, of which Prometheus tells one where it can
)

// Query asks for what a Request wants: three queries, one after another. They end with ctx.
func Query(ctx context.Context, api API, r Request) (Answer, error) {
	sli, err := promsli.New(r.SLO, r.GroupBy, r.Kinds)
	if err != nil {
		return Answer{}, fmt.Errorf("%s: %w: %w", r.SLO.ID, ErrUnsupported, err)
	}
	if err := r.check(); err != nil {
		return Answer{}, fmt.Errorf("%s: %w", r.SLO.ID, err)
	}
	b := newBuilder(&r, sli)
	for _, q := range b.questions() {
		if err := b.ask(ctx, api, q); err != nil {
			return Answer{}, fmt.Errorf("%s: %w", r.SLO.ID, err)
		}
	}
	return b.finish(), nil
}

// check holds a request to what Plan gives.
func (r *Request) check() error {
	slice := r.SLO.Objective.TimeSliceWindow
	switch {
	case r.Step < finest || r.Step%time.Second != 0:
		return fmt.Errorf("a step of %s: write %s or more, in whole seconds", r.Step, finest)
	case !r.Start.Equal(floor(r.Start, r.Step)) || !r.End.Equal(floor(r.End, r.Step)) || !r.Start.Before(r.End):
		return fmt.Errorf("from %s to %s: write times that are multiples of the step of %s, the earlier one first", r.Start, r.End, r.Step)
	case r.End.Sub(r.Start)/r.Step > maxSteps:
		return fmt.Errorf("%d steps of %s: ask for %d at most", r.End.Sub(r.Start)/r.Step, r.Step, maxSteps)
	case slice > 0 && r.Step%slice != 0:
		return fmt.Errorf("a step of %s: write a multiple of timeSliceWindow %s", r.Step, slice)
	}
	return nil
}
