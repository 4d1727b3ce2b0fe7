// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/frame"
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
				for more, first := true, true; more; first = false {
					var batches []*emit.Batch
					batches, more = r.collect(first)
					for _, batch := range batches {
						points += batch.Points()
					}
				}
				r.mu.Unlock()
				require.GreaterOrEqual(b, points, 10*series)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*series), "ns/series")
		})
	}
}

// BenchmarkSpans is what a span costs that serves three SLOs: two values, and a ratio by conditions that OTTL evaluates.
func BenchmarkSpans(b *testing.B) {
	const spans = 1000
	r := newRig(b, spanDocs, nil)
	td := ptrace.NewTraces()
	for i := range spans {
		addSpan(td, i, t0, func(m pcommon.Map) {
			m.PutDouble(ttftKey, 0.5)
			m.PutDouble(decodeKey, 1)
			m.PutInt(tokensKey, 101)
		})
	}
	n := uint64(spans)
	next := func() {
		for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			n++
			var id [8]byte
			binary.BigEndian.PutUint64(id[:], n)
			s.SetSpanID(id)
		}
		r.consumeTraces(b.Context(), td)
	}
	for range 200 { // until the memory of spans has its size
		next()
	}
	b.ReportAllocs()
	for b.Loop() {
		next()
	}
	require.Empty(b, r.refused())
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*spans), "ns/span")
}

// BenchmarkCheckpoint is how long all of 10,000 series and their inputs are encoded; held is how long nobody is heard meanwhile.
func BenchmarkCheckpoint(b *testing.B) {
	const series = 10_000
	r := newRig(b, ttftDocs, func(c *Config) { c.GroupBy, c.BurnRates = []string{"pod"}, workbook() })
	md, points := load(series)
	for minute := range 3 * 60 { // of books, and an open window
		for _, p := range points.All() {
			p.SetTimestamp(pcommon.NewTimestampFromTime(t0.Add(time.Duration(minute) * time.Minute)))
			p.BucketCounts().SetAt(9, uint64(95+minute))
			p.SetCount(uint64(100 + minute))
		}
		r.consume(b.Context(), md)
	}
	size := 0
	var held time.Duration
	b.ReportAllocs()
	for b.Loop() {
		r.mu.Lock()
		r.touchAll()
		r.mu.Unlock()
		begin := time.Now()
		taken := r.Take()
		held += time.Since(begin)
		parts, err := frame.Encode(taken)
		require.NoError(b, err)
		size = 0
		for _, part := range parts {
			size += len(part)
		}
	}
	b.ReportMetric(float64(size)/series, "B/series")
	b.ReportMetric(float64(held.Microseconds())/1000/float64(b.N), "ms-held/op")
}
