// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Series is one promise to one group: an SLO for one combination of its GroupBy values.
type Series struct {
	*Identity
	promise *promise
	key     string

	panes    window.Panes[pane]
	windows  []openWindow // like promise.windows
	ratio    *progress    // of a ratio indicator
	rate     *interval    // of an objective on a rate
	account  account
	alerts   []alert   // by books.conditions; nil while none has ever held
	witness  *Exemplar // of the newest closed pane with bad events
	good     float64   // events since the series began
	total    float64
	told     told
	saved    *saved // nil where the state does not outlive a crash
	first    int64  // start of the pane of the first input
	newest   int64  // event time
	verdict  int64  // end of the window whose verdict was told last
	lastData int64  // end of the youngest closed pane that was given input
	phase    uint64 // when it is told in turns
	shown    bool   // its witness was told
	live     bool   // its group has had input, and is still waited for
	gone     bool
	queued   bool  // to be told: its events
	dirty    bool  // and all else
	shard    uint8 // of the checkpoint
}

// told is what was last said of a series' events.
type told struct {
	good, bad uint64
	at        int64
}

// saved are the events in the last checkpoint, and in the last one that was saved.
type saved struct{ written, kept told }

// openWindow collects the panes of one window length.
type openWindow struct {
	sums sums
	last Result // of the window that closed last
}

// sums is what a pane or window holds.
type sums struct {
	n        uint64       // events that were measured, for a threshold indicator
	good     sketch.Split // of them
	values   sketch.Distribution
	unknown  uint64  // events whose value is not known
	expected float64 // requests of which each should have been measured
	plain    *plain  // what has no values; nil for nothing
	worst    *Exemplar
	partial  bool // values lacks some of the n events: they had too many different layouts
}

// pane is the sums of a pane, and when they are of.
type pane struct {
	sums
	first, last int64 // event time from which on, and up to which, input speaks; 0 without input
}

// plain is what is summed up of indicators that have no values: ratios, and objectives on a rate.
type plain struct {
	amount          float64 // of what an objective on a rate sums up
	good, total     float64 // of a ratio
	partAt, totalAt int64   // newest event time of a ratio's good or bad events, and of its total; 0 without
}

// progress is how far the parts of a ratio have come.
type progress struct {
	open            parts // in closed panes, and not counted yet, since one of the parts has come further than the other
	closed          parts // counted
	partAt, totalAt int64 // newest event time of good or bad events, and of the total
}

// noProgress is one without input.
var noProgress = progress{partAt: window.Unset, totalAt: window.Unset}

// parts are those of a ratio.
type parts struct{ good, total float64 }

// interval is the open interval of an objective on a rate.
type interval struct {
	amount float64
	heard  bool
	worst  *Exemplar
}

// Exemplar is a trace that stands for a value. One that is kept does not change any more.
type Exemplar struct {
	_       struct{} `cbor:",toarray"`
	TraceID [16]byte
	SpanID  [8]byte
	Value   float64
	Time    int64 // event time
}

func (e *Exemplar) known() bool { return e.TraceID != [16]byte{} }

// value is the exemplar, or one without a trace.
func (e *Exemplar) value() Exemplar {
	if e == nil {
		return Exemplar{}
	}
	return *e
}

func newSeries(p *promise, key string, values []string, overflow bool) *Series {
	l := p.ledger
	s := &Series{
		Identity: p.identity(values, overflow), promise: p, key: key, windows: make([]openWindow, len(p.windows)),
		first: window.Unset, newest: window.Unset, lastData: window.Unset, told: told{at: window.Unset}, account: p.newAccount(window.Unset),
	}
	for i := range s.windows {
		s.windows[i].last = noResult
	}
	if p.slo.Indicator.Ratio != nil {
		r := noProgress
		s.ratio = &r
	}
	if p.interval > 0 {
		s.rate = &interval{}
	}
	if l.durable {
		s.saved = &saved{written: s.told, kept: s.told}
	}
	s.shard = shardOf(p.slo.ID, key)
	l.phases++
	s.phase = l.phases
	s.changed()
	return s
}

// touch notes that the series is not what the last checkpoint says any more.
func (s *Series) touch() { s.promise.ledger.touched[s.shard] = true }

// changed notes that there is something to tell.
func (s *Series) changed() {
	s.touch()
	s.tell()
}

// counted notes that events were counted, and that nothing else has changed.
func (s *Series) counted() {
	s.touch()
	s.queue()
}

// tell notes that all of it is to be told, changed or not.
func (s *Series) tell() {
	s.dirty = true
	s.queue()
}

func (s *Series) queue() {
	if !s.queued {
		s.queued = true
		s.promise.ledger.series = append(s.promise.ledger.series, s)
	}
}

// State is what is told of the series: the verdict of the evaluation window that closed last, and at risk although that was
// kept while its error budget is spent too fast.
func (s *Series) State() State {
	if state := s.windows[0].last.State; state != OK || !s.burning() {
		return state
	}
	return AtRisk
}

// Result is the verdict of the evaluation window that closed last. Before the first has closed its End is the start of
// the one that is open, or 0 where there is no input yet.
func (s *Series) Result() Result {
	r := s.windows[0].last
	if r.End == 0 && s.first != window.Unset {
		r.End = window.Start(s.first, s.Window())
	}
	return r
}

// Window is the length of the evaluation window.
func (s *Series) Window() time.Duration { return s.promise.evaluation }

// resultOf is the verdict of the window of the given length that closed last; without data where a change of the catalog has
// left no such window.
func (s *Series) resultOf(length time.Duration) *Result {
	if i := slices.Index(s.promise.windows, length); i >= 0 {
		return &s.windows[i].last
	}
	none := noResult
	return &none
}

// First is the event time before which the series has no input, or window.Unset.
func (s *Series) First() int64 { return s.first }

// TakeWitness returns the trace of a bad event, once.
func (s *Series) TakeWitness() (x Exemplar, fresh bool) {
	if s.witness == nil || s.shown {
		return Exemplar{}, false
	}
	s.shown = true
	return *s.witness, true
}

// Repeats reports whether the verdict of the window that ends at end was told before, and notes that it is told now.
func (s *Series) Repeats(end int64) bool {
	before := s.verdict
	s.verdict = end
	return before == end
}

// Gone reports whether the series was forgotten. Who holds it asks Judge.Series for its successor.
func (s *Series) Gone() bool { return s.gone }

// tellAfter is the least time between two different values of a counter: backends refuse two for one instant.
const tellAfter = int64(time.Millisecond)

// Events is the number of good and bad events since the series began, and the event time at which to tell it, window.Unset for
// nothing yet. Both only grow: where the state outlives a crash, they are those that it has, since what a crash loses must
// not have been told.
func (s *Series) Events() (good, bad uint64, at int64) {
	if s.saved != nil {
		t := &s.saved.kept
		return t.good, t.bad, t.at
	}
	t := s.count()
	return t.good, t.bad, t.at
}

// count brings what is told up to date. The parts of a ratio often come one after the other: until both have come equally
// far, only the events of closed windows are told.
func (s *Series) count() told {
	g, t := s.good, s.total
	if r := s.ratio; r != nil && r.partAt != r.totalAt {
		g, t = r.closed.good, r.closed.total
	}
	g = math.Round(max(min(g, t), 0)) // ready ratios are parts of events
	bad := max(math.Round(t)-g, 0)
	now := told{max(s.told.good, uint64(g)), max(s.told.bad, uint64(bad)), max(s.newest, s.told.at)}
	if s.told.at == now.at && now != s.told {
		now.at += tellAfter
	}
	if now != s.told {
		s.told = now
		s.touch()
	}
	return now
}

// Late reports whether the window that holds t is closed. The caller checks it before it adds: late data is
// counted, never merged.
func (j *Judge) Late(s *Series, t int64) bool {
	return j.begun && window.Start(t, s.promise.class.pane) < s.promise.class.next
}
