// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// promise is one SLO of the catalog and its series.
type promise struct {
	slo                 openslo.SLO
	groupBy             []string
	class               *paneClass
	windows             []time.Duration // that are judged, multiples of the class's pane; the first is the evaluation window
	evaluation, longest time.Duration   // among them
	interval            time.Duration   // of which one event is made, where the objective is on a rate; otherwise 0
	slice               time.Duration   // of the time-slice budgeting methods; otherwise 0
	books               books
	ledger              *ledger
	subject             *subject
	parts               []part   // of a composite
	whole               *promise // the composite that this is a part of
	series              map[string]*Series
	ordered             []*Series         // the same as they came, which walks memory several times as fast as the order of a map
	free                window.Pool[pane] // panes to be used again
	watched             []*policy         // policies with a leaf on this SLO
	kin                 []*promise        // those whose groups are known and forgotten together, itself included: a policy or a composite ties them
	ttl                 time.Duration
	keep                time.Duration // how long a group is remembered without input: as long as its budget still holds something of it
	seen                bool          // there was input
	fingerprint         uint64        // of what is measured
	index               int           // in the catalog
}

// part is a promise and its weight in a composite.
type part struct {
	*promise
	share float64
}

// paneClass are the promises that share a pane length, and how far their panes are closed.
type paneClass struct {
	pane     time.Duration
	next     int64 // start of the next pane to close, once the judge has begun
	promises []*promise
}

// Tick is how often books are balanced, in event time. Panes are never longer.
const Tick = time.Minute

// compile makes the promises and policies of a catalog.
func (j *Judge) compile(catalog *openslo.Catalog) {
	for i := range catalog.SLOs {
		slo := &catalog.SLOs[i]
		p := &promise{slo: *slo, groupBy: union(j.opts.GroupBy, slo.GroupBy), series: map[string]*Series{}, ledger: j.ledger}
		slices.Sort(p.groupBy) // SLOs of one policy share their keys, in whatever order their files name them
		if t := slo.Indicator.Threshold; t != nil {
			p.interval = t.Rate
		}
		p.slice = slo.Objective.TimeSliceWindow
		p.subject = &subject{slo: &p.slo, keys: p.groupBy}
		p.fingerprint, p.index = p.measures(), i
		j.promises = append(j.promises, p)
		j.byID[slo.ID] = p
	}
	for i := range catalog.Policies {
		pol := newPolicy(&catalog.Policies[i], j.byID, j.opts.Durable)
		j.policies = append(j.policies, pol)
		j.patience = max(j.patience, pol.patience())
		for _, p := range pol.promises {
			p.watched = append(p.watched, pol)
			p.windows = append(p.windows, pol.spec.Window)
			p.ttl = max(p.ttl, pol.patience())
		}
	}
	for _, p := range j.promises {
		p.join(j.byID)
	}
	for _, p := range j.promises {
		if len(p.windows) == 0 {
			p.windows = []time.Duration{j.opts.Window}
		}
		p.evaluation = slices.Min(p.windows) // the first to know
	}
	for _, p := range j.promises {
		for _, part := range p.parts { // a composite asks its parts about its own windows
			part.windows = append(part.windows, p.windows...)
		}
	}
	for _, p := range j.promises {
		slices.Sort(p.windows)
		p.windows = slices.Compact(p.windows)
		p.longest = slices.Max(p.windows)
		at := slices.Index(p.windows, p.evaluation) // stands first: its result is told
		p.windows = slices.Insert(slices.Delete(p.windows, at, at+1), 0, p.evaluation)
		var whole *openslo.SLO
		if p.whole != nil {
			whole = &p.whole.slo
		}
		p.books = newBooks(&p.slo, whole, j.opts)
		p.ttl = max(p.ttl, j.opts.TTL, 2*p.longest, p.books.silence) // the windows that closed last are empty when it is over
		p.keep = max(p.ttl, p.books.span())
		// What is posted of the last input comes when its slice or its interval is over.
		j.patience = max(j.patience, max(p.books.calm, p.books.silence)+p.slice+p.interval, 2*p.longest)
		p.class = j.classOf(window.GCD(append([]time.Duration{Tick, p.interval, p.slice}, p.windows...)...))
		p.class.promises = append(p.class.promises, p)
	}
	for _, p := range j.promises {
		p.findKin(p)
	}
}

// identity is that of a group.
func (p *promise) identity(values []string, overflow bool) *Identity {
	if overflow { // of which there is one
		return &Identity{&subject{slo: &p.slo, keys: p.groupBy, overflow: true}, values}
	}
	return &Identity{p.subject, values}
}

// join finds the parts of a composite.
func (p *promise) join(byID map[string]*promise) {
	for _, of := range p.slo.Indicator.Parts {
		if other := byID[of.ID]; other != nil {
			p.parts = append(p.parts, part{other, of.Share})
			other.whole = p
		}
	}
}

func (p *promise) findKin(from *promise) {
	if slices.Contains(p.kin, from) {
		return
	}
	p.kin = append(p.kin, from)
	for _, pol := range from.watched {
		for _, other := range pol.promises {
			p.findKin(other)
		}
	}
	for _, part := range from.parts {
		p.findKin(part.promise)
	}
	if from.whole != nil {
		p.findKin(from.whole)
	}
}

func (j *Judge) classOf(pane time.Duration) *paneClass {
	for _, c := range j.classes {
		if c.pane == pane {
			return c
		}
	}
	c := &paneClass{pane: pane}
	j.classes = append(j.classes, c)
	return c
}

// union is a, then what b has beyond it.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, key := range b {
		if !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	return all
}
