// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"fmt"
	"math"

	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// Head is what is not one of many, at rest. It is written as an array, so the order of the fields is part of the format.
type Head struct {
	_       struct{} `cbor:",toarray"`
	Judged  int64
	MinTime int64 // the duration by which series are cut: those of another one cannot be taken up
	Events  []Event
	Pending []PendingState
}

// PendingState is a point that waits for the watermark.
type PendingState struct {
	_       struct{} `cbor:",toarray"`
	At      int64
	Kind    Kind
	Process ID
	Series  uint64
	Program string
	Service string
	Labels  []Label
	Value   float64
}

// ProcessState is a process or a device at rest.
type ProcessState struct {
	_           struct{} `cbor:",toarray"`
	ID          ID
	Program     string
	Service     string
	Labels      []Label
	Heard       int64
	Limit, Used float64 // below 0 where they are not known
	Open        *opened
	Own         bool
	Running, KV map[uint64]float64
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
}

// Shards is how many parts of a checkpoint the processes are in.
const Shards = 16

// State is the fleet at rest. It shares nothing that changes with it.
func (f *Fleet) State() (Head, map[int][]ProcessState) {
	h := Head{Judged: f.judged, MinTime: int64(f.options.Trend.MinDuration), Events: append([]Event(nil), f.events...)}
	for _, o := range f.pending {
		w := &o.where
		h.Pending = append(h.Pending, PendingState{
			At: o.at, Kind: o.kind, Process: ID{Host: w.Host, PID: w.PID, Device: w.Device}, Series: w.Series, Program: w.Executable, Service: w.Service, Labels: w.Labels, Value: o.value,
		})
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
		ID: p.ID, Program: p.Executable, Service: p.Service, Labels: p.Labels, Heard: p.heard, Limit: orBelow(p.limit), Used: orBelow(p.used), Own: p.load.own,
		Running: clone(p.load.running), KV: clone(p.load.cache), Counts: p.counts,
	}
	if p.open != nil {
		o := *p.open
		st.Open = &o
	}
	for i := range p.objects {
		st.Objects[i] = p.objects[i].State()
	}
	for _, place := range p.places {
		at := PlaceState{Device: place.Device, Heard: place.heard, Used: place.used.State(), Live: place.live.State(), OfDevice: place.device.State()}
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
	for _, o := range h.Pending {
		if o.Kind >= kinds || math.IsNaN(o.Value) {
			return 0, fmt.Errorf("a point of kind %d, %v, waits: is none", o.Kind, o.Value)
		}
		f.pending = append(f.pending, observation{o.At, o.Kind, Where{
			Host: o.Process.Host, PID: o.Process.PID, Device: o.Process.Device, Executable: o.Program, Service: o.Service, Labels: o.Labels, Series: o.Series,
		}, o.Value})
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

func (f *Fleet) restore(st *ProcessState) (*Process, error) {
	p := &Process{
		ID: st.ID, Executable: st.Program, Service: st.Service, Labels: st.Labels, heard: st.Heard, open: st.Open, limit: orNaN(st.Limit), used: orNaN(st.Used),
		load: load{own: st.Own, running: st.Running, cache: st.KV}, counts: st.Counts,
	}
	if st.ID.PID == "" && len(st.Places) == 0 || max(len(st.Running), len(st.KV)) > maxLoads {
		return nil, fmt.Errorf("%d places, %d and %d series of traffic: want one at least of a device, and at most %d", len(st.Places), len(st.Running), len(st.KV), maxLoads)
	}
	for i := range st.Objects {
		if err := p.objects[i].Restore(st.Objects[i]); err != nil {
			return nil, err
		}
	}
	for _, at := range st.Places {
		place := p.place(at.Device)
		place.heard = at.Heard
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

func clone(m map[uint64]float64) map[uint64]float64 {
	to := make(map[uint64]float64, len(m))
	for k, v := range m {
		to[k] = v
	}
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
