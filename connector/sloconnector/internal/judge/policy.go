// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// policy is a ViolationPolicy and its state for every group.
type policy struct {
	spec     *openslo.ViolationPolicy
	promises []*promise     // its leaves, in the order of `when`
	byID     map[string]int // slo_id to leaf
	tallies  map[string]*Tally
	durable  bool // what is told was saved before
}

func newPolicy(spec *openslo.ViolationPolicy, byID map[string]*promise, durable bool) *policy {
	pol := &policy{spec: spec, durable: durable, byID: map[string]int{}, tallies: map[string]*Tally{}}
	var walk func(c *openslo.Condition)
	walk = func(c *openslo.Condition) {
		for i := range c.All {
			walk(&c.All[i])
		}
		for i := range c.Any {
			walk(&c.Any[i])
		}
		for _, id := range c.IDs {
			if _, seen := pol.byID[id]; seen || byID[id] == nil {
				continue
			}
			pol.byID[id] = len(pol.promises)
			pol.promises = append(pol.promises, byID[id])
		}
	}
	walk(&spec.When)
	return pol
}

// patience is how long emptiness can still change a verdict of the policy. The last input may lie at the beginning of a
// window.
func (pol *policy) patience() time.Duration {
	if turns := time.Duration(pol.spec.ConsecutiveWindows) + 2; pol.spec.Window <= math.MaxInt64/turns {
		return pol.spec.Window * turns
	}
	return math.MaxInt64
}

// attach makes a series a leaf of its group.
func (pol *policy) attach(s *Series) {
	t := pol.tallies[s.key]
	if t == nil {
		t = &Tally{policy: pol, leaves: make([]*Series, len(pol.promises)), start: window.Unset, newest: window.Unset}
		if pol.durable {
			t.saved = &savedTally{written: tallied{at: window.Unset}, kept: tallied{at: window.Unset}}
		}
		pol.tallies[s.key] = t
	}
	t.leaves[slices.Index(pol.promises, s.promise)] = s
}

// judge asks every group that is waited for about the window that ends at end.
func (pol *policy) judge(end int64, l *ledger) {
	l.inOrder(func() {
		for _, t := range pol.tallies {
			if t.lead().live {
				t.judge(end, l)
			}
		}
	})
}

// Tally is a policy for one group.
type Tally struct {
	policy *policy
	leaves []*Series // like policy.promises
	count  uint64
	start  int64 // of the first window that was judged
	newest int64 // end of the window that was judged last

	streak int
	first  int64 // start of the first window of the streak
	open   *Event
	saved  *savedTally // nil where the state does not outlive a crash
	dirty  bool
}

// savedTally are the violations in the last checkpoint, and in the last one that was saved.
type savedTally struct{ written, kept tallied }

// truth is three-valued (Kleene): a window that proves nothing is neither kept nor missed.
type truth int

const (
	no truth = iota
	unknown
	yes
)

// holds evaluates a condition on the windows that closed last.
func (t *Tally) holds(c *openslo.Condition) truth {
	switch {
	case len(c.All) > 0:
		result := yes
		for i := range c.All {
			result = min(result, t.holds(&c.All[i]))
		}
		return result
	case len(c.Any) > 0:
		result := no
		for i := range c.Any {
			result = max(result, t.holds(&c.Any[i]))
		}
		return result
	}
	result := no
	for _, id := range c.IDs {
		if i, ok := t.policy.byID[id]; ok {
			result = max(result, missed(t.result(t.leaves[i]).State))
		}
	}
	return result
}

func missed(s State) truth {
	switch s {
	case Violated:
		return yes
	case OK:
		return no
	default:
		return unknown
	}
}

// result is what the policy's window says of a leaf.
func (t *Tally) result(s *Series) *Result { return s.resultOf(t.policy.spec.Window) }

func (t *Tally) judge(end int64, l *ledger) {
	if t.start == window.Unset {
		t.start = end - int64(t.policy.spec.Window)
	}
	t.newest = end
	t.changed(l)
	held := t.holds(&t.policy.spec.When)
	var lacking string
	incomplete := slices.ContainsFunc(t.leaves, func(s *Series) bool { return t.result(s).Incomplete })
	if held == unknown {
		// That the buckets cannot tell is no emptiness: what is known stays as it is until something is proven.
		if !incomplete && slices.ContainsFunc(t.leaves, func(s *Series) bool { return t.result(s).State == AtRisk }) {
			return
		}
		if lacking = reasonNoData; incomplete {
			lacking = reasonIncomplete
		}
		switch t.policy.spec.OnNoData {
		case openslo.NoDataOpen:
			held = yes
		case openslo.NoDataClose:
			held = no
		default:
			return
		}
	}
	if held == no {
		t.streak = 0
		if t.open != nil {
			t.close(end, t.whyClosed(lacking), incomplete, l)
		}
		return
	}
	if t.streak == 0 {
		t.first = end - int64(t.policy.spec.Window)
	}
	t.streak++
	if t.open != nil || t.streak < t.policy.spec.ConsecutiveWindows {
		return
	}
	t.count++
	lead := t.lead()
	r := t.result(lead)
	t.open = &Event{
		Opened: true, ID: eventID(t.policy.spec.Name, t.lead().Identity, t.first), Policy: t.policy.spec.Name,
		Severity: t.policy.spec.Severity, Targets: t.policy.spec.Targets, Window: t.policy.spec.Window, Of: lead.Identity, SLOs: t.ids(), Time: end,
		Windows: t.streak, Observed: r.Value, Exemplar: t.witness(), Reason: t.whyOpened(lacking),
		Incomplete: incomplete,
	}
	l.event(*t.open)
}

// close ends the open violation.
func (t *Tally) close(now int64, reason string, incomplete bool, l *ledger) {
	e := *t.open
	e.Incomplete = incomplete
	e.Opened, e.Time, e.Of, e.Reason, e.Exemplar = false, now, t.lead().Identity, reason, Exemplar{}
	e.Observed = t.result(t.lead()).Value
	t.open = nil
	l.event(e)
}

// forget ends what was going on in a group of which nothing is heard any more.
func (t *Tally) forget(now int64, l *ledger) {
	t.streak = 0
	if t.open != nil {
		t.close(now, reasonForgotten, false, l)
	}
}

// changed notes that there is something to tell.
func (t *Tally) changed(l *ledger) {
	if !t.dirty {
		t.dirty = true
		l.tallies = append(l.tallies, t)
	}
}

// lead is the series whose labels the violation carries: the first of `when`.
func (t *Tally) lead() *Series { return t.leaves[0] }

// witness is the exemplar of the first SLO that was missed.
func (t *Tally) witness() Exemplar {
	for _, s := range t.leaves {
		if r := t.result(s); r.State == Violated && r.Exemplar != nil {
			return *r.Exemplar
		}
	}
	return Exemplar{}
}

func (t *Tally) ids() []string {
	ids := make([]string, len(t.policy.promises))
	for i, p := range t.policy.promises {
		ids[i] = p.slo.ID
	}
	return ids
}

// Policy is the policy's name.
func (t *Tally) Policy() string { return t.policy.spec.Name }

// Of is the identity whose labels the policy's results carry.
func (t *Tally) Of() *Identity { return t.lead().Identity }

// Count is how many violations have opened between start and newest, in event time. Both are window.Unset before the
// first window was judged.
func (t *Tally) Count() (n uint64, start, newest int64) {
	if t.saved != nil {
		return t.saved.kept.n, t.start, t.saved.kept.at
	}
	return t.count, t.start, t.newest
}

// tallied is a number of violations as of an event time.
type tallied struct {
	n  uint64
	at int64
}

// Witness is the trace that stands for the violation that is open.
func (t *Tally) Witness() (x Exemplar, known bool) {
	if t.open == nil {
		return Exemplar{}, false
	}
	return t.open.Exemplar, t.open.Exemplar.known()
}
