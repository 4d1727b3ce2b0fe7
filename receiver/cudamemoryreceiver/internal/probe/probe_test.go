// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakecuda"
)

var fakes = sync.OnceValues(func() (fakecuda.Built, error) { return fakecuda.Build(fakesDir) })

var fakesDir string

func TestMain(m *testing.M) {
	if names, ok := os.LookupEnv(asHelper); ok {
		os.Exit(helper(names))
	}
	var err error
	if fakesDir, err = os.MkdirTemp("", "probe"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(fakesDir)
	os.Exit(code)
}

// rig is a probe and workloads that it watches.
type rig struct {
	*testing.T
	*Probe
	fakecuda.Built
}

// newRig starts a probe. These tests need root, a kernel of 6.6 or newer and gcc, and fail without: what they show is what no
// other test can.
//
// Without another ProcRoot, the probe scans the rig's processes alone: others may run fakes at the same time.
func newRig(t *testing.T, opts Options) *rig {
	t.Helper()
	if opts.ProcRoot == "" {
		opts.ProcRoot = t.TempDir()
	}
	built, err := fakes()
	require.NoError(t, err)
	p, err := Start(opts)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	return &rig{T: t, Probe: p, Built: built}
}

// start runs a workload with these libraries loaded.
func (r *rig) start(program string, libraries ...string) *fakecuda.Workload {
	r.Helper()
	return r.run(exec.Command(program), libraries...)
}

func (r *rig) run(cmd *exec.Cmd, libraries ...string) *fakecuda.Workload {
	r.Helper()
	cmd.Stderr = os.Stderr
	w, err := fakecuda.Run(cmd)
	require.NoError(r, err)
	r.Cleanup(func() { _ = w.Kill() })
	if r.Probe != nil && r.opts.ProcRoot != "/proc" {
		show(r, r.opts.ProcRoot, w)
	}
	for _, library := range libraries {
		r.do(w, "load "+library, "")
	}
	return w
}

// show makes a process one of those below a ProcRoot.
func show(tb testing.TB, root string, w *fakecuda.Workload) {
	tb.Helper()
	pid := strconv.Itoa(w.PID())
	require.NoError(tb, os.Symlink("/proc/"+pid, filepath.Join(root, pid)))
}

// do tells a workload a command, which has to be answered so.
func (r *rig) do(w *fakecuda.Workload, command, want string) {
	r.Helper()
	got, err := w.Do(command)
	require.NoError(r, err)
	require.Equal(r, want, got, command)
}

// scan scans, and nothing goes wrong.
func (r *rig) scan() ScanResult {
	r.Helper()
	result, err := r.Scan()
	require.NoError(r, err)
	require.NoError(r, result.Err)
	return result
}

// read is what all processes are, by PID; of several programs of one, the newest.
func (r *rig) read() map[int]Process {
	r.Helper()
	all := map[int]Process{}
	require.NoError(r, r.Read(func(p *Process) {
		if old, ok := all[p.PID]; !ok || old.ID < p.ID {
			all[p.PID] = *p
		}
	}))
	return all
}

// process is what one is that rests: of others a counter may be ahead of another.
func (r *rig) process(w *fakecuda.Workload) Process {
	r.Helper()
	p, ok := r.read()[w.PID()]
	require.True(r, ok, "process %d is not known", w.PID())
	require.Equal(r, p.Live, p.Allocated-p.Freed-p.Released, "live is what was allocated and neither freed nor released")
	require.Equal(r, p.Allocations, sum(p.Sizes[:]), "every allocation has a size")
	require.Equal(r, p.Launches, sum(p.LaunchDurations[:]), "every launch has a duration")
	return p
}

func sum(all []uint64) (n uint64) {
	for _, x := range all {
		n += x
	}
	return n
}

// eventually waits for something that happens soon.
func (r *rig) eventually(what string, ok func() bool) {
	r.Helper()
	require.Eventually(r, ok, time.Minute, 5*time.Millisecond, what)
}

// Scenario: ten processes allocate and free ten thousand times each at the same time.
// Guarantees: every call and every byte is counted, of the runtime, of the driver below it, and of both mixed.
func TestEveryCallIsCountedOnce(t *testing.T) {
	f := func(name, alloc, free string, libraries func(fakecuda.Built) []string) {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{MaxEntries: 1 << 17, ProcRoot: "/proc"})
			var all []*fakecuda.Workload
			for range 10 {
				all = append(all, r.start(r.Workload, libraries(r.Built)...))
			}
			r.scan()
			for i, w := range all {
				require.NoError(t, w.Send(fmt.Sprintf("alloc %s 10000 %d", alloc, 1000+i)))
			}
			for _, w := range all {
				answer, err := w.Answer()
				require.NoError(t, err)
				require.Equal(t, "10000 0", answer)
			}
			for i, w := range all {
				p := r.process(w)
				want := uint64(10000 * (1000 + i))
				assert.Equal(t, []uint64{want, want, 0, 10000, 0, 0, 0}, []uint64{p.Live, p.Allocated, p.Freed, p.Allocations, p.Frees, p.Failures, p.UnknownFrees})
				assert.Equal(t, uint64(10000), p.Sizes[10], "1000 to 1024 bytes are in (512, 1024]")
				require.NoError(t, w.Send("free "+free+" 9999"))
			}
			for i, w := range all {
				answer, err := w.Answer()
				require.NoError(t, err)
				require.Equal(t, "9999 0", answer)
				p := r.process(w)
				size := uint64(1000 + i)
				assert.Equal(t, []uint64{size, 10000 * size, 9999 * size, 10000, 9999, 0, 0}, []uint64{p.Live, p.Allocated, p.Freed, p.Allocations, p.Frees, p.Failures, p.UnknownFrees})
			}
			assert.Equal(t, Drops{}, r.Drops())
		})
	}
	runtime := func(b fakecuda.Built) []string { return []string{b.Runtime} }
	driver := func(b fakecuda.Built) []string { return []string{b.Driver} }
	both := func(b fakecuda.Built) []string { return []string{b.Runtime, b.Driver} }
	f("runtime over driver", "cudaMalloc", "cudaFree", runtime)
	f("driver", "cuMemAlloc_v2", "cuMemFree_v2", driver)
	f("runtime's malloc and driver's free", "cudaMalloc", "cuMemFree_v2", both)
	f("driver's malloc and runtime's free", "cuMemAlloc_v2", "cudaFree", both)
	f("asynchronous", "cudaMallocAsync", "cudaFreeAsync", runtime)
	f("handles", "cuMemCreate", "cuMemRelease", driver)
}
