// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asHelper names the environment variable by which the test binary is another program: see helper.
const (
	asHelper = "PROBE_TEST_HELPER"
	dropped  = "dropped"
)

// helper is a process of another user with no capabilities but those in the variable: it starts a probe, scans when it reads a
// line, and says what the process is of which it is given the id then.
func helper(names string) int {
	if names != dropped {
		fmt.Println("dropping capabilities:", drop(names))
		return 1
	}
	p, err := Start(Options{ProcRoot: os.Getenv(asHelper + "_ROOT")})
	if err != nil {
		fmt.Println(strings.ReplaceAll(err.Error(), "\n", " "))
		return 0
	}
	defer func() { _ = p.Close() }()
	result, err := p.Scan()
	fmt.Println("scanned", result.Files > 0, result.Err, err)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		err := p.Read(func(x *Process) {
			if fmt.Sprint(x.PID) == in.Text() {
				fmt.Println("live", x.Live, x.Allocations, x.Frees)
			}
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	return 0
}

// drop becomes nobody, with these capabilities alone.
func drop(names string) error {
	runtime.LockOSThread()
	var mask uint64
	for name := range strings.FieldsSeq(names) {
		switch name {
		case "bpf":
			mask |= 1 << unix.CAP_BPF
		case "perfmon":
			mask |= 1 << unix.CAP_PERFMON
		case "ptrace":
			mask |= 1 << unix.CAP_SYS_PTRACE
		}
	}
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return err
	}
	for c := range uintptr(64) {
		if mask&(1<<c) == 0 {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // there are fewer than 64
		}
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, 65534, 65534, 65534); errno != 0 {
		return errno
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
		return errno
	}
	if err := capset(mask, mask); err != nil {
		return err
	}
	for c := range uintptr(64) {
		if mask&(1<<c) != 0 {
			if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, c, 0, 0); err != nil {
				return err
			}
		}
	}
	// Go's other threads still are root: the program starts anew with what this one has.
	if err := os.Setenv(asHelper, dropped); err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", os.Args, os.Environ())
}

func capset(permitted, inheritable uint64) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{
		{Effective: uint32(permitted), Permitted: uint32(permitted), Inheritable: uint32(inheritable)},
		{Effective: uint32(permitted >> 32), Permitted: uint32(permitted >> 32), Inheritable: uint32(inheritable >> 32)},
	}
	_, _, errno := unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Guarantees: CAP_BPF and CAP_PERFMON suffice to probe, with CAP_SYS_PTRACE to see what other users run; without the first two
// there is one error that names them, and nothing else.
func TestTwoCapabilitiesSuffice(t *testing.T) {
	built, err := fakes()
	require.NoError(t, err)
	// Others must be able to execute this and what is here.
	dir := t.TempDir()
	require.NoError(t, os.Chmod(fakesDir, 0o755))
	for at := dir; at != os.TempDir(); at = at[:strings.LastIndexByte(at, '/')] {
		require.NoError(t, os.Chmod(at, 0o755))
	}
	self, err := os.Executable()
	require.NoError(t, err)
	copyTo(t, dir, self)
	r := &rig{T: t, Built: built}
	w := r.start(built.Workload, built.Driver)
	root := dir + "/proc"
	require.NoError(t, os.Mkdir(root, 0o755))
	show(t, root, w)
	f := func(capabilities string, want string, answer string) {
		t.Helper()
		cmd := exec.Command(dir + self[strings.LastIndexByte(self, '/'):])
		cmd.Env = append(os.Environ(), asHelper+"="+capabilities, asHelper+"_ROOT="+root)
		cmd.Dir = dir
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		lines := bufio.NewReader(out)
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		assert.Contains(t, line, want, "with "+capabilities)
		assert.NotContains(t, line, "MEMLOCK", "such a limit is not there any more")
		if answer != "" {
			r.do(w, "alloc cuMemAlloc_v2 10 4096", "10 0")
			r.do(w, "free cuMemFree_v2 4", "4 0")
			_, err = fmt.Fprintln(in, w.PID())
			require.NoError(t, err)
			line, err = lines.ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, answer+"\n", line)
		}
		require.NoError(t, in.Close())
		rest, err := io.ReadAll(lines)
		require.NoError(t, err)
		assert.Empty(t, string(rest))
		require.NoError(t, cmd.Wait())
	}
	f("bpf perfmon ptrace", "scanned true <nil> <nil>", "live 24576 10 4")
	f("bpf perfmon", "scanned ", "") // what it sees of other users depends on the kernel: from 6.15, CAP_PERFMON may read their maps
	f("bpf ptrace", ErrPermission.Error()+": CAP_PERFMON is missing\n", "")
	f("perfmon ptrace", ErrPermission.Error()+": CAP_BPF is missing\n", "")
	f("", ErrPermission.Error()+": CAP_BPF and CAP_PERFMON are missing\n", "")
}

// Guarantees: what would take most of the machine's memory is refused before the kernel is asked, with what would not; what the
// kernel refuses for its size says so.
func TestMoreEntriesThanThereIsMemoryForAreRefused(t *testing.T) {
	_, err := Start(Options{MaxEntries: math.MaxUint32})
	require.ErrorIs(t, err, ErrMemory)
	assert.Regexp(t, `^too many for the kernel's memory: they take 1413119 MiB, and this machine has \d+ MiB: at most \d+ take half of it$`, err)
	for _, refused := range []error{unix.ENOMEM, unix.E2BIG} {
		assert.ErrorIs(t, explain(fmt.Errorf("map create: %w", refused)), ErrMemory)
	}
	assert.NotErrorIs(t, explain(unix.EINVAL), ErrMemory)
}

// Guarantees: the kernels by which a process under a seccomp filter crashes are known, and no others.
func TestKernelsByWhichProcessesCrashAreKnown(t *testing.T) {
	f := func(want bool, releases ...string) {
		t.Helper()
		for _, release := range releases {
			assert.Equal(t, want, crashes(release), release)
		}
	}
	f(true, "6.11.0-29-generic", "6.11.11", "6.12.0", "6.12-rc1", "6.12.13-amd64", "6.13.2", "6.13.0-1.el10.x86_64")
	f(false, "6.6.0", "6.8.0-111-generic", "6.10.14", "6.12.14", "6.12.63+deb13-cloud-amd64", "6.13.3-arch1", "6.14.0", "6.18.44", "7.11.0", "5.12.0", "", "x")
}

// Guarantees: who has the capabilities is not told to get them.
func TestWhatElseForbidsTheProbesIsSaid(t *testing.T) {
	err := explain(fmt.Errorf("map create: %w (MEMLOCK may be too low, consider rlimit.RemoveMemlock)", unix.EPERM))
	require.ErrorIs(t, err, ErrPermission)
	assert.EqualError(t, err, ErrPermission.Error()+": they are there, but something else forbids it: seccomp, lockdown or a security module")
}

// Guarantees: where /proc has other process ids than the kernel tells, nothing is counted under a wrong one.
func TestAnotherPIDNamespaceIsRefused(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", self)
	cmd.Env = append(os.Environ(), asHelper+"="+dropped)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), ErrNamespace.Error())
}
