// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/cputest"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu/fakegputest"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/metadata"
)

// quiet lets an engine remember nothing of what it does for the tests' sake.
func (r *rig) quiet() {
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverCreateSettings: receivertest.NewNopSettings(metadata.Type)})
	require.NoError(r.t, err)
	r.report, r.log, r.engine.metrics, r.engine.logs = report, zap.NewNop(), discard{}, nil
}

// BenchmarkScrape is a whole scrape of 8 GPUs with 20 processes each: reading (of plain values, or by NVML on the fake),
// judging, making data points, and handing them to a consumer that does nothing. A point is about 40 bytes of attributes.
// of-copy is the CPU time beside that of copying the same data points: nobody makes them for less.
func BenchmarkScrape(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		r := newRig(b, func(s *gpu.Snapshot) {
			for i := range 8 {
				d := full(s, i)
				d.Processes = d.Processes[:0]
				for pid := range uint32(20) {
					d.AddProcess(uint32(i)*20 + pid + 1).Memory = uint64(pid)
				}
			}
		}, nil)
		r.bench(b)
	})
	b.Run("nvml", func(b *testing.B) {
		fakegputest.Show(b, fakegpu.Server(8, 20, 1_000_000))
		r := newRig(b, nil, func(cfg *Config) { cfg.Source, cfg.NVMLLibrary = sourceNVML, fakegputest.Library() })
		r.engine.source = newSource(r.cfg, r.log)
		b.Cleanup(func() { assert.NoError(b, r.close()) })
		r.bench(b)
	})
}

func (r *rig) bench(b *testing.B) {
	r.scrape()
	points, made := 0, r.metrics.AllMetrics()
	for _, md := range made {
		points += md.DataPointCount()
	}
	r.quiet()
	b.ReportAllocs()
	before := cputest.Used(b)
	for b.Loop() {
		if r.source != nil {
			r.source.wanted = nil
		}
		if err := r.engine.scrape(b.Context(), 1<<gpu.Groups-1); err != nil {
			b.Fatal(err)
		}
		r.send(b.Context())
	}
	used := cputest.Used(b) - before
	copying := cputest.Time(b, func() {
		for range b.N {
			for _, md := range made {
				md.CopyTo(pmetric.NewMetrics())
			}
		}
	})
	b.ReportMetric(float64(used)/float64(copying), "of-copy")
	b.ReportMetric(float64(used.Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(points), "points")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(points), "ns/point")
}

// BenchmarkRead is the part of it that should allocate next to nothing: all but making data points.
func BenchmarkRead(b *testing.B) {
	fakegputest.Show(b, fakegpu.Server(8, 20, 1_000_000))
	r := newRig(b, nil, func(cfg *Config) { cfg.Source, cfg.NVMLLibrary = sourceNVML, fakegputest.Library() })
	r.engine.source = newSource(r.cfg, r.log)
	b.Cleanup(func() { assert.NoError(b, r.close()) })
	r.scrape()
	p := &r.plans[1<<gpu.Groups-1]
	b.ReportAllocs()
	for b.Loop() {
		r.snapshot.Reset()
		if err := r.engine.source.Read(b.Context(), &p.read, &r.snapshot); err != nil {
			b.Fatal(err)
		}
		r.complete()
		r.book.Read(&r.snapshot, t0.UnixNano())
	}
}
