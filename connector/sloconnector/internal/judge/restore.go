// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Restore takes up a state, of this catalog or of an earlier one: what another catalog would do to it (see Update) happens now.
// The Judge is fresh. It returns how many series were of no use any more, because their SLO is gone or measures something else.
// An error says that the state is not one; the Judge is then not to be used.
func (j *Judge) Restore(h Head, series []SeriesState) (left int, err error) {
	j.ledger.inOrder(func() { left, err = j.takeUp(h, series) })
	return left, err
}

func (j *Judge) takeUp(h Head, series []SeriesState) (left int, err error) {
	if err := h.check(); err != nil {
		return 0, err
	}
	j.begun, j.lastData, j.closed, j.evicted = h.Begun, h.LastData, h.Closed, h.Evicted
	j.ledger.lastEnd, j.ledger.balanced = h.LastEnd, h.Balanced
	j.ledger.tellers.restore(&h.Tellers, j.opts.MaxParts)
	for _, c := range j.classes {
		if !j.begun {
			break
		}
		c.next = window.Start(h.Closed, c.pane)
		for _, before := range h.Classes {
			if before.Pane == c.pane {
				c.next = before.Next
			}
		}
	}
	shared := &boundaries{known: map[string][]float64{}}
	for i := range series {
		st := &series[i]
		p := j.byID[st.SLO]
		if p == nil || p.fingerprint != st.Measures || len(st.Values) != len(p.groupBy) {
			left++
			continue
		}
		if err := j.restore(p, st, shared); err != nil {
			return left, fmt.Errorf("series %d of %s: %w", i, st.SLO, err)
		}
	}
	j.Each(j.complete)
	for i := range h.Policies {
		j.restorePolicy(&h.Policies[i])
	}
	return left, nil
}

func (j *Judge) restore(p *promise, st *SeriesState, shared *boundaries) error {
	key := groupKey(st.Values)
	values := partsOf(key, st.Values)
	if st.Overflow {
		key = overflowKey
	}
	if p.series[key] != nil {
		return fmt.Errorf("its group %q stands twice", st.Values)
	}
	next := window.Unset
	if j.begun && st.Pane == p.class.pane {
		next = p.class.next
	}
	if err := st.check(next); err != nil {
		return err
	}
	s := j.open(p, key, values, st.Overflow)
	p.seen = p.seen || st.First != window.Unset
	s.good, s.total = st.Good, st.Total
	if s.ratio != nil {
		*s.ratio = progress{parts{st.Open[0], st.Open[1]}, parts{st.Closed[0], st.Closed[1]}, st.PartAt, st.TotalAt}
	}
	s.first, s.newest, s.lastData = st.First, st.Newest, st.LastData
	s.told = told{st.Told[0], st.Told[1], st.ToldAt}
	if s.saved != nil {
		*s.saved = saved{written: s.told, kept: s.told}
	}
	if s.rate != nil {
		*s.rate = interval{st.Rate.Amount, st.Rate.Heard, st.Rate.Worst}
	}
	s.witness = st.Witness
	a := &s.account
	if err := a.ring.Restore(p.books.layout, st.Account.Ring); err != nil {
		return err
	}
	if a.period != nil {
		*a.period = period{st.Account.PeriodFrom, st.Account.Period}
	}
	if a.slice != nil {
		*a.slice = slice{st.Account.Slice[0], st.Account.Slice[1]}
	}
	if st.Account.Begin != 0 {
		a.fill = &filled{st.Account.Begin, st.Account.Filled}
	}
	a.heard = st.Account.Heard
	a.alarm, s.live = j.closed, st.Live
	for _, alert := range st.Alerts {
		i := slices.IndexFunc(p.books.conditions, func(c condition) bool { return c.name == alert.Name })
		switch open := alert.Open.event(j); {
		case i >= 0:
			now := s.alert(i)
			now.since, now.calm, now.open = alert.Since, alert.Calm, open
			if open != nil {
				open.Of, open.Targets = s.Identity, p.books.conditions[i].targets
				j.ledger.open[open.ID] = open
			}
		case open != nil:
			s.close(open, j.ledger.balanced, 0, reasonDeleted)
		}
	}
	if st.Pane != p.class.pane {
		return nil // windows begin anew
	}
	for _, pane := range st.Panes {
		a := s.panes.At(pane.Start, &p.free)
		a.first, a.last = pane.Sums.First, pane.Sums.Last
		if err := a.restore(&pane.Sums, shared); err != nil {
			return err
		}
	}
	for _, w := range st.Windows {
		i := slices.Index(p.windows, w.Length)
		if i < 0 {
			continue
		}
		s.windows[i].last = w.Last
		if err := s.windows[i].sums.restore(&w.Sums, shared); err != nil {
			return err
		}
	}
	return nil
}

func (a *sums) restore(st *sumsState, shared *boundaries) error {
	*a = sums{
		n: st.N, good: sketch.Split{Certain: st.Good[0], Rounded: st.Good[1], Possible: st.Good[2]}, values: a.values, partial: st.Partial,
		unknown: st.Unknown, expected: st.Expected, worst: st.Worst,
	}
	if sum := (plain{st.Amount, st.GoodSum, st.TotalSum, st.PartAt, st.TotalAt}); sum != (plain{}) {
		a.plain = &sum
	}
	if st.Values == nil {
		return nil
	}
	return a.values.Restore(st.Values, shared.one)
}

// boundaries are those of histograms, once each: a thousand series have the same.
type boundaries struct {
	known map[string][]float64
	key   []byte // scratch
}

func (b *boundaries) one(bounds []float64) []float64 {
	b.key = b.key[:0]
	for _, bound := range bounds {
		b.key = binary.LittleEndian.AppendUint64(b.key, math.Float64bits(bound))
	}
	if known, ok := b.known[string(b.key)]; ok {
		return known
	}
	b.known[string(b.key)] = bounds
	return bounds
}

// restorePolicy lets a policy go on, and closes its violations where it or its SLOs are no more.
func (j *Judge) restorePolicy(st *PolicyState) {
	i := slices.IndexFunc(j.policies, func(p *policy) bool { return p.spec.Name == st.Name })
	for _, was := range st.Tallies {
		open := was.Open.event(j)
		var t *Tally
		if i >= 0 {
			t = j.policies[i].tallies[was.Key]
		}
		switch {
		case t != nil:
			t.count, t.start, t.newest, t.streak, t.first, t.open = was.Count, was.Start, was.Newest, was.Streak, was.First, open
			if t.saved != nil {
				now := tallied{t.count, t.newest}
				*t.saved = savedTally{written: now, kept: now}
			}
			t.changed(j.ledger)
			if open != nil {
				open.Of, open.Targets = t.lead().Identity, t.policy.spec.Targets
				j.ledger.open[open.ID] = open
			}
		case open != nil:
			e := *open
			e.Opened, e.Time, e.Exemplar, e.Reason = false, j.closed, Exemplar{}, reasonDeleted
			j.ledger.event(e)
		}
	}
}

// EventState is an event at rest. It says of what it is in full, because its SLO may be gone when it is taken up.
type EventState struct {
	_          struct{} `cbor:",toarray"`
	Kind       EventKind
	Opened     bool
	ID         string
	Policy     string
	Condition  string
	Severity   string
	SLOs       []string
	Time       int64
	Windows    int
	Observed   float64
	Threshold  float64
	Window     time.Duration
	Reason     string
	Exemplar   Exemplar
	Incomplete bool

	SLO      string
	Service  string
	Class    openslo.Class
	Unit     string
	Target   float64 // as the label says it
	Keys     []string
	Values   []string
	Overflow bool
}

// State is the event at rest.
func (e *Event) State() EventState { return *e.state() }

func (e *Event) state() *EventState {
	if e == nil {
		return nil
	}
	slo := e.Of.slo
	return &EventState{
		Kind: e.Kind, Opened: e.Opened, ID: e.ID, Policy: e.Policy, Condition: e.Condition, Severity: e.Severity, SLOs: e.SLOs, Time: e.Time,
		Windows: e.Windows, Observed: e.Observed, Threshold: e.Threshold, Window: e.Window, Reason: e.Reason, Exemplar: e.Exemplar, Incomplete: e.Incomplete,
		SLO: slo.ID, Service: slo.Service, Class: slo.Class, Unit: slo.Unit, Target: slo.TargetValue(),
		Keys: e.Of.keys, Values: e.Of.values, Overflow: e.Of.overflow,
	}
}

// Event is the event that was at rest.
func (st *EventState) Event(j *Judge) Event { return *st.event(j) }

func (st *EventState) event(j *Judge) *Event {
	if st == nil {
		return nil
	}
	return &Event{
		Kind: st.Kind, Opened: st.Opened, ID: st.ID, Policy: st.Policy, Condition: st.Condition, Severity: st.Severity, SLOs: st.SLOs, Time: st.Time,
		Windows: st.Windows, Observed: st.Observed, Threshold: st.Threshold, Window: st.Window, Reason: st.Reason, Exemplar: st.Exemplar, Incomplete: st.Incomplete,
		Of: st.identity(j),
	}
}

// identity is that of the SLO where it is still there, else one that has its labels.
func (st *EventState) identity(j *Judge) *Identity {
	id := &Identity{&subject{keys: st.Keys, overflow: st.Overflow}, st.Values}
	if len(id.values) != len(id.keys) {
		id.keys, id.values = nil, nil
	}
	if p := j.byID[st.SLO]; p != nil {
		id.slo = &p.slo
		return id
	}
	id.slo = &openslo.SLO{
		ID: st.SLO, Service: st.Service, Class: st.Class, Unit: st.Unit,
		Objective: openslo.Objective{Op: openslo.OpLTE, Value: st.Target, Target: st.Target},
		Indicator: openslo.Indicator{Threshold: &openslo.Selector{}},
	}
	return id
}
