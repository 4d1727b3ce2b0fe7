// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// scrapes are those of processes in pods, every ten seconds: the memory of each, and its requests, which know its pod only.
type scrapes struct {
	pmetric.Metrics
	tick int
}

func newScrapes(processes int) *scrapes {
	md := pmetric.NewMetrics()
	memory, requests := md.ResourceMetrics().AppendEmpty(), md.ResourceMetrics().AppendEmpty()
	memory.Resource().Attributes().PutStr("host.name", "node-1")
	requests.Resource().Attributes().PutStr("service.name", "vllm")
	used := memory.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	used.SetName("nvidia.gpu.process.memory.usage")
	used.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	running := requests.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	running.SetName("vllm:num_requests_running")
	running.SetEmptyGauge()
	for pid := range processes {
		pod := map[string]any{"k8s.namespace.name": "llm", "k8s.pod.name": fmt.Sprintf("chat-%d", pid)}
		p := used.Sum().DataPoints().AppendEmpty()
		p.SetIntValue(40 << 30)
		_ = p.Attributes().FromRaw(worker(pid, fmt.Sprintf("GPU-%d", pid%8), pod))
		p = running.Gauge().DataPoints().AppendEmpty()
		p.SetDoubleValue(8)
		pod["model_name"] = "qwen2-72b"
		_ = p.Attributes().FromRaw(pod)
	}
	return &scrapes{Metrics: md}
}

// next is ten seconds later.
func (s *scrapes) next() pmetric.Metrics {
	s.tick++
	at := pcommon.NewTimestampFromTime(t0.Add(time.Duration(s.tick) * 10 * time.Second))
	for _, rm := range s.ResourceMetrics().All() {
		m := rm.ScopeMetrics().At(0).Metrics().At(0)
		points := pmetric.NumberDataPointSlice{}
		if m.Type() == pmetric.MetricTypeSum {
			points = m.Sum().DataPoints()
		} else {
			points = m.Gauge().DataPoints()
		}
		for _, p := range points.All() {
			p.SetTimestamp(at)
		}
	}
	return s.Metrics
}

// cpuTime is that of the process, which is measured where the machine is shared.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkConsume is what the connector costs a point, all verdicts and their joins included, beside what any pipeline from OTLP to OTLP pays for it:
// decoding and encoding.
func BenchmarkConsume(b *testing.B) {
	for _, series := range []int{10, 1_000, 100_000} {
		perPoint := func(b *testing.B, since time.Duration) {
			b.ReportMetric(float64(cpuTime(b)-since)/float64(b.N*series), "cpu-ns/point")
		}
		b.Run(fmt.Sprintf("gpu_leak/%d_series", series), func(b *testing.B) {
			r := newRig(b, func(c *Config) { c.MaxProcesses, c.MaxInputSeries = series, 2*series })
			r.out.Metrics = nil // what results cost is the emitter's
			r.clock = r.clock.Add(1000 * time.Hour)
			s := newScrapes(series / 2)
			for range max(60, min(1500, 1_000_000/series)) { // four hours: they are judged by now; ten minutes of very many
				r.consume(b.Context(), s.next())
			}
			b.ReportAllocs()
			begin := cpuTime(b)
			for b.Loop() {
				r.consume(b.Context(), s.next())
			}
			perPoint(b, begin)
			require.Equal(b, series/2, r.fleet.Len())
		})
		b.Run(fmt.Sprintf("plain/%d_series", series), func(b *testing.B) {
			encode, decode := pmetric.ProtoMarshaler{}, pmetric.ProtoUnmarshaler{}
			s := newScrapes(series / 2)
			wire, err := encode.MarshalMetrics(s.next())
			require.NoError(b, err)
			b.ReportAllocs()
			begin := cpuTime(b)
			for b.Loop() {
				md, err := decode.UnmarshalMetrics(wire)
				require.NoError(b, err)
				_, err = encode.MarshalMetrics(md)
				require.NoError(b, err)
			}
			perPoint(b, begin)
		})
	}
}
