// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"slices"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/budget"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// ledger is what there is to tell. The series and policies write into it.
type ledger struct {
	series  []*Series // changed since they were last told
	retired []Retired // series of which nothing more will be told
	tallies []*Tally
	events  []Event
	dropped uint64
	changes uint64            // of what is open
	open    map[string]*Event // violations and burn-rate alerts that are open, by id
	phases  uint64            // handed out
	lastEnd int64             // end of the youngest window that was given data

	touched [Shards]bool // since the last checkpoint
	tellers tellers

	unordered     bool // the events that come now are sorted later, and only then dropped
	durable       bool // what is told was saved before
	distributions func(*Distribution)
	balanced      int64           // event time as of which the books were balanced last
	sums          []budget.Counts // scratch
	one           sums            // scratch: a pane that holds one event
}

func newLedger(opts Options) *ledger {
	return &ledger{open: map[string]*Event{}, lastEnd: window.Unset, balanced: window.Unset, distributions: opts.Distributions, durable: opts.Durable,
		tellers: newTellers()}
}

// inOrder puts the events that f tells of series, which come in no order, in one that a replay repeats.
func (l *ledger) inOrder(f func()) {
	at := len(l.events)
	l.unordered = true
	f()
	l.unordered = false
	slices.SortStableFunc(l.events[at:], func(a, b Event) int {
		return cmp.Or(a.Of.compare(b.Of), strings.Compare(a.Condition, b.Condition))
	})
	l.drop()
}

// maxEvents bounds the events that wait to be taken.
const maxEvents = 10_000

func (l *ledger) event(e Event) {
	l.events = append(l.events, e)
	l.changes++
	if e.Opened {
		l.open[e.ID] = &e
	} else {
		delete(l.open, e.ID)
	}
	if !l.unordered {
		l.drop()
	}
}

// drop drops the oldest events beyond maxEvents.
func (l *ledger) drop() {
	if over := len(l.events) - maxEvents; over > 0 {
		l.events = slices.Delete(l.events, 0, over)
		l.dropped += uint64(over)
	}
}

// Open calls f for every violation and burn-rate alert that is open, in no order.
func (j *Judge) Open(f func(*Event)) {
	for _, e := range j.ledger.open {
		f(e)
	}
}

// OpenChanges grows with each change of what is open.
func (j *Judge) OpenChanges() uint64 { return j.ledger.changes }

// Events are those that TakeEvents will return.
func (j *Judge) Events() []Event { return j.ledger.events }

// TakeEvents returns what has opened and closed since the last call, in the order in which it did, and how many events
// were dropped because nobody took them.
func (j *Judge) TakeEvents() (events []Event, dropped uint64) {
	events, dropped = j.ledger.events, j.ledger.dropped
	j.ledger.events, j.ledger.dropped = nil, 0
	return events, dropped
}
