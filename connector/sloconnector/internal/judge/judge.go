// SPDX-License-Identifier: Apache-2.0

// Package judge turns observations into verdicts: which objective was kept in which window, and when missed
// windows become a violation.
//
// It takes plain values in event time and knows neither pdata nor a clock. A Judge is not safe for concurrent use.
package judge

import (
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
	// MaxSeries bounds the number of series (SLO × group), MaxSeriesPerSLO those of one SLO; 0 is no bound of its own.
	// What comes beyond shares one overflow series an SLO.
	MaxSeries, MaxSeriesPerSLO int
	// TTL is how long, in event time, a group is waited for without input; its open violations then close. Where a
	// policy needs longer to judge it, it is waited for as long as that. Its books are kept while its budget holds
	// something of it and there is room.
	TTL time.Duration
	// MaxParts bounds the parts that are known (see Told), PartTTL is how long, in event time, one is waited for that is away.
	MaxParts int
	PartTTL  time.Duration
	// BurnRates put a promise at risk. They are for the SLOs that have no alert policies of their own.
	BurnRates []BurnRate
	// Durable says that the state outlives a crash, as it was when Saved was called last: counters tell no more than that.
	Durable bool
	// Distributions is given what each closed pane of a series held, in its mergeable form; nil where nobody wants it.
	Distributions func(*Distribution)
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
	lastData int64  // end of the youngest closed pane that held data
	closed   int64  // end of the youngest closed pane
	roomMade int64  // as of the end of which pane room was last made
	lookAt   int64  // event time before which nobody is silent for too long
	key      []byte // scratch
	ledger   *ledger
}

// New returns a Judge over the SLOs of a catalog that are measured here (SLO.Evaluated). Promises keep the
// order of the catalog.
func New(catalog *openslo.Catalog, opts Options) *Judge {
	return withLedger(catalog, opts, newLedger(opts))
}

// withLedger is a Judge that tells what it has to tell in a given ledger.
func withLedger(catalog *openslo.Catalog, opts Options, l *ledger) *Judge {
	j := &Judge{
		opts: opts, byID: map[string]*promise{}, lastData: window.Unset, closed: window.Unset, patience: opts.Window,
		ledger: l, lookAt: window.Unset,
	}
	j.compile(catalog)
	return j
}

// SLO returns the i-th SLO of the catalog.
func (j *Judge) SLO(i int) *openslo.SLO { return &j.promises[i].slo }

// IndexOf is the index of an SLO in the catalog by its id, -1 where there is none.
func (j *Judge) IndexOf(id string) int {
	if p := j.byID[id]; p != nil {
		return p.index
	}
	return -1
}

// GroupBy are the attribute keys by which the i-th SLO is judged apart.
func (j *Judge) GroupBy(i int) []string { return j.promises[i].groupBy }

// Len is the number of live series.
func (j *Judge) Len() int { return j.series }

// Evicted is how many series were forgotten because nothing was heard of them.
func (j *Judge) Evicted() uint64 { return j.evicted }

// PaneStart is the start of the pane of the i-th SLO that holds the event time t.
func (j *Judge) PaneStart(i int, t int64) int64 { return window.Start(t, j.promises[i].class.pane) }

// WindowStart is the start of the evaluation window of the i-th SLO that holds the event time t.
func (j *Judge) WindowStart(i int, t int64) int64 { return window.Start(t, j.promises[i].evaluation) }

// LateBefore is the event time before which everything is late; window.Unset before the first pane has closed.
func (j *Judge) LateBefore() int64 {
	if !j.begun {
		return window.Unset
	}
	next := j.closed
	for _, c := range j.classes {
		next = min(next, c.next)
	}
	return next
}

// Series returns the series of the i-th SLO for the values of its GroupBy keys, an empty value standing for an
// absent attribute. Beyond MaxSeries it returns the SLO's overflow series.
func (j *Judge) Series(i int, values []string) *Series {
	p := j.promises[i]
	j.key = j.key[:0]
	for _, v := range values {
		j.key = appendText(j.key, v)
	}
	if s := p.series[string(j.key)]; s != nil { // without a copy of the key
		return s
	}
	if len(p.groupBy) > 0 && j.full(p) {
		if j.makeRoom(); j.full(p) {
			return j.Overflow(i)
		}
	}
	key := groupKey(values)
	s := j.open(p, key, partsOf(key, values), false)
	j.complete(s)
	return s
}

// Overflow returns the series of the i-th SLO for all groups for which there is no room.
func (j *Judge) Overflow(i int) *Series {
	p := j.promises[i]
	if s := p.series[overflowKey]; s != nil {
		return s
	}
	s := j.open(p, overflowKey, make([]string, len(p.groupBy)), true)
	j.complete(s)
	return s
}

// full reports whether there is no room for another series of a promise.
func (j *Judge) full(p *promise) bool {
	return j.series >= j.opts.MaxSeries || (j.opts.MaxSeriesPerSLO > 0 && len(p.series) >= j.opts.MaxSeriesPerSLO)
}

// complete opens the series of the SLOs that a policy or a composite ties to s: those know their group as a whole, and an SLO
// that has no input yet is without data, not absent.
func (j *Judge) complete(s *Series) {
	for _, other := range s.promise.kin {
		if other.series[s.key] == nil {
			j.open(other, s.key, s.values, s.overflow)
		}
	}
	if s.live {
		s.wake()
	}
}

func (j *Judge) open(p *promise, key string, values []string, overflow bool) *Series {
	s := newSeries(p, key, values, overflow)
	p.series[key] = s
	p.ordered = append(p.ordered, s)
	j.series++
	j.lookAt = window.Unset
	for _, pol := range p.watched {
		pol.attach(s)
	}
	return s
}

// Each calls f for every live series.
func (j *Judge) Each(f func(*Series)) {
	for _, p := range j.promises {
		for _, s := range p.ordered {
			f(s)
		}
	}
}
