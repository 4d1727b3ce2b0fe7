// SPDX-License-Identifier: Apache-2.0

package backfill

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/promsli"
)

// builder makes an Answer of the answers to its questions.
type builder struct {
	r       *Request
	sli     *promsli.SLI
	labels  []model.LabelName // of GroupBy, in its order
	answer  Answer
	index   map[string]int // into answer.Series, by the values of labels
	matched bool           // a slot has its good part
}

// question is a query with what becomes of each sample of its answer.
type question struct {
	what string
	expr string
	take func(group *Series, at time.Time, v float64)
	adds bool // groups that are not known yet
}

func newBuilder(r *Request, sli *promsli.SLI) *builder {
	b := &builder{r: r, sli: sli, index: make(map[string]int)}
	for _, key := range r.GroupBy {
		b.labels = append(b.labels, model.LabelName(promsli.Label(key)))
	}
	return b
}

// questions are asked in this order: the total makes the slots that the others fill.
func (b *builder) questions() []question {
	step, slice := promsli.Span(b.r.Step), promsli.Span(b.r.SLO.Objective.TimeSliceWindow)
	good, total := b.sli.Good(step), b.sli.Total(step)
	if b.r.SLO.Budgeting != openslo.Occurrences {
		ratio := b.sli.Ratio(slice)
		if least := b.r.SLO.MinEvents; least > 1 { // increase is an estimate: nearly ten are ten
			ratio = fmt.Sprintf("(%s)\nand\n(%s >= %s)", ratio, b.sli.Total(slice), promsli.Number(float64(least)-0.5))
		}
		total = fmt.Sprintf("count_over_time((%s)[%s:%s])", ratio, step, slice)
		if b.r.SLO.Budgeting == openslo.Timeslices {
			ratio = fmt.Sprintf("(%s)\n>= bool %s", ratio, promsli.Number(b.r.SLO.Objective.TimeSliceTarget-slack))
		}
		good = fmt.Sprintf("sum_over_time((%s)[%s:%s])", ratio, step, slice)
	}
	return []question{
		{what: "the total", expr: total, take: b.total, adds: true},
		{what: "what was good", expr: good, take: b.good},
		{what: "what was observed", expr: b.sli.Seen(step), take: b.seen},
	}
}

// slack keeps rounding from deciding: 19 of 20, extrapolated by increase, is not exactly 0.95.
const slack = 1e-9

func (b *builder) ask(ctx context.Context, api API, q question) error {
	limit := b.maxSeries() + 1 // one more tells that there are more
	value, warnings, err := api.QueryRange(ctx, q.expr, v1.Range{Start: b.r.Start.Add(b.r.Step), End: b.r.End, Step: b.r.Step}, v1.WithLimit(uint64(limit)))
	if err != nil {
		return fmt.Errorf("Prometheus was asked for %s: %w", q.what, err)
	}
	for _, w := range warnings {
		b.warn(w)
	}
	matrix, ok := value.(model.Matrix)
	if !ok {
		return fmt.Errorf("Prometheus was asked for %s and answered with a %s: a matrix would be right", q.what, value.Type())
	}
	for _, stream := range matrix {
		group := b.group(stream.Metric, q.adds)
		if group == nil {
			continue
		}
		for _, sample := range stream.Values {
			at := sample.Timestamp.Time().Add(-b.r.Step).UTC()
			if at.Before(b.r.Start) || !at.Before(b.r.End) || !at.Equal(floor(at, b.r.Step)) {
				b.withhold(OffStep)
				continue
			}
			q.take(group, at, float64(sample.Value))
		}
	}
	return nil
}

// group is the series of a metric's labels; nil where it is beyond the limit, or not known and not to be added.
func (b *builder) group(metric model.Metric, add bool) *Series {
	values := make([]string, len(b.labels))
	for i, label := range b.labels {
		values[i] = string(metric[label])
	}
	key := strings.Join(values, "\xff") // which is in no UTF-8 text
	i, known := b.index[key]
	switch {
	case known:
		return &b.answer.Series[i]
	case !add:
		return nil
	case len(b.index) >= b.maxSeries():
		b.withhold(SeriesLimit)
		return nil
	}
	b.index[key] = len(b.answer.Series)
	b.answer.Series = append(b.answer.Series, Series{Values: values})
	return &b.answer.Series[len(b.answer.Series)-1]
}

func (b *builder) maxSeries() int {
	if b.r.MaxSeries > 0 {
		return b.r.MaxSeries
	}
	return DefaultMaxSeries
}

func (b *builder) total(group *Series, at time.Time, v float64) {
	i, there := slotAt(group.Slots, at)
	if there || !plausible(v) || v < 0 {
		b.withhold(Implausible)
		return
	}
	if slice := b.r.SLO.Objective.TimeSliceWindow; slice > 0 {
		v = min(v, float64(b.r.Step/slice)) // older Prometheus counts those at both ends
	}
	group.Slots = slices.Insert(group.Slots, i, Slot{Start: at, Length: b.r.Step, Total: math.Round(v), Good: math.NaN()})
}

func (b *builder) good(group *Series, at time.Time, v float64) {
	i, there := slotAt(group.Slots, at)
	switch {
	case !there: // its total was withheld, and counted then
	case !plausible(v):
		b.withhold(Implausible)
	default:
		b.matched = true
		if b.sli.Whole && b.r.SLO.Budgeting == openslo.Occurrences {
			v = math.Round(v)
		}
		slot := &group.Slots[i]
		slot.Good = min(max(v, 0), slot.Total) // what is extrapolated can be more than the whole, or less than nothing
	}
}

func (b *builder) seen(group *Series, at time.Time, v float64) {
	if i, there := slotAt(group.Slots, at); there && plausible(v) {
		seconds := min(max(v, 0), b.r.Step.Seconds())
		group.Slots[i].Observed = time.Duration(seconds * float64(time.Second))
	}
}

// plausible reports whether a number can be one of events.
func plausible(v float64) bool { return !math.IsNaN(v) && math.Abs(v) <= maxEvents }

// maxEvents is beyond what anybody counts, and what a float counts exactly.
const maxEvents = 1 << 53

// slotAt is where the slot of a time stands, or would stand.
func slotAt(list []Slot, at time.Time) (int, bool) {
	return slices.BinarySearchFunc(list, at, func(s Slot, at time.Time) int { return s.Start.Compare(at) })
}

func (b *builder) withhold(why Reason) {
	if b.answer.Withheld == nil {
		b.answer.Withheld = make(map[Reason]int)
	}
	b.answer.Withheld[why]++
}

// maxWarnings bounds what Prometheus can make us say.
const maxWarnings = 10

func (b *builder) warn(text string) {
	if len(b.answer.Warnings) < maxWarnings && !slices.Contains(b.answer.Warnings, text) {
		b.answer.Warnings = append(b.answer.Warnings, text)
	}
}

// finish leaves out what has no good part: it is not known to be bad.
func (b *builder) finish() Answer {
	unmatched := 0
	for i := range b.answer.Series {
		group := &b.answer.Series[i]
		group.Slots = slices.DeleteFunc(group.Slots, func(s Slot) bool {
			if !math.IsNaN(s.Good) {
				return false
			}
			unmatched++
			b.withhold(Unmatched)
			return true
		})
	}
	if s := b.r.SLO.Indicator.Threshold; unmatched > 0 && !b.matched && s != nil {
		b.warn(fmt.Sprintf("Prometheus has %s, but no bucket of it that ends at %s: what was good in the past is not known",
			s.Metric, promsli.Number(b.r.SLO.Objective.Value/s.Scale)))
	}
	b.answer.Series = slices.DeleteFunc(b.answer.Series, func(s Series) bool { return len(s.Slots) == 0 })
	return b.answer
}
