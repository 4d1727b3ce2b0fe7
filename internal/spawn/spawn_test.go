// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// program makes this test binary the one under test: a Go program, as the Collector is, that does these things one after the other
// and then waits.
func program(t *testing.T, steps ...string) {
	self, err := os.Executable()
	require.NoError(t, err)
	t.Setenv("OTELCOL_LLM_BIN", self)
	t.Setenv("SPAWN_STEPS", strings.Join(steps, "\n"))
}

func TestMain(m *testing.M) {
	if steps := os.Getenv("SPAWN_STEPS"); steps != "" {
		run(strings.Split(steps, "\n"))
	}
	os.Exit(m.Run())
}

// run is what the program under test does.
func run(steps []string) {
	for _, step := range steps {
		what, of, _ := strings.Cut(step, " ")
		switch what {
		case "say":
			fmt.Println(of)
		case "sleep":
			d, _ := time.ParseDuration(of)
			time.Sleep(d)
		case "listen":
			signals := make(chan os.Signal, 1)
			signal.Notify(signals, syscall.SIGUSR1)
			signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
			go func() {
				for s := range signals {
					if s == syscall.SIGTERM {
						fmt.Println("drained")
						os.Exit(3)
					}
					fmt.Println("heard")
				}
			}()
		}
	}
	time.Sleep(time.Hour)
}

func TestStopIsSIGTERM(t *testing.T) {
	program(t, "listen", "say Everything is ready")
	c := Start(t, Options{Configs: []string{"a.yaml"}, Args: []string{"--flag"}})
	c.WaitReady()
	assert.True(t, c.Running())
	assert.Equal(t, 3, c.Stop())
	assert.Equal(t, 3, c.Stop())
	assert.Contains(t, c.Logs(), "drained")
	assert.False(t, c.Running())
}

// Scenario: a program says that it is ready seconds before it listens for signals, as the Collector may on a busy machine.
// Guarantees: a signal that is sent at once is heard all the same, one that is asked for and the one that ends it.
func TestASignalIsSentWhenItIsHeard(t *testing.T) {
	program(t, "say Everything is ready", "sleep 3s", "listen")
	c := Start(t, Options{})
	c.WaitReady()
	c.Signal(syscall.SIGUSR1)
	c.WaitLog("heard", readyTimeout)
	assert.Equal(t, 3, c.Stop())

	c = Start(t, Options{})
	c.WaitReady()
	assert.Equal(t, 3, c.Stop())
	assert.Contains(t, c.Logs(), "drained")
}

func TestKillIsACrash(t *testing.T) {
	program(t, "listen", "say Everything is ready")
	c := Start(t, Options{})
	c.WaitReady()
	c.Kill()
	assert.NotContains(t, c.Logs(), "drained")
}

func TestConfigsAndEnvironmentArePassed(t *testing.T) {
	fake(t, `echo "$@ $SPAWN_TEST"`)
	c := Start(t, Options{Configs: []string{"a", "b"}, Args: []string{"c"}, Env: []string{"SPAWN_TEST=d"}})
	c.WaitLog("--config a --config b c d\n", readyTimeout)

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
		require.False(t, reserve(port), "another test binary does not get it")
	}
}

// fake makes a shell script the binary under test.
func fake(t *testing.T, script string) {
	path := filepath.Join(t.TempDir(), "fake")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	t.Setenv("OTELCOL_LLM_BIN", path)
}
