// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// balance checks the books: each point of the SLO's metric is accepted or refused, exactly once.
func (r *rig) balance(t testing.TB, points int) {
	t.Helper()
	var refused, accepted int64
	for reason, n := range r.refused() {
		assert.NotEmpty(t, reason)
		refused += n
	}
	if m, err := r.tel.GetMetric("otelcol_slo_points_accepted"); err == nil {
		accepted = sumInt(m)
	}
	require.Equal(t, int64(points), accepted+refused, "accepted %d, refused %v", accepted, r.refused())
}

// fuzzDocs promise something of everything: a threshold, a ratio, a rate, what should have been measured, spans and scores.
var fuzzDocs = strings.Replace(ttftDocs, "metric: vllm:time_to_first_token_seconds", `metric: "vllm:time_to_first_token_seconds", expected: requests`, 1) + "---\n" +
	fmt.Sprintf(ratioDocs, "good: {metricSource: {type: opentelemetry, spec: {metric: part}}}") + "---\n" +
	sloOf("rated", "llm:chat:rated:x", "", thresholdOf(`metric: tokens, rate: 1m, unit: tokens`), `{op: gte, value: 80, target: 0.95}`) +
	spanDocs[strings.Index(spanDocs, "---")+4:] + // but for the SLO on the time to first token
	sloOf("scores", "llm:chat:scores:x", ", otelcol-llm.dev/class: quality", thresholdOf(`signal: logs, value: 'log.attributes["score"]', unit: ratio, range: [0, 1]`), `{op: gte, value: 0.5, target: 0.95}`)

var fuzzNames = []string{"vllm:time_to_first_token_seconds", "requests", "part", "tokens", "slo.sli.distribution"}

// FuzzConsume feeds whatever decodes as OTLP metrics to SLOs of every kind, in two batches, the first of which is sent again.
func FuzzConsume(f *testing.F) {
	m := &pmetric.ProtoMarshaler{}
	seeds := []pmetric.Metrics{hour()[0], cumulated()[1], exponentialOf(cumulative, t0, t0.Add(time.Minute), 3), told(f)}
	for i := range uint64(6) {
		seeds = append(seeds, dirty(rand.New(rand.NewPCG(i, 2))))
	}
	for i, md := range seeds {
		data, err := m.MarshalMetrics(md)
		require.NoError(f, err)
		f.Add(data, data, uint8(i))
	}
	f.Fuzz(func(t *testing.T, first, second []byte, name uint8) { // of two points of one cumulative series
		d, points := newDisk(), 0
		r := on(t, d, fuzzDocs, nil)
		for _, data := range [][]byte{first, second, first} {
			md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(data)
			if err != nil {
				continue // it is no OTLP
			}
			for _, rm := range md.ResourceMetrics().All() {
				for _, sm := range rm.ScopeMetrics().All() {
					for _, m := range sm.Metrics().All() {
						m.SetName(fuzzNames[int(name)%len(fuzzNames)])
					}
				}
			}
			points += md.DataPointCount()
			r.send(md)
		}
		r.wait(time.Hour)
		r.balance(t, points)
		r.survives(d, fuzzDocs)
	})
}

// told are distributions as another connector tells them.
func told(t testing.TB) pmetric.Metrics {
	r := newRig(t, ttftDocs, func(c *Config) { c.Metrics = switched(t, "slo.sli.distribution", true) })
	for _, md := range hour()[:2] {
		r.send(md)
	}
	return r.distributions()[0]
}

// survives checks that what the engine knows can be written and taken up, whatever it has heard, and comes out the same.
func (r *rig) survives(d *disk, docs string) {
	r.t.Helper()
	r.stop()
	again := on(r.t, d, docs, nil)
	require.True(r.t, again.known)
	r.metrics.Reset()
	r.retell = true
	r.publishMetrics(r.t.Context())
	again.retell = true
	again.publishMetrics(r.t.Context())
	require.Equal(r.t, fmt.Sprint(r.told()), fmt.Sprint(again.told()))
	again.wait(24 * time.Hour)
}

// FuzzConsumeRequests feeds whatever decodes as OTLP spans and log records.
func FuzzConsumeRequests(f *testing.F) {
	for i, fill := range []func(m pcommon.Map){
		func(m pcommon.Map) { m.PutDouble(ttftKey, 0.5); m.PutDouble(decodeKey, 1); m.PutInt(tokensKey, 101) },
		func(m pcommon.Map) {
			m.PutStr(ttftKey, "soon")
			m.PutDouble(decodeKey, math.Inf(1))
			m.PutInt(tokensKey, -1)
		},
		func(m pcommon.Map) {
			m.PutEmptySlice(ttftKey)
			m.PutInt(decodeKey, 0)
			m.PutInt(tokensKey, math.MaxInt64)
		},
	} {
		td := ptrace.NewTraces()
		at := []time.Time{t0, time.Unix(0, 0), time.Unix(0, math.MaxInt64)}[i]
		fill(addSpan(td, i, at, func(pcommon.Map) {}).Attributes())
		spans, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		require.NoError(f, err)
		records, err := (&plog.ProtoMarshaler{}).MarshalLogs(evaluation(at, "x", func(m pcommon.Map) { m.PutDouble("score", float64(i)-1) }))
		require.NoError(f, err)
		f.Add(spans, records)
	}
	f.Fuzz(func(t *testing.T, spans, records []byte) {
		d, items := newDisk(), 0
		r := on(t, d, fuzzDocs, nil)
		for range 2 {
			if td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(spans); err == nil {
				for _, rs := range td.ResourceSpans().All() {
					for _, ss := range rs.ScopeSpans().All() {
						for _, s := range ss.Spans().All() {
							s.SetName("llm_request")
						}
					}
				}
				items += td.SpanCount()
				r.sendTraces(td)
			}
			if ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(records); err == nil {
				items += ld.LogRecordCount()
				r.sendLogs(ld)
			}
		}
		r.wait(time.Hour)
		r.balance(t, items)
		r.survives(d, fuzzDocs)
	})
}

// Scenario: batches of points of every shape with everything wrong with them that can be.
// Guarantees: nothing crashes, each point is accepted or refused exactly once, and the SLI stays a number in its bounds.
func TestTheBooksBalanceOnDirt(t *testing.T) {
	d, rnd, points := newDisk(), rand.New(rand.NewPCG(3, 4)), 0
	r := on(t, d, ttftDocs, nil)
	for range 300 {
		md := dirty(rnd)
		points += md.DataPointCount()
		r.send(md)
		r.clock = r.clock.Add(time.Duration(rnd.IntN(60)) * time.Second)
	}
	r.wait(time.Hour)
	r.balance(t, points)
	assert.Greater(t, len(r.refused()), 8, "%v", r.refused())
	if v, ok := r.last("slo.sli.value", nil); assert.True(t, ok) {
		lower, _ := r.last("slo.sli.bound", map[string]string{"bound": "lower"})
		upper, _ := r.last("slo.sli.bound", map[string]string{"bound": "upper"})
		assert.True(t, lower <= v && v <= upper, "%v in [%v, %v]", v, lower, upper)
	}
	r.survives(d, ttftDocs)
}

// dirty makes a batch in which much is wrong.
func dirty(r *rand.Rand) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for range 1 + r.IntN(3) {
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutInt("replica", r.Int64N(3))
		for range 1 + r.IntN(4) {
			m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName("vllm:time_to_first_token_seconds")
			temporality := pmetric.AggregationTemporality(r.IntN(3))
			switch r.IntN(6) {
			case 0:
				soil(r, m.SetEmptyGauge().DataPoints().AppendEmpty())
			case 1:
				m.SetEmptySum().SetAggregationTemporality(temporality)
				m.Sum().SetIsMonotonic(r.IntN(3) > 0)
				soil(r, m.Sum().DataPoints().AppendEmpty())
			case 2, 3:
				m.SetEmptyHistogram().SetAggregationTemporality(temporality)
				p := m.Histogram().DataPoints().AppendEmpty()
				start, at := times(r)
				bounds, counts := ttftBounds, make([]uint64, len(ttftBounds)+1)
				for i := range counts {
					counts[i] = r.Uint64N(20)
				}
				fillHistogram(p, start, at, bounds, counts...)
				switch r.IntN(8) {
				case 0:
					p.SetCount(r.Uint64())
				case 1:
					p.ExplicitBounds().FromRaw([]float64{1, math.NaN(), 3})
				case 2:
					p.BucketCounts().FromRaw(nil)
				case 3:
					p.SetTimestamp(0)
				case 4:
					p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
				}
			case 4:
				m.SetEmptyExponentialHistogram().SetAggregationTemporality(temporality)
				p := m.ExponentialHistogram().DataPoints().AppendEmpty()
				start, at := times(r)
				p.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
				p.SetTimestamp(pcommon.NewTimestampFromTime(at))
				p.SetScale(int32(r.IntN(40) - 15))
				p.Positive().SetOffset(int32(r.IntN(2000) - 1000))
				p.Positive().BucketCounts().FromRaw([]uint64{r.Uint64N(5), r.Uint64N(5)})
				p.Negative().BucketCounts().FromRaw([]uint64{r.Uint64N(2)})
				p.SetZeroCount(r.Uint64N(3))
				p.SetCount(p.Positive().BucketCounts().At(0) + p.Positive().BucketCounts().At(1) + p.Negative().BucketCounts().At(0) + p.ZeroCount())
				switch r.IntN(8) {
				case 0:
					p.SetCount(p.Count() + 3)
					p.SetSum(math.NaN())
				case 1:
					p.SetCount(r.Uint64())
				case 2:
					p.Positive().BucketCounts().FromRaw([]uint64{r.Uint64(), r.Uint64()})
				}
			default:
				p := m.SetEmptySummary().DataPoints().AppendEmpty()
				start, at := times(r)
				p.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
				p.SetTimestamp(pcommon.NewTimestampFromTime(at))
				p.SetCount(r.Uint64N(100) << r.IntN(60))
			}
		}
	}
	return md
}

func soil(r *rand.Rand, p pmetric.NumberDataPoint) {
	start, at := times(r)
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	p.SetTimestamp(pcommon.NewTimestampFromTime(at))
	switch r.IntN(6) {
	case 0:
		p.SetDoubleValue(math.NaN())
	case 1:
		p.SetIntValue(-1)
	case 2:
		p.SetDoubleValue(math.Inf(1))
	case 3:
		p.SetDoubleValue(-r.Float64() * 100)
	default:
		p.SetDoubleValue(r.Float64() * 3)
	}
}

// times are around a day in the past, but for those that are far off.
func times(r *rand.Rand) (start, at time.Time) {
	at = t0.Add(time.Duration(r.Int64N(int64(24 * time.Hour))))
	switch r.IntN(40) {
	case 0:
		return time.Unix(0, 0), time.Unix(0, 0)
	case 1:
		return t0, time.Unix(0, math.MaxInt64)
	case 2:
		at = t0.Add(time.Duration(r.Int64N(int64(1000*24*time.Hour))) - 500*24*time.Hour)
	}
	return at.Add(-time.Duration(r.Int64N(int64(time.Hour)))), at
}
