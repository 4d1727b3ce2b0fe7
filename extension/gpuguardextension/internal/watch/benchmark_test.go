// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"testing"

	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

// What each change of live bytes costs: it is told up to 100,000 times a second.
func BenchmarkLive(b *testing.B) {
	for _, processes := range []int{10, 1000} {
		b.Run(fmt.Sprintf("processes=%d", processes), func(b *testing.B) {
			o := options()
			o.MaxProcesses = processes
			s := New(o)
			now := t0
			s.Device(gpuwatch.Device{ID: gpu, Total: 1 << 50, At: now}, now)
			l := gpuwatch.Live{Device: gpu}
			for i := range processes {
				l.Process, l.At = pid(i+1), now
				s.Live(l, now)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				now++
				l.Process, l.Bytes, l.At = pid(i%processes+1), uint64(i), now
				s.Live(l, now)
			}
		})
	}
}

// What a reading costs, once a second or so.
func BenchmarkDevice(b *testing.B) {
	for _, processes := range []int{10, 1000} {
		b.Run(fmt.Sprintf("processes=%d", processes), func(b *testing.B) {
			o := options()
			o.MaxProcesses = processes
			s := New(o)
			d := gpuwatch.Device{ID: gpu, Total: 1 << 50}
			for i := range processes {
				d.Processes = append(d.Processes, holds(i+1, 1))
			}
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				d.At = t0 + i
				s.Device(d, d.At)
			}
		})
	}
}
