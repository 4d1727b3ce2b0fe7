// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/frame"
)

// load makes a batch of cumulative TTFT histograms, one a cell, with 6 attributes and vLLM's boundaries.
func load(cells int) (pmetric.Metrics, pmetric.HistogramDataPointSlice) {
	bounds := []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560}
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(ttft)
	h := m.SetEmptyHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	h.DataPoints().EnsureCapacity(cells)
	for i := range cells {
		p := h.DataPoints().AppendEmpty()
		p.Attributes().PutStr("model_name", "qwen2-72b")
		p.Attributes().PutStr("engine", "0")
		p.Attributes().PutStr("cloud.region", "eu-central-1")
		p.Attributes().PutStr("device.type", "h100")
		p.Attributes().PutStr("model.version", "v1")
		p.Attributes().PutStr("pod", fmt.Sprintf("chat-%d", i))
		p.ExplicitBounds().FromRaw(bounds)
		p.BucketCounts().FromRaw(make([]uint64, len(bounds)+1))
	}
	return md, h.DataPoints()
}

// grow is what comes in a scrape: 10 requests a point.
func grow(points pmetric.HistogramDataPointSlice, at time.Time) {
	for _, p := range points.All() {
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.BucketCounts().SetAt(7, p.BucketCounts().At(7)+4)
		p.BucketCounts().SetAt(8, p.BucketCounts().At(8)+5)
		p.BucketCounts().SetAt(9, p.BucketCounts().At(9)+1)
		p.SetCount(p.Count() + 10)
	}
}

func byPod(c *Config) {
	c.Dimensions = []Dimension{{Key: "cloud.region"}, {Key: "device.type"}, {Key: "model.version"}, {Key: "pod"}}
	c.MaxCells, c.MaxInputSeries = 200_000, 200_000
}

// cpu is the CPU time of the process so far, garbage collection included: on a shared machine it says more than the wall clock.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkConsume is what the processor costs a point, one a cell and second, with the windows that close meanwhile. Its peer
// is what any pipeline from OTLP to OTLP pays for the same point, measured in the same run.
func BenchmarkConsume(b *testing.B) {
	for _, cells := range []int{10, 1_000, 100_000} {
		b.Run(fmt.Sprintf("drift_heatmap/%d_cells", cells), func(b *testing.B) {
			r := newRig(b, promise(0.8), byPod)
			r.outputs = nil // results are another benchmark's
			md, points := load(cells)
			next := func() {
				r.clock = r.clock.Add(time.Second)
				grow(points, r.clock)
				r.consume(b.Context(), md)
			}
			for range 3 {
				next()
			}
			require.Equal(b, cells, r.heat.Len())
			b.ReportAllocs()
			begin := cpu(b)
			for b.Loop() {
				next()
			}
			b.ReportMetric(float64(cpu(b)-begin)/float64(b.N*cells), "cpu-ns/point")
		})
		b.Run(fmt.Sprintf("plain_pipeline/%d_cells", cells), func(b *testing.B) {
			md, points := load(cells)
			grow(points, t0)
			data, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
			require.NoError(b, err)
			b.ReportAllocs()
			begin := cpu(b)
			for b.Loop() {
				got, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(data)
				require.NoError(b, err)
				_, err = (&pmetric.ProtoMarshaler{}).MarshalMetrics(got)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(cpu(b)-begin)/float64(b.N*cells), "cpu-ns/point")
		})
	}
}

// BenchmarkUnselected is what a metric costs that no SLO is made of.
func BenchmarkUnselected(b *testing.B) {
	r := newRig(b, promise(0.8), nil)
	md, _ := load(1000)
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetName("something.else")
	b.ReportAllocs()
	for b.Loop() {
		r.consume(b.Context(), md)
	}
}

// BenchmarkWindow is what a window costs a cell with 500 raw values: judged, compared with its baseline version, written.
func BenchmarkWindow(b *testing.B) {
	for _, cells := range []int{10, 1_000} {
		b.Run(fmt.Sprintf("%d_cells", cells), func(b *testing.B) {
			r := newRig(b, promise(0.8), func(c *Config) {
				withCanary(c)
				c.Dimensions = append(c.Dimensions, Dimension{Key: "pod"})
			})
			random := rand.New(rand.NewPCG(1, 1))
			var all []cell
			for i := range cells {
				all = append(all, cell{
					map[string]any{"pod": fmt.Sprint(i / 2), "model.version": fmt.Sprint("v", 1+i%2), "cloud.region": "eu"}, traffic(random, 500, 0.2),
				})
			}
			md := windowOf(0, all...)
			points := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).ExponentialHistogram().DataPoints()
			n := 0
			next := func() {
				r.clock = r.clock.Add(5 * time.Minute)
				for _, p := range points.All() {
					p.SetStartTimestamp(pcommon.NewTimestampFromTime(r.clock.Add(-5 * time.Minute)))
					p.SetTimestamp(pcommon.NewTimestampFromTime(r.clock))
				}
				r.consume(b.Context(), md)
				r.mu.Lock()
				fresh, _ := r.collect()
				for _, batch := range fresh {
					n += batch.Points()
				}
				r.mu.Unlock()
			}
			for range 20 {
				next()
			}
			b.ReportAllocs()
			begin := cpu(b)
			for b.Loop() {
				next()
			}
			require.Positive(b, n)
			b.ReportMetric(float64(cpu(b)-begin)/float64(b.N*cells), "cpu-ns/cell")
		})
	}
}

// BenchmarkMemory is what a cell takes: of a source with boundaries, and of raw values over two and over five decades, after two
// hours; with its input series.
func BenchmarkMemory(b *testing.B) {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const cells, windows = 500, 24
	b.Run("explicit", func(b *testing.B) {
		for b.Loop() {
			r := newRig(b, promise(0.8), byPod)
			r.outputs = nil
			md, points := load(cells)
			before := heap()
			for range windows * 5 {
				r.clock = r.clock.Add(time.Minute)
				grow(points, r.clock)
				r.consume(b.Context(), md)
			}
			b.ReportMetric(float64(heap()-before)/cells, "B/cell")
			require.Equal(b, cells, r.heat.Len())
		}
	})
	for name, decades := range map[string]float64{"raw": 2, "raw_wide": 5} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r := newRig(b, promise(0.8), byPod)
				r.outputs = nil
				random := rand.New(rand.NewPCG(1, 1))
				md := pmetric.NewMetrics()
				m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
				m.SetName(ttft)
				points := m.SetEmptyGauge().DataPoints()
				before := heap()
				for n := range windows {
					for i := range cells {
						for k := range 500 {
							p := points.AppendEmpty()
							p.SetTimestamp(pcommon.NewTimestampFromTime(at(n)))
							p.SetDoubleValue(0.01 * math.Pow(10, decades*random.Float64()))
							p.Attributes().PutStr("pod", strconv.Itoa(i))
							if k == 0 && n == 0 {
								p.SetDoubleValue(0.01 * math.Pow(10, decades))
							}
						}
						r.consume(b.Context(), md)
						points.RemoveIf(func(pmetric.NumberDataPoint) bool { return true })
					}
				}
				b.ReportMetric(float64(heap()-before)/cells, "B/cell")
				require.Equal(b, cells, r.heat.Len())
			}
		})
	}
}

// BenchmarkCheckpoint is how long 10,000 cells and their inputs are encoded; held is how long nobody is heard meanwhile.
func BenchmarkCheckpoint(b *testing.B) {
	const cells = 10_000
	r := newRig(b, promise(0.8), byPod)
	r.outputs = nil
	md, points := load(cells)
	for range 60 {
		r.clock = r.clock.Add(time.Minute)
		grow(points, r.clock)
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
	b.ReportMetric(float64(size)/cells, "B/cell")
	b.ReportMetric(float64(held.Microseconds())/1000/float64(b.N), "ms-held/op")
}
