// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// heardIn is what a replica tells of a minute: good requests, or bad ones.
func heardIn(minute int, good, bad uint64) pmetric.Metrics {
	md, points := histogramOf("vllm:time_to_first_token_seconds", deltas)
	at := t0.Add(time.Duration(minute)*time.Minute + 30*time.Second)
	fillHistogram(points.AppendEmpty(), at.Add(-time.Minute), at, ttftBounds, 0, 0, good, 0, 0, bad, 0)
	return md
}

// now lets it be a time for a part and those who hear of it.
func (s *tellers) now(minute int) {
	at := t0.Add(time.Duration(minute) * time.Minute)
	for _, r := range []*rig{s.parts[0], s.parts[1], s.merged, s.full} {
		r.clock = at
	}
}

// minutes lets both parts hear each minute from one to another as it happens, of which the one that is away tells nothing.
func (s *tellers) minutes(from, to int, away int, good, bad uint64) {
	for m := from; m < to; m++ {
		s.now(m + 1)
		for i, p := range s.parts {
			if i == away {
				continue
			}
			p.send(heardIn(m, good, bad))
			p.wait(0)
			for _, md := range p.distributions() {
				s.merged.send(md)
			}
		}
		s.merged.wait(0)
	}
}

func (r *rig) state(t *testing.T, name string) float64 {
	t.Helper()
	v, ok := r.last("slo.state", map[string]string{"state": name})
	require.True(t, ok)
	return v
}

// Scenario: two parts are fed live. One dies, its events with it, and all that the other hears is bad; the judge's patience ends. Then it
// comes back.
// Guarantees: what is judged without it is at risk and marked, opens no violation, and lowers the coverage; whoever looks is told by the
// log who is missing. Once it is back, verdicts are what they are.
func TestAPartThatDiesIsMissed(t *testing.T) {
	s := newTellers(t, ttftDocs)
	core, logs := observer.New(zap.InfoLevel)
	s.merged.set.Logger = zap.New(core)
	s.minutes(0, 15, -1, 100, 0)
	assert.Zero(t, s.merged.most("slo.sli.incomplete"))
	assert.InDelta(t, 1, s.merged.state(t, "ok"), 0)
	whole, ok := s.merged.last("slo.error_budget.coverage", nil)
	require.True(t, ok)

	s.minutes(15, 60, 1, 0, 100)
	assert.InDelta(t, 1, s.merged.state(t, "at_risk"), 0)
	v, ok := s.merged.last("slo.sli.incomplete", nil)
	require.True(t, ok)
	assert.InDelta(t, 1, v, 0)
	assert.Empty(t, s.merged.events(), "nobody is paged for a part that is away")
	now, _ := s.merged.last("slo.error_budget.coverage", nil)
	assert.InDelta(t, whole*(14+22.5)/14, now, whole*0.2, "half of what was told of was told")
	assert.Equal(t, 1, logs.FilterMessageSnippet("a part is away").Len())
	entry := logs.FilterMessageSnippet("a part is away").All()[0]
	assert.Equal(t, "part-1/"+s.parts[1].id.String(), entry.ContextMap()["part"])

	s.minutes(60, 90, -1, 0, 100)
	assert.Equal(t, 1, logs.FilterMessageSnippet("a part is back").Len())
	v, _ = s.merged.last("slo.sli.incomplete", nil)
	assert.Zero(t, v)
	assert.InDelta(t, 1, s.merged.state(t, "violated"), 0)
	assert.NotEmpty(t, s.merged.events())
}

// Scenario: one part has nothing to tell for an hour, and lives.
// Guarantees: nobody takes it for dead.
func TestAPartThatIsIdleIsNotMissed(t *testing.T) {
	s := newTellers(t, ttftDocs)
	s.minutes(0, 10, -1, 100, 0)
	for m := 10; m < 70; m++ {
		s.now(m + 1)
		s.parts[0].send(heardIn(m, 100, 0))
		for _, p := range s.parts {
			p.wait(0)
			for _, md := range p.distributions() {
				s.merged.send(md)
			}
		}
		s.merged.wait(0)
	}
	assert.Zero(t, s.merged.most("slo.sli.incomplete"))
	assert.Equal(t, 2, s.merged.judge.Parts())
	good, ok := s.merged.last("slo.sli.events", map[string]string{"outcome": "good"})
	require.True(t, ok)
	assert.GreaterOrEqual(t, good, 7500.0)
	assert.Empty(t, s.merged.refused())
}

// Scenario: the one that judges is restarted while a part is away, which comes back later.
// Guarantees: it knows that part all the same.
func TestWhoIsMissingOutlivesARestart(t *testing.T) {
	s, d := newTellers(t, ttftDocs), newDisk()
	judge := func() *rig {
		return on(t, d, ttftDocs, func(c *Config) { c.TrustParts, c.Lateness, c.IdleTimeout = true, 30*time.Second, 200*time.Second })
	}
	s.merged = judge()
	s.minutes(0, 15, -1, 100, 0)
	s.merged.stop()
	clock := s.merged.clock
	s.merged = judge()
	require.True(t, s.merged.known)
	s.merged.clock = clock
	require.NoError(t, s.merged.intake.Watermark.Restore(s.merged.intake.Watermark.State(), clock.UnixNano())) // the rig began at another time
	s.minutes(15, 40, 1, 100, 0)
	v, ok := s.merged.last("slo.sli.incomplete", nil)
	require.True(t, ok)
	assert.InDelta(t, 1, v, 0)
	assert.Equal(t, 2, s.merged.judge.Parts())
	s.merged.stop()
	s.merged = judge()
	s.merged.clock = clock.Add(25 * time.Minute)
	s.merged.wait(time.Second)
	v, ok = s.merged.last("slo.sli.incomplete", nil)
	require.True(t, ok, "the verdict of before is marked as before")
	assert.InDelta(t, 1, v, 0)
}

// Scenario: a part is restarted on its storage, in mid-minute and into silence.
// Guarantees: it goes on telling from what it had not told, and when nothing has come for series_ttl it says that it is idle now.
func TestAPartGoesOnTellingAfterARestart(t *testing.T) {
	d := newDisk()
	part := func() *rig {
		return on(t, d, ttftDocs, func(c *Config) { c.Metrics = switched(t, "slo.sli.distribution", true) })
	}
	spans := func(r *rig) (all [][2]int) {
		for _, md := range r.distributions() {
			for _, rm := range md.ResourceMetrics().All() {
				for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
					for _, p := range m.Histogram().DataPoints().All() {
						if isProgress(p) {
							minute := func(at pcommon.Timestamp) int { return int(at.AsTime().Sub(t0) / time.Minute) }
							all = append(all, [2]int{minute(p.StartTimestamp()), minute(p.Timestamp())})
						}
					}
				}
			}
		}
		return all
	}
	r := part()
	for m := range 5 {
		r.clock = t0.Add(time.Duration(m+1) * time.Minute)
		r.send(heardIn(m, 100, 0))
	}
	assert.Equal(t, [][2]int{{-1, 0}, {0, 1}, {1, 2}, {2, 3}, {3, 4}}, spans(r))
	r.stop()
	r = part()
	r.clock = t0.Add(20 * time.Minute)
	r.listened = r.clock
	r.wait(time.Second)
	assert.Empty(t, spans(r), "it waits for what has been waiting for it")
	r.clock = t0.Add(80*time.Minute + 30*time.Second)
	r.wait(0)
	told := spans(r)
	require.NotEmpty(t, told)
	assert.Equal(t, 4, told[0][0])
	assert.Equal(t, 80, told[len(told)-1][1])
}

// Scenario: a gateway takes over series of which it knows no last point: the first ones are baselines.
// Guarantees: it says that it is there with the minute in which it began, not with the first one in which something counts.
func TestANewPartIsThereFromItsBaselineOn(t *testing.T) {
	r := newRig(t, ttftDocs, func(c *Config) { c.Lateness = 20 * time.Second; c.Metrics = switched(t, "slo.sli.distribution", true) })
	for i, second := range []int{290, 350} {
		at := t0.Add(time.Duration(second) * time.Second)
		r.clock = at
		md, points := histogramOf("vllm:time_to_first_token_seconds", cumulative)
		fillHistogram(points.AppendEmpty(), t0.Add(-time.Hour), at, ttftBounds, 0, 0, uint64(100+i), 0, 0, 0, 0)
		r.send(md)
	}
	told := r.distributions()
	require.Len(t, told, 1)
	p := told[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Histogram().DataPoints().At(0)
	assert.True(t, isProgress(p))
	assert.Equal(t, t0.Add(5*time.Minute), p.Timestamp().AsTime())
}

// Guarantees: what says of nobody, or of no time, that all was told is refused, and counted; a single Collector knows no parts.
func TestProgressThatMeansNothingIsRefused(t *testing.T) {
	f := func(want string, parts int, change func(resource pcommon.Map, p pmetric.HistogramDataPoint)) {
		t.Helper()
		r := newRig(t, ttftDocs, func(c *Config) { c.TrustParts, c.MaxParts = true, 1 })
		for _, name := range []string{"a", "b"} {
			md, points := histogramOf("slo_sli_distribution", deltas)
			resource := md.ResourceMetrics().At(0).Resource().Attributes()
			resource.PutStr("service.instance.id", "a")
			resource.PutStr("otelcol.component.id", "slo")
			p := points.AppendEmpty()
			fillHistogram(p, t0, t0.Add(time.Minute), nil, 0)
			if name == "b" {
				change(resource, p)
			}
			r.send(md)
		}
		assert.Equal(t, parts, r.judge.Parts())
		if want == "" {
			assert.Empty(t, r.refused())
			return
		}
		assert.Equal(t, map[string]int64{want: 1}, r.refused())
	}
	f("", 1, func(pcommon.Map, pmetric.HistogramDataPoint) {})
	f("series_limit", 1, func(m pcommon.Map, _ pmetric.HistogramDataPoint) { m.PutStr("service.instance.id", "b") })
	f("unknown_slo", 1, func(m pcommon.Map, _ pmetric.HistogramDataPoint) { m.Remove("otelcol.component.id") })
	f("no_timestamp", 1, func(_ pcommon.Map, p pmetric.HistogramDataPoint) { p.SetStartTimestamp(p.Timestamp()) })
	f("no_timestamp", 1, func(_ pcommon.Map, p pmetric.HistogramDataPoint) { p.SetStartTimestamp(0) })
	f("future", 1, func(_ pcommon.Map, p pmetric.HistogramDataPoint) {
		p.SetTimestamp(pcommon.NewTimestampFromTime(t0.Add(25 * time.Hour)))
	})

	r := newRig(t, ttftDocs, nil)
	for _, md := range hour(1, 2, 3) {
		r.send(md)
	}
	assert.Zero(t, r.judge.Parts())
}
