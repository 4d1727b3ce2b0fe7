// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"maps"
	"reflect"
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// Update changes to another catalog without losing what is known:
//
//   - An SLO is the same while its id is, or while its name is where the id is derived from the objective that was edited.
//     With the same indicator and groups it keeps its history: an edited objective judges the open windows by the new
//     number, and counters go on.
//   - An edited indicator or group-by begins anew: it no longer measures the same thing.
//   - A deleted SLO or policy closes its violations with the reason "deleted".
//   - A policy is the same while its name is: edited, it keeps its streak and its open violation, and the next window
//     is judged by the new rule.
//   - Windows whose pane (the span all windows over the SLO are made of) changes in length begin anew.
func (j *Judge) Update(catalog *openslo.Catalog) {
	next := withLedger(catalog, j.opts, j.ledger)
	next.begun, next.lastData, next.closed, next.evicted = j.begun, j.lastData, j.closed, j.evicted
	next.ledger.tallies = nil // those of before; the new ones tell the same and more
	next.roomMade = j.roomMade
	next.ledger.touchAll()
	next.align(j)

	kept := map[*promise]bool{}
	j.ledger.inOrder(func() {
		for _, p := range next.promises {
			old := next.earlier(p, j)
			if old == nil || !p.measuresLike(old) {
				continue
			}
			kept[old] = true
			p.adopt(old)
			next.series += len(p.series)
		}
	})
	next.adoptPolicies(j, kept)
	j.ledger.inOrder(func() {
		for _, p := range j.promises {
			if kept[p] {
				continue
			}
			for _, s := range p.ordered {
				s.calmAll(j.closed, reasonDeleted)
				j.ledger.retire(s)
				s.gone = true
			}
		}
	})
	*j = *next
}

// earlier is the promise of before that p is a version of: that of the same id or, where an edited objective has given it
// another one, the only one of the same document that is no more, if p is the only one of it that is new.
func (j *Judge) earlier(p *promise, before *Judge) *promise {
	if old := before.byID[p.slo.ID]; old != nil {
		return old
	}
	gone, fresh := before.notIn(j, p.slo.Name), j.notIn(before, p.slo.Name)
	if len(gone) == 1 && len(fresh) == 1 {
		return gone[0]
	}
	return nil
}

// notIn are the promises of a document whose ids another judge does not have.
func (j *Judge) notIn(other *Judge, name string) (all []*promise) {
	for _, p := range j.promises {
		if p.slo.Name == name && other.byID[p.slo.ID] == nil {
			all = append(all, p)
		}
	}
	return all
}

// align lets panes go on where those before stood. A pane of another length begins with the one that holds the youngest
// closed end: whatever comes in now finds it open.
func (j *Judge) align(before *Judge) {
	if !before.begun {
		return
	}
	for _, c := range j.classes {
		if i := slices.IndexFunc(before.classes, func(b *paneClass) bool { return b.pane == c.pane }); i >= 0 {
			c.next = before.classes[i].next
		} else {
			c.next = window.Start(before.closed, c.pane)
		}
	}
}

// measuresLike reports whether two versions of an SLO measure the same thing for the same groups.
func (p *promise) measuresLike(o *promise) bool {
	return reflect.DeepEqual(p.slo.Indicator, o.slo.Indicator) && slices.Equal(p.groupBy, o.groupBy) && p.slo.Unit == o.slo.Unit
}

// labelledUnlike reports whether results of two versions of an SLO are different series for a backend.
func (p *promise) labelledUnlike(o *promise) bool {
	return p.slo.ID != o.slo.ID || p.slo.Service != o.slo.Service || p.slo.Class != o.slo.Class ||
		p.slo.Target() != o.slo.Target() || p.slo.Unit != o.slo.Unit
}

// adopt takes over the series of an earlier version.
func (p *promise) adopt(old *promise) {
	p.series, p.ordered, p.seen = old.series, old.ordered, old.seen
	samePanes := p.class.pane == old.class.pane
	sameBooks := p.slo.Budgeting == old.slo.Budgeting && p.slice == old.slice && reflect.DeepEqual(p.slo.TimeWindow, old.slo.TimeWindow)
	moved := p.slo.Objective.Value != old.slo.Objective.Value || p.slo.Objective.Op != old.slo.Objective.Op
	for _, s := range p.ordered {
		if p.labelledUnlike(old) {
			p.ledger.retire(s)
		}
		s.promise = p
		s.Identity = p.identity(s.values, s.overflow)
		s.changed()
		if !samePanes {
			s.panes = window.Panes[pane]{}
		}
		windows := make([]openWindow, len(p.windows))
		for i, length := range p.windows {
			windows[i].last = noResult
			if at := slices.Index(old.windows, length); at >= 0 && samePanes {
				windows[i] = s.windows[at]
			}
		}
		s.windows = windows
		s.adoptAlerts(old)
		if !sameBooks || s.account.ring.Restore(p.books.layout, s.account.ring.State()) != nil {
			s.account = p.newAccount(s.account.heard)
		}
		s.account.alarm = max(p.ledger.balanced, 0) // it may be by another objective
		if moved {
			s.rejudge()
		}
	}
}

// rejudge counts the good events of what is open by the present objective. Events that were told stay as they were told.
func (s *Series) rejudge() {
	again := func(a *sums) {
		if s.promise.slo.Indicator.Threshold != nil {
			a.good = s.asGood(a.values.AtMost(s.promise.slo.Objective.Value), a.values.Count())
		}
	}
	for _, pane := range s.panes.All() {
		again(&pane.Acc.sums)
	}
	for i := range s.windows {
		again(&s.windows[i].sums)
	}
}

// adoptAlerts lets the alerts of conditions that are still there go on, and closes the others.
func (s *Series) adoptAlerts(old *promise) {
	before := s.alerts
	s.alerts = nil
	for i := range before {
		now := slices.IndexFunc(s.promise.books.conditions, func(c condition) bool { return c.name == old.books.conditions[i].name })
		if now < 0 {
			if e := before[i].open; e != nil {
				s.close(e, s.promise.ledger.balanced, 0, reasonDeleted)
			}
			continue
		}
		*s.alert(now) = before[i]
	}
}

// adoptPolicies lets policies of the same name go on, and closes the violations of what is no more.
func (j *Judge) adoptPolicies(before *Judge, kept map[*promise]bool) {
	var carried []*Series
	for _, p := range j.promises {
		for _, s := range p.ordered {
			carried = append(carried, s)
			for _, pol := range p.watched {
				pol.attach(s)
			}
		}
	}
	for _, s := range carried {
		j.complete(s)
	}
	for _, old := range before.policies {
		i := slices.IndexFunc(j.policies, func(p *policy) bool { return p.spec.Name == old.spec.Name })
		for _, key := range slices.Sorted(maps.Keys(old.tallies)) {
			was := old.tallies[key]
			if i >= 0 {
				if now := j.policies[i].tallies[key]; now != nil {
					now.count, now.start, now.newest, now.streak, now.first, now.open = was.count, was.start, was.newest, was.streak, was.first, was.open
					now.saved = was.saved
					now.changed(j.ledger)
					continue
				}
			}
			if was.open != nil {
				reason := reasonDeleted
				if i >= 0 && !slices.ContainsFunc(old.promises, func(p *promise) bool { return kept[p] }) && j.knows(old) {
					reason = reasonEdited
				}
				was.close(before.closed, reason, false, j.ledger)
			}
		}
	}
}

// knows reports whether an SLO of a policy is still in the catalog, by its id.
func (j *Judge) knows(pol *policy) bool {
	for _, p := range pol.promises {
		if j.byID[p.slo.ID] != nil {
			return true
		}
	}
	return false
}
