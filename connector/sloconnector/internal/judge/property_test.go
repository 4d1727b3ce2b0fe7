// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/budget"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// chapters are stretches of input, each of which lies after the one before it. Between them there may be silence.
type chapter struct {
	from, to int64
	input    []*input
}

func anyChapters(t *rapid.T) (all []chapter) {
	at := t0
	for range rapid.IntRange(1, 5).Draw(t, "chapters") {
		at += rapid.SampledFrom([]int64{0, 0, 3 * minute, 31 * minute, 3 * hour, 9 * hour}).Draw(t, "silence")
		c := chapter{from: at, to: at + rapid.SampledFrom([]int64{minute, 4 * minute, 25 * minute}).Draw(t, "length")}
		c.input = rapid.SliceOfN(anyInput(c.from, c.to), 0, 25).Draw(t, "input")
		all = append(all, c)
		at = c.to
	}
	return all
}

// Scenario: the same points come in order one by one; in any order in batches of any size; and all in one batch.
// Guarantees: verdicts, events and their ids, books, coverage and counters are one and the same.
func TestTheOrderOfInputHasNoSay(t *testing.T) {
	catalog := everything()
	rapid.Check(t, func(t *rapid.T) {
		chapters := anyChapters(t)
		end := chapters[len(chapters)-1].to + rapid.SampledFrom([]int64{0, 10 * minute, 5 * hour, 40 * day}).Draw(t, "end")
		live, batches, one := New(catalog, everyOption()), New(catalog, everyOption()), New(catalog, everyOption())
		for _, c := range chapters {
			sorted := slices.Clone(c.input)
			slices.SortStableFunc(sorted, func(a, b *input) int { return cmp.Compare(a.t, b.t) })
			for _, in := range sorted {
				in.give(live)
				live.Advance(in.t)
			}
			live.Advance(c.to)

			mixed := rapid.Permutation(c.input).Draw(t, "order")
			for i, in := range mixed {
				in.give(batches)
				in.give(one)
				if rapid.Bool().Draw(t, "cut") {
					until := c.to
					for _, later := range mixed[i+1:] {
						until = min(until, later.t)
					}
					batches.Advance(until)
				}
			}
			batches.Advance(c.to)
		}
		for _, j := range []*Judge{live, batches, one} {
			j.Advance(end)
			tellAll(j)
		}
		want := eventsOf(live)
		require.Equal(t, want, eventsOf(batches))
		require.Equal(t, want, eventsOf(one))
		sameJudges(t, live, batches, "in batches")
		sameJudges(t, live, one, "in one batch")
	})
}

// Scenario: a checkpoint is written now and then, of what has changed, and taken up at any moment.
// Guarantees: all that comes after is as if nothing had happened.
func TestACheckpointGoesOnAsIfNothingHadHappened(t *testing.T) {
	catalog := everything()
	rapid.Check(t, func(t *rapid.T) {
		whole := New(catalog, everyOption())
		both := []*Judge{whole}
		var saved stored
		for _, c := range anyChapters(t) {
			slices.SortStableFunc(c.input, func(a, b *input) int { return cmp.Compare(a.t, b.t) })
			for i, in := range c.input {
				for _, j := range both {
					in.give(j)
					if i%3 == 0 {
						j.Advance(in.t - minute)
					}
				}
				switch rapid.IntRange(0, 9).Draw(t, "what") {
				case 0:
					for _, j := range both {
						tellAll(j)
					}
				case 1, 2:
					saved.save(t, both[len(both)-1])
				case 3:
					if saved.head.Classes == nil {
						continue
					}
					saved.save(t, both[len(both)-1])
					again := saved.restored(t, catalog, everyOption())
					sameJudges(t, whole, again, "taken up")
					take(whole)
					take(again)
					both = []*Judge{whole, again}
				}
			}
			for _, j := range both {
				j.Advance(c.to)
			}
			saved.save(t, both[len(both)-1])
			// What is saved in silence, when no series has input, is all there, too.
			silent := rapid.Int64Range(0, 40).Draw(t, "silent minutes") * minute
			for at := c.to; at < c.to+silent; at += minute {
				for _, j := range both {
					j.Advance(at)
				}
				saved.save(t, both[len(both)-1])
			}
			again := saved.restored(t, catalog, everyOption())
			sameJudges(t, whole, again, "taken up after silence")
			if len(both) > 1 {
				require.Equal(t, eventsOf(whole), eventsOf(both[1]))
				sameJudges(t, whole, both[1], "in the end")
			}
		}
	})
}

// part gives another judge what a distribution tells, as the connector does.
func (d *Distribution) part(j *Judge) {
	s := j.Series(j.IndexOf(d.Of.SLO().ID), d.Of.values)
	switch {
	case d.Rate:
		s.AddAmount(d.Start, d.Amount)
	case d.Ratio:
		s.AddParts(d.Start, d.GoodSum, math.Round(d.TotalSum), d.Part, d.Whole)
	default:
		d.Values.Explicit(func(bounds []float64, counts []uint64) { addTo(s, d.Start, bounds, counts) })
		d.Exponential(func(e *sketch.Exponential, o Outcome) { s.AddJudged(d.Start, e, e.Count(), o) })
		s.AddUnknown(d.Start, d.Unknown)
		s.AddExpected(d.Start, d.Expected)
	}
	s.Heard(d.Start, d.End)
}

// Scenario: two judges hear a part each, and tell a third one what they have heard.
// Guarantees: its verdicts, events, ids, budgets and counters are those of one that has heard it all.
func TestTwoHalvesAreTheWhole(t *testing.T) {
	catalog := everything()
	rapid.Check(t, func(t *rapid.T) {
		whole, third := New(catalog, everyOption()), New(catalog, everyOption())
		opts := everyOption()
		opts.Distributions = func(d *Distribution) { d.part(third) }
		halves := []*Judge{New(catalog, opts), New(catalog, opts)}
		advance := func(to int64) {
			for _, j := range append(slices.Clone(halves), whole, third) {
				j.Advance(to)
			}
		}
		end := int64(0)
		for _, c := range anyChapters(t) {
			for _, in := range c.input {
				in.trace, in.role = 0, max(in.role%4, 0) // traces and coverage are not told
				in.give(whole)
				in.give(halves[rapid.IntRange(0, 1).Draw(t, "half")])
			}
			advance(c.to)
			end = c.to
		}
		advance(end + 25*minute)
		require.Equal(t, storyOf(whole), storyOf(third))
		whole.Each(func(want *Series) {
			got := third.promises[want.promise.index].series[want.key]
			require.NotNil(t, got, "%s of %q", want.slo.ID, want.values)
			sameVerdicts(t, want, got)
			// Between a minute and all, what the far edge of a window holds depends on how new the newest slot is, and that
			// tells of coverage, too, which is not the same.
			for _, w := range []time.Duration{5 * time.Minute, 30 * time.Minute, 28 * 24 * time.Hour} {
				sum := func(s *Series) budget.Counts {
					return s.account.ring.Sum(s.promise.books.layout, whole.ledger.balanced-int64(w), whole.ledger.balanced)
				}
				a, b := sum(want), sum(got)
				near(t, a.Good, b.Good, "%s: good over %s", want.slo.ID, w)
				near(t, a.Total, b.Total, "%s: total over %s", want.slo.ID, w)
			}
			require.Equal(t, want.account.period == nil, got.account.period == nil)
			if p := want.account.period; p != nil {
				near(t, p.counts.Good, got.account.period.counts.Good)
			}
			wantGood, wantBad, _ := want.Events()
			gotGood, gotBad, _ := got.Events()
			require.Equal(t, []uint64{wantGood, wantBad}, []uint64{gotGood, gotBad}, want.slo.ID)
		})
	})
}

// storyOf is what has opened and closed, without the traces.
func storyOf(j *Judge) (all []string) {
	for _, e := range take(j) {
		st := e.State()
		st.Observed, st.Reason, st.Exemplar = 0, "", Exemplar{}
		all = append(all, text(st))
	}
	return all
}

func sameVerdicts(t require.TestingT, want, got *Series) {
	require.Equal(t, want.State(), got.State(), want.slo.ID)
	for i := range want.windows {
		a, b := want.windows[i].last, got.windows[i].last
		about := want.slo.ID + " over " + want.promise.windows[i].String()
		require.Equal(t, []any{a.Start, a.End, a.State, a.Unmeasured}, []any{b.Start, b.End, b.State, b.Unmeasured}, about)
		for _, pair := range [][2]float64{
			{a.Total, b.Total}, {a.Good, b.Good}, {a.GoodLower, b.GoodLower}, {a.GoodUpper, b.GoodUpper},
			{a.Value, b.Value}, {a.Lower, b.Lower}, {a.Upper, b.Upper},
		} {
			near(t, pair[0], pair[1], about)
		}
	}
}
