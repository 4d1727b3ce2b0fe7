// SPDX-License-Identifier: Apache-2.0

package backfill

import "time"

// Span is a part of the past, cut into steps: what one Request asks for.
type Span struct {
	Start, End time.Time // multiples of Step since the epoch
	Step       time.Duration
}

const (
	recent   = 72 * time.Hour // what is younger is asked for by the hour
	fine     = time.Hour
	finest   = 5 * time.Minute // where less than an hour is left
	maxSteps = 1000            // of a span, which bounds an answer; Prometheus allows 11,000
)

// Plan cuts [start, end) into spans, from the oldest to the youngest: by coarse, some hours, what lies more than three
// days before the end, by the hour what is younger, and by five minutes what is left at both ends. Less than that was not
// observed, so nothing is said of a time that has not been.
//
// Slice is the length of an SLO's time slices, of which each step is then a multiple; 0 where it has none.
func Plan(start, end time.Time, coarse, slice time.Duration) []Span {
	small := multiple(finest, slice)
	hour := multiple(fine, small)
	p := planner{steps: []time.Duration{multiple(max(coarse, fine), hour), hour, small}, old: end.Add(-recent)}
	p.cut(start, end, 0)
	return p.spans
}

// multiple is the least multiple of unit that is not below d.
func multiple(d, unit time.Duration) time.Duration {
	if unit <= 0 {
		return d
	}
	return (d + unit - 1) / unit * unit
}

type planner struct {
	steps []time.Duration // each a multiple of the next
	old   time.Time       // where the first of them ends
	spans []Span
}

// cut plans [from, to) with the steps from i on.
func (p *planner) cut(from, to time.Time, i int) {
	if i == len(p.steps) {
		return
	}
	step := p.steps[i]
	last := to
	if i == 0 && p.old.Before(last) {
		last = p.old
	}
	first := floor(from.Add(step-1), step)
	if last = floor(last, step); !first.Before(last) {
		p.cut(from, to, i+1)
		return
	}
	p.cut(from, first, i+1)
	for at := first; at.Before(last); {
		end := at.Add(maxSteps * step)
		if end.After(last) {
			end = last
		}
		p.spans = append(p.spans, Span{Start: at, End: end, Step: step})
		at = end
	}
	p.cut(last, to, i+1)
}

// floor is the last multiple of step since the epoch that is not after t.
func floor(t time.Time, step time.Duration) time.Time {
	ns := t.UnixNano()
	return time.Unix(0, ns-(ns%int64(step)+int64(step))%int64(step)).UTC()
}
