// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/probe"
)

// crowd is a rig with so many processes in pods, all of whose metrics are on, that has collected once.
func crowd(t testing.TB, processes int) *rig {
	r := newRig(t, func(cfg *Config) { cfg.Events.Launches, cfg.MaxProcesses = true, processes })
	for pid := 1; pid <= processes; pid++ {
		r.people.of[pid] = vllm(pid)
		p := r.kernel.add(pid, 9, 2)
		for i := range 12 {
			p.Sizes[10+i], p.LaunchDurations[20+i] = uint64(i+1), uint64(i+1)
		}
	}
	r.pass(10 * time.Second)
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverCreateSettings: receivertest.NewNopSettings(metadata.Type)})
	require.NoError(t, err)
	r.report, r.log, r.next = report, zap.NewNop(), discard{}
	return r
}

// Guarantees: a reading allocates nothing once its processes are known, so that what a collection costs is its data points.
func TestAReadingOfKnownProcessesAllocatesNothing(t *testing.T) {
	r := crowd(t, 100)
	now := r.clock.UnixNano()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if err := r.read(now); err != nil {
			t.Error(err)
		}
		for _, of := range r.book.records {
			r.identify(of, now)
		}
	}))
}

// BenchmarkCollect is a whole collection but for the kernel's part: taking the values in, finding out whose they are, and making data
// points of them, eight a process.
func BenchmarkCollect(b *testing.B) {
	for _, series := range []int{10, 1_000, 100_000} {
		b.Run(fmt.Sprint("series=", series), func(b *testing.B) {
			r := crowd(b, max(series/len(table), 1))
			points := float64(r.metrics.DataPointCount())
			b.ReportAllocs()
			for b.Loop() {
				if err := r.collect(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/points, "ns/point")
			b.ReportMetric(testing.AllocsPerRun(3, func() { _ = r.collect(b.Context()) })/points, "allocs/point")
		})
	}
}

// BenchmarkRead is the part of it that should allocate nothing: all but making data points.
func BenchmarkRead(b *testing.B) {
	for _, series := range []int{10, 1_000, 100_000} {
		b.Run(fmt.Sprint("series=", series), func(b *testing.B) {
			r := crowd(b, max(series/len(table), 1))
			now, points := r.clock.UnixNano(), float64(r.metrics.DataPointCount())
			b.ReportAllocs()
			for b.Loop() {
				if err := r.read(now); err != nil {
					b.Fatal(err)
				}
				for _, of := range r.book.records {
					r.identify(of, now)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/points, "ns/point")
		})
	}
}

// BenchmarkChanged is what the guard hears of a change costs, without the kernel's part and the guard's.
func BenchmarkChanged(b *testing.B) {
	r := crowd(b, 100)
	guard := &ears{}
	r.guard = guard
	b.ReportAllocs()
	for b.Loop() {
		guard.live = guard.live[:0]
		r.changed(probe.Change{PID: 7, StartTime: 70, Live: 5, At: 42})
	}
}
