// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"maps"
	"slices"
	"time"
)

// Traffic seldom knows the process that holds the memory: an engine is scraped at a front end, and works in processes of its own, one for
// each device. It is joined by what it does know, the most certain first, and never by a guess.

// by is by what traffic was joined.
type by uint8

const (
	nothing by = iota
	byPID
	byContainer
	byPodUID
	byPodName
	byDevice
	byRelation
)

// Unjoined says why traffic, or memory, is of no process.
type Unjoined uint8

const (
	joined Unjoined = iota
	// NoProcess: none that holds memory is called so.
	NoProcess
	// Ambiguous: it may be of one or of another.
	Ambiguous
	// Contested: it is memory under the process id of another process that goes on.
	Contested
	unjoinedReasons
)

func (u Unjoined) String() string { return [...]string{"", "no_process", "ambiguous", "contested"}[u] }

// Unjoined calls a function with how many points of traffic were of no process so far, by reason.
func (f *Fleet) Unjoined(told func(why Unjoined, n uint64)) {
	for why := NoProcess; why < unjoinedReasons; why++ {
		told(why, f.unjoined[why])
	}
}

// key is a name of processes, and within what it is one.
type key struct {
	by           by
	within, name string
}

// joins finds processes that hold memory by their names. It is made anew when it is asked after something has changed.
type joins struct {
	stale bool
	of    map[key][]*Process
	found []*Process // scratch
}

func (f *Fleet) index() {
	if !f.joins.stale && f.joins.of != nil {
		return
	}
	f.joins.stale, f.joins.of = false, map[key][]*Process{}
	put := func(p *Process, k key) {
		if k.name != "" {
			f.joins.of[k] = append(f.joins.of[k], p)
		}
	}
	for _, p := range sorted(f.processes) {
		if !slices.ContainsFunc(p.places, (*Place).holds) {
			continue
		}
		for _, k := range p.Names.keys() {
			put(p, k)
		}
		put(p, key{byPID, p.Host, p.PID})
		for _, place := range p.places {
			if place.holds() {
				put(p, key{byDevice, p.Host, place.Device})
			}
		}
	}
}

// keys are those of the names, the most certain first.
func (n *Names) keys() [4]key {
	pod := n.Pod
	if n.Namespace == "" {
		pod = ""
	}
	return [4]key{{byContainer, "", n.Container}, {byPodUID, "", n.PodUID}, {byPodName, n.Namespace, pod}, {byRelation, "", n.Relation}}
}

// holds reports whether there is, or was, memory.
func (p *Place) holds() bool { return p.used.Since() != 0 || p.live.Since() != 0 }

// join gives traffic to the processes that it is of, and to their devices: what those have in use follows it, too.
func (f *Fleet) join(o *observation) {
	w := o.where
	found, how, why := f.find(o)
	if how == byDevice || why == NoProcess && w.Device != "" {
		if d := f.devices[ID{Host: w.Host, Device: w.Device}]; d != nil {
			f.loads(d, o)
			why = joined // memory of nobody may be used by somebody all the same
		}
	}
	f.unjoined[why]++
	for _, p := range found {
		if !p.heeds(o, how, f.options.TTL) {
			continue
		}
		if w.Service != "" && how != byDevice {
			p.Service = w.Service
		}
		f.loads(p, o)
		if how == byDevice || o.kind >= Served {
			continue
		}
		for _, place := range p.places {
			if d := f.devices[ID{Host: p.Host, Device: place.Device}]; d != nil {
				f.loads(d, o)
			}
		}
	}
}

// find are the processes that traffic is about, which are good until the next call.
func (f *Fleet) find(o *observation) (found []*Process, how by, why Unjoined) {
	f.index()
	w := o.where
	named := w.Names.keys()
	for _, k := range [...]key{{byPID, w.Host, w.PID}, named[0], named[1], named[2], {byDevice, w.Host, w.Device}, named[3]} {
		if f.joins.found = f.joins.found[:0]; k.name == "" {
			continue
		}
		for _, p := range f.joins.of[k] {
			if !p.Names.contradicts(&w.Names) {
				f.joins.found = append(f.joins.found, p)
			}
		}
		if len(f.joins.found) == 0 {
			continue
		}
		if k.by == byPodName && !onePod(f.joins.found) || k.by == byRelation && (len(f.joins.found) > 1 || !f.only(o)) {
			return nil, nothing, Ambiguous
		}
		return f.joins.found, k.by, joined
	}
	return nil, nothing, NoProcess
}

// onePod reports whether processes whose pods are called alike are of one: not of two clusters, or of a pod and the one before it.
func onePod(of []*Process) bool {
	for _, p := range of[1:] {
		if first := of[0]; p.Host != first.Host || p.Names.contradicts(&Names{PodUID: first.Names.PodUID, Cluster: first.Names.Cluster}) {
			return false
		}
	}
	return true
}

// origin are the engines that told traffic under the attributes of a relation: the first, and the last other one.
type origin struct {
	first, other           uint64
	firstHeard, otherHeard int64
}

// only reports whether an engine is the only one under the attributes of a relation. Two of them cannot both be of the one process.
func (f *Fleet) only(of *observation) bool {
	w, at, ttl := of.where, of.at, int64(max(f.options.TTL, time.Minute))
	id := w.Names.Relation
	if of.kind > Served {
		id += "objects" // an engine need not call itself the same where it is scraped
	}
	o, most := f.origins[id], 2*f.options.MaxProcesses
	if o == nil && len(f.origins) >= most {
		maps.DeleteFunc(f.origins, func(_ string, o *origin) bool { return at-max(o.firstHeard, o.otherHeard) > ttl })
	}
	switch {
	case o == nil && len(f.origins) >= most:
		return false
	case o == nil:
		f.origins[id] = &origin{first: w.Instance, firstHeard: at}
		return true
	case o.first == w.Instance:
		o.firstHeard = max(o.firstHeard, at)
	case at-o.firstHeard > ttl:
		*o = origin{first: w.Instance, firstHeard: at, other: o.first, otherHeard: o.firstHeard}
	default:
		o.other, o.otherHeard = w.Instance, max(o.otherHeard, at)
		return false
	}
	return o.otherHeard == 0 || at-o.otherHeard > ttl
}

// heeds reports whether a process takes traffic that was joined so: it has no use for what is less certain than what it is told already,
// which it would count twice.
func (p *Process) heeds(o *observation, how by, ttl time.Duration) bool {
	if o.kind > Served {
		return true
	}
	told := &p.load.told[o.kind-Running]
	if told.By != nothing && how > told.By && o.at-told.Heard <= int64(ttl) {
		return false
	}
	if how != told.By {
		p.load.forget(o.kind)
	}
	told.By, told.Heard = how, max(told.Heard, o.at)
	return true
}
