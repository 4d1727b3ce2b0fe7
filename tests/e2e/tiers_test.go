// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// tell tells the whole story, and what follows up to a last step, the requests of each step in any order; route picks who is told of a
// resource.
func tell(t *testing.T, t0 time.Time, seed uint64, pace time.Duration, last int, route func(resource int) *teller) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	for step := range last + 1 {
		parts := map[*teller][]pmetric.Metrics{}
		for _, md := range []pmetric.Metrics{scrapes(t0, step), increments(t0, step)} {
			for i, rm := range md.ResourceMetrics().All() {
				one := pmetric.NewMetrics()
				rm.CopyTo(one.ResourceMetrics().AppendEmpty())
				parts[route(i)] = append(parts[route(i)], one)
			}
		}
		for x, all := range parts {
			random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
			for _, md := range all {
				x.send(md)
			}
		}
		time.Sleep(pace)
	}
}

// sameCounts requires that two connectors have counted the same, to the event, and given the same verdicts.
func sameCounts(t *testing.T, want, got *sink) {
	t.Helper()
	for metric, apart := range map[string]float64{
		"slo.sli.events": 0, "slo.violations": 0, "slo.error_budget.remaining": 1e-9, "slo.sli.value": 1e-9, "slo.sli.bound": 1e-9,
		"slo.error_budget.coverage": 0.0001, // of the last minute, a distribution does not say when its last point was
	} {
		whole, merged := want.all(metric), got.all(metric)
		require.NotEmpty(t, whole, metric)
		require.Len(t, merged, len(whole), metric)
		for key := range whole {
			assert.InDelta(t, whole[key].last().value, merged[key].last().value, apart, key)
		}
	}
	// A verdict that is followed by the next within a moment is not told. Those that both have told are the same.
	whole, merged := want.all("slo.state"), got.all("slo.state")
	require.Len(t, merged, len(whole))
	both := 0
	for key := range whole {
		assert.Equal(t, whole[key].last(), merged[key].last(), key)
		for at, v := range whole[key] {
			if other, ok := merged[key][at]; ok {
				both++
				assert.InDelta(t, v, other, 0, "%s at %s", key, at)
			}
		}
	}
	wantEvents, _ := want.once()
	gotEvents, _ := got.once()
	assert.Len(t, wantEvents, 8+10)
	assert.Equal(t, wantEvents, gotEvents)
	t.Logf("%d verdicts that both have told, %d events", both, len(gotEvents))
}

// Scenario: of each region, one Collector hears one replica and another one the other; the gateways are heard by one or the
// other. Both tell a third what they have heard, by OTLP. A fourth is told everything.
// Guarantees: the third, which has seen no input of its own, counts and judges as the fourth does, to the event, and names the
// same violations by the same ids.
func TestTwoHalvesMergedAreTheWhole(t *testing.T) {
	parallel(t)
	// Six hours in some six seconds. Distributions leave within a quarter of a second, which is a quarter of an hour here, and more
	// on a busy machine: until the third has heard of both halves, which it waits for then, one may be that much ahead. So windows wait for
	// most of two hours, and most of two hours more are told. The halves hear of one step more, since they tell of whole minutes.
	const pace, patient, last = 5 * time.Millisecond, "lateness: 110m30s, idle_timeout: 1h", steps + int(115*time.Minute/stepLength) - 1
	t0 := time.Now().UTC().Truncate(time.Hour).Add(-8 * time.Hour)
	wholeTo, mergedTo := newSink(t), newSink(t)
	whole := startTeller(t, regionalSLOs, patient, wholeTo.URL, true)
	merged := startTeller(t, regionalSLOs, patient+", trust_parts: true", mergedTo.URL, true)
	var halves [2]*teller
	for i := range halves {
		halves[i] = startTeller(t, regionalSLOs, brisk+", metrics: {slo.sli.distribution: {enabled: true}}", merged.otlp, false)
	}
	var both sync.WaitGroup
	both.Go(func() { tell(t, t0, 1, pace, last, func(int) *teller { return whole }) })
	both.Go(func() { tell(t, t0, 2, pace, last+1, func(i int) *teller { return halves[i%2] }) })
	both.Wait()
	end := stepTime(t0, last).Add(-111 * time.Minute).Truncate(time.Minute) // of the last window that is over
	wholeTo.waitJudged(t, end, 2*len(regions))
	mergedTo.waitJudged(t, end, 2*len(regions))
	assert.Empty(t, refused(merged))
	for _, x := range []*teller{halves[0], halves[1], merged, whole} {
		assert.Equal(t, 0, x.Stop())
	}
	sameCounts(t, wholeTo, mergedTo)
}

// Guarantees: two replicas that are fed the same, each in an order of its own, count and judge alike and name the same violations
// by the same ids, so that whoever hears both has each once.
func TestTwoReplicasNameTheSameViolations(t *testing.T) {
	parallel(t)
	t0 := time.Now().UTC().Truncate(time.Hour).Add(-8 * time.Hour)
	var sinks [2]*sink
	var replicas [2]*teller
	var both sync.WaitGroup
	for i := range sinks {
		sinks[i] = newSink(t)
		replicas[i] = startTeller(t, regionalSLOs, brisk, sinks[i].URL, true)
		both.Go(func() { tell(t, t0, uint64(i), 0, afterwards, func(int) *teller { return replicas[i] }) })
	}
	both.Wait()
	for i, s := range sinks {
		s.waitJudged(t, t0.Add(6*time.Hour), 2*len(regions))
		assert.Equal(t, 0, replicas[i].Stop())
	}
	sameCounts(t, sinks[0], sinks[1])
}
