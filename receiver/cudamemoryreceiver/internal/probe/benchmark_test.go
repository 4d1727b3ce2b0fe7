// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-llm/otelcol-llm/internal/fakecuda"
)

// emptyProbes puts programs that do nothing on all functions of a file: what the kernel takes for the probes alone.
func emptyProbes(tb testing.TB, path string) {
	tb.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	require.NoError(tb, err)
	file, err := os.Open(path)
	require.NoError(tb, err)
	defer file.Close()
	found, err := functionsIn(file)
	require.NoError(tb, err)
	var where link.UprobeMultiOptions
	for _, f := range found {
		where.Addresses = append(where.Addresses, f.offset)
	}
	executable, err := link.OpenExecutable(path)
	require.NoError(tb, err)
	leave, err := executable.UretprobeMulti(nil, program, &where)
	require.NoError(tb, err)
	enter, err := executable.UprobeMulti(nil, program, &where)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		_ = enter.Close()
		_ = leave.Close()
		_ = program.Close()
	})
}

// used is the CPU time of a workload in nanoseconds: on a busy machine, the clock says something else.
func used(tb testing.TB, w *fakecuda.Workload) int64 {
	tb.Helper()
	answer, err := w.Do("cpu")
	require.NoError(tb, err)
	n, err := strconv.ParseInt(answer, 10, 64)
	require.NoError(tb, err)
	return n
}

// BenchmarkOverheadOfACall times the driver's functions without a probe, with one that does nothing, and with ours, by turns:
// none-ns, empty-ns and ours-ns are CPU time of a call in the median round.
func BenchmarkOverheadOfACall(b *testing.B) {
	built, err := fakes()
	require.NoError(b, err)
	dir := b.TempDir()
	driver, err := os.ReadFile(built.Driver)
	require.NoError(b, err)
	variants := []string{"none", "empty", "ours"}
	path := func(variant string) string {
		if variant == "ours" {
			return filepath.Join(dir, "libcuda.so.1")
		}
		return filepath.Join(dir, variant+".so")
	}
	for _, v := range variants {
		require.NoError(b, os.WriteFile(path(v), driver, 0o755))
	}
	emptyProbes(b, path("empty"))
	f := func(name, command string, calls int, opts Options) {
		b.Run(name, func(b *testing.B) {
			opts.ProcRoot = b.TempDir()
			p, err := Start(opts)
			require.NoError(b, err)
			defer func() { _ = p.Close() }()
			all := map[string]*fakecuda.Workload{}
			for _, v := range variants {
				w, err := fakecuda.Run(exec.Command(built.Workload))
				require.NoError(b, err)
				defer func() { _ = w.Kill() }()
				show(b, opts.ProcRoot, w)
				_, err = w.Do("load " + path(v))
				require.NoError(b, err)
				all[v] = w
			}
			result, err := p.Scan()
			require.NoError(b, err)
			require.Equal(b, 1, result.Files)
			times := map[string][]float64{}
			const each = 2000
			for b.Loop() {
				for _, v := range variants {
					start := used(b, all[v])
					_, err := all[v].Do(fmt.Sprintf(command, each))
					require.NoError(b, err)
					times[v] = append(times[v], float64(used(b, all[v])-start)/float64(each*calls))
				}
			}
			median := func(v string) float64 { slices.Sort(times[v]); return times[v][len(times[v])/2] }
			for _, v := range variants {
				b.ReportMetric(median(v), v+"-ns")
			}
			b.ReportMetric(median("ours")/median("empty"), "ours/empty")
			b.ReportMetric(0, "ns/op")
		})
	}
	f("alloc and free", "churn cuMemAlloc_v2 cuMemFree_v2 %d 4096", 2, Options{})
	f("alloc and free, told", "churn cuMemAlloc_v2 cuMemFree_v2 %d 4096", 2, Options{Changed: func(Change) {}})
	f("launch", "launch cuLaunchKernel %d", 1, Options{Launches: true})
}

// BenchmarkRead is reading all processes.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(fmt.Sprintf("processes=%d", n), func(b *testing.B) {
			p, err := Start(Options{})
			require.NoError(b, err)
			defer func() { _ = p.Close() }()
			for i := range n {
				require.NoError(b, p.kernel.Processes.Put(uint32(i+1), &countersProcess{Pid: uint32(i + 1), Held: [3]uint64{1}}))
			}
			b.ReportAllocs()
			before := cpu(b)
			for b.Loop() {
				seen := 0
				require.NoError(b, p.Read(func(*Process) { seen++ }))
				require.Equal(b, n, seen)
			}
			used := float64((cpu(b) - before).Nanoseconds()) / float64(b.N)
			b.ReportMetric(used, "cpu-ns/op")
			b.ReportMetric(used/float64(n), "cpu-ns/process")
		})
	}
}

// BenchmarkScan is a scan of 500 processes when nothing has changed; first-µs is the one that finds them.
func BenchmarkScan(b *testing.B) {
	built, err := fakes()
	require.NoError(b, err)
	root := b.TempDir()
	for range 500 {
		w, err := fakecuda.Run(exec.Command(built.Workload))
		require.NoError(b, err)
		defer func() { _ = w.Kill() }()
		_, err = w.Do("load " + built.Driver)
		require.NoError(b, err)
		show(b, root, w)
	}
	p, err := Start(Options{ProcRoot: root})
	require.NoError(b, err)
	defer func() { _ = p.Close() }()
	start := time.Now()
	result, err := p.Scan()
	require.NoError(b, err)
	require.Equal(b, 500, result.Processes)
	first := time.Since(start)
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		_, err := p.Scan()
		require.NoError(b, err)
	}
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
	b.ReportMetric(float64(first.Microseconds()), "first-µs")
}

// BenchmarkEvents is five seconds with 100,000 calls a second by ten processes, and what this one takes for it: with each
// change told, a scan and a reading a second.
func BenchmarkEvents(b *testing.B) {
	built, err := fakes()
	require.NoError(b, err)
	var told atomic.Int64
	p, err := Start(Options{Changed: func(Change) { told.Add(1) }})
	require.NoError(b, err)
	defer func() { _ = p.Close() }()
	const processes, pairs, seconds = 10, 5000, 5
	var all []*fakecuda.Workload
	for range processes {
		w, err := fakecuda.Run(exec.Command(built.Workload))
		require.NoError(b, err)
		defer func() { _ = w.Kill() }()
		_, err = w.Do("load " + built.Driver)
		require.NoError(b, err)
		all = append(all, w)
	}
	_, err = p.Scan()
	require.NoError(b, err)
	rounds := 0
	before := cpu(b)
	for b.Loop() {
		rounds++
		for _, w := range all {
			require.NoError(b, w.Send(fmt.Sprintf("rate cuMemAlloc_v2 cuMemFree_v2 %d 4096 %d", pairs*seconds, pairs)))
		}
		done := make(chan error)
		go func() {
			for _, w := range all {
				if _, err := w.Answer(); err != nil {
					done <- err
					return
				}
			}
			close(done)
		}()
		tick := time.NewTicker(time.Second)
		for waiting := true; waiting; {
			select {
			case err := <-done:
				require.NoError(b, err)
				waiting = false
			case <-tick.C:
				_, err := p.Scan()
				require.NoError(b, err)
				require.NoError(b, p.Read(func(*Process) {}))
			}
		}
		tick.Stop()
	}
	took := cpu(b) - before
	calls := uint64(0)
	require.NoError(b, p.Read(func(x *Process) { calls += x.Allocations + x.Frees }))
	assert.Equal(b, uint64(2*processes*pairs*seconds*rounds), calls)
	assert.Equal(b, Drops{}, p.Drops())
	b.ReportMetric(float64(calls)/b.Elapsed().Seconds(), "calls/s")
	b.ReportMetric(100*took.Seconds()/b.Elapsed().Seconds(), "%cpu")
	b.ReportMetric(float64(told.Load())/b.Elapsed().Seconds(), "told/s")
}

// cpu is what this process has used.
func cpu(tb testing.TB) time.Duration {
	tb.Helper()
	var usage unix.Rusage
	require.NoError(tb, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
