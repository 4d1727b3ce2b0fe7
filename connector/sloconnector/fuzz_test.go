// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
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

// FuzzConsume feeds whatever decodes as OTLP to an SLO.
func FuzzConsume(f *testing.F) {
	m := &pmetric.ProtoMarshaler{}
	for _, md := range []pmetric.Metrics{hour()[0], exponentialOf(cumulative, t0, t0.Add(time.Minute), 3), dirty(rand.New(rand.NewPCG(1, 2)))} {
		data, err := m.MarshalMetrics(md)
		require.NoError(f, err)
		f.Add(data, data)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) { // of two points of one cumulative series
		r, points := newRig(t, ttftDocs, nil), 0
		for _, data := range [][]byte{first, second} {
			md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(data)
			if err != nil {
				continue // it is no OTLP
			}
			for _, rm := range md.ResourceMetrics().All() {
				for _, sm := range rm.ScopeMetrics().All() {
					for _, m := range sm.Metrics().All() {
						m.SetName("vllm:time_to_first_token_seconds")
					}
				}
			}
			points += md.DataPointCount()
			r.send(md)
		}
		r.wait(time.Hour)
		r.balance(t, points)
	})
}

// Scenario: batches of points of every shape with everything wrong with them that can be.
// Guarantees: nothing crashes, each point is accepted or refused exactly once, and the SLI stays a number in its bounds.
func TestTheBooksBalanceOnDirt(t *testing.T) {
	r, rnd, points := newRig(t, ttftDocs, nil), rand.New(rand.NewPCG(3, 4)), 0
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
				p.SetCount(p.Positive().BucketCounts().At(0) + p.Positive().BucketCounts().At(1))
			default:
				m.SetEmptySummary().DataPoints().AppendEmpty()
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
	if r.IntN(20) == 0 {
		at = t0.Add(time.Duration(r.Int64N(int64(1000*24*time.Hour))) - 500*24*time.Hour)
	}
	return at.Add(-time.Duration(r.Int64N(int64(time.Hour)))), at
}
