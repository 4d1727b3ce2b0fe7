// SPDX-License-Identifier: Apache-2.0

// Package fakegputest gives the tests of a package a fake NVML.
//
//	func TestMain(m *testing.M) { os.Exit(fakegputest.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		world := fakegputest.Show(t, fakegpu.H100())
//		… nvml.Open(fakegputest.Library()) …
//		world.GPUs[0].Set("temperature", 91)
//		fakegputest.Change(t, world)
//	}
package fakegputest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/fakegpu"
)

// missingVariable tells a child which functions its library does not have.
const missingVariable = "OTELCOL_LLM_FAKEGPUTEST_MISSING"

var library string

// Main builds the library, runs the tests, and returns what os.Exit wants.
func Main(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fakegputest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	library, err = fakegpu.Build(dir, strings.Fields(os.Getenv(missingVariable))...)
	if err == nil {
		err = os.Setenv(fakegpu.Variable, filepath.Join(dir, "scenario"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// Library is the path of the fake.
func Library() string { return library }

func scenario() string { return os.Getenv(fakegpu.Variable) }

// Show writes the scenario and returns it. When the test ends, nothing may be open, and nothing may have been used that was
// not, or not any more.
func Show(t testing.TB, s *fakegpu.Scenario) *fakegpu.Scenario {
	t.Helper()
	Change(t, s)
	t.Cleanup(func() {
		if stats := Stats(t); stats.Calls > 0 {
			require.Equal(t, fakegpu.Stats{Calls: stats.Calls, PcieThroughput: stats.PcieThroughput, Reloads: stats.Reloads}, stats, "what was opened is closed")
		}
		Unload(t)
	})
	return s
}

// Change writes the scenario anew.
func Change(t testing.TB, s *fakegpu.Scenario) {
	t.Helper()
	require.NoError(t, s.Write(scenario()))
}

// Unload takes the scenario away: there is no driver.
func Unload(t testing.TB) {
	t.Helper()
	require.NoError(t, os.Remove(scenario()))
	fakegpu.Settle()
}

// Stats are what the library has counted, in this process.
func Stats(t testing.TB) fakegpu.Stats {
	t.Helper()
	stats, err := fakegpu.NVMLStats(scenario())
	if os.IsNotExist(err) {
		return fakegpu.Stats{}
	}
	require.NoError(t, err)
	return stats
}

// InChild runs the test once more in a process of its own, whose library lacks the missing functions. It is true in that
// process, which has to do the work, and false in the parent, which has seen it pass.
func InChild(t *testing.T, missing ...string) bool {
	t.Helper()
	if os.Getenv(missingVariable) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1") //nolint:gosec // the test itself
	cmd.Env = append(os.Environ(), missingVariable+"="+strings.Join(missing, " ")+" ")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}
