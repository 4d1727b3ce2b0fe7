// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// gauges is a batch of n series as the slo connector sends them.
func gauges(first, n int) pmetric.Metrics {
	md, ms := batch(resource)
	points := ms.AppendEmpty()
	points.SetName("slo.sli.value")
	g := points.SetEmptyGauge()
	for i := range n {
		p := g.DataPoints().AppendEmpty()
		for k, v := range map[string]string{
			"slo_id": "llm:chat:ttft:p95", "service": "chat", "slo_class": "latency", "target": "0.8000", "unit": "seconds",
			"cloud.region": "eu-central-1", "pod": fmt.Sprint("chat-", first+i),
		} {
			p.Attributes().PutStr(k, v)
		}
	}
	return md
}

// advance gives all points of a batch a time and a value.
func advance(md pmetric.Metrics, at time.Time, value float64) {
	points := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
	for i := range points.Len() {
		points.At(i).SetTimestamp(stamp(at))
		points.At(i).SetDoubleValue(value)
	}
}

// BenchmarkPush is what a sample costs that is appended to a series which is there already. The peer is the same translator on
// the same database without anything of ours, as a Prometheus server runs it.
func BenchmarkPush(b *testing.B) {
	for _, series := range []int{10, 1_000, 100_000} {
		for _, peer := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/%d_series", map[bool]string{false: "tsdb", true: "prometheus"}[peer], series), func(b *testing.B) {
				e := started(b)
				size := min(series, 1000)
				batches := make([]pmetric.Metrics, series/size)
				for i := range batches {
					batches[i] = gauges(i*size, size)
				}
				begin := time.Now().Add(-time.Hour) // a millisecond each, so that no block is made meanwhile
				n := 0
				push := e.push
				if peer {
					push = e.asPrometheus
				}
				round := func() {
					md := batches[n%len(batches)]
					advance(md, begin.Add(time.Duration(n/len(batches))*time.Millisecond), float64(n))
					n++
					require.NoError(b, push(b.Context(), md))
				}
				for range 2 * len(batches) {
					round()
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				b.ResetTimer()
				for b.Loop() {
					round()
				}
				runtime.ReadMemStats(&after)
				samples := float64(b.N * size)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/samples, "ns/sample")
				b.ReportMetric(float64(after.Mallocs-before.Mallocs)/samples, "allocs/sample")
			})
		}
	}
}

// asPrometheus pushes without anything of ours.
func (e *tsdbExporter) asPrometheus(ctx context.Context, md pmetric.Metrics) error {
	app := e.store.Load().AppenderV2(ctx)
	if _, err := prometheusremotewrite.NewPrometheusConverter(app).FromMetrics(ctx, md, e.settings()); err != nil {
		return err
	}
	return app.Commit()
}

// BenchmarkPushTogether is what a sample costs when four senders send at once, each its own 1,000 series: there is one transaction at
// a time, for which Prometheus has no such rule.
func BenchmarkPushTogether(b *testing.B) {
	for _, peer := range []bool{false, true} {
		b.Run(map[bool]string{false: "tsdb", true: "prometheus"}[peer], func(b *testing.B) {
			const senders, size = 4, 1000
			e := started(b)
			push := e.push
			if peer {
				push = e.asPrometheus
			}
			begin := time.Now().Add(-time.Hour)
			b.ResetTimer()
			var all sync.WaitGroup
			for sender := range senders {
				md := gauges(sender*size, size)
				all.Go(func() {
					for n := range b.N {
						advance(md, begin.Add(time.Duration(n)*time.Millisecond), float64(n))
						assert.NoError(b, push(b.Context(), md))
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*senders*size), "ns/sample")
		})
	}
}

// BenchmarkSeries is what a series keeps in memory.
func BenchmarkSeries(b *testing.B) {
	const series = 100_000
	var before, after runtime.MemStats
	for b.Loop() {
		e := started(b)
		runtime.GC()
		runtime.ReadMemStats(&before)
		for n := range 5 {
			for first := 0; first < series; first += 1000 {
				md := gauges(first, 1000)
				advance(md, time.Now().Add(time.Duration(n-5)*time.Minute), float64(n))
				require.NoError(b, e.push(b.Context(), md))
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(e)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/series, "B/series")
}
