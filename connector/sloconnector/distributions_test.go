// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
)

// switched turns one metric of the results on or off.
func switched(t testing.TB, name string, on bool) emit.Settings {
	t.Helper()
	var s emit.Settings
	require.NoError(t, confmap.NewFromStringMap(map[string]any{name: map[string]any{"enabled": on}}).Unmarshal(&s))
	return s
}

// trusting is the configuration of one that judges what others tell.
func trusting(c *Config) { c.TrustParts = true }

// tellers are two connectors that are each fed a part, the one that is fed what these tell, and the one that is fed all.
type tellers struct {
	parts        [2]*rig
	merged, full *rig
	sent         []pmetric.Metrics
}

func newTellers(t *testing.T, docs string) *tellers {
	t.Helper()
	s := &tellers{full: newRig(t, docs, burns), merged: newRig(t, docs, func(c *Config) {
		burns(c)
		c.TrustParts, c.Lateness, c.IdleTimeout = true, 30*time.Second, 200*time.Second
	})}
	for i := range s.parts {
		s.parts[i] = newRig(t, docs, func(c *Config) { burns(c); c.Metrics = switched(t, "slo.sli.distribution", true) })
		s.parts[i].set.Resource.Attributes().PutStr("service.instance.id", fmt.Sprintf("part-%d", i))
	}
	return s
}

// relay gives what the parts have told of their panes to the one that merges.
func (s *tellers) relay() {
	for _, p := range s.parts {
		for _, md := range p.distributions() {
			s.merged.send(md)
			s.sent = append(s.sent, md)
		}
	}
}

// distributions are what an engine has told of its panes since the last call.
func (r *rig) distributions() (all []pmetric.Metrics) {
	for _, md := range r.metrics.AllMetrics() {
		out := pmetric.NewMetrics()
		md.CopyTo(out)
		out.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
			rm.ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool { return m.Name() != sliDistribution.Name })
			return rm.ScopeMetrics().At(0).Metrics().Len() == 0
		})
		if out.ResourceMetrics().Len() > 0 {
			all = append(all, out)
		}
	}
	r.metrics.Reset()
	return all
}

// both gives a batch to a part and to the one that is fed all.
func (s *tellers) metrics(part int, md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		rm.Resource().Attributes().PutInt("part", int64(part))
	}
	s.full.send(md)
	s.parts[part].send(md)
}

func (s *tellers) traces(part int, td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		rs.Resource().Attributes().PutInt("part", int64(part))
	}
	s.full.sendTraces(td)
	s.parts[part].sendTraces(td)
}

func (s *tellers) wait(d time.Duration) {
	s.full.wait(d)
	for _, p := range s.parts {
		p.wait(d)
	}
	s.merged.clock = s.merged.clock.Add(d) // it is one and the same time for all
	s.relay()
	s.merged.wait(0)
}

// catchUp lets the one that merges close what the others have closed: it does so with what they tell next.
func (s *tellers) catchUp() {
	for _, p := range s.parts {
		p.wait(time.Minute)
	}
	s.merged.clock = s.merged.clock.Add(time.Minute)
	s.relay()
	s.merged.wait(0)
}

// equal holds the merged results against those of the whole.
func (s *tellers) equal(t *testing.T) {
	t.Helper()
	want, got := s.full.told(), s.merged.told()
	for id := range got {
		if strings.HasPrefix(id, sliIncomplete.Name) {
			delete(got, id)
		}
	}
	assert.Zero(t, s.merged.most(sliIncomplete.Name), "all was told of every window")
	require.NotEmpty(t, want)
	for id, v := range want {
		g, ok := got[id]
		if !ok {
			t.Errorf("%s is not told", id)
			continue
		}
		tolerance := 1e-9 * math.Max(math.Abs(v), 1)
		if strings.HasPrefix(id, coverage.Name) {
			tolerance = 1e-4 // the parts cover whole minutes
		}
		assert.InDelta(t, v, g, tolerance, id)
	}
	assert.Len(t, got, len(want))
	assert.Equal(t, s.full.ids(), s.merged.ids())
	assert.Empty(t, s.merged.refused())
}

// Guarantees, for every kind of indicator: two connectors that are each fed a part, and a third that is fed what they tell, judge
// as one that is fed all: events, SLIs, bounds, states, budgets, burn rates and the ids of what opens and closes.
func TestTheMergedTruthIsThatOfTheWhole(t *testing.T) {
	point := func(name string, minute, replica int, temporality pmetric.AggregationTemporality, fill func(p pmetric.HistogramDataPoint, start, at time.Time)) pmetric.Metrics {
		md, points := histogramOf(name, temporality)
		at := t0.Add(time.Duration(minute)*time.Minute + time.Duration(20+replica)*time.Second)
		fill(points.AppendEmpty(), at.Add(-time.Minute), at)
		return md
	}
	slow := func(minute int) bool { return minute/5 >= 3 && minute/5 < 7 }
	run := func(name, docs string, feed func(s *tellers, minute int), hasViolation bool) {
		t.Run(name, func(t *testing.T) {
			s := newTellers(t, docs)
			for minute := range 60 {
				feed(s, minute)
				s.relay()
			}
			s.wait(3 * time.Minute)
			s.wait(3 * time.Minute)
			s.catchUp()
			s.equal(t)
			if hasViolation {
				assert.NotEmpty(t, s.full.ids())
			}
			before := s.merged.told()
			for _, md := range s.sent { // again
				s.merged.send(md)
			}
			assert.Equal(t, before, s.merged.told())
		})
	}
	grouped := strings.Replace(ttftDocs, "annotations: {", "annotations: {otelcol-llm.dev/group-by: 'service.namespace,model', ", 1)
	for name, bounds := range map[string][]float64{"boundary": ttftBounds, "no boundary": {0.1, 0.25, 0.5, 0.75, 1, 2.5}} {
		for group, docs := range map[string]string{"one group": ttftDocs, "groups": grouped} {
			run("explicit/"+name+"/"+group, docs, func(s *tellers, minute int) {
				for part := range 2 {
					md := point("vllm:time_to_first_token_seconds", minute, part, deltas, func(p pmetric.HistogramDataPoint, start, at time.Time) {
						counts := []uint64{0, 0, uint64(50 + 7*part), 0, 3, 0, 0}
						if slow(minute) {
							counts[5] = uint64(10 + part)
						}
						p.Attributes().PutStr("model", []string{"qwen", "llama"}[minute%2])
						fillHistogram(p, start, at, bounds, counts...)
					})
					md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.namespace", "team-a")
					s.metrics(part, md)
				}
			}, name == "boundary" && group == "one group")
		}
	}
	run("exponential", ttftDocs, func(s *tellers, minute int) {
		for part := range 2 {
			at := t0.Add(time.Duration(minute)*time.Minute + time.Duration(20+part)*time.Second)
			n := uint64(3 + part)
			if slow(minute) {
				n = 9
			}
			md := exponentialOf(deltas, at.Add(-time.Minute), at, n)
			p := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).ExponentialHistogram().DataPoints().At(0)
			p.SetScale(int32(3 - part)) // (0.8408…, 1] is the first bucket that is bad for sure
			p.Positive().SetOffset(-5)
			s.metrics(part, md)
		}
	}, false)
	run("exponential in ms", ttftDocs, func(s *tellers, minute int) {
		for part := range 2 {
			at := t0.Add(time.Duration(minute)*time.Minute + time.Duration(20+part)*time.Second)
			md := exponentialOf(deltas, at.Add(-time.Minute), at, uint64(3+part))
			m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
			m.SetUnit("ms")
			p := m.ExponentialHistogram().DataPoints().At(0)
			p.SetScale(2)
			p.Positive().SetOffset(37)
			s.metrics(part, md)
		}
	}, false)
	run("spans", spanDocs, func(s *tellers, minute int) {
		for i := range 20 {
			ttft, tpot := 0.1+float64(i)/50, 0.01
			if slow(minute) && i%4 == 0 {
				ttft, tpot = 1.5, 0.2
			}
			s.traces(i%2, requestSpan(100*minute+i, t0.Add(time.Duration(minute)*time.Minute+time.Duration(i)*time.Second), ttft, tpot))
		}
	}, true)
	for _, role := range []string{"good", "bad"} {
		docs := fmt.Sprintf(ratioDocs, role+": {metricSource: {type: opentelemetry, spec: {metric: part}}}")
		for name, total := range map[string]float64{"whole": 100, "fractions": 59.7} {
			run("ratio of "+role+", "+name, docs, func(s *tellers, minute int) { // one part comes to one, the total to the other
				at := t0.Add(time.Duration(minute) * time.Minute)
				share := 0.97
				if slow(minute) {
					share = 0.8
				}
				if role == "bad" {
					share = 1 - share
				}
				part, points := sumOf("part", deltas, true)
				addNumber(points, at.Add(-time.Minute), at, total*share)
				s.metrics(0, part)
				all, points := sumOf("requests", deltas, true)
				addNumber(points, at.Add(-time.Minute), at, total)
				s.metrics(1, all)
			}, true)
		}
	}
	rate := strings.NewReplacer("vllm:time_to_first_token_seconds", "vllm:generation_tokens_total, rate: 1m, unit: tokens", "op: lte, value: 0.8", "op: gte, value: 80").Replace(ttftDocs)
	run("rate", rate, func(s *tellers, minute int) {
		for part := range 2 {
			at := t0.Add(time.Duration(minute) * time.Minute)
			n := 3000.5
			if slow(minute) {
				n = 2000
			}
			md, points := sumOf("vllm:generation_tokens_total", deltas, true)
			addNumber(points, at.Add(-time.Minute), at, n)
			s.metrics(part, md)
		}
	}, true)
	expected := strings.Replace(ttftDocs, "metric: vllm:time_to_first_token_seconds", `metric: "vllm:time_to_first_token_seconds", expected: requests`, 1)
	run("expected", expected, func(s *tellers, minute int) { // what is measured comes to one, what should have been to the other
		at := t0.Add(time.Duration(minute) * time.Minute)
		s.metrics(0, point("vllm:time_to_first_token_seconds", minute, 0, deltas, func(p pmetric.HistogramDataPoint, start, at time.Time) {
			fillHistogram(p, start, at, ttftBounds, 0, 0, 90, 0, 0, 0, 0)
		}))
		all, points := sumOf("requests", deltas, true)
		addNumber(points, at.Add(-time.Minute), at, 97.3)
		s.metrics(1, all)
	}, false)
}

// Scenario: random values of every shape come to two connectors in turns.
// Guarantees: the third, which hears only their distributions, tells the same to the event.
func TestTheMergedTruthOfRandomValues(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for range 10 {
		s := newTellers(t, ttftDocs)
		for minute := range 30 {
			for i := range 4 {
				at := t0.Add(time.Duration(minute)*time.Minute + time.Duration(rnd.IntN(60))*time.Second)
				var md pmetric.Metrics
				switch rnd.IntN(3) {
				case 0:
					var points pmetric.NumberDataPointSlice
					md, points = gaugeOf("vllm:time_to_first_token_seconds")
					addNumber(points, time.Time{}, at, rnd.ExpFloat64())
				case 1:
					var points pmetric.HistogramDataPointSlice
					md, points = histogramOf("vllm:time_to_first_token_seconds", deltas)
					fillHistogram(points.AppendEmpty(), at.Add(-time.Second), at, ttftBounds, rnd.Uint64N(5), rnd.Uint64N(5), rnd.Uint64N(50), 0, rnd.Uint64N(5), rnd.Uint64N(3), 0)
				default:
					md = exponentialOf(deltas, at.Add(-time.Second), at, rnd.Uint64N(3))
				}
				s.metrics(i%2, md)
			}
			s.relay()
		}
		s.wait(3 * time.Minute)
		s.wait(3 * time.Minute)
		s.catchUp()
		// A bucket that the objective cuts is told as it is, beside values that were known exactly, which are in such a bucket then:
		// the counters, and what is proven, are those of the whole.
		for _, outcome := range []string{"good", "bad"} {
			want, _ := s.full.last("slo.sli.events", map[string]string{"outcome": outcome})
			got, _ := s.merged.last("slo.sli.events", map[string]string{"outcome": outcome})
			assert.InDelta(t, want, got, 0, outcome)
		}
		assert.Equal(t, s.full.ids(), s.merged.ids())
	}
}

// Scenario: more series than a batch holds.
// Guarantees: what comes with the second batch is not late for the pane that the first has told of.
func TestDistributionsInPortions(t *testing.T) {
	docs := strings.Replace(ttftDocs, "annotations: {", "annotations: {otelcol-llm.dev/group-by: pod, ", 1)
	configure := func(c *Config) { c.MaxSeries = 20_000; c.Metrics = switched(t, "slo.sli.distribution", true) }
	from, to := newRig(t, docs, configure), newRig(t, docs, func(c *Config) { c.TrustParts, c.MaxSeries, c.Lateness = true, 20_000, 30*time.Second })
	for minute := range 3 {
		md, points := gaugeOf("vllm:time_to_first_token_seconds")
		for i := range 9000 {
			addNumber(points, time.Time{}, t0.Add(time.Duration(minute)*time.Minute), 0.1).Attributes().PutInt("pod", int64(i))
		}
		from.send(md)
		told := from.distributions()
		if minute > 0 {
			assert.Greater(t, len(told), 1)
		}
		for _, md := range told {
			to.consume(t.Context(), md)
		}
	}
	assert.Empty(t, to.refused())
}

func TestWhatIsOverflowStaysOverflow(t *testing.T) {
	docs := strings.Replace(ttftDocs, "annotations: {", "annotations: {otelcol-llm.dev/group-by: user, ", 1)
	from := newRig(t, docs, func(c *Config) { c.MaxSeries = 2; c.Metrics = switched(t, "slo.sli.distribution", true) })
	md, points := gaugeOf("vllm:time_to_first_token_seconds")
	for i := range 10 {
		addNumber(points, time.Time{}, t0, 0.1).Attributes().PutInt("user", int64(i))
	}
	from.send(md)
	from.wait(2 * time.Minute)
	to := newRig(t, docs, trusting)
	for _, md := range from.distributions() {
		to.send(md)
	}
	v, ok := to.last("slo.sli.events", map[string]string{"otel.metric.overflow": "true", "outcome": "good"})
	assert.True(t, ok)
	assert.InDelta(t, 8, v, 0)
}

// Scenario: the consumer of the results refuses them for a while.
// Guarantees: no distribution is lost, although each is told once only.
func TestADistributionThatWasNotTakenIsToldAgain(t *testing.T) {
	from := newRig(t, ttftDocs, func(c *Config) { c.Metrics = switched(t, "slo.sli.distribution", true) })
	from.out.Metrics = consumertest.NewErr(errors.New("not now"))
	for _, md := range hour()[:5] {
		from.send(md)
		from.clock = from.clock.Add(time.Second)
	}
	from.out.Metrics = from.metrics
	from.wait(time.Minute)
	n := 0
	progress := 0
	for _, md := range from.distributions() {
		n += md.DataPointCount()
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if m.Type() == pmetric.MetricTypeHistogram {
				for _, p := range m.Histogram().DataPoints().All() {
					if isProgress(p) {
						progress++
					}
				}
			}
		}
	}
	assert.Equal(t, 5, n-progress)
	assert.Positive(t, progress)

	from.out.Metrics = consumertest.NewErr(consumererror.NewPermanent(errors.New("never")))
	from.send(hour()[6])
	from.wait(2 * time.Minute)
	assert.Zero(t, from.untold.Len(), "who will never take it is not asked again")
	from.wait(2 * time.Minute)
	m, err := from.tel.GetMetric("otelcol_slo_events_dropped")
	require.NoError(t, err)
	assert.Equal(t, int64(3), sumInt(m), "a distribution, and twice that this was all")
}

func TestADistributionThatMeansNothingIsRefused(t *testing.T) {
	f := func(want string, change func(m pmetric.Metric, p pmetric.HistogramDataPoint)) {
		t.Helper()
		r := newRig(t, ttftDocs, trusting)
		md, points := histogramOf("slo_sli_distribution", deltas)
		p := points.AppendEmpty()
		p.Attributes().PutStr("slo_id", "llm:chat:ttft:p95")
		fillHistogram(p, t0, t0.Add(time.Minute), ttftBounds, 0, 0, 1, 0, 0, 0, 0)
		change(md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0), p)
		r.send(md)
		if want == "" {
			assert.Empty(t, r.refused())
			return
		}
		assert.Equal(t, map[string]int64{want: 1}, r.refused())
	}
	f("", func(pmetric.Metric, pmetric.HistogramDataPoint) {})
	f("no_temporality", func(m pmetric.Metric, _ pmetric.HistogramDataPoint) {
		m.Histogram().SetAggregationTemporality(cumulative)
	})
	f("bad_buckets", func(_ pmetric.Metric, p pmetric.HistogramDataPoint) { p.SetCount(7) })
	f("bad_buckets", func(_ pmetric.Metric, p pmetric.HistogramDataPoint) { p.SetSum(math.NaN()) })
	f("no_timestamp", func(_ pmetric.Metric, p pmetric.HistogramDataPoint) { p.SetStartTimestamp(0) })
	f("no_timestamp", func(_ pmetric.Metric, p pmetric.HistogramDataPoint) { p.SetStartTimestamp(p.Timestamp()) })
	f("future", func(_ pmetric.Metric, p pmetric.HistogramDataPoint) {
		p.SetTimestamp(pcommon.NewTimestampFromTime(t0.Add(25 * time.Hour)))
	})
	f("unknown_slo", func(_ pmetric.Metric, p pmetric.HistogramDataPoint) { p.Attributes().PutStr("slo_id", "x") })
}

// Guarantees: what has the name and not the shape takes nobody down.
func TestADistributionOfAnotherShapeIsRefused(t *testing.T) {
	r := newRig(t, ttftDocs, trusting)
	r.send(metricsOf("slo.sli.distribution", func(pmetric.Metric) {})) // no data at all
	md, points := gaugeOf("slo.sli.distribution")
	addNumber(points, t0, t0, 1)
	r.send(md)
	md, points = sumOf("slo.sli.distribution", deltas, true)
	addNumber(points, t0, t0, 1)
	r.send(md)
	r.send(metricsOf("slo.sli.distribution", func(m pmetric.Metric) { m.SetEmptySummary().DataPoints().AppendEmpty() }))
	assert.Equal(t, map[string]int64{"unsupported_shape": 3}, r.refused())
}

// Scenario: a client that is no connector sends a distribution of another tenant's promise, and says that a part is there which
// nobody knows. Guarantees: nothing of it counts, nobody is waited for, and it is counted as refused.
func TestAClientCannotTellWhatOthersHaveHeard(t *testing.T) {
	r := newRig(t, ttftDocs, func(c *Config) { c.GroupBy = []string{"tenant"} })
	for _, of := range []map[string]string{{"slo_id": "llm:chat:ttft:p95", "tenant": "victim"}, {}} {
		md, points := histogramOf("slo.sli.distribution", deltas)
		resource := md.ResourceMetrics().At(0).Resource().Attributes()
		resource.PutStr("k8s.namespace.name", "evil")
		resource.PutStr("service.instance.id", "ghost")
		resource.PutStr("otelcol.component.id", "slo")
		p := points.AppendEmpty()
		for key, value := range of {
			p.Attributes().PutStr(key, value)
		}
		n := uint64(1000 * len(of))
		fillHistogram(p, t0, t0.Add(time.Minute), ttftBounds, 0, 0, 0, 0, 0, 0, n)
		r.send(md)
	}
	r.wait(10 * time.Minute)
	assert.Zero(t, r.judge.Parts())
	_, told := r.last("slo.sli.events", map[string]string{"tenant": "victim"})
	assert.False(t, told)
	assert.Equal(t, map[string]int64{"untrusted": 2}, r.refused())
}

// Scenario: a client writes another tenant's name on its points, spans and records, under every key by which a tenant is found.
// Guarantees: what it sends is judged as its own, and what is found is its own.
func TestAPointCannotChooseItsTenant(t *testing.T) {
	for _, key := range []string{"tenant", "k8s.namespace.name", "service.namespace"} {
		r := newRig(t, ttftDocs, func(c *Config) { c.GroupBy = []string{key} })
		md, points := gaugeOf("vllm:time_to_first_token_seconds")
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr("k8s.namespace.name", "evil")
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().Attributes().PutStr(key, "victim")
		addNumber(points, time.Time{}, t0, 9).Attributes().PutStr(key, "victim")
		r.send(md)
		r.wait(10 * time.Minute)
		for _, md := range r.metrics.AllMetrics() {
			for _, rm := range md.ResourceMetrics().All() {
				assert.NotContains(t, rm.Resource().Attributes().AsRaw(), "victim", key)
				for _, v := range rm.Resource().Attributes().All() {
					assert.NotEqual(t, "victim", v.AsString(), key)
				}
			}
		}
		_, told := r.last("slo.sli.events", map[string]string{key: "victim"})
		assert.False(t, told, key)
		bad, _ := r.last("slo.sli.events", map[string]string{"outcome": "bad"})
		assert.InDelta(t, 1, bad, 0, key)
	}
}
