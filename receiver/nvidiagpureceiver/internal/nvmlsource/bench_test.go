// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu/fakegputest"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// groups are the points of the groups.
func groups(list ...gpu.Group) (want gpu.Set) {
	for p := range gpu.Points {
		for _, g := range list {
			if gpu.Rows[p].Metric.Group == g {
				want.Add(p)
			}
		}
	}
	return want
}

// collectorHeap is how much an idle Collector holds, by which the garbage collector goes: around a small heap it runs all the
// time.
const collectorHeap = 64 << 20

// BenchmarkRead is a reading of 8 GPUs with 20 processes each, beside the same calls in C, and by cgo and nothing else. All go to the fake, whose calls
// take a tenth of a microsecond: those of a driver take a hundred times that.
func BenchmarkRead(b *testing.B) {
	for _, bench := range []struct {
		name string
		want gpu.Set
	}{
		{"cheap", groups(gpu.Cheap)},
		{"cheap+process", groups(gpu.Cheap, gpu.PerProcess)},
		{"all", groups(gpu.Cheap, gpu.PerProcess, gpu.Expensive)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			fakegputest.Show(b, fakegpu.Server(8, 20, 4000))
			s := New(Options{Library: fakegputest.Library()})
			require.NoError(b, s.Open(b.Context(), func(gpu.Event) {}))
			defer func() { require.NoError(b, s.Close()) }()
			var into gpu.Snapshot
			at := time.Now()
			s.now = func() time.Time { return at }
			read := func() {
				at = at.Add(time.Second) // samples of GPM come no closer than 100 ms
				into.Reset()
				if err := s.Read(b.Context(), &bench.want, &into); err != nil {
					b.Fatal(err)
				}
			}
			read()
			read()
			calls := fakegputest.Stats(b).Calls
			read()
			calls = fakegputest.Stats(b).Calls - calls
			heap := make([]byte, collectorHeap)
			defer runtime.KeepAlive(heap)
			b.ReportAllocs()
			b.ResetTimer()
			before := cpu(b)
			for range b.N {
				read()
			}
			used := cpu(b) - before
			b.StopTimer()
			ours := float64(used.Nanoseconds()) / float64(b.N)
			inC, inGo := runFloor(b, bench.name, max(b.N, 2000))
			b.ReportMetric(ours/1000, "cpu-µs/op")
			b.ReportMetric(ours/inC, "of-c")
			b.ReportMetric(ours/inGo, "of-cgo")
			b.ReportMetric(float64(calls), "calls/op")
		})
	}
}

// cpu is the CPU time of this process.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// runFloor is the CPU time of the bare calls of a reading, in nanoseconds: in C, and from Go by cgo (testdata/floor).
func runFloor(b *testing.B, what string, readings int) (inC, inGo float64) {
	b.Helper()
	header, err := fakegpu.HeaderDir()
	require.NoError(b, err)
	program := filepath.Join(b.TempDir(), "floor")
	build := exec.Command("go", "build", "-o", program, "./testdata/floor")
	build.Env = append(os.Environ(), "CGO_CFLAGS=-O2 -Wno-deprecated-declarations -DNVML_NO_UNVERSIONED_FUNC_DEFS=1 -I"+header, "CGO_LDFLAGS="+fakegputest.Library())
	out, err := build.CombinedOutput()
	require.NoError(b, err, "%s", out)
	scenario := filepath.Join(b.TempDir(), "scenario")
	require.NoError(b, fakegpu.Server(8, 20, 4000).Write(scenario))
	cmd := exec.Command(program, what, strconv.Itoa(readings))
	cmd.Env = append(os.Environ(), fakegpu.Variable+"="+scenario, "LD_LIBRARY_PATH="+filepath.Dir(fakegputest.Library()))
	out, err = cmd.Output()
	require.NoError(b, err)
	_, err = fmt.Sscan(string(out), &inC, &inGo)
	require.NoError(b, err, "%s", out)
	return inC, inGo
}
