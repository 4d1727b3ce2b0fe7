// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// A story is random input for a catalog that has one SLO of every kind: the property tests tell it to several judges, in
// several ways, and what they say must be one and the same.

const hour, day = 60 * minute, 24 * 60 * minute

func mustDuration(text string) openslo.Duration {
	d, err := openslo.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

func rolling(text string) openslo.TimeWindow {
	return openslo.TimeWindow{Duration: mustDuration(text), Rolling: true}
}

func calendar(text string, start time.Time) openslo.TimeWindow {
	return openslo.TimeWindow{Duration: mustDuration(text), Start: start, Location: start.Location()}
}

// The SLOs of everything, by their index.
const (
	explicitSLO = iota
	atLeastSLO
	exponentialSLO
	goodSLO
	badSLO
	rawSLO
	rateSLO
	partA
	partB
	wholeSLO
	alertedSLO
	kinds
)

// everything is a catalog with an SLO of every kind, all by pod.
func everything() *openslo.Catalog {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	pods := []string{"pod"}
	latency := func(name string, target float64) openslo.SLO {
		slo := ttft(pods...)
		slo.ID, slo.Name, slo.Objective.Target, slo.TimeWindow = name, name, target, rolling("28d")
		return slo
	}
	share := func(name string, target float64, r openslo.Ratio) openslo.SLO {
		slo := ratio(name, target)
		slo.ID, slo.GroupBy, slo.Indicator.Ratio, slo.TimeWindow = name, pods, &r, rolling("28d")
		return slo
	}
	all := make([]openslo.SLO, kinds)
	all[explicitSLO] = latency("explicit", 0.9)
	all[explicitSLO].MinEvents = 3
	all[atLeastSLO] = latency("at-least", 0.8)
	all[atLeastSLO].Objective.Op = openslo.OpGTE
	all[exponentialSLO] = latency("exponential", 0.7)
	all[goodSLO] = share("good", 0.9, openslo.Ratio{Good: &openslo.Selector{}, Total: &openslo.Selector{}})
	all[goodSLO].TimeWindow = calendar("1M", time.Date(2023, 1, 1, 0, 0, 0, 0, berlin))
	all[badSLO] = share("bad", 0.8, openslo.Ratio{Bad: &openslo.Selector{}, Total: &openslo.Selector{}})
	all[badSLO].Budgeting, all[badSLO].Objective.TimeSliceTarget, all[badSLO].Objective.TimeSliceWindow = openslo.Timeslices, 0.9, 3*time.Minute
	all[rawSLO] = share("raw", 0.5, openslo.Ratio{Raw: &openslo.Selector{}, RawType: openslo.RawSuccess})
	all[rawSLO].Budgeting, all[rawSLO].Objective.TimeSliceWindow = openslo.RatioTimeslices, 5*time.Minute
	all[rateSLO] = latency("rate", 0.5)
	all[rateSLO].Indicator.Threshold = &openslo.Selector{Rate: 2 * time.Minute}
	all[rateSLO].Objective.Op = openslo.OpGTE
	all[partA] = latency("part-a", 0.9)
	all[partB] = share("part-b", 0.9, openslo.Ratio{Good: &openslo.Selector{}, Total: &openslo.Selector{}})
	all[wholeSLO] = openslo.SLO{
		ID: "whole", Name: "whole", Unit: "ratio", GroupBy: pods, TimeWindow: rolling("28d"), Objective: openslo.Objective{Target: 0.8},
		Indicator: openslo.Indicator{Parts: []openslo.Part{{ID: "part-a", Share: 0.75}, {ID: "part-b", Share: 0.25}}},
	}
	all[alertedSLO] = latency("alerted", 0.9)
	all[alertedSLO].AlertPolicies = []openslo.AlertPolicy{
		{Name: "fast", WhenBreaching: true, Condition: openslo.AlertCondition{
			Severity: "page", Op: openslo.OpGT, Threshold: 2, LookbackWindow: 30 * time.Minute, AlertAfter: 2 * time.Minute}},
		{Name: "silent", WhenNoData: true, Condition: openslo.AlertCondition{
			Severity: "ticket", Op: openslo.OpGTE, Threshold: 1, LookbackWindow: 20 * time.Minute, AlertAfter: 5 * time.Minute}},
	}
	policy := func(name string, window time.Duration, consecutive int, onNoData openslo.NoDataAction, of ...int) openslo.ViolationPolicy {
		p := openslo.ViolationPolicy{Name: name, Window: window, ConsecutiveWindows: consecutive, OnNoData: onNoData, GroupBy: pods}
		for _, i := range of {
			p.When.Any = append(p.When.Any, leaf(all[i]))
		}
		return p
	}
	return &openslo.Catalog{SLOs: all, Policies: []openslo.ViolationPolicy{
		policy("hour", time.Hour, 1, openslo.NoDataHold, exponentialSLO, goodSLO),
		policy("open", 5*time.Minute, 2, openslo.NoDataOpen, explicitSLO, badSLO),
		policy("seven", 7*time.Minute, 1, openslo.NoDataClose, explicitSLO, atLeastSLO),
		policy("short", 20*time.Second, 3, openslo.NoDataHold, rawSLO),
		policy("whole", 2*time.Minute, 2, openslo.NoDataHold, wholeSLO),
	}}
}

func everyOption() Options {
	return Options{Window: 5 * time.Minute, MaxSeries: 1000, TTL: 90 * time.Minute, BurnRates: []BurnRate{
		{Long: 30 * time.Minute, Short: 5 * time.Minute, Factor: 2, Severity: "page"},
		{Long: 6 * time.Hour, Short: 30 * time.Minute, Factor: 1, Severity: "ticket"},
	}}
}

// input is one point.
type input struct {
	t     int64
	slo   int
	pod   string
	n     uint64 // good events
	bad   uint64
	v     float64
	trace byte
	role  int
}

func (in *input) String() string { return fmt.Sprintf("%+v", *in) }

// anyInput is a point within [from, to).
func anyInput(from, to int64) *rapid.Generator[*input] {
	return rapid.Custom(func(t *rapid.T) *input {
		in := &input{
			t:     rapid.Int64Range(from, to-1).Draw(t, "t"),
			slo:   rapid.SampledFrom([]int{explicitSLO, atLeastSLO, exponentialSLO, goodSLO, badSLO, rawSLO, rateSLO, partA, partB, alertedSLO}).Draw(t, "slo"),
			pod:   rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "pod"),
			n:     rapid.Uint64Range(0, 20).Draw(t, "n"),
			v:     float64(rapid.IntRange(0, 32).Draw(t, "v")) / 16, // sums of them do not depend on their order
			role:  rapid.IntRange(0, 5).Draw(t, "role"),
			trace: rapid.Byte().Draw(t, "trace"),
		}
		if rapid.Bool().Draw(t, "broken") {
			in.bad = rapid.Uint64Range(0, 20).Draw(t, "bad")
		}
		return in
	})
}

// give adds the point, unless it is late. AddExemplar wants a trace that is known.
func (in *input) give(j *Judge) {
	s := j.Series(in.slo, []string{in.pod})
	if j.Late(s, in.t) {
		return
	}
	switch in.slo {
	case explicitSLO, partA, alertedSLO:
		switch in.role {
		case 0:
			s.AddUnknown(in.t, in.n)
		case 1:
			s.AddExpected(in.t, float64(in.n))
		default:
			addCounts(s, in.t, []uint64{0, in.n / 2, in.n - in.n/2, 0, in.bad, 0, in.bad / 2})
		}
	case atLeastSLO:
		s.AddValue(in.t, in.v)
	case exponentialSLO:
		e := &sketch.Exponential{Scale: int32(in.role), Factor: 0.001, Positive: sketch.Buckets{Offset: 100, Counts: []uint64{in.n, in.bad}}}
		e.Positive.Offset = int32(9.6 * float64(int(1)<<in.role)) // about 800 ms
		s.AddExponential(in.t, e, in.n+in.bad)
	case goodSLO, partB:
		s.AddGood(in.t, float64(in.n))
		s.AddTotal(in.t, float64(in.n+in.bad))
	case badSLO:
		s.AddBad(in.t, float64(in.bad))
		s.AddTotal(in.t, float64(in.n+in.bad))
	case rawSLO:
		s.AddRaw(in.t, in.v/2)
	case rateSLO:
		s.AddAmount(in.t, in.v*100)
	}
	if in.role == 5 {
		s.AddExemplar(in.t, Exemplar{TraceID: [16]byte{in.trace, 1}, Value: in.v})
	}
	if in.role == 4 {
		s.Cover(in.t-7*minute, in.t)
	}
}

// tellAll tells the counters of all series.
func tellAll(j *Judge) {
	j.Each(func(s *Series) { s.Events() })
}

// stateOf is all that a judge knows, in one order.
func stateOf(j *Judge) (Head, []SeriesState) {
	var all []SeriesState
	j.Each(func(s *Series) { all = append(all, s.state()) })
	sortStates(all)
	return j.Head(), all
}

func sortStates(all []SeriesState) {
	slices.SortFunc(all, func(a, b SeriesState) int {
		return cmp.Or(cmp.Compare(a.SLO, b.SLO), slices.Compare(a.Values, b.Values))
	})
}

// sameJudges requires that two judges know the same.
func sameJudges(t require.TestingT, want, got *Judge, about string) {
	wantHead, wantSeries := stateOf(want)
	gotHead, gotSeries := stateOf(got)
	require.Equal(t, text(wantHead), text(gotHead), about)
	require.Len(t, gotSeries, len(wantSeries), about)
	for i := range wantSeries {
		require.Equal(t, text(wantSeries[i]), text(gotSeries[i]), "%s: %s of %q", about, wantSeries[i].SLO, wantSeries[i].Values)
	}
}

// text is a state in CBOR's own words, in which NaN is NaN.
func text(v any) string {
	data, err := checkpoint.Encode(v)
	if err != nil {
		panic(err)
	}
	words, err := cbor.Diagnose(data)
	if err != nil {
		panic(err)
	}
	return strings.ReplaceAll(words, "[]", "null")
}

// eventsOf are the events since the last call, in words.
func eventsOf(j *Judge) (all []string) {
	for _, e := range take(j) {
		all = append(all, text(e.State()))
	}
	return all
}

// through is a state after it was written and read.
func through(t require.TestingT, h Head, all []SeriesState) (Head, []SeriesState) {
	var head Head
	var series []SeriesState
	for _, part := range []struct{ from, to any }{{h, &head}, {all, &series}} {
		data, err := checkpoint.Encode(part.from)
		require.NoError(t, err)
		require.NoError(t, checkpoint.Decode(data, part.to))
	}
	return head, series
}

// stored are the parts of a checkpoint: the head, and the shards as they were when they were touched last.
type stored struct {
	head   Head
	shards map[int][]SeriesState
}

// save writes what has changed, as the connector does.
func (c *stored) save(t require.TestingT, j *Judge) {
	if c.shards == nil {
		c.shards = map[int][]SeriesState{}
	}
	for shard, states := range j.TakeTouched() {
		_, c.shards[shard] = through(t, Head{}, states)
	}
	c.head, _ = through(t, j.Head(), nil)
}

// restored is a judge of the same catalog that takes the checkpoint up.
func (c *stored) restored(t require.TestingT, catalog *openslo.Catalog, opts Options) *Judge {
	var all []SeriesState
	for _, states := range c.shards {
		all = append(all, states...)
	}
	head, all := through(t, c.head, all) // what a judge takes up becomes its own
	j := New(catalog, opts)
	left, err := j.Restore(head, all)
	require.NoError(t, err)
	require.Zero(t, left)
	return j
}

// near requires two numbers to be one but for rounding.
func near(t require.TestingT, want, got float64, about ...any) {
	if math.IsNaN(want) || math.IsInf(want, 0) {
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), about...)
		return
	}
	require.InDelta(t, want, got, 1e-9*math.Max(1, math.Abs(want)), about...)
}
