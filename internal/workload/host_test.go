// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
)

// What the tests need of a real host besides workloadtest: themselves as somebody else, and odd forms of /proc.

const childEnv = "WORKLOAD_TEST_CHILD"

// question is what a test asks itself as a child process.
type question struct {
	ProcRoot string
	PID      uint32
}

type answer struct {
	SeesHost bool
	Process  Process
}

// asChild answers the question in the environment, if there is one.
func asChild() bool {
	var q question
	if json.Unmarshal([]byte(os.Getenv(childEnv)), &q) != nil {
		return false
	}
	r := NewResolver(Options{ProcRoot: q.ProcRoot})
	defer r.Close()
	_ = json.NewEncoder(os.Stdout).Encode(answer{r.SeesHost(), r.Resolve(q.PID, Device{}, 1)}) // a lost answer fails the test
	return true
}

// ask resolves a process in a child process that attr makes different, and that a command starts if there is one.
func ask(t *testing.T, attr *syscall.SysProcAttr, q question, by ...string) (a answer) {
	t.Helper()
	text, err := json.Marshal(q)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	// Where everybody may read it.
	binary := filepath.Join(open(t), "workload.test")
	content, err := os.ReadFile(self)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(binary, content, 0o755))
	by = append(by, binary)
	cmd := exec.Command(by[0], by[1:]...)
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	cmd.Dir = "/"
	cmd.SysProcAttr = attr
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(out, &a))
	return a
}

// open is a temporary folder that everybody may enter.
func open(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "workload")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	require.NoError(t, os.Chmod(folder, 0o755))
	return folder
}

// hidden is a /proc in which nobody but root sees processes of others.
func hidden(t *testing.T) string {
	t.Helper()
	folder := open(t)
	require.NoError(t, unix.Mount("proc", folder, "proc", 0, "hidepid=2"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(folder, unix.MNT_DETACH)) })
	return folder
}

// reincarnate starts a process that has the PID of one that has ended.
func reincarnate(t *testing.T, number int, start func() *exec.Cmd) *exec.Cmd {
	t.Helper()
	for range 100 {
		require.NoError(t, os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(number-1)), 0o600))
		cmd := start()
		if cmd.Process.Pid == number {
			return cmd
		}
		workloadtest.End(cmd) // another process was faster
	}
	t.Fatal("the PID was taken a hundred times")
	return nil
}

// process writes what /proc would hold of a process below root.
func process(t testing.TB, root string, pid int, comm string, start int, cgroup string) {
	t.Helper()
	folder := filepath.Join(root, strconv.Itoa(pid))
	require.NoError(t, os.MkdirAll(folder, 0o755))
	for name, content := range map[string]string{
		"comm":   comm + "\n",
		"stat":   fmt.Sprintf("%d (%s) S 1 %s%d 0 0\n", pid, comm, strings.Repeat("0 ", 17), start),
		"cgroup": cgroup,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
}
