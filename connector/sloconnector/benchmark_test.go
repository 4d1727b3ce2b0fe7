// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// load makes a batch of cumulative TTFT histograms, one a series, with 6 attributes and vLLM's boundaries.
func load(series int) (pmetric.Metrics, pmetric.HistogramDataPointSlice) {
	bounds := []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	md, points := histogramOf("vllm:time_to_first_token_seconds", cumulative)
	points.EnsureCapacity(series)
	for i := range series {
		p := points.AppendEmpty()
		p.Attributes().PutStr("model_name", "qwen2-72b")
		p.Attributes().PutStr("engine", "0")
		p.Attributes().PutStr("cloud.region", "eu-central-1")
		p.Attributes().PutStr("device.type", "h100")
		p.Attributes().PutStr("model.version", "v1")
		p.Attributes().PutStr("pod", fmt.Sprintf("chat-%d", i))
		counts := make([]uint64, len(bounds)+1)
		counts[9] = 95
		counts[12] = 5
		fillHistogram(p, time.Time{}, t0, bounds, counts...)
	}
	return md, points
}

// BenchmarkConsume is what the connector costs a point. Its peer is what any pipeline from OTLP to OTLP pays for
// the same point, measured in the same run.
func BenchmarkConsume(b *testing.B) {
	for _, series := range []int{10, 1_000, 100_000} {
		b.Run(fmt.Sprintf("slo/%d_series", series), func(b *testing.B) {
			r := newRig(b, ttftDocs, func(c *Config) { c.MaxInputSeries = 200_000 })
			md, points := load(series)
			next := func() { // a scrape every second, with the wall clock beside it
				r.clock = r.clock.Add(time.Second)
				for _, p := range points.All() {
					p.SetTimestamp(pcommon.NewTimestampFromTime(r.clock))
				}
				r.consume(b.Context(), md)
			}
			next()
			next()
			b.ReportAllocs()
			for b.Loop() {
				next()
			}
			require.Positive(b, r.judge.Len())
			require.Equal(b, map[string]int64{"baseline": int64(series)}, r.refused())
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*series), "ns/point")
		})
		b.Run(fmt.Sprintf("plain_pipeline/%d_series", series), func(b *testing.B) {
			md, _ := load(series)
			data, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				got, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(data)
				require.NoError(b, err)
				_, err = (&pmetric.ProtoMarshaler{}).MarshalMetrics(got)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*series), "ns/point")
		})
	}
}

// BenchmarkUnselected is what a metric costs that no SLO is made of.
func BenchmarkUnselected(b *testing.B) {
	r := newRig(b, ttftDocs, nil)
	md, _ := load(1000)
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetName("something.else")
	b.ReportAllocs()
	for b.Loop() {
		r.consume(b.Context(), md)
	}
}

// BenchmarkPublish is what it costs to tell the results of all groups.
func BenchmarkPublish(b *testing.B) {
	for _, series := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprintf("%d_series", series), func(b *testing.B) {
			r := newRig(b, ttftDocs, func(c *Config) { c.GroupBy, c.RefreshInterval = []string{"pod"}, time.Nanosecond })
			md, points := load(series)
			r.consume(b.Context(), md)
			for _, p := range points.All() {
				p.SetTimestamp(pcommon.NewTimestampFromTime(t0.Add(time.Second)))
				p.BucketCounts().SetAt(9, 100)
				p.SetCount(105)
			}
			r.consume(b.Context(), md)
			r.clock = r.clock.Add(time.Minute)
			r.advance(b.Context())
			b.ReportAllocs()
			for b.Loop() {
				r.clock = r.clock.Add(time.Second)
				r.mu.Lock()
				points := 0
				again, _ := r.collect()
				for _, batch := range again {
					points += batch.Points()
				}
				r.mu.Unlock()
				require.GreaterOrEqual(b, points, 10*series)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*series), "ns/series")
		})
	}
}
