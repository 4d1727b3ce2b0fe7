// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// BenchmarkConsume is what the connector costs a point: a scrape every ten seconds of processes that run for hours, verdicts and their
// results included.
func BenchmarkConsume(b *testing.B) {
	for _, processes := range []int{10, 1_000} {
		b.Run(fmt.Sprintf("%d_processes", processes), func(b *testing.B) {
			r := newRig(b, nil)
			r.engine.metrics = nil // what results cost is the emitter's
			s := newScrape(t0)
			for pid := range processes {
				s.put("nvidia.gpu.process.memory.usage", 40*gib, "hw.id", "GPU-0", "process.pid", pid, "process.executable.name", "python3")
				s.gauge("vllm:num_requests_running", 8, "process.pid", pid)
			}
			tick := 0
			next := func() {
				tick++
				at := pcommon.NewTimestampFromTime(t0.Add(time.Duration(tick) * 10 * time.Second))
				for i, m := range s.sm.Metrics().All() {
					if i%2 == 0 {
						m.Sum().DataPoints().At(0).SetTimestamp(at)
						continue
					}
					m.Gauge().DataPoints().At(0).SetTimestamp(at)
				}
				r.consume(b.Context(), s.Metrics)
			}
			for range 1500 { // four hours: they are judged by now
				next()
			}
			r.clock = r.clock.Add(1000 * time.Hour)
			b.ReportAllocs()
			for b.Loop() {
				next()
			}
			require.Equal(b, processes, r.fleet.Len())
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*2*processes), "ns/point")
		})
	}
}
