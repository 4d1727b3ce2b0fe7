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
)

// engineAt is an engine of vLLM that is scraped: what its counters hold.
type engineAt struct {
	tokens, prompts, length, hits, queries float64
	at                                     time.Time
}

// scrape lets an engine work for 15 seconds on so many requests at once, each with a prompt of a length of which a share is
// cached, and scrapes it.
func (e *engineAt) scrape(instance string, batch, throughput, length, hit float64) pmetric.Metrics {
	e.at = e.at.Add(15 * time.Second)
	e.tokens += 15 * throughput
	e.prompts += 10
	e.length += 10 * length
	e.queries += 10 * length
	e.hits += 10 * length * hit
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
	before := r.coupled.curves.State()
	require.NotEmpty(t, before)
	r.save(t.Context())
	again := on(t, d, promise(0.8), withCoupling)
	assert.Len(t, again.coupled.curves.State(), len(before))
	assert.Equal(t, r.coupled.told, again.coupled.told)
	again = on(t, d, promise(0.8), nil)
	assert.Nil(t, again.coupled)
}

// Guarantees: engines are bounded and expire, and a counter that begins anew is no burst.
func TestEnginesAreBounded(t *testing.T) {
	r := newRig(t, promise(0.8), func(c *Config) { withCoupling(c); c.MaxInputSeries = 2 })
	for i := range 4 {
		e := engineAt{at: t0}
		r.send(e.scrape(fmt.Sprint(i), 4, 100, 500, 0.5))
	}
	assert.Len(t, r.coupled.engines, 2)
	assert.Equal(t, map[string]int64{"series_limit": 10}, r.counted("points_refused"), "the five points of two engines")
	e := engineAt{at: t0.Add(time.Minute)}
	r.send(e.scrape("0", 4, 1, 500, 0.5))
	assert.Zero(t, r.coupled.curves.Len(), "a reset")
	r.send(e.scrape("0", 4, 1, 500, 0.5))
	assert.Equal(t, 1, r.coupled.curves.Len())
	r.wait(3 * time.Hour)
	assert.Empty(t, r.coupled.engines)
}
