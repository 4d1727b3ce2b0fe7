// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/guard"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func newTable(t *testing.T) *Table {
	t.Helper()
	r := workload.NewResolver(workload.Options{})
	t.Cleanup(r.Close)
	table, err := NewTable(Options{CgroupRoot: workloadtest.Cgroups(t), Resolver: r})
	require.NoError(t, err)
	return table
}

// start runs a real process until the test ends.
func start(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { workloadtest.End(cmd) })
	return cmd
}

// stubborn is a process that ignores being asked to end, as it does once the line was read.
func stubborn(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", "trap '' TERM; echo ready; exec sleep 3600")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { workloadtest.End(cmd) })
	_, err = out.Read(make([]byte, 6))
	require.NoError(t, err)
	return cmd
}

func open(t *testing.T, table *Table, pid int) guard.Handle {
	t.Helper()
	h, err := table.Open(pid)
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return h
}

func never() bool { return false }

// forEver is longer than any test may take: who waits for so long fails.
const forEver = 24 * time.Hour

func TestAProcessIsKnownByProc(t *testing.T) {
	table := newTable(t)
	before := time.Now()
	cmd := workloadtest.Start(t, "leaky")
	after := time.Now()
	id := strings.Repeat("0a", 32)
	workloadtest.Move(t, cmd, workloadtest.Pod("0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0", id))
	f, err := table.Look(cmd.Process.Pid, "GPU-a")
	require.NoError(t, err)
	assert.Equal(t, cmd.Path, f.Path)
	assert.Equal(t, "leaky", f.Comm)
	assert.Equal(t, cmd.Path+" 3600", f.Command)
	assert.Equal(t, os.Getuid(), f.UID)
	assert.Equal(t, "/"+workloadtest.Pod("0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0", id), f.Cgroup)
	assert.Equal(t, id, f.ContainerID)
	assert.Equal(t, "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0", f.PodUID)
	const tick = time.Second / ticksPerSecond
	assert.GreaterOrEqual(t, f.Started, before.Add(-2*tick).UnixNano())
	assert.LessOrEqual(t, f.Started, after.Add(tick).UnixNano())
	assert.Equal(t, Start(cmd.Process.Pid), f.Start)
	assert.False(t, f.Ended || f.Kernel || f.Critical)
}

func TestWhatTheMachineNeedsIsKnown(t *testing.T) {
	table := newTable(t)
	f, err := table.Look(2, "") // kthreadd
	require.NoError(t, err)
	assert.True(t, f.Kernel)
	assert.False(t, isNeeded([]byte("0\n"), nil))
	assert.False(t, isNeeded([]byte("-997\n"), nil), "a pod of the class Guaranteed")
	assert.True(t, isNeeded([]byte("-998\n"), nil))
	assert.True(t, isNeeded([]byte("-1000\n"), nil))
	assert.True(t, isNeeded(nil, os.ErrPermission), "nobody knows")
	assert.True(t, isNeeded([]byte("x"), nil))
	assert.Equal(t, []int{os.Getpid(), os.Getppid()}, Ancestors(os.Getpid())[:2])
	assert.NotContains(t, Ancestors(os.Getpid()), 1)
}

func TestAProcessIsAskedToEnd(t *testing.T) {
	table := newTable(t)
	cmd := start(t, "sleep", "3600")
	h := open(t, table, cmd.Process.Pid)
	assert.False(t, h.Wait(0, never))
	require.NoError(t, h.Terminate())
	assert.True(t, h.Wait(forEver, never))
	f, err := table.Look(cmd.Process.Pid, "")
	require.NoError(t, err)
	assert.True(t, f.Ended, "nobody has waited for it yet")
	assert.Zero(t, Start(cmd.Process.Pid))
	_ = cmd.Wait()
	_, err = table.Look(cmd.Process.Pid, "")
	require.ErrorIs(t, err, guard.ErrEnded)
	require.ErrorIs(t, h.Kill(), guard.ErrEnded)
	_, err = table.Open(cmd.Process.Pid)
	require.ErrorIs(t, err, guard.ErrEnded)
}

func TestAProcessThatIgnoresItIsKilled(t *testing.T) {
	table := newTable(t)
	h := open(t, table, stubborn(t).Process.Pid)
	require.NoError(t, h.Terminate())
	begin := time.Now()
	assert.False(t, h.Wait(200*time.Millisecond, never))
	assert.GreaterOrEqual(t, time.Since(begin), 200*time.Millisecond)
	require.NoError(t, h.Kill())
	assert.True(t, h.Wait(forEver, never))
}

func TestWaitingIsCalledOff(t *testing.T) {
	h := open(t, newTable(t), stubborn(t).Process.Pid)
	looks := 0
	assert.False(t, h.Wait(forEver, func() bool { looks++; return looks == 3 }))
}

func TestAProcessThatEndsByItselfIsSeenAtOnce(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { workloadtest.End(cmd) })
	h := open(t, newTable(t), cmd.Process.Pid)
	assert.True(t, h.Wait(forEver, func() bool { _ = in.Close(); return false })) // as soon as somebody waits
}

// Scenario: a process in a control group has started others, one of them in a group below, and all ignore being asked to end.
// Guarantees: all are found and all are ended, and nobody else.
func TestAControlGroupIsEndedWithAllBelow(t *testing.T) {
	table := newTable(t)
	root := filepath.Join("gpuguardtest-"+strconv.Itoa(os.Getpid()), "group")
	first, below, outside := stubborn(t), stubborn(t), stubborn(t)
	workloadtest.Move(t, first, root)
	workloadtest.Move(t, below, filepath.Join(root, "below"))
	workloadtest.Move(t, outside, root+"-outside")
	group, err := table.Group(first.Process.Pid)
	require.NoError(t, err)
	members, err := table.Members(group)
	require.NoError(t, err)
	assert.ElementsMatch(t, []int{first.Process.Pid, below.Process.Pid}, members)
	handles := []guard.Handle{open(t, table, first.Process.Pid), open(t, table, below.Process.Pid)}
	spared := open(t, table, outside.Process.Pid)
	require.NoError(t, table.KillGroup(group))
	for _, h := range handles {
		assert.True(t, h.Wait(forEver, never))
	}
	assert.False(t, spared.Wait(100*time.Millisecond, never))
}

func TestAStartIsByTheClockAsItIsSetNow(t *testing.T) {
	table := newTable(t)
	booted := table.booted.Load()
	table.boot = func() (int64, error) { return booted + int64(time.Millisecond), nil }
	assert.Equal(t, booted+int64(time.Second), table.Started(ticksPerSecond), "what is measured wavers")
	table.boot = func() (int64, error) { return booted - int64(time.Hour), nil }
	assert.Equal(t, booted+int64(time.Second-time.Hour), table.Started(ticksPerSecond))
	assert.Zero(t, table.Started(0))
}

func TestTheRootOfAllControlGroupsIsNeverAGroup(t *testing.T) {
	table := newTable(t)
	cmd := start(t, "sleep", "3600")
	require.NoError(t, os.WriteFile(filepath.Join(workloadtest.Cgroups(t), "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600))
	_, err := table.Group(cmd.Process.Pid)
	require.EqualError(t, err, "the process is in the root of all control groups")

	workloadtest.Move(t, cmd, "gpuguardtest-"+strconv.Itoa(os.Getpid()))
	table.opts.CgroupRoot = t.TempDir()
	_, err = table.Group(cmd.Process.Pid)
	require.ErrorContains(t, err, "cgroup_root: ")
}

func TestLinesOfProcAreReadAsTheKernelWritesThem(t *testing.T) {
	assert.Equal(t, 1000, realUID([]byte("Name:\tx\nUid:\t1000\t0\t0\t0\n")))
	assert.Equal(t, -1, realUID([]byte("Name:\tx\n")))
	hybrid := []byte("12:memory:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n")
	assert.Equal(t, "/docker/abc", first(cgroupPaths(hybrid)))
	assert.Equal(t, "/", unifiedPath(hybrid))
	assert.Equal(t, "/user.slice/a:b", first(cgroupPaths([]byte("4:cpu:/a/very/long/path/of/version/1\n0::/user.slice/a:b\n"))))
	assert.Empty(t, unifiedPath([]byte("4:cpu:/x\n")))
	assert.Empty(t, first(cgroupPaths(nil)))
	assert.Empty(t, first(cgroupPaths([]byte("0::/../../kubepods.slice/x\n"))), "that is not from the top")
}

func first(path string, _ []string) string { return path }

func BenchmarkLook(b *testing.B) {
	r := workload.NewResolver(workload.Options{})
	defer r.Close()
	table, err := NewTable(Options{Resolver: r})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := table.Look(os.Getpid(), ""); err != nil {
			b.Fatal(err)
		}
	}
}
