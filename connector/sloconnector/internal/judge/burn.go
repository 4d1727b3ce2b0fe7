// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/budget"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// BurnRate says when an error budget is spent too fast: when over both windows it is spent at least Factor times as fast as
// it may. The long window says that it matters, the short one that it still goes on
// (https://sre.google/workbook/alerting-on-slos/#6-multiwindow-multi-burn-rate-alerts).
type BurnRate struct {
	Long, Short time.Duration
	Factor      float64
	Severity    string
}

// condition is a burn rate about which somebody is told.
type condition struct {
	policy          string // the AlertPolicy; empty for a BurnRate of the options
	name            string // unique in its SLO
	severity        string
	targets         []openslo.AlertNotificationTarget
	long, short     time.Duration // equal where there is no shorter one
	longAt, shortAt int           // in books.rolling
	threshold       float64
	above           bool // the rate must be above the threshold, not at it
	after           time.Duration
	breaching       bool
	noData          bool
}

// conditionsOf are the burn rates of an SLO's alert policies or, where it has none, the general ones that its time window has
// room for and that its objective can reach.
func conditionsOf(slo *openslo.SLO, length time.Duration, general []BurnRate) (all []condition) {
	for i := range slo.AlertPolicies {
		a := &slo.AlertPolicies[i]
		c := condition{
			policy: a.Name, name: a.Name, severity: a.Condition.Severity, targets: a.Targets,
			long: a.Condition.LookbackWindow, short: openslo.ShortWindow(a.Condition.LookbackWindow),
			threshold: a.Condition.Threshold, above: a.Condition.Op == openslo.OpGT, after: a.Condition.AlertAfter,
			breaching: a.WhenBreaching, noData: a.WhenNoData,
		}
		if c.short < max(slo.Objective.TimeSliceWindow, Tick) {
			c.short = c.long
		}
		all = append(all, c)
	}
	if len(slo.AlertPolicies) > 0 {
		return all
	}
	for _, r := range general {
		if r.Long > length || r.Factor > slo.Objective.MaxBurnRate() || r.Short < slo.Objective.TimeSliceWindow {
			continue
		}
		all = append(all, condition{
			name:     fmt.Sprintf("%gx over %s and %s", r.Factor, openslo.GoDuration(r.Long), openslo.GoDuration(r.Short)),
			severity: r.Severity, long: r.Long, short: r.Short, threshold: r.Factor, breaching: true,
		})
	}
	return all
}

// alert is where a condition stands for one series.
type alert struct {
	since int64 // event time from which on it has held without a break, or window.Unset
	calm  int64 // event time from which on it has not held any more, of one that is open, or window.Unset
	open  *Event
}

// calmAfter is how long a condition must not have held before its alert ends: a rate about its threshold is one alert.
const calmAfter = 5 * Tick

// holds tells whether a condition holds, and why. A short window with too few events to be judged says nothing, and neither
// does a series that is younger than it: its first bad minute is not a day.
func (c *condition) holds(s *Series, sums []budget.Counts, end int64) (rate float64, reason string, ok bool) {
	long, short := sums[c.longAt], sums[c.shortAt]
	target := s.promise.slo.Objective.Target
	known := s.known()
	if known == window.Unset || end-known < int64(c.short) {
		return 0, "", false
	}
	if c.noData && long.Total == 0 && s.live {
		return 0, reasonNoEvents + openslo.GoDuration(c.long), true
	}
	least := float64(s.promise.minEvents())
	if s.promise.slice > 0 {
		least = 1
	}
	if !c.breaching || short.Total < least {
		return 0, "", false
	}
	over, _ := long.BurnRate(target)
	now, _ := short.BurnRate(target)
	reaches := func(r float64) bool {
		if c.above {
			return r > c.threshold*(1+slack)
		}
		return r >= c.threshold*(1-slack)
	}
	if !reaches(over) || !reaches(now) {
		return over, "", false
	}
	reason = fmt.Sprintf("the error budget is spent %s times as fast as it may over %s", number(over), openslo.GoDuration(c.long))
	if c.short != c.long {
		reason += fmt.Sprintf(", %s times over %s", number(now), openslo.GoDuration(c.short))
	}
	return over, reason + ", from " + number(c.threshold) + " on it is too fast", true
}

// balance asks every condition as of a Tick.
func (j *Judge) balance(end int64) {
	j.ledger.balanced = end
	j.ledger.inOrder(func() {
		for _, p := range j.promises {
			if len(p.books.conditions) == 0 {
				continue
			}
			for _, s := range p.ordered {
				s.balance(end)
			}
		}
	})
}

func (s *Series) balance(end int64) {
	b := &s.promise.books
	if s.alerts == nil && b.silence == 0 && end-s.alarm() > int64(b.calm) {
		return // as nearly all are nearly always
	}
	if s.known() == window.Unset {
		return
	}
	l, conditions := s.promise.ledger, b.conditions
	l.sums = s.rolling(end, l.sums[:0])
	for i := range conditions {
		c := &conditions[i]
		if l.tellers.broken != window.Unset && end-l.tellers.broken < int64(c.short) {
			continue // what was not told could have been good or bad
		}
		rate, reason, holds := c.holds(s, l.sums, end)
		if !holds {
			if s.alerts != nil {
				s.abate(i, end, rate)
			}
			continue
		}
		a := s.alert(i)
		if a.calm != window.Unset {
			a.calm = window.Unset
			s.touch()
		}
		if a.since == window.Unset {
			a.since = end
			s.touch()
		}
		if a.open == nil && end-a.since >= int64(c.after) {
			a.open = &Event{
				Kind: BurnAlert, Opened: true, ID: eventID(s.slo.ID+"\x00"+c.name, s.Identity, a.since), Policy: c.policy, Condition: c.name, Severity: c.severity,
				Targets: c.targets, Of: s.Identity, SLOs: []string{s.slo.ID}, Time: end, Observed: rate, Threshold: c.threshold,
				Window: c.long, Exemplar: s.witness.value(), Reason: reason,
			}
			l.event(*a.open)
			s.changed()
		}
	}
	if !slices.ContainsFunc(s.alerts, func(a alert) bool { return a.since != window.Unset }) {
		s.alerts = nil
	}
}

// alarm is the event time after which nothing alarming was posted.
func (s *Series) alarm() int64 {
	at := s.account.alarm
	for _, part := range s.promise.parts {
		at = max(at, part.series[s.key].account.alarm)
	}
	return at
}

// alert is where the i-th condition stands.
func (s *Series) alert(i int) *alert {
	if s.alerts == nil {
		s.alerts = make([]alert, len(s.promise.books.conditions))
		for i := range s.alerts {
			s.alerts[i].since, s.alerts[i].calm = window.Unset, window.Unset
		}
	}
	return &s.alerts[i]
}

// abate ends an alert when its condition has not held for long enough, and at once when events came of which there were none.
func (s *Series) abate(i int, end int64, rate float64) {
	a, c := &s.alerts[i], &s.promise.books.conditions[i]
	switch {
	case a.open == nil:
		s.calm(i, end, rate, "")
	case strings.HasPrefix(a.open.Reason, reasonNoEvents):
		s.calm(i, end, rate, "there are events again")
	case a.calm == window.Unset:
		a.calm = end
		s.touch()
	case end-a.calm >= int64(calmAfter):
		s.calm(i, end, rate, "below "+number(c.threshold)+" times for "+openslo.GoDuration(calmAfter))
	}
}

// reasonNoEvents begins the reason of an alert for no data.
const reasonNoEvents = "no events for "

// calm ends an alert.
func (s *Series) calm(i int, end int64, rate float64, reason string) {
	a := &s.alerts[i]
	if a.since == window.Unset {
		return
	}
	a.since, a.calm = window.Unset, window.Unset
	s.touch()
	if a.open != nil {
		s.close(a.open, end, rate, reason)
		a.open = nil
	}
}

func (s *Series) close(opened *Event, end int64, rate float64, reason string) {
	e := *opened
	e.Opened, e.Time, e.Of, e.Observed, e.Exemplar, e.Reason = false, end, s.Identity, rate, Exemplar{}, reason
	s.promise.ledger.event(e)
	s.changed()
}

// calmSilent ends what is open for want of events, of a series for which nobody waits any more.
func (s *Series) calmSilent(end int64) {
	for i := range s.alerts {
		if s.promise.books.conditions[i].noData { // for so long that nothing else can be open
			s.calm(i, end, 0, reasonForgotten)
		}
	}
}

// calmAll ends what is open of a series that goes.
func (s *Series) calmAll(end int64, reason string) {
	for i := range s.alerts {
		s.calm(i, end, 0, reason)
	}
}

// burning reports whether the budget is spent too fast.
func (s *Series) burning() bool {
	return slices.ContainsFunc(s.alerts, func(a alert) bool { return a.open != nil })
}

// known is the event time from which on something is known of a series, or window.Unset.
func (s *Series) known() int64 {
	known := s.first
	if f := s.account.fill; f != nil && (known == window.Unset || f.begin < known) {
		known = f.begin
	}
	for _, part := range s.promise.parts {
		if of := part.series[s.key].known(); known == window.Unset || (of != window.Unset && of < known) {
			known = of
		}
	}
	return known
}
