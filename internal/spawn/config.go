// SPDX-License-Identifier: Apache-2.0

package spawn

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

var (
	portsMu sync.Mutex
	handed  = map[int]bool{} // never hand out a port twice in one test binary
)

// FreePort returns a TCP port of 127.0.0.1 that nobody listens on now and that no earlier call returned.
func FreePort(t testing.TB) int {
	t.Helper()
	portsMu.Lock()
	defer portsMu.Unlock()
	for range 100 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		if !handed[port] {
			handed[port] = true
			return port
		}
	}
	t.Fatal("no free port found")
	return 0
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
