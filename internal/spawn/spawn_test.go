// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStopIsSIGTERM(t *testing.T) {
	fake(t, `trap 'echo drained; exit 3' TERM; echo Everything is ready; while :; do sleep 0.01; done`)
	c := Start(t, Options{Configs: []string{"a.yaml"}, Args: []string{"--flag"}})
	c.WaitReady()
	assert.True(t, c.Running())
	assert.Equal(t, 3, c.Stop())
	assert.Equal(t, 3, c.Stop())
	assert.Contains(t, c.Logs(), "drained")
	assert.False(t, c.Running())
}

// Scenario: a program says that it is ready before it listens for signals, as the Collector does, on a busy machine.
// Guarantees: a signal that is sent at once is heard all the same, one that is asked for and the one that ends it.
func TestASignalIsSentWhenItIsHeard(t *testing.T) {
	fake(t, `echo Everything is ready; sleep 0.4; trap 'echo drained; exit 3' TERM; trap 'echo heard' USR1; while :; do sleep 0.01; done`)
	c := Start(t, Options{})
	c.WaitReady()
	c.Signal(syscall.SIGUSR1)
	c.WaitLog("heard", 5*time.Second)
	assert.Equal(t, 3, c.Stop())

	c = Start(t, Options{})
	c.WaitReady()
	assert.Equal(t, 3, c.Stop())
	assert.Contains(t, c.Logs(), "drained")
}

func TestKillIsACrash(t *testing.T) {
	fake(t, `trap 'echo drained; exit 3' TERM; echo Everything is ready; while :; do sleep 0.01; done`)
	c := Start(t, Options{})
	c.WaitReady()
	c.Kill()
	assert.NotContains(t, c.Logs(), "drained")
}

func TestConfigsAndEnvironmentArePassed(t *testing.T) {
	fake(t, `echo "$@ $SPAWN_TEST"`)
	c := Start(t, Options{Configs: []string{"a", "b"}, Args: []string{"c"}, Env: []string{"SPAWN_TEST=d"}})
	c.WaitLog("--config a --config b c d\n", 5*time.Second)

	out, code := Run(t, "validate")
	assert.Equal(t, "validate \n", out)
	assert.Zero(t, code)
}

func TestPortsAreHandedOutOnce(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		port := FreePort(t)
		require.False(t, seen[port])
		seen[port] = true
	}
}

// fake makes a shell script the binary under test.
func fake(t *testing.T, script string) {
	path := filepath.Join(t.TempDir(), "fake")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	t.Setenv("OTELCOL_LLM_BIN", path)
}
