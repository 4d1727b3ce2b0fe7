// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// policy is a ViolationPolicy and its state for every group.
type policy struct {
	spec     *openslo.ViolationPolicy
	promises []*promise // its leaves, in the order of `when`
	byID     map[string]int
	tallies  map[string]*Tally
}

// Tally is a policy for one group.
type Tally struct {
	policy *policy
	leaves []*Series // like policy.promises; nil where the group has no such series
	count  uint64
	newest int64

	streak int
	first  int64 // start of the first window of the streak
	open   *Event
	// Dirty says that there is something to tell since the caller last set it to false.
	Dirty bool
}

// Event is a violation that opened or closed.
type Event struct {
	Opened   bool
	ID       string // deterministic: policy, group, first window
	Policy   string
	Series   *Series  // the first SLO in `when`: its labels are the violation's
	SLOs     []string // all slo_ids
	Time     int64    // end of the window that decided
	First    int64    // start of the first window in which `when` held
	Windows  int      // in which `when` held in a row when it opened
	Observed float64  // the SLI of Series in the window that decided; NaN without data
	Reason   string
	Exemplar Exemplar
}

func newPolicy(spec *openslo.ViolationPolicy, byID map[string]*promise) *policy {
	pol := &policy{spec: spec, byID: map[string]int{}, tallies: map[string]*Tally{}}
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

// attach makes a new series a leaf of its group.
func (pol *policy) attach(s *Series) {
	t := pol.tallies[s.key]
	if t == nil {
		t = &Tally{policy: pol, leaves: make([]*Series, len(pol.promises)), newest: window.Unset, Dirty: true}
		pol.tallies[s.key] = t
	}
	t.leaves[slices.Index(pol.promises, s.promise)] = s
}

// detach takes a forgotten group's series away, and with the last of them the tally.
func (pol *policy) detach(key string, now int64, events []Event) []Event {
	t := pol.tallies[key]
	if t == nil {
		return events
	}
	last := t.lead()
	for i, s := range t.leaves {
		if s != nil && s.promise.series[key] == nil {
			t.leaves[i] = nil
		}
	}
	if t.lead() != nil {
		return events
	}
	if t.open != nil {
		events = append(events, t.close(last, now, "no input for so long that the group was forgotten"))
	}
	delete(pol.tallies, key)
	return events
}

// truth is three-valued (Kleene): a window without data is neither kept nor missed.
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
		result = max(result, t.missed(id))
	}
	return result
}

func (t *Tally) missed(id string) truth {
	i, ok := t.policy.byID[id]
	if !ok || t.leaves[i] == nil {
		return unknown
	}
	switch t.leaves[i].resultOf(t.policy.spec.Window).State {
	case Violated:
		return yes
	case NoData:
		return unknown
	default:
		return no
	}
}

// judge asks every group about the window that ends at end. Groups come in the order of their keys, so two runs
// tell the same story.
func (pol *policy) judge(end int64, events []Event) []Event {
	keys := make([]string, 0, len(pol.tallies))
	for key := range pol.tallies {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	for _, key := range keys {
		events = pol.tallies[key].judge(end, events)
	}
	return events
}

func (t *Tally) judge(end int64, events []Event) []Event {
	t.newest, t.Dirty = end, true
	held := t.holds(&t.policy.spec.When)
	if held == unknown {
		switch t.policy.spec.OnNoData {
		case openslo.NoDataOpen:
			held = yes
		case openslo.NoDataClose:
			held = no
		default:
			return events
		}
	}
	if held == no {
		t.streak = 0
		if t.open != nil {
			events = append(events, t.close(t.lead(), end, t.describe("kept again")))
		}
		return events
	}
	if t.streak == 0 {
		t.first = end - int64(t.policy.spec.Window)
	}
	t.streak++
	if t.open != nil || t.streak < t.policy.spec.ConsecutiveWindows {
		return events
	}
	t.count++
	result := t.lead().resultOf(t.policy.spec.Window)
	t.open = &Event{
		Opened: true, ID: t.id(), Policy: t.policy.spec.Name, Series: t.lead(), SLOs: t.ids(), Time: end, First: t.first,
		Windows: t.streak, Observed: result.Value, Exemplar: result.Exemplar,
		Reason: t.describe(fmt.Sprintf("missed in %d windows of %s", t.streak, span(t.policy.spec.Window))),
	}
	return append(events, *t.open)
}

// close ends the open violation.
func (t *Tally) close(s *Series, now int64, reason string) Event {
	e := *t.open
	e.Opened, e.Time, e.Series, e.Reason, e.Exemplar = false, now, s, reason, Exemplar{}
	e.Observed = s.resultOf(t.policy.spec.Window).Value
	t.open = nil
	return e
}

// lead is the series whose labels the violation carries: the first of `when`.
func (t *Tally) lead() *Series {
	for _, s := range t.leaves {
		if s != nil {
			return s
		}
	}
	return nil
}

func (t *Tally) ids() []string {
	ids := make([]string, len(t.policy.promises))
	for i, p := range t.policy.promises {
		ids[i] = p.slo.ID
	}
	return ids
}

// describe says in words what every leaf measured against what it promised.
func (t *Tally) describe(what string) string {
	var b strings.Builder
	for _, s := range t.leaves {
		if s == nil {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(s.describe(s.resultOf(t.policy.spec.Window)))
	}
	return what + ": " + b.String()
}

// id is the same for every replica that sees the same input: policy, group, first window.
func (t *Tally) id() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%d\x00", t.policy.spec.Name, t.first)
	t.lead().Group(func(key, value string) { fmt.Fprintf(h, "%s\x00%s\x00", key, value) })
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Policy is the policy's name.
func (t *Tally) Policy() string { return t.policy.spec.Name }

// Series is the series whose labels the policy's results carry.
func (t *Tally) Series() *Series { return t.lead() }

// Count is how many violations have opened.
func (t *Tally) Count() uint64 { return t.count }

// Newest is the end of the policy window that closed last, or window.Unset.
func (t *Tally) Newest() int64 { return t.newest }
