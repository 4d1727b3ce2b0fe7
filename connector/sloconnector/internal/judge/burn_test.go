// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// fast is 2x over an hour and five minutes.
var fast = BurnRate{Long: time.Hour, Short: 5 * time.Minute, Factor: 2, Severity: "page"}

func burnJudge(slo openslo.SLO, rates ...BurnRate) *Judge {
	return New(catalogOf(slo), Options{Window: 5 * time.Minute, MaxSeries: 10, TTL: time.Hour, BurnRates: rates})
}

// alertsOf tells the minutes at the end of which burn rates opened (+m) and closed (-m), when minute m has 100 events of which
// bad(m) are bad; below 0 there are none.
func alertsOf(j *Judge, minutes int64, bad func(m int64) float64) (all []int64) {
	s := j.Series(0, make([]string, len(j.GroupBy(0))))
	for m := range minutes {
		if b := bad(m); b >= 0 {
			count(s, t0+m*minute, 100-b, b)
		}
		j.Advance(t0 + (m+1)*minute)
		for _, e := range take(j) {
			at := (e.Time - t0) / minute
			if !e.Opened {
				at = -at
			}
			all = append(all, at)
		}
	}
	return all
}

// Scenario: of 0.9, an hour of good minutes, ten minutes of nothing but bad ones, then good ones again.
// Guarantees: the burn rate opens with the minute in which both windows reach the factor, and closes five minutes after the
// one in which the short one does not any more.
func TestABurnRateOpensWhenBothWindowsReachIt(t *testing.T) {
	j := burnJudge(kept(0.9, rolling("28d")), fast)
	got := alertsOf(j, 120, func(m int64) float64 {
		if m >= 60 && m < 74 {
			return 100
		}
		return 0
	})
	// 2x of 0.9 is 20 %. The hour has it with its 12th bad minute, or with one more, since its far edge is known to five
	// minutes; the last five minutes have it until one bad one is left.
	require.Len(t, got, 2)
	assert.InDelta(t, 72, got[0], 1)
	assert.Equal(t, int64(-(79 + 5)), got[1])
}

// Guarantees: exactly at the factor it is reached, for gte; for gt it is not.
func TestABurnRateIsReachedAtItsFactor(t *testing.T) {
	assert.Equal(t, []int64{5}, alertsOf(burnJudge(kept(0.9, rolling("28d")), fast), 20, func(int64) float64 { return 20 }))
	assert.Empty(t, alertsOf(burnJudge(kept(0.9, rolling("28d")), fast), 20, func(int64) float64 { return 19 }))
	alert := func(op openslo.Op) *Judge {
		return burnJudge(alerted(openslo.AlertCondition{Op: op, Threshold: 2, LookbackWindow: time.Hour}))
	}
	assert.Equal(t, []int64{5}, alertsOf(alert(openslo.OpGTE), 20, func(int64) float64 { return 20 }))
	assert.Empty(t, alertsOf(alert(openslo.OpGT), 20, func(int64) float64 { return 20 }))
	assert.Equal(t, []int64{5}, alertsOf(alert(openslo.OpGT), 20, func(int64) float64 { return 21 }))
}

// alerted is an SLO with an alert policy of its own.
func alerted(c openslo.AlertCondition) openslo.SLO {
	slo := kept(0.9, rolling("28d"))
	slo.AlertPolicies = []openslo.AlertPolicy{{
		Name: "mine", WhenBreaching: true, Condition: c, Targets: []openslo.AlertNotificationTarget{{Name: "team"}},
	}}
	return slo
}

func TestAlertAfterHasToHoldWithoutABreak(t *testing.T) {
	j := burnJudge(alerted(openslo.AlertCondition{Severity: "ticket", Op: openslo.OpGTE, Threshold: 2, LookbackWindow: time.Hour, AlertAfter: 4 * time.Minute}), fast)
	var events []Event
	s := j.Series(0, nil)
	for m := range int64(30) {
		count(s, t0+m*minute, 50, 50)
		j.Advance(t0 + (m+1)*minute)
		events = append(events, take(j)...)
	}
	require.Len(t, events, 1, "the general burn rates are for SLOs without a policy")
	e := events[0]
	assert.Equal(t, t0+9*minute, e.Time, "held since the end of minute 5, for four minutes")
	assert.Equal(t, []any{BurnAlert, "mine", "mine", "ticket", "team", 2.0, time.Hour},
		[]any{e.Kind, e.Policy, e.Condition, e.Severity, e.Targets[0].Name, e.Threshold, e.Window})
	assert.InDelta(t, 5, e.Observed, 1e-9)
	assert.Equal(t, "the error budget is spent 5 times as fast as it may over 1h, 5 times over 5m, from 2 on it is too fast", e.Reason)
}

// Guarantees: with little to judge by there is no alert: a young series, or a short window with fewer events than the SLO asks for.
func TestAYoungOrQuietSeriesIsNotAsked(t *testing.T) {
	always := func(int64) float64 { return 100 }
	assert.Equal(t, []int64{5}, alertsOf(burnJudge(kept(0.9, rolling("28d")), fast), 10, always), "five minutes old")
	slo := kept(0.9, rolling("28d"))
	slo.MinEvents = 501
	assert.Empty(t, alertsOf(burnJudge(slo, fast), 10, always), "500 events in five minutes")
	slo.MinEvents = 500
	assert.Equal(t, []int64{5}, alertsOf(burnJudge(slo, fast), 10, always))
}

func TestBurnRatesThatCannotBeReachedAreLeftOut(t *testing.T) {
	f := func(slo openslo.SLO, want int) {
		t.Helper()
		j := burnJudge(slo, fast, BurnRate{Long: 6 * time.Hour, Short: 30 * time.Minute, Factor: 6},
			BurnRate{Long: 72 * time.Hour, Short: 6 * time.Hour, Factor: 1})
		assert.Len(t, j.promises[0].books.conditions, want)
	}
	f(kept(0.9, rolling("28d")), 3)
	f(kept(0.8, rolling("28d")), 2) // at most 5 times
	f(kept(0.4, rolling("28d")), 1) // sloth#341: at most 1.67 times
	f(kept(0.9, rolling("1d")), 2)
	f(kept(0.9, openslo.TimeWindow{}), 3) // without a budget there are burn rates all the same
	slices := kept(0.9, rolling("28d"))
	slices.Budgeting, slices.Objective.TimeSliceWindow = openslo.Timeslices, 30*time.Minute
	f(slices, 2)
}

// Scenario: an alert for no data over ten minutes, after two more; input stops, and comes back; or the group is given up.
func TestNoDataAlerts(t *testing.T) {
	slo := kept(0.9, rolling("28d"))
	slo.GroupBy = []string{"pod"}
	slo.AlertPolicies = []openslo.AlertPolicy{{Name: "silence", WhenNoData: true, Condition: openslo.AlertCondition{
		Op: openslo.OpGTE, Threshold: 2, LookbackWindow: 10 * time.Minute, AlertAfter: 2 * time.Minute}}}
	f := func(until int64, want ...int64) {
		t.Helper()
		assert.Equal(t, want, alertsOf(burnJudge(slo), 150, func(m int64) float64 {
			if m < 5 || m >= until {
				return 100 // it is not for breaching
			}
			return -1
		}))
	}
	f(10)           // too short
	f(30, 17, -31)  // silent from 5 on: the window is empty at 15
	f(500, 17, -66) // given up an hour after the end of minute 4: nobody waits any more
}

func TestASeriesWhoseBudgetIsSpentTooFastIsAtRisk(t *testing.T) {
	slo := kept(0.5, rolling("28d"))
	j := burnJudge(slo, BurnRate{Long: time.Hour, Short: 5 * time.Minute, Factor: 0.5, Severity: "page"})
	s := j.Series(0, nil)
	for m := range int64(10) {
		count(s, t0+m*minute, 70, 30)
		j.Advance(t0 + (m+1)*minute)
	}
	assert.Equal(t, OK, s.Result().State)
	assert.Equal(t, AtRisk, s.State())
	for m := int64(10); m < 20; m++ {
		count(s, t0+m*minute, 100, 0)
		j.Advance(t0 + (m+1)*minute)
	}
	assert.Equal(t, OK, s.State())
	assert.Len(t, take(j), 2)
}

// Guarantees: two replicas give the same ids, in the same order, also when one of them is restarted in between.
func TestIDsOfBurnRatesAreTheSameForReplicas(t *testing.T) {
	slo := kept(0.9, rolling("28d"))
	slo.GroupBy = []string{"pod"}
	run := func(restart bool) (all []string) {
		j := burnJudge(slo, fast, BurnRate{Long: 30 * time.Minute, Short: 5 * time.Minute, Factor: 3, Severity: "page"})
		var saved stored
		for m := range int64(40) {
			for pod := range 5 {
				count(j.Series(0, []string{fmt.Sprint(pod)}), t0+m*minute, float64(m), 50)
			}
			j.Advance(t0 + (m+1)*minute)
			for _, e := range take(j) {
				all = append(all, fmt.Sprintf("%t %s %s %v %d", e.Opened, e.ID, e.Condition, e.Of.values, e.Time))
			}
			if saved.save(t, j); restart && m%3 == 0 {
				j = saved.restored(t, catalogOf(slo), j.opts)
			}
		}
		return all
	}
	want := run(false)
	require.Len(t, want, 10)
	assert.Equal(t, want, run(false))
	assert.Equal(t, want, run(true))
}

func TestBurnRatesOfWhatIsNoMoreClose(t *testing.T) {
	open := func() *Judge {
		j := burnJudge(kept(0.9, rolling("28d")), fast)
		require.Equal(t, []int64{5}, alertsOf(j, 10, func(int64) float64 { return 100 }))
		return j
	}
	j := open()
	j.Update(catalogOf(ratio("other", 0.9)))
	events := take(j)
	require.Len(t, events, 1)
	assert.Equal(t, []any{false, reasonDeleted, t0 + 10*minute}, []any{events[0].Opened, events[0].Reason, events[0].Time})

	j = open()
	slo := alerted(openslo.AlertCondition{Op: openslo.OpGTE, Threshold: 2, LookbackWindow: time.Hour})
	j.Update(catalogOf(slo)) // the general ones are no more
	events = take(j)
	require.Len(t, events, 1)
	assert.Equal(t, reasonDeleted, events[0].Reason)

	j = open()
	slo = kept(0.95, rolling("28d"))
	j.Update(catalogOf(slo))
	assert.Empty(t, take(j), "an edited target keeps it")
	n := 0
	j.Open(func(*Event) { n++ })
	assert.Equal(t, 1, n)
}

// Scenario: all input ends while a burn rate is open, or about to be reached since the good events of long ago leave the window.
// Guarantees: one jump of the watermark over a month tells what a step each minute tells.
func TestSilenceIsTheSameInOneStepOrMany(t *testing.T) {
	run := func(step int64) (all []string) {
		j := burnJudge(kept(0.9, rolling("28d")), BurnRate{Long: 6 * time.Hour, Short: time.Hour, Factor: 2, Severity: "page"}, fast)
		s := j.Series(0, nil)
		count(s, t0, 1000, 0)
		count(s, t0+355*minute, 0, 100)
		for at := t0 + 356*minute; at < t0+30*day; at += step {
			j.Advance(at)
		}
		j.Advance(t0 + 30*day)
		for _, e := range take(j) {
			all = append(all, fmt.Sprintf("%t %s %d", e.Opened, e.Condition, (e.Time-t0)/minute))
		}
		return all
	}
	want := run(minute)
	assert.Len(t, want, 4)
	assert.Equal(t, want, run(30*day))
	assert.Equal(t, want, run(7*hour))
}
