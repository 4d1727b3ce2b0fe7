// SPDX-License-Identifier: Apache-2.0

package workloadtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// twoTicks are those of the clock that /proc tells the start of a process by.
const twoTicks = 20 * time.Millisecond

// Start runs a process that does nothing until the test ends, from an executable of this name. It has started for certain
// before a kubelet that is asked from now on.
func Start(t testing.TB, name string) *exec.Cmd {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	content, err := os.ReadFile(sleep)
	require.NoError(t, err)
	binary := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(binary, content, 0o755)) //nolint:gosec // it is executed
	cmd := exec.Command(binary, "3600")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { End(cmd) })
	time.Sleep(twoTicks)
	return cmd
}

// End ends a process, if it has not ended.
func End(cmd *exec.Cmd) {
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()         // killed
}

// PID is that of a process.
func PID(cmd *exec.Cmd) uint32 { return uint32(cmd.Process.Pid) }

// Pod is the path of a control group that containerd makes for a container of a pod.
func Pod(uid, id string) string {
	return "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + strings.ReplaceAll(uid, "-", "_") + ".slice/cri-containerd-" + id + ".scope"
}

// Move moves a process into a control group, as a container runtime does. Both are gone when the test ends.
func Move(t testing.TB, cmd *exec.Cmd, path string) {
	t.Helper()
	root := Cgroups(t)
	folder := filepath.Join(root, path)
	require.NoError(t, os.MkdirAll(folder, 0o750))
	t.Cleanup(func() {
		End(cmd)
		for at := folder; at != root; at = filepath.Dir(at) {
			if os.Remove(at) != nil { // others are in it
				return
			}
		}
	})
	require.NoError(t, os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600))
}

// Cgroups is where control groups of version 2 are mounted.
func Cgroups(t testing.TB) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == "cgroup2" {
			return fields[1]
		}
	}
	t.Fatal("no cgroup2 is mounted on this machine")
	return ""
}
