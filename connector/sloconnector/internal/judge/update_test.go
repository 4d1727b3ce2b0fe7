// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

func catalogOf(slo openslo.SLO, policies ...openslo.ViolationPolicy) *openslo.Catalog {
	return &openslo.Catalog{SLOs: []openslo.SLO{slo}, Policies: policies}
}

// broken is a judge with an open violation of ttft, three windows old.
func broken(t *testing.T) (*Judge, openslo.SLO, openslo.ViolationPolicy) {
	t.Helper()
	slo := ttft()
	pol := policyOf(leaf(slo), 2, openslo.NoDataHold)
	j := newJudge([]openslo.SLO{slo}, pol)
	s := j.Series(0, nil)
	for w := range 3 {
		feed(j, s, w, 0, 10)
	}
	require.Len(t, take(j), 1)
	return j, slo, pol
}

func countOf(j *Judge) (n uint64) {
	j.Turned(All)
	j.Changes(math.MaxInt, func(*Series, bool) {}, func(t *Tally) {
		c, _, _ := t.Count()
		n += c
	})
	return n
}

func TestAnEditedObjectiveKeepsItsHistory(t *testing.T) {
	j, slo, pol := broken(t)
	s := j.Series(0, nil)
	addCounts(s, t0+15*minute, []uint64{0, 0, 0, 0, 10, 0, 0}) // in (0.8, 1]
	slo.Objective.Value = 1
	j.Update(catalogOf(slo, pol))
	assert.Same(t, s, j.Series(0, nil))
	good, bad, _ := s.Events()
	assert.Equal(t, []uint64{0, 40}, []uint64{good, bad}, "what was told stays told")
	assert.Equal(t, uint64(1), countOf(j))
	j.Advance(t0 + 20*minute)
	assert.Equal(t, OK, s.Result().State, "the open window is judged by the new number")
	events := take(j)
	require.Len(t, events, 1)
	assert.False(t, events[0].Opened)
}

func TestAnEditedIndicatorBeginsAnew(t *testing.T) {
	for name, edit := range map[string]func(*openslo.SLO, *openslo.ViolationPolicy){
		"metric": func(s *openslo.SLO, _ *openslo.ViolationPolicy) {
			s.Indicator.Threshold = &openslo.Selector{Metric: "other"}
		},
		"group-by": func(s *openslo.SLO, p *openslo.ViolationPolicy) {
			s.GroupBy = []string{"region"}
			p.GroupBy = s.GroupBy
		},
	} {
		t.Run(name, func(t *testing.T) {
			j, slo, pol := broken(t)
			old := j.Series(0, nil)
			edit(&slo, &pol)
			j.Update(catalogOf(slo, pol))
			assert.True(t, old.Gone())
			events := take(j)
			require.Len(t, events, 1)
			assert.False(t, events[0].Opened)
			assert.Equal(t, reasonEdited, events[0].Reason)
			s := j.Series(0, make([]string, len(slo.GroupBy)))
			good, bad, _ := s.Events()
			assert.Zero(t, good+bad)
			feed(j, s, 4, 10, 0)
			assert.Equal(t, OK, s.Result().State)
		})
	}
}

func TestADeletedSLOClosesItsViolations(t *testing.T) {
	j, _, _ := broken(t)
	old := j.Series(0, nil)
	other := ratio("other", 0.9)
	j.Update(catalogOf(other))
	events := take(j)
	require.Len(t, events, 1)
	assert.Equal(t, reasonDeleted, events[0].Reason)
	assert.Equal(t, t0+15*minute, events[0].Time)
	assert.True(t, old.Gone())
	assert.Zero(t, j.Len())
}

func TestADeletedPolicyClosesItsViolations(t *testing.T) {
	j, slo, _ := broken(t)
	s := j.Series(0, nil)
	j.Update(catalogOf(slo))
	events := take(j)
	require.Len(t, events, 1)
	assert.Equal(t, reasonDeleted, events[0].Reason)
	assert.Same(t, s, j.Series(0, nil))
}

func TestAnEditedPolicyKeepsItsOpenViolation(t *testing.T) {
	j, slo, pol := broken(t)
	pol.ConsecutiveWindows = 5
	j.Update(catalogOf(slo, pol))
	s := j.Series(0, nil)
	feed(j, s, 3, 0, 10)
	assert.Empty(t, take(j))
	feed(j, s, 4, 10, 0)
	events := take(j)
	require.Len(t, events, 1)
	assert.False(t, events[0].Opened)
	assert.Equal(t, uint64(1), countOf(j))
}

func TestAChangedWindowBeginsAnewAndNothingClosedOpensAgain(t *testing.T) {
	j, slo, pol := broken(t)
	s := j.Series(0, nil)
	pol.Window = time.Minute
	j.Update(catalogOf(slo, pol))
	assert.True(t, j.Late(s, t0+15*minute-1))
	assert.False(t, j.Late(s, t0+15*minute))
	s.AddValue(t0+15*minute, 0.1)
	j.Advance(t0 + 16*minute)
	assert.Equal(t, OK, s.Result().State)
	assert.Equal(t, t0+16*minute, s.Result().End)
}

// Scenario: the window of a policy becomes longer, shorter, and as it was; or its SLO comes in while others are judged.
// Guarantees: no point that comes in now is late for it.
func TestAChangedWindowRefusesNothing(t *testing.T) {
	j, slo, pol := broken(t)
	at := t0 + 15*minute
	for _, length := range []time.Duration{time.Hour, 10 * time.Second, time.Minute, 24 * time.Hour, 5 * time.Minute} {
		pol.Window = length
		j.Update(catalogOf(slo, pol))
		at += minute
		s := j.Series(0, nil)
		assert.False(t, j.Late(s, at), "window of %s", length)
		s.AddValue(at, 0.1)
		j.Advance(at)
	}
	newcomer := ratio("newcomer", 0.9)
	hour := policyOf(leaf(newcomer), 1, openslo.NoDataHold)
	hour.Name, hour.Window = "hour", time.Hour
	j.Update(&openslo.Catalog{SLOs: []openslo.SLO{slo, newcomer}, Policies: []openslo.ViolationPolicy{pol, hour}})
	assert.False(t, j.Late(j.Series(1, nil), at+minute))
}

// Scenario: the target is edited, and the id, which is derived from it, changes with it.
// Guarantees: it is the same promise all the same.
func TestATargetThatChangesTheIDKeepsItsHistory(t *testing.T) {
	j, slo, pol := broken(t)
	s := j.Series(0, nil)
	slo.ID, slo.Objective.Target = "llm:chat:ttft:p90", 0.9
	pol.When = leaf(slo)
	j.Update(catalogOf(slo, pol))
	assert.Same(t, s, j.Series(0, nil))
	assert.Empty(t, take(j), "the violation stays open")
	retired := j.TakeRetired()
	require.Len(t, retired, 1, "nothing more is told under the old id")
	assert.Equal(t, "llm:chat:ttft:p95", retired[0].SLO().ID)
	assert.Equal(t, []string{"p"}, retired[0].Policies)
	feed(j, s, 3, 10, 0)
	events := take(j)
	require.Len(t, events, 1)
	assert.True(t, events[0].Kept())
}

func TestWhatIsGoneIsRetired(t *testing.T) {
	j, _, _ := broken(t)
	j.Update(catalogOf(ratio("other", 0.9)))
	retired := j.TakeRetired()
	require.Len(t, retired, 1)
	assert.Greater(t, retired[0].At, t0+15*minute-1)
	assert.Empty(t, j.TakeRetired())

	slo := ttft("pod")
	j = New(catalogOf(slo), Options{Window: 5 * time.Minute, MaxSeries: 10, TTL: time.Hour})
	j.Series(0, []string{"a"}).AddValue(t0, 2)
	j.Advance(t0 + 2*60*minute)
	require.Len(t, j.TakeRetired(), 1)
}

// Guarantees: what is edited has no say in what is not.
func TestAnUntouchedSLONoticesNothing(t *testing.T) {
	run := func(update bool) []int {
		slo, other := ttft(), ratio("other", 0.9)
		pol := policyOf(leaf(slo), 2, openslo.NoDataHold)
		j := newJudge([]openslo.SLO{slo, other}, pol)
		var times []int
		for w, c := range "gbbgbbbgbg" {
			s := j.Series(0, nil)
			at := t0 + int64(w)*5*minute + minute
			counts := []uint64{0, 0, 10, 0, 0, 0, 0}
			if c == 'b' {
				counts = []uint64{0, 0, 0, 0, 0, 10, 0}
			}
			addCounts(s, at, counts)
			if update {
				other.Objective.Target = 0.5 + float64(w)/100
				switch w % 3 {
				case 0:
					j.Update(&openslo.Catalog{SLOs: []openslo.SLO{slo}, Policies: []openslo.ViolationPolicy{pol}})
				case 1:
					j.Update(&openslo.Catalog{SLOs: []openslo.SLO{other, slo}, Policies: []openslo.ViolationPolicy{pol}})
					s = j.Series(1, nil)
				default:
					j.Update(&openslo.Catalog{SLOs: []openslo.SLO{slo, other}, Policies: []openslo.ViolationPolicy{pol}})
				}
				if w%3 != 1 {
					s = j.Series(0, nil)
				}
			}
			addCounts(s, at, counts)
			j.Advance(t0 + int64(w+1)*5*minute)
			for _, e := range take(j) {
				times = append(times, int((e.Time-t0)/(5*minute)))
			}
			if update && w%3 == 1 { // leave the order as the next turn expects it
				j.Update(&openslo.Catalog{SLOs: []openslo.SLO{slo, other}, Policies: []openslo.ViolationPolicy{pol}})
			}
		}
		good, bad, _ := j.Series(0, nil).Events()
		return append(times, int(good), int(bad))
	}
	assert.Equal(t, run(false), run(true))
}

// Guarantees: an edited objective keeps the books as they were counted; another time window or budgeting method begins new ones.
func TestWhatBecomesOfTheBooks(t *testing.T) {
	f := func(want float64, edit func(*openslo.SLO)) {
		t.Helper()
		slo := kept(0.9, rolling("28d"))
		j := newJudge([]openslo.SLO{slo})
		s := j.Series(0, nil)
		for m := range int64(600) {
			count(s, t0+m*minute, 99, 1)
			j.Advance(t0 + (m+1)*minute)
		}
		edit(&slo)
		j.Update(catalogOf(slo))
		assert.Same(t, s, j.Series(0, nil))
		b := balanceOf(t, s)
		if want == 0 {
			assert.InDelta(t, 1, b.Remaining, 0)
			count(s, t0+600*minute, 10, 0)
			j.Advance(t0 + 610*minute)
			b = balanceOf(t, s)
			want = 1
		}
		assert.InDelta(t, want, b.Remaining, 1e-9)
	}
	f(0.9, func(*openslo.SLO) {})
	f(0.8, func(slo *openslo.SLO) { slo.Objective.Target = 0.95 })
	f(0.9, func(slo *openslo.SLO) { // with another window to be asked for, the ring is laid out anew
		slo.AlertPolicies = []openslo.AlertPolicy{{Name: "a", WhenBreaching: true, Condition: openslo.AlertCondition{
			Op: openslo.OpGTE, Threshold: 2, LookbackWindow: 3 * time.Hour}}}
	})
	f(0, func(slo *openslo.SLO) { slo.TimeWindow = rolling("7d") })
	f(0, func(slo *openslo.SLO) {
		slo.Budgeting, slo.Objective.TimeSliceWindow, slo.Objective.TimeSliceTarget = openslo.Timeslices, 5*time.Minute, 0.9
	})
}

// Scenario: the target is raised, so that what was spent slowly enough is now too fast, and nothing bad comes in any more.
// Guarantees: the burn rate is asked by the new target at once.
func TestBurnRatesAreAskedByAnEditedTarget(t *testing.T) {
	slo := kept(0.9, rolling("28d"))
	j := burnJudge(slo, fast)
	s := j.Series(0, nil)
	for m := range int64(30) {
		count(s, t0+m*minute, 95, 5)
		j.Advance(t0 + (m+1)*minute)
	}
	require.Empty(t, take(j))
	slo.Objective.Target = 0.98
	j.Update(catalogOf(slo))
	j.Advance(t0 + 31*minute)
	events := take(j)
	require.Len(t, events, 1)
	assert.Equal(t, t0+31*minute, events[0].Time)
	assert.Equal(t, AtRisk, s.State())
}

// Scenario: a policy is deleted, renamed with another window, or one of two, while its violation is open and its SLO stays.
// Guarantees: the violation closes, whatever windows are left.
func TestAPolicyGoesWhileItsSLOStays(t *testing.T) {
	slo := ttft()
	named := func(name string, window time.Duration) openslo.ViolationPolicy {
		p := policyOf(leaf(slo), 1, openslo.NoDataHold)
		p.Name, p.Window = name, window
		return p
	}
	short, long := named("short", 2*time.Minute), named("long", 4*time.Minute)
	for _, next := range [][]openslo.ViolationPolicy{nil, {short}, {long}, {named("other", 3*time.Minute)}} {
		j := newJudge([]openslo.SLO{slo}, short, long)
		for m := int64(0); m < 8; m++ {
			addCounts(j.Series(0, nil), t0+m*minute, []uint64{0, 0, 0, 0, 0, 9, 0})
		}
		j.Advance(t0 + 8*minute)
		require.Len(t, take(j), 2)
		j.Update(catalogOf(slo, next...))
		closed := 0
		for _, e := range take(j) {
			if !e.Opened {
				closed++
			}
		}
		kept := 0
		for _, p := range next {
			if p.Name != "other" {
				kept++
			}
		}
		assert.Equal(t, 2-kept, closed)
	}
}
