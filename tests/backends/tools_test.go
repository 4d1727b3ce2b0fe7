// SPDX-License-Identifier: Apache-2.0

//go:build backends

package backends

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// tool is the path of a tool in .tools/, at the version that tools/versions.env names by a variable.
func tool(t testing.TB, name, variable string) string {
	t.Helper()
	root := spawn.Root(t)
	versions, err := os.ReadFile(filepath.Join(root, "tools", "versions.env"))
	require.NoError(t, err)
	m := regexp.MustCompile(`(?m)^` + variable + `=(\S+)$`).FindSubmatch(versions)
	require.NotNil(t, m, "tools/versions.env has no %s", variable)
	path := filepath.Join(root, ".tools", fmt.Sprintf("%s-%s", name, m[1]))
	_, err = os.Stat(path)
	require.NoError(t, err, "%s is missing: `make test-backends` builds it", name)
	return path
}

func sloth(t testing.TB) string      { return tool(t, "sloth", "SLOTH_VERSION") }
func prometheus(t testing.TB) string { return tool(t, "prometheus", "PROMETHEUS_VERSION") }
func promtool(t testing.TB) string   { return tool(t, "promtool", "PROMETHEUS_VERSION") }

// run runs a tool to its end.
func run(t testing.TB, path string, args ...string) string {
	t.Helper()
	out, err := exec.Command(path, args...).CombinedOutput()
	require.NoError(t, err, "%s %v: %s", path, args, out)
	return string(out)
}

// process is a tool that runs beside a test, and can be stopped and started again.
type process struct {
	t    testing.TB
	path string
	args []string
	dir  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	out  bytes.Buffer  // read only after it has ended
}

// keep starts a tool and ends it with the test. Its output is shown when the test failed.
func keep(t testing.TB, path string, args ...string) *process {
	t.Helper()
	p := &process{t: t, path: path, args: args, dir: t.TempDir()}
	p.start()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("log of %s:\n%s", p.cmd, p.out.String())
		}
	})
	return p
}

// start starts it, again after a stop.
func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(p.path, p.args...)
	p.cmd.Dir = p.dir
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	require.NoError(p.t, p.cmd.Start())
	p.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait() // it is ended by a signal
		close(done)
	}(p.cmd, p.done)
}

// stop ends it, and waits until it has ended. Who is killed loses what it has taken, so it has time.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only when it has already ended
	select {
	case <-p.done:
	case <-time.After(arrives):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}
