// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// Head is what is not one of many, at rest. It is written as an array, so the order of the fields is part of the format.
type Head struct {
	_       struct{} `cbor:",toarray"`
	Judged  int64
	MinTime int64 // the duration by which series are cut: those of another one cannot be taken up
	Events  []Event
	Pending []PendingState
	Origins []OriginState
	Budgets []BudgetState
}

// PendingState is a point that waits for the watermark.
type PendingState struct {
	_     struct{} `cbor:",toarray"`
	At    int64
	Kind  Kind
	Where Where
	Value float64
}

// OriginState are the engines of a relation at rest.
type OriginState struct {
	_                      struct{} `cbor:",toarray"`
	Relation               string
	First, Other           uint64
	FirstHeard, OtherHeard int64
}

// BudgetState is an error budget at rest.
type BudgetState struct {
	_         struct{} `cbor:",toarray"`
	SLO       string
	Group     uint64
	Heard     int64
	Known     bool
	Remaining float64
	Burn      [len(burnWindows)]float64
}

// ProcessState is a process or a device at rest.
type ProcessState struct {
	_           struct{} `cbor:",toarray"`
	ID          ID
	Program     string
	Service     string
	Names       Names
	Labels      []Label
	Driver      bool
	Heard       int64
	SaidAt      int64 // when it was said last who it is
	Told        int64 // of a device: when a process told memory on it last
	Missed      map[uint64]float64
	MissedAt    int64
	Limit, Used float64 // below 0 where they are not known; what is reserved counts as used
	Open        *opened
	Leaks       uint32
	Traffic     [3]Told
	Running, KV map[uint64]Load
	Counts      [3]float64
	Objects     [3]trend.SeriesState
	Places      []PlaceState
}

// PlaceState is the memory of a process on a device at rest.
type PlaceState struct {
	_                    struct{} `cbor:",toarray"`
	Device, Cause        string
	Heard                int64
	Used, Live, OfDevice trend.SeriesState
	Whole                bool
}

// Shards is how many parts of a checkpoint the processes are in.
const Shards = 16

// State is the fleet at rest. It shares nothing that changes with it.
func (f *Fleet) State() (Head, map[int][]ProcessState) {
	h := Head{Judged: f.judged, MinTime: int64(f.options.Trend.MinDuration), Events: append([]Event(nil), f.events...)}
	for _, o := range f.pending {
		h.Pending = append(h.Pending, PendingState{At: o.at, Kind: o.kind, Where: *o.where, Value: o.value})
	}
	for _, relation := range slices.Sorted(maps.Keys(f.origins)) {
		o := f.origins[relation]
		h.Origins = append(h.Origins, OriginState{Relation: relation, First: o.first, Other: o.other, FirstHeard: o.firstHeard, OtherHeard: o.otherHeard})
	}
	for _, slo := range slices.Sorted(maps.Keys(f.budgets)) {
		groups := f.budgets[slo]
		for _, group := range slices.Sorted(maps.Keys(groups)) {
			b := groups[group]
			st := BudgetState{SLO: slo, Group: group, Heard: b.heard, Known: !math.IsNaN(b.remaining), Burn: b.burn}
			if st.Known {
				st.Remaining = b.remaining
			}
			h.Budgets = append(h.Budgets, st)
		}
	}
	shards := map[int][]ProcessState{}
	for i := range Shards {
		shards[i] = []ProcessState{}
	}
	for _, of := range []map[ID]*Process{f.devices, f.processes} {
		for n, p := range sorted(of) {
			shards[n%Shards] = append(shards[n%Shards], p.state())
		}
	}
	return h, shards
}

func (p *Process) state() ProcessState {
	st := ProcessState{
		ID: p.ID, Program: p.Executable, Service: p.Service, Names: p.Names, Labels: p.Labels, Driver: p.driver, Heard: p.heard, SaidAt: p.saidAt, Told: p.told,
		Missed: clone(p.misses.calls), MissedAt: p.misses.last, Limit: orBelow(p.limit), Used: orBelow(p.used + p.reserved), // told apart again by the next points
		Leaks: p.leaks, Traffic: p.load.told, Running: clone(p.load.running), KV: clone(p.load.cache), Counts: p.counts,
	}
	if p.open != nil {
		o := *p.open
		st.Open = &o
	}
	for i := range p.objects {
		st.Objects[i] = p.objects[i].State()
	}
	for _, place := range p.places {
		at := PlaceState{Device: place.Device, Heard: place.heard, Used: place.used.State(), Live: place.live.State(), OfDevice: place.device.State(), Whole: place.whole}
		if place.Cause != nil {
			at.Cause = place.Cause.Cause
		}
		st.Places = append(st.Places, at)
	}
	return st
}

// Restore makes a fleet that has heard nothing what State was taken of, and returns how many processes it has no room for. After an
// error it is of no use.
func (f *Fleet) Restore(h Head, processes []ProcessState) (left int, err error) {
	if h.MinTime != int64(f.options.Trend.MinDuration) {
		return 0, fmt.Errorf("min_duration was %d ns: memory that was seen under another one cannot be judged", h.MinTime)
	}
	if len(h.Pending) > maxPending || len(h.Events) > maxEvents {
		return 0, fmt.Errorf("%d points and %d events wait: want at most %d and %d", len(h.Pending), len(h.Events), maxPending, maxEvents)
	}
	f.judged, f.events = h.Judged, h.Events
	for i := range h.Pending {
		o := &h.Pending[i]
		if o.Kind >= kinds || math.IsNaN(o.Value) {
			return 0, fmt.Errorf("a point of kind %d, %v, waits: is none", o.Kind, o.Value)
		}
		f.pending = append(f.pending, observation{o.At, o.Kind, &o.Where, o.Value})
	}
	if err := f.restoreJoins(h); err != nil {
		return 0, err
	}
	for i := range processes {
		st := &processes[i]
		of := f.processes
		if st.ID.PID == "" {
			of = f.devices
		}
		if len(of) >= f.options.MaxProcesses {
			left++
			continue
		}
		p, err := f.restore(st)
		if err != nil {
			return left, fmt.Errorf("process %s on %s: %w", st.ID.PID, st.ID.Host, err)
		}
		of[st.ID] = p
	}
	return left, nil
}

// restoreJoins takes up what traffic was joined by, and what was said of budgets.
func (f *Fleet) restoreJoins(h Head) error {
	if len(h.Origins) > 2*f.options.MaxProcesses || len(h.Budgets) > maxBudgets*maxBudgets {
		return fmt.Errorf("%d relations and %d budgets: want at most %d and %d", len(h.Origins), len(h.Budgets), 2*f.options.MaxProcesses, maxBudgets*maxBudgets)
	}
	for _, o := range h.Origins {
		f.origins[o.Relation] = &origin{first: o.First, other: o.Other, firstHeard: o.FirstHeard, otherHeard: o.OtherHeard}
	}
	for _, st := range h.Budgets {
		b := f.budgets.put(st.SLO, st.Group)
		if b.heard, b.burn = st.Heard, st.Burn; st.Known {
			b.remaining = st.Remaining
		}
	}
	f.joins.stale = true
	return nil
}

func (f *Fleet) restore(st *ProcessState) (*Process, error) {
	p := &Process{
		ID: st.ID, Executable: st.Program, Service: st.Service, Names: st.Names, Labels: st.Labels, driver: st.Driver, heard: st.Heard, open: st.Open, leaks: st.Leaks,
		limit: orNaN(st.Limit), used: orNaN(st.Used), load: load{told: st.Traffic, running: st.Running, cache: st.KV}, counts: st.Counts,
		saidAt: st.SaidAt, told: st.Told, misses: misses{calls: st.Missed, last: st.MissedAt},
	}
	if st.ID.PID == "" && len(st.Places) == 0 || max(len(st.Running), len(st.KV), len(st.Missed)) > maxLoads {
		return nil, fmt.Errorf("%d places, %d and %d series of traffic: want one at least of a device, and at most %d", len(st.Places), len(st.Running), len(st.KV), maxLoads)
	}
	for i := range st.Objects {
		if err := p.objects[i].Restore(st.Objects[i]); err != nil {
			return nil, err
		}
	}
	for _, at := range st.Places {
		place := p.place(at.Device)
		place.heard, place.whole = at.Heard, at.Whole
		for i := range f.options.Rules {
			if r := &f.options.Rules[i]; r.Cause == at.Cause && place.Cause == nil {
				place.Cause = r
			}
		}
		for of, from := range map[*trend.Series]trend.SeriesState{&place.used: at.Used, &place.live: at.Live, &place.device: at.OfDevice} {
			if err := of.Restore(from); err != nil {
				return nil, fmt.Errorf("device %s: %w", at.Device, err)
			}
		}
	}
	return p, nil
}

func clone[V any](m map[uint64]V) map[uint64]V {
	to := make(map[uint64]V, len(m))
	maps.Copy(to, m)
	return to
}

func orBelow(v float64) float64 {
	if math.IsNaN(v) {
		return -1
	}
	return v
}

func orNaN(v float64) float64 {
	if v < 0 {
		return math.NaN()
	}
	return v
}
