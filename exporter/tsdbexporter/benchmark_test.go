// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
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
				round := func() {
					md := batches[n%len(batches)]
					advance(md, begin.Add(time.Duration(n/len(batches))*time.Millisecond), float64(n))
					n++
					if !peer {
						require.NoError(b, e.push(b.Context(), md))
						return
					}
					app := e.store.AppenderV2(b.Context())
					_, err := prometheusremotewrite.NewPrometheusConverter(app).FromMetrics(b.Context(), md, e.settings())
					require.NoError(b, err)
					require.NoError(b, app.Commit())
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
