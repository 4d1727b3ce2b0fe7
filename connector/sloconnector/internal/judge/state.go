// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/budget"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Shards is into how many parts the state of the series is cut, so that a checkpoint writes only what has changed.
const Shards = 64

// Head is the state of a Judge but for its series.
type Head struct {
	_        struct{} `cbor:",toarray"`
	Begun    bool
	LastData int64
	Closed   int64
	LastEnd  int64
	Balanced int64
	Evicted  uint64
	Classes  []ClassState
	Policies []PolicyState
	Tellers  TellersState
}

// ClassState is how far panes of a length are closed.
type ClassState struct {
	_    struct{} `cbor:",toarray"`
	Pane time.Duration
	Next int64
}

// PolicyState is a policy and its groups.
type PolicyState struct {
	_       struct{} `cbor:",toarray"`
	Name    string
	Tallies []TallyState
}

// TallyState is a policy for one group.
type TallyState struct {
	_      struct{} `cbor:",toarray"`
	Key    string
	Count  uint64
	Start  int64
	Newest int64
	Streak int
	First  int64
	Open   *EventState
}

// SeriesState is one series.
type SeriesState struct {
	_        struct{} `cbor:",toarray"`
	SLO      string
	Measures uint64 // what it measures: with another indicator it would be another series
	Values   []string
	Overflow bool
	Pane     time.Duration
	Panes    []PaneState
	Windows  []WindowState
	Rate     intervalState
	Account  accountState
	Alerts   []AlertState
	Witness  *Exemplar
	Good     float64
	Total    float64
	Open     [2]float64 // good and total
	Closed   [2]float64
	PartAt   int64
	TotalAt  int64
	Told     [2]uint64 // good and bad
	ToldAt   int64
	First    int64
	Newest   int64
	LastData int64
	Live     bool
}

// PaneState is an open pane.
type PaneState struct {
	_     struct{} `cbor:",toarray"`
	Start int64
	Sums  sumsState
}

// WindowState is an open window, and the verdict on the one before it.
type WindowState struct {
	_      struct{} `cbor:",toarray"`
	Length time.Duration
	Sums   sumsState
	Last   Result
}

// AlertState is where a burn-rate condition stands.
type AlertState struct {
	_     struct{} `cbor:",toarray"`
	Name  string
	Since int64
	Calm  int64
	Open  *EventState
}

type sumsState struct {
	_           struct{} `cbor:",toarray"`
	N           uint64
	Good        [3]uint64
	Values      *sketch.DistributionState
	Partial     bool
	Unknown     uint64
	Expected    float64
	Amount      float64
	GoodSum     float64
	TotalSum    float64
	Worst       *Exemplar
	First, Last int64
	PartAt      int64
	TotalAt     int64
}

type intervalState struct {
	_      struct{} `cbor:",toarray"`
	Amount float64
	Heard  bool
	Worst  *Exemplar
}

type accountState struct {
	_          struct{} `cbor:",toarray"`
	Ring       budget.RingState
	PeriodFrom int64
	Period     budget.Counts
	Slice      [2]float64
	Heard      int64
	Begin      int64
	Filled     int64
}

// shardOf is the shard of a series. It must not change from one release to the next.
func shardOf(id, key string) uint8 {
	h := fnv.New32a()
	h.Write([]byte(id))
	h.Write([]byte{0})
	h.Write([]byte(key))
	return uint8(h.Sum32() % Shards)
}

// touchAll notes that every shard has to be written.
func (l *ledger) touchAll() {
	for i := range l.touched {
		l.touched[i] = true
	}
}

// measures tells apart what promises measure.
func (p *promise) measures() uint64 {
	h := fnv.New64a()
	text, err := json.Marshal([]any{p.slo.Indicator, p.groupBy, p.slo.Unit})
	if err != nil { // an infinite range has no JSON
		text = []byte(err.Error())
	}
	h.Write(text)
	return h.Sum64()
}

// Head is the state of what is no series.
func (j *Judge) Head() Head {
	h := Head{
		Begun: j.begun, LastData: j.lastData, Closed: j.closed, LastEnd: j.ledger.lastEnd, Balanced: j.ledger.balanced, Evicted: j.evicted,
		Tellers: j.ledger.tellers.state(),
	}
	for _, c := range j.classes {
		h.Classes = append(h.Classes, ClassState{Pane: c.pane, Next: c.next})
	}
	for _, pol := range j.policies {
		state := PolicyState{Name: pol.spec.Name}
		for _, key := range slices.Sorted(maps.Keys(pol.tallies)) {
			t := pol.tallies[key]
			if t.start == window.Unset {
				continue
			}
			if t.saved != nil {
				t.saved.written = tallied{t.count, t.newest}
			}
			state.Tallies = append(state.Tallies, TallyState{
				Key: key, Count: t.count, Start: t.start, Newest: t.newest, Streak: t.streak, First: t.first, Open: t.open.state(),
			})
		}
		h.Policies = append(h.Policies, state)
	}
	return h
}

// TakeTouched is the state of the shards with series that have changed since the last call.
func (j *Judge) TakeTouched() map[int][]SeriesState {
	shards := map[int][]SeriesState{}
	for i, touched := range j.ledger.touched {
		if touched {
			shards[i] = nil
		}
	}
	j.Each(func(s *Series) {
		if states, touched := shards[int(s.shard)]; touched {
			shards[int(s.shard)] = append(states, s.state())
		}
	})
	j.ledger.touched = [Shards]bool{} // counting what is written is no change
	return shards
}

// Saved notes that what Head and TakeTouched gave last outlives a crash.
func (j *Judge) Saved() {
	j.Each(func(s *Series) {
		if s.saved != nil && s.saved.kept != s.saved.written {
			s.saved.kept = s.saved.written
			s.queue()
		}
	})
	for _, pol := range j.policies {
		for _, t := range pol.tallies {
			if t.saved != nil && t.saved.kept != t.saved.written {
				t.saved.kept = t.saved.written
				t.changed(j.ledger)
			}
		}
	}
}

// Touch makes the next checkpoint write everything.
func (j *Judge) Touch() { j.ledger.touchAll() }

func (s *Series) state() SeriesState {
	if s.saved != nil {
		s.saved.written = s.count()
	}
	a := &s.account
	st := SeriesState{
		SLO: s.slo.ID, Measures: s.promise.fingerprint, Values: s.values, Overflow: s.overflow, Pane: s.promise.class.pane,
		Account: accountState{Ring: a.ring.State(), Heard: a.heard},
		Witness: s.witness, Good: s.good, Total: s.total, Told: [2]uint64{s.told.good, s.told.bad}, ToldAt: s.told.at,
		First: s.first, Newest: s.newest, LastData: s.lastData, Live: s.live,
	}
	r := noProgress
	if s.ratio != nil {
		r = *s.ratio
	}
	st.Open, st.Closed = [2]float64{r.open.good, r.open.total}, [2]float64{r.closed.good, r.closed.total}
	st.PartAt, st.TotalAt = r.partAt, r.totalAt
	if s.rate != nil {
		st.Rate = intervalState{Amount: s.rate.amount, Heard: s.rate.heard, Worst: s.rate.worst}
	}
	if a.period != nil {
		st.Account.PeriodFrom, st.Account.Period = a.period.from, a.period.counts
	}
	if a.slice != nil {
		st.Account.Slice = [2]float64{a.slice.good, a.slice.total}
	}
	if a.fill != nil {
		st.Account.Begin, st.Account.Filled = a.fill.begin, a.fill.end
	}
	for _, pane := range s.panes.All() {
		sums := pane.Acc.state()
		sums.First, sums.Last = pane.Acc.first, pane.Acc.last
		st.Panes = append(st.Panes, PaneState{Start: pane.Start, Sums: sums})
	}
	for i, length := range s.promise.windows {
		w := &s.windows[i]
		st.Windows = append(st.Windows, WindowState{Length: length, Sums: w.sums.state(), Last: w.last})
	}
	for i, alert := range s.alerts {
		st.Alerts = append(st.Alerts, AlertState{Name: s.promise.books.conditions[i].name, Since: alert.since, Calm: alert.calm, Open: alert.open.state()})
	}
	return st
}

func (a *sums) state() sumsState {
	sum := a.summed()
	return sumsState{
		N: a.n, Good: [3]uint64{a.good.Certain, a.good.Rounded, a.good.Possible}, Values: a.values.State(), Partial: a.partial,
		Unknown: a.unknown, Expected: a.expected, Amount: sum.amount, GoodSum: sum.good, TotalSum: sum.total, Worst: a.worst,
		PartAt: sum.partAt, TotalAt: sum.totalAt,
	}
}
