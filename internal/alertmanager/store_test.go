// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func alert(name string) Alert {
	return Alert{Labels: map[string]string{"alertname": name}, StartsAt: start}
}

// sent is what a store gives to an endpoint, which takes it: + fires, - has ended.
func sent(s *store, endpoint int) (names []string) {
	items := s.due(endpoint)
	for _, it := range items {
		sign := "+"
		if !it.EndsAt.IsZero() {
			sign = "-"
		}
		names = append(names, sign+it.Labels["alertname"])
	}
	s.taken(endpoint, items)
	return names
}

func TestWhatIsNotListedAnyMoreHasEnded(t *testing.T) {
	s := newStore(1, 10)
	s.set(start, []Alert{alert("a"), alert("b")})
	assert.ElementsMatch(t, []string{"+a", "+b"}, sent(s, 0))
	assert.Empty(t, sent(s, 0), "and is not sent twice")
	s.set(start, []Alert{alert("a"), alert("b")})
	assert.Empty(t, sent(s, 0), "no news")
	s.set(start.Add(time.Minute), []Alert{alert("b")})
	items := s.due(0)
	require.Len(t, items, 1)
	assert.Equal(t, start.Add(time.Minute), items[0].EndsAt)
	assert.Equal(t, []string{"-a"}, sent(s, 0))
	firing, _ := s.sizes()
	assert.Equal(t, 1, firing)
}

func TestAnEndIsNeitherInTheFutureNorBeforeTheStart(t *testing.T) {
	f := func(end, want time.Duration) {
		t.Helper()
		for _, known := range []bool{true, false} {
			s := newStore(1, 10)
			if known {
				s.set(start, []Alert{alert("a")})
				sent(s, 0)
			}
			ended := alert("a")
			ended.EndsAt = start.Add(end)
			s.set(start.Add(time.Hour), []Alert{ended})
			items := s.due(0)
			require.Len(t, items, 1, "an end is told, whether the beginning was or not: that may have been before a restart")
			assert.Equal(t, start.Add(want), items[0].EndsAt)
		}
	}
	f(10*time.Minute, 10*time.Minute)
	f(2*time.Hour, time.Hour)
	f(-time.Minute, 0)
}

func TestAnAlertMayFireAgain(t *testing.T) {
	s := newStore(1, 10)
	s.set(start, []Alert{alert("a")})
	s.set(start, nil)
	assert.Equal(t, []string{"-a"}, sent(s, 0), "the beginning was never sent, the end is")
	again := alert("a")
	again.StartsAt = start.Add(time.Minute)
	s.set(start.Add(time.Minute), []Alert{again})
	items := s.due(0)
	require.Len(t, items, 1)
	assert.Equal(t, start.Add(time.Minute), items[0].StartsAt)
	assert.Equal(t, []string{"+a"}, sent(s, 0))
}

func TestListedTwiceAnAlertFires(t *testing.T) {
	ended := alert("a")
	ended.EndsAt = start.Add(time.Second)
	for _, list := range [][]Alert{{alert("a"), ended}, {ended, alert("a")}} {
		s := newStore(1, 10)
		s.set(start.Add(time.Minute), list)
		assert.Equal(t, []string{"+a"}, sent(s, 0))
		firing, _ := s.sizes()
		assert.Equal(t, 1, firing)
	}
}

// Scenario: one Alertmanager of two takes everything, the other nothing.
// Guarantees: a resolved alert is repeated for fifteen minutes to the one, and kept for the other for a day.
func TestAResolvedAlertIsRepeatedForAWhileAndKeptUntilTaken(t *testing.T) {
	s := newStore(2, 10)
	s.set(start, []Alert{alert("a")})
	sent(s, 0)
	s.set(start, nil)
	assert.Equal(t, []string{"-a"}, sent(s, 0))
	s.repeat(start.Add(14*time.Minute), 0)
	assert.Equal(t, []string{"-a"}, sent(s, 0))
	s.repeat(start.Add(23*time.Hour), 1)
	assert.Len(t, s.due(1), 1)
	assert.Equal(t, []string{"-a"}, sent(s, 1))
	s.repeat(start.Add(23*time.Hour), 1)
	assert.Empty(t, s.alerts)

	s.set(start, []Alert{alert("b")})
	s.set(start, nil)
	s.repeat(start.Add(24*time.Hour), 0)
	assert.Empty(t, s.alerts, "nobody waits for ever")
}

func TestAnEndThatComesWhileTheBeginningIsOnItsWayIsSent(t *testing.T) {
	s := newStore(1, 10)
	s.set(start, []Alert{alert("a")})
	onTheWay := s.due(0)
	s.set(start, nil)
	s.taken(0, onTheWay)
	assert.Empty(t, s.current(onTheWay))
	assert.Equal(t, []string{"-a"}, sent(s, 0))
}

func TestARefusedAlertIsOfferedAgainWhenItChangesOrAfterAWhile(t *testing.T) {
	s := newStore(1, 10)
	s.set(start, []Alert{alert("a")})
	assert.True(t, s.refused(start, 0, s.due(0)[0]), "is news")
	s.repeat(start.Add(14*time.Minute), 0)
	assert.Empty(t, s.due(0))
	s.repeat(start.Add(15*time.Minute), 0)
	require.Len(t, s.due(0), 1)
	assert.False(t, s.refused(start.Add(15*time.Minute), 0, s.due(0)[0]), "is no news")
	s.set(start.Add(16*time.Minute), nil)
	assert.Equal(t, []string{"-a"}, sent(s, 0))
}

func TestNewsGoBeforeRepetitions(t *testing.T) {
	s := newStore(1, 10)
	s.set(start, []Alert{alert("a")})
	sent(s, 0)
	late := alert("b")
	late.StartsAt = start.Add(time.Hour)
	s.repeat(start, 0)
	s.set(start, []Alert{alert("a"), late})
	assert.Equal(t, []string{"+b", "+a"}, sent(s, 0))
}

func TestTheNumberOfAlertsIsBounded(t *testing.T) {
	s := newStore(1, 3)
	leftOut, began := s.set(start, []Alert{alert("a"), alert("b"), alert("c"), alert("d"), alert("e")})
	assert.Equal(t, 2, leftOut)
	assert.True(t, began)
	assert.ElementsMatch(t, []string{"+a", "+b", "+c"}, sent(s, 0))
	_, began = s.set(start, []Alert{alert("a"), alert("b"), alert("c"), alert("d")})
	assert.False(t, began, "it is said once")
	firing, leftOut := s.sizes()
	assert.Equal(t, 3, firing)
	assert.Equal(t, 1, leftOut)

	leftOut, _ = s.set(start, []Alert{alert("a"), alert("b")})
	assert.Zero(t, leftOut)
	assert.Equal(t, []string{"-c"}, sent(s, 0))
	leftOut, _ = s.set(start, []Alert{alert("a"), alert("b"), alert("d")})
	assert.Zero(t, leftOut, "what has ended and was told makes room")
	assert.Equal(t, []string{"+d"}, sent(s, 0))
	assert.Len(t, s.alerts, 3)
}

func BenchmarkSet(b *testing.B) {
	for _, n := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			alerts := make([]Alert, n)
			for i := range alerts {
				alerts[i] = Alert{StartsAt: start, Labels: map[string]string{
					"alertname": "slo:violation", "slo_id": "llm:chat:ttft:p95", "service": "chat", "slo_class": "latency", "target": "0.8000",
					"unit": "seconds", "tenant": fmt.Sprint("tenant-", i), "severity": "page", "cloud.region": "eu-west-1", "model_name": "qwen2-72b",
				}}
			}
			s := newStore(2, n)
			b.ReportAllocs()
			for b.Loop() {
				s.set(start, alerts)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/alert")
		})
	}
}
