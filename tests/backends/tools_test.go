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

// keep starts a tool and ends it with the test. Its output is shown when the test failed.
func keep(t testing.TB, path string, args ...string) {
	t.Helper()
	var out bytes.Buffer // read only after the process has ended
	cmd := exec.Command(path, args...)
	cmd.Dir = t.TempDir()
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is ended by a signal
		close(done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // fails only when it has already ended
		select {
		case <-done:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", cmd, out.String())
		}
	})
}
