// SPDX-License-Identifier: Apache-2.0

// Package judge turns observations into verdicts: which objective was kept in which window, and when missed
// windows become a violation.
//
// It takes plain values in event time and knows neither pdata nor a clock. A Judge is not safe for concurrent use.
package judge

import (
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Options are the settings of a Judge.
type Options struct {
	// Window is the evaluation window of an SLO that no policy looks at.
	Window time.Duration
	// GroupBy are attribute keys by which every SLO is judged apart, before its own.
	GroupBy []string
	// MaxSeries bounds the number of series (SLO × group); what comes beyond shares one overflow series an SLO.
	MaxSeries int
	// TTL is how long, in event time, a group is remembered without input. Where a policy needs longer to judge
	// it, it is remembered as long as that.
	TTL time.Duration
}

// Judge holds the state of all promises.
type Judge struct {
	opts     Options
	promises []*promise
	byID     map[string]*promise // by slo_id
	policies []*policy
	classes  []*paneClass
	series   int
	evicted  uint64
	patience time.Duration // after so much emptiness, more of it changes no verdict
	begun    bool
	lastData int64 // end of the youngest closed pane that held data
	closed   int64 // end of the youngest closed pane
	ledger   *ledger
}

// ledger is what there is to tell. The series and policies write into it.
type ledger struct {
	series  []*Series // changed since they were last told
	retired []Retired // series of which nothing more will be told
	tallies []*Tally
	events  []Event
	dropped uint64
	phases  uint64 // handed out
	lastEnd int64  // end of the youngest window that was given data
}

// maxEvents bounds the events that wait to be taken.
const maxEvents = 10_000

func (l *ledger) event(e Event) {
	if len(l.events) >= maxEvents {
		l.events = slices.Delete(l.events, 0, 1)
		l.dropped++
	}
	l.events = append(l.events, e)
}

// promise is one SLO of the catalog and its series.
type promise struct {
	slo     openslo.SLO
	groupBy []string
	class   *paneClass
	windows []time.Duration // multiples of the class's pane; the first is the evaluation window
	series  map[string]*Series
	watched []*policy  // policies with a leaf on this SLO
	kin     []*promise // those that policies tie to this one, itself included: their groups are known and forgotten together
	ttl     time.Duration
	seen    bool // there was input
}

// longest is the longest window over the SLO.
func (p *promise) longest() time.Duration { return p.windows[len(p.windows)-1] }

// paneClass are the promises that share a pane length, and how far their panes are closed.
type paneClass struct {
	pane     time.Duration
	next     int64 // start of the next pane to close, once the judge has begun
	promises []*promise
}

// New returns a Judge over the SLOs of a catalog that are measured here (SLO.Evaluated). Promises keep the
// order of the catalog.
func New(catalog *openslo.Catalog, opts Options) *Judge {
	j := &Judge{
		opts: opts, byID: map[string]*promise{}, lastData: window.Unset, closed: window.Unset, ledger: &ledger{lastEnd: window.Unset},
	}
	for _, slo := range catalog.SLOs {
		p := &promise{slo: slo, groupBy: union(opts.GroupBy, slo.GroupBy), series: map[string]*Series{}}
		slices.Sort(p.groupBy) // SLOs of one policy share their keys, in whatever order their files name them
		j.promises = append(j.promises, p)
		j.byID[slo.ID] = p
	}
	j.patience = opts.Window
	for i := range catalog.Policies {
		pol := newPolicy(&catalog.Policies[i], j.byID)
		j.policies = append(j.policies, pol)
		j.patience = max(j.patience, pol.patience())
		for _, p := range pol.promises {
			p.watched = append(p.watched, pol)
			p.windows = append(p.windows, pol.spec.Window)
			p.ttl = max(p.ttl, pol.patience())
		}
	}
	for _, p := range j.promises {
		if len(p.windows) == 0 {
			p.windows = []time.Duration{opts.Window}
		}
		slices.Sort(p.windows) // the shortest window is the evaluation window: it is the first to know
		p.windows = slices.Compact(p.windows)
		p.ttl = max(p.ttl, opts.TTL, p.longest())
		p.class = j.classOf(window.GCD(p.windows...))
		p.class.promises = append(p.class.promises, p)
		p.findKin(p)
	}
	return j
}

func (p *promise) findKin(from *promise) {
	p.kin = append(p.kin, from)
	for _, pol := range from.watched {
		for _, other := range pol.promises {
			if !slices.Contains(p.kin, other) {
				p.findKin(other)
			}
		}
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

// SLO returns the i-th SLO of the catalog.
func (j *Judge) SLO(i int) *openslo.SLO { return &j.promises[i].slo }

// GroupBy are the attribute keys by which the i-th SLO is judged apart.
func (j *Judge) GroupBy(i int) []string { return j.promises[i].groupBy }

// Len is the number of live series.
func (j *Judge) Len() int { return j.series }

// Evicted is how many series were forgotten because nothing was heard of them.
func (j *Judge) Evicted() uint64 { return j.evicted }

// PaneStart is the start of the pane of the i-th SLO that holds the event time t.
func (j *Judge) PaneStart(i int, t int64) int64 { return window.Start(t, j.promises[i].class.pane) }

// Series returns the series of the i-th SLO for the values of its GroupBy keys, an empty value standing for an
// absent attribute. Beyond MaxSeries it returns the SLO's overflow series.
func (j *Judge) Series(i int, values []string) *Series {
	p := j.promises[i]
	key := groupKey(values)
	if s := p.series[key]; s != nil {
		return s
	}
	overflow := false
	if j.series >= j.opts.MaxSeries && len(p.groupBy) > 0 {
		key, values, overflow = overflowKey, make([]string, len(p.groupBy)), true
		if s := p.series[key]; s != nil {
			return s
		}
	}
	values = slices.Clone(values)
	s := j.open(p, key, values, overflow)
	j.complete(s)
	return s
}

// complete opens the series of the SLOs that share a policy with s: a policy knows its group as a whole, and an SLO
// of `when` that has no input yet is without data, not absent.
func (j *Judge) complete(s *Series) {
	for _, pol := range s.promise.watched {
		for _, other := range pol.promises {
			if other.series[s.key] == nil {
				j.complete(j.open(other, s.key, s.values, s.overflow))
			}
		}
	}
}

func (j *Judge) open(p *promise, key string, values []string, overflow bool) *Series {
	s := newSeries(p, j.ledger, key, values, overflow)
	p.series[key] = s
	j.series++
	for _, pol := range p.watched {
		pol.attach(s)
	}
	return s
}

// Each calls f for every live series.
func (j *Judge) Each(f func(*Series)) {
	for _, p := range j.promises {
		for _, s := range p.series {
			f(s)
		}
	}
}

// Turn says which results are told although they have not changed: those whose turn it is, when all are told in Of turns.
type Turn struct {
	Of, Number uint64
}

// Changed tells no unchanged result, All tells every one.
var (
	Changed = Turn{}
	All     = Turn{Of: 1}
)

func (t Turn) has(phase uint64) bool { return t.Of > 0 && phase%t.Of == t.Number%t.Of }

// Changes calls series and tally for what has changed since the last call, and for what has its turn.
func (j *Judge) Changes(turn Turn, series func(*Series), tally func(*Tally)) {
	if turn.Of > 0 {
		j.Each(func(s *Series) {
			if turn.has(s.phase) {
				s.changed()
			}
		})
		for _, pol := range j.policies {
			for _, t := range pol.tallies {
				if turn.has(t.lead().phase) {
					t.changed(j.ledger)
				}
			}
		}
	}
	for _, s := range j.ledger.series {
		if s.dirty = false; !s.gone {
			series(s)
		}
	}
	for _, t := range j.ledger.tallies {
		if t.dirty = false; !t.lead().gone {
			tally(t)
		}
	}
	clear(j.ledger.series) // what is gone must not be held here
	clear(j.ledger.tallies)
	j.ledger.series, j.ledger.tallies = j.ledger.series[:0], j.ledger.tallies[:0]
}

// Retired is a series of which nothing more will be told, because its SLO or its group is gone or has other labels now.
type Retired struct {
	*Identity
	Policies []string // of which violations were told with its labels
	At       int64    // event time, after all that was told of it
}

// maxRetired bounds those that wait to be told.
const maxRetired = 100_000

// retire notes that nothing more is told under the present labels of a series.
func (l *ledger) retire(s *Series) {
	at := max(s.told.at, s.Result().End)
	if at <= 0 || len(l.retired) >= maxRetired {
		return
	}
	r := Retired{Identity: s.Identity, At: at + tellAfter}
	for _, pol := range s.promise.watched {
		if t := pol.tallies[s.key]; t != nil && t.lead() == s {
			r.Policies = append(r.Policies, pol.spec.Name)
		}
	}
	l.retired = append(l.retired, r)
}

// TakeRetired returns what was retired since the last call.
func (j *Judge) TakeRetired() []Retired {
	retired := j.ledger.retired
	j.ledger.retired = nil
	return retired
}

// Unseen are the ids of the SLOs that are measured here and have had no input yet.
func (j *Judge) Unseen() (ids []string) {
	for _, p := range j.promises {
		if p.slo.Evaluated() && !p.seen {
			ids = append(ids, p.slo.ID)
		}
	}
	return ids
}

// TakeEvents returns what has opened and closed since the last call, in the order in which it did, and how many events
// were dropped because nobody took them.
func (j *Judge) TakeEvents() (events []Event, dropped uint64) {
	events, dropped = j.ledger.events, j.ledger.dropped
	j.ledger.events, j.ledger.dropped = nil, 0
	return events, dropped
}
