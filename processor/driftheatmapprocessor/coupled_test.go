// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"pgregory.net/rapid"
)

// engineAt is an engine of vLLM that is scraped: what its counters hold.
type engineAt struct {
	tokens, prompts, length, hits, queries float64
	at                                     time.Time
}

// scrape lets an engine work for 15 seconds on so many requests at once, each with a prompt of a length of which a share is
// cached, ends one of them, and scrapes it.
func (e *engineAt) scrape(instance string, batch, throughput, length, hit float64) pmetric.Metrics {
	e.at = e.at.Add(15 * time.Second)
	e.tokens += 15 * throughput
	e.prompts++
	e.length += length
	e.queries += length
	e.hits += length * hit
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", instance)
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	put := func(a pcommon.Map) { a.PutStr("model_name", "qwen"); a.PutStr("engine", "0") }
	counter := func(name string, v float64) {
		m := metrics.AppendEmpty()
		m.SetName(name)
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p := m.Sum().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(e.at))
		p.SetDoubleValue(v)
		put(p.Attributes())
	}
	counter("vllm:generation_tokens_total", e.tokens)
	counter("vllm:prefix_cache_hits_total", e.hits)
	counter("vllm:prefix_cache_queries_total", e.queries)
	m := metrics.AppendEmpty()
	m.SetName("vllm:num_requests_running")
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(e.at))
	p.SetDoubleValue(batch)
	put(p.Attributes())
	m = metrics.AppendEmpty()
	m.SetName("vllm:request_prompt_tokens")
	m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	h := m.Histogram().DataPoints().AppendEmpty()
	h.SetTimestamp(pcommon.NewTimestampFromTime(e.at))
	h.SetCount(uint64(e.prompts))
	h.SetSum(e.length)
	h.BucketCounts().FromRaw([]uint64{uint64(e.prompts)})
	put(h.Attributes())
	return md
}

func withCoupling(c *Config) { c.Coupling.GetOrInsertDefault() }

// serving is an engine that gives 30 tokens a second a request, until it is full.
type serving struct {
	engineAt
	instance                 string
	full, length, hit, batch float64
}

// work lets engines work, scrape by scrape, under a load that changes slowly.
func work(r *rig, random *rand.Rand, scrapes int, engines ...*serving) {
	for _, e := range engines {
		e.at, e.batch = t0, 1
	}
	for range scrapes {
		for _, e := range engines {
			e.batch = min(max(e.batch*math.Exp(0.3*random.NormFloat64()), 1), 128)
			r.send(e.scrape(e.instance, e.batch, 30*min(e.batch, e.full), e.length, e.hit))
		}
	}
}

// Scenario: two engines of a model: one has short prompts and becomes full with 48 requests at once, the other has long ones and
// becomes full with 12.
// Guarantees: each has its knee and its throughput by batch, told by the length of its prompts and what was cached of them.
func TestWhereMoreAtOnceStopsPayingIsLearned(t *testing.T) {
	r := newRig(t, promise(0.8), func(c *Config) { withCoupling(c); c.Decay = 0.999 })
	random := rand.New(rand.NewPCG(1, 1))
	work(r, random, 1500, &serving{instance: "a", full: 48, length: 500, hit: 0.8}, &serving{instance: "b", full: 12, length: 9000, hit: 0.1})
	short := []string{"model_name", "qwen", "context", "<=1000", "cache_hit", ">0.75"}
	long := []string{"model_name", "qwen", "context", "4000-16000", "cache_hit", "<=0.25"}
	assert.InEpsilon(t, 48, r.last("llm.throughput.knee", short...), 0.25)
	assert.InDelta(t, 30*2, r.last("llm.throughput", append(short, "batch", "<=2")...), 20)
	assert.InEpsilon(t, 30*48, r.last("llm.throughput", append(short, "batch", "<=128")...), 0.05)
	assert.InEpsilon(t, 12, r.last("llm.throughput.knee", long...), 0.25)
	assert.InEpsilon(t, 30*12, r.last("llm.throughput", append(long, "batch", "<=64")...), 0.05)
	assert.NotContains(t, fmt.Sprint(r.told()), "slo_id", "it is of no SLO")
}

// Scenario: the process is killed and starts again.
func TestWhatWasLearnedOutlivesARestart(t *testing.T) {
	d := newDisk()
	random := rand.New(rand.NewPCG(1, 1))
	r := on(t, d, promise(0.8), withCoupling)
	work(r, random, 600, &serving{instance: "a", full: 48, length: 500, hit: 0.8})
	require.NotZero(t, r.coupled.curves.Len())
	r.save(t.Context())
	again := on(t, d, promise(0.8), withCoupling)
	assert.Equal(t, r.coupled.curves.State(), again.coupled.curves.State())
	assert.Equal(t, r.coupled.told, again.coupled.told)
	again = on(t, d, promise(0.8), func(c *Config) { withCoupling(c); c.Coupling.Get().Throughput = "other" })
	assert.Zero(t, again.coupled.curves.Len(), "learned from something else")
	assert.Empty(t, again.coupled.engines)
	again = on(t, d, promise(0.8), nil)
	assert.Nil(t, again.coupled)
}

// Scenario: any story of some engines: they work, begin anew, say what cannot be, are silent, say again what they said; and the
// process is killed after any batch of it, with everything in a checkpoint.
// Guarantees: what is learned, told and refused from there on is what one that was never killed learns, tells and refuses.
func TestARestoredCouplingGoesOn(t *testing.T) {
	rapid.Check(t, func(draw *rapid.T) {
		engines := []*engineAt{{at: t0}, {at: t0}, {at: t0.Add(time.Second)}}
		var story []pmetric.Metrics
		for range rapid.IntRange(1, 40).Draw(draw, "batches") {
			i := rapid.IntRange(0, len(engines)-1).Draw(draw, "engine")
			e := engines[i]
			var md pmetric.Metrics
			switch what := rapid.SampledFrom([]string{"works", "works", "works", "works", "begins anew", "is silent", "says the impossible", "again", "leaves something out"}).Draw(draw, "what"); what {
			case "begins anew":
				e.tokens, e.prompts, e.length, e.hits, e.queries = 0, 0, 0, 0, 0
				continue
			case "is silent":
				e.at = e.at.Add(4 * time.Minute)
				continue
			case "again":
				if len(story) > 0 {
					story = append(story, story[len(story)-1])
				}
				continue
			case "says the impossible":
				batch := rapid.SampledFrom([]float64{-1, -2, math.NaN(), math.Inf(1), 1e9, 1e300}).Draw(draw, "impossible")
				md = e.scrape(fmt.Sprint(i), batch, 100, 500, 0.5)
			default:
				batch := rapid.Float64Range(0, 200).Draw(draw, "requests")
				md = e.scrape(fmt.Sprint(i), batch, 30*batch, rapid.Float64Range(1, 20_000).Draw(draw, "length"), rapid.Float64Range(0, 1.5).Draw(draw, "hits"))
				if what == "leaves something out" {
					gone := rapid.IntRange(0, 4).Draw(draw, "metric")
					metrics, at := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics(), 0
					metrics.RemoveIf(func(pmetric.Metric) bool { at++; return at-1 == gone })
				}
			}
			story = append(story, md)
		}
		cut := rapid.IntRange(0, len(story)).Draw(draw, "cut")
		coupled := func(c *Config) { withCoupling(c); c.MaxInputSeries = 2 }
		d := newDisk()
		whole, killed := newRig(t, promise(0.8), coupled), on(t, d, promise(0.8), coupled)
		refused := map[string]int64{}
		for i, md := range story {
			if i == cut {
				killed.save(t.Context())
				refused = killed.counted("points_refused")
				killed = on(t, d, promise(0.8), coupled)
				whole.metrics.Reset()
			}
			whole.send(md)
			killed.send(md)
		}
		for why, n := range killed.counted("points_refused") {
			refused[why] += n
		}
		require.Equal(draw, whole.counted("points_refused"), refused)
		require.Equal(draw, whole.coupled.curves.State(), killed.coupled.curves.State())
		require.Equal(draw, whole.told(), killed.told())
	})
}

// Guarantees: what the metrics of engines hold that cannot be is counted by its reason, and is part of nothing.
func TestWhatCannotBeOfAnEngineIsCounted(t *testing.T) {
	f := func(name string, want map[string]int64, shape func(pmetric.Metric)) {
		t.Helper()
		r := newRig(t, promise(0.8), withCoupling)
		md := pmetric.NewMetrics()
		m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(name)
		shape(m)
		r.send(md)
		assert.Equal(t, want, r.counted("points_refused"), name)
		r.wait(time.Hour)
		assert.Zero(t, r.coupled.curves.Len())
	}
	gauge := func(values ...float64) func(pmetric.Metric) {
		return func(m pmetric.Metric) {
			points := m.SetEmptyGauge().DataPoints()
			for i, v := range values {
				p := points.AppendEmpty()
				p.SetTimestamp(pcommon.NewTimestampFromTime(t0.Add(time.Duration(i) * time.Second)))
				p.SetDoubleValue(v)
			}
		}
	}
	sum := func(temporality pmetric.AggregationTemporality, values ...float64) func(pmetric.Metric) {
		return func(m pmetric.Metric) {
			s := m.SetEmptySum()
			s.SetAggregationTemporality(temporality)
			for i, v := range values {
				p := s.DataPoints().AppendEmpty()
				p.SetTimestamp(pcommon.NewTimestampFromTime(t0.Add(time.Duration(i/2) * time.Second)))
				p.SetDoubleValue(v)
			}
		}
	}
	histogram := func(count uint64, length float64) func(pmetric.Metric) {
		return func(m pmetric.Metric) {
			h := m.SetEmptyHistogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			p := h.DataPoints().AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(t0))
			p.SetCount(count)
			if length != 0 {
				p.SetSum(length)
			}
		}
	}
	f("vllm:num_requests_running", map[string]int64{"sentinel": 1, "negative": 1, "not_finite": 2, "implausible": 2},
		gauge(-1, -2, math.NaN(), math.Inf(1), 1e9, 1e300))
	f("vllm:num_requests_running", map[string]int64{"unsupported_shape": 1}, histogram(3, 100))
	f("vllm:num_requests_running", map[string]int64{"unsupported_shape": 1}, func(m pmetric.Metric) {
		m.SetEmptySummary().DataPoints().AppendEmpty().SetTimestamp(pcommon.NewTimestampFromTime(t0))
	})
	f("vllm:num_requests_running", map[string]int64{"no_value": 1, "no_timestamp": 1, "future": 1, "no_recorded_value": 1}, func(m pmetric.Metric) {
		points := m.SetEmptyGauge().DataPoints()
		points.AppendEmpty().SetTimestamp(pcommon.NewTimestampFromTime(t0))
		points.AppendEmpty().SetDoubleValue(1)
		points.AppendEmpty().SetTimestamp(pcommon.NewTimestampFromTime(t0.Add(48 * time.Hour)))
		p := points.AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(t0))
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	})
	f("vllm:generation_tokens", map[string]int64{"baseline": 1, "stale": 1, "reset": 1}, sum(pmetric.AggregationTemporalityCumulative, 10, 20, 5))
	f("vllm:generation_tokens", map[string]int64{"no_interval": 2, "duplicate": 1}, sum(pmetric.AggregationTemporalityDelta, 10, 10, 5))
	f("vllm:request_prompt_tokens", map[string]int64{"no_value": 1}, histogram(3, 0))
	f("vllm:request_prompt_tokens", map[string]int64{"negative": 1}, histogram(3, -7))
	f("vllm:request_prompt_tokens", map[string]int64{"not_finite": 1}, histogram(3, math.NaN()))
	f("vllm:request_prompt_tokens", map[string]int64{"implausible": 1}, histogram(0, 7))
}

// Scenario: an engine is scraped while it works on 8 to 20 requests at once; sometimes that changes from one scrape to the next,
// sometimes most requests are short beside the time between two scrapes, sometimes a scrape has no batch size; and some scrapes
// come in one batch of points.
// Guarantees: an interval whose ends do not tell what was between is no sample and is counted; all others are.
func TestOnlySteadyIntervalsAreSamples(t *testing.T) {
	type scrape struct {
		batch, prompts float64 // NaN for no batch
	}
	f := func(want []float64, refused int64, scrapes ...scrape) {
		t.Helper()
		for _, together := range []bool{false, true} {
			r := newRig(t, promise(0.8), withCoupling)
			e, all := engineAt{at: t0}, pmetric.NewMetrics()
			for _, s := range scrapes {
				e.prompts += s.prompts - 1
				e.length += (s.prompts - 1) * 500
				md := e.scrape("0", s.batch, 100, 500, 0.5)
				if math.IsNaN(s.batch) {
					md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool { return m.Name() == "vllm:num_requests_running" })
				}
				if together {
					md.ResourceMetrics().MoveAndAppendTo(all.ResourceMetrics())
				} else {
					r.send(md)
				}
			}
			if together {
				r.send(all)
			}
			var got []float64
			for _, c := range r.coupled.curves.State() {
				for _, s := range c.Steps {
					got = append(got, math.Round(1000*s.Batch/s.Weight)/1000)
				}
			}
			assert.ElementsMatch(t, want, got, "together: %v", together)
			assert.Equal(t, refused, r.counted("points_refused")["no_interval"], "together: %v", together)
		}
	}
	none := math.NaN()
	f([]float64{8}, 0, scrape{8, 1}, scrape{8, 1})
	f([]float64{10, 14}, 0, scrape{8, 1}, scrape{12, 1}, scrape{16, 1})
	f(nil, 1, scrape{8, 1}, scrape{13, 1})                                           // it changed by more than half
	f(nil, 2, scrape{8, 1}, scrape{0, 1}, scrape{8, 1})                              // it was idle
	f([]float64{8}, 0, scrape{8, 1}, scrape{8, 16})                                  // each request takes half of the interval
	f(nil, 1, scrape{8, 1}, scrape{8, 17})                                           // or less
	f([]float64{20}, 2, scrape{8, 1}, scrape{none, 1}, scrape{20, 1}, scrape{20, 1}) // an end is not known
}

// Guarantees: engines are bounded and expire, and a counter that begins anew is no burst.
func TestEnginesAreBounded(t *testing.T) {
	r := newRig(t, promise(0.8), func(c *Config) { withCoupling(c); c.MaxInputSeries = 2 })
	for i := range 4 {
		e := engineAt{at: t0}
		r.send(e.scrape(fmt.Sprint(i), 4, 100, 500, 0.5))
	}
	assert.Len(t, r.coupled.engines, 2)
	assert.Equal(t, map[string]int64{"series_limit": 10, "baseline": 8}, r.counted("points_refused"), "the five points of two engines; and four counters of the others say nothing yet")
	e := engineAt{at: t0.Add(time.Minute)}
	r.send(e.scrape("0", 4, 1, 500, 0.5))
	assert.Zero(t, r.coupled.curves.Len(), "a reset")
	r.send(e.scrape("0", 4, 1, 500, 0.5))
	assert.Equal(t, 1, r.coupled.curves.Len())
	r.wait(3 * time.Hour)
	assert.Empty(t, r.coupled.engines)
}

// Scenario: engines work under a load that changes, and what is known of them is repeated every second, window after window, and
// across a restart.
// Guarantees: no series has two values for one time, of which backends refuse the second.
func TestNothingIsToldTwiceForOneTime(t *testing.T) {
	d := newDisk()
	often := func(c *Config) {
		withCoupling(c)
		c.Window, c.RefreshInterval, c.Decay = 90*time.Second, time.Second, 0.5
	}
	r := on(t, d, promise(0.8), often)
	random := rand.New(rand.NewPCG(1, 1))
	e := &serving{instance: "a", full: 48, length: 500, hit: 0.8}
	e.at = t0
	values, twice := map[string]string{}, 0
	for i := range 200 {
		if i == 100 {
			r.save(t.Context())
			clock := r.clock
			r = on(t, d, promise(0.8), often)
			r.clock = clock
		}
		batch := 1 + 60*random.Float64()
		r.send(e.scrape(e.instance, batch, 30*min(batch, e.full)*(1+0.1*random.NormFloat64()), e.length, e.hit))
		r.wait(5 * time.Second)
		r.each(func(m pmetric.Metric, p pmetric.NumberDataPoint) {
			id := fmt.Sprint(m.Name(), p.Attributes().AsRaw(), p.Timestamp())
			v := fmt.Sprint(p.ValueType(), p.DoubleValue(), p.IntValue(), p.Flags())
			if before, told := values[id]; told {
				twice++
				require.Equal(t, before, v, id)
			}
			values[id] = v
		})
		r.metrics.Reset()
	}
	assert.Greater(t, twice, 100, "what stands is repeated")
}
