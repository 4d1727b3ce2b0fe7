// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// Ports are handed out from below those that systems give to connections that go out, and to whoever listens on port 0: one that
// came from there could be another's by the time that the process under test listens on it.
const firstPort, lastPort = 20_000, 32_000

var (
	portsMu sync.Mutex
	handed  = map[int]bool{} // never hand out a port twice in one test binary
)

// FreePort returns a TCP port of 127.0.0.1 that nobody listens on now and that no earlier call returned, here or in another test
// binary that still runs.
func FreePort(t testing.TB) int {
	t.Helper()
	portsMu.Lock()
	defer portsMu.Unlock()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort) // at random, since other test binaries run at the same time
		if handed[port] || !reserve(port) {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue // it is somebody's
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		handed[port] = true
		return port
	}
	t.Fatal("no free port found")
	return 0
}

// reserve keeps a port from the other test binaries until this one ends, also while nobody listens on it, as before a start, or where
// nobody is to be. An abstract socket needs no file, is of the same network namespace as the port, and goes with the process.
func reserve(port int) bool {
	_, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@otelcol-llm-tests/port/" + strconv.Itoa(port), Net: "unix"})
	return err == nil
}

// FreeEndpoint returns FreePort as 127.0.0.1:port.
func FreeEndpoint(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(FreePort(t)))
}

// WriteConfig writes content to a file in a temporary directory and returns its path.
func WriteConfig(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
