// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Scenario: half a million groups, each with a histogram of 17 buckets, a budget of 28 days and the general burn rates,
// scraped every 15 s for five minutes under a memory limit of 2 GiB, results repeated every five minutes.
// It reports what a point costs, all that follows from it included, and what a series takes.
//
//	go test ./connector/sloconnector -run '^$' -bench HalfAMillion -benchtime 1x -timeout 30m
func BenchmarkHalfAMillionSeries(b *testing.B) {
	const (
		groups  = 500_000
		scrapes = 20
		batch   = 10_000
	)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))
	docs := strings.Replace(ttftDocs, "annotations: {", "annotations: {otelcol-llm.dev/group-by: pod, ", 1)
	for b.Loop() {
		r := newRig(b, docs, func(c *Config) {
			c.MaxSeries, c.MaxInputSeries, c.BurnRates, c.RefreshInterval = groups, groups, workbook(), 5*time.Minute
		})
		r.out.Metrics, r.logs = consumertest.NewNop(), new(consumertest.LogsSink)
		before := inUse()
		var peak uint64
		begin := time.Now()
		for scrape := range scrapes {
			at := t0.Add(time.Duration(scrape) * 15 * time.Second)
			r.clock = at
			for first := 0; first < groups; first += batch {
				md, points := histogramOf("vllm:time_to_first_token_seconds", cumulative)
				fillScrape(points, first, batch, scrape, at)
				r.consume(b.Context(), md)
			}
			r.advance(b.Context())
			r.publish()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.Sys-m.HeapReleased)
		}
		took := time.Since(begin)
		require.Equal(b, groups, r.judge.Len())
		require.Equal(b, map[string]int64{"baseline": groups}, r.refused())
		b.ReportMetric(float64(took.Nanoseconds())/(groups*scrapes), "ns/point")
		b.ReportMetric(float64(inUse()-before)/groups, "B/series")
		runtime.KeepAlive(r)
		b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
	}
}

func fillScrape(points pmetric.HistogramDataPointSlice, first, n, scrape int, at time.Time) {
	points.EnsureCapacity(n)
	for i := first; i < first+n; i++ {
		p := points.AppendEmpty()
		p.Attributes().PutStr("pod", fmt.Sprintf("chat-%06d", i))
		p.SetTimestamp(pcommon.NewTimestampFromTime(at))
		p.ExplicitBounds().FromRaw(bounds16)
		counts := make([]uint64, len(bounds16)+1)
		counts[i%12] = uint64(scrape+1) * 3
		p.BucketCounts().FromRaw(counts)
		p.SetCount(counts[i%12])
	}
}

var bounds16 = []float64{0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.8, 1, 2.5, 5, 7.5, 10, 20, 40}

func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
