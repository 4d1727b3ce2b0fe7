// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

// storeConfig has one component that keeps its state in a file.
const storeConfig = `
extensions:
  file_storage: {directory: %q, timeout: 500ms, recreate: %t}
receivers:
  otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}
exporters:
  otlp_http: {endpoint: "http://127.0.0.1:1", sending_queue: {storage: file_storage}}
service:
  extensions: [file_storage]
  pipelines:
    metrics: {receivers: [otlp], exporters: [otlp_http]}
  telemetry: {metrics: {level: none}}
`

const (
	storeFile = "exporter_otlp_http__metrics"
	pageSize  = 4096
)

// newStore makes a sound file of three keys.
func newStore(t *testing.T, dir string) (path string) {
	t.Helper()
	factory := filestorage.NewFactory()
	cfg := factory.CreateDefaultConfig().(*filestorage.Config)
	cfg.Directory = dir
	ext, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	client, err := ext.(storage.Extension).GetClient(t.Context(), component.KindExporter, component.MustNewID("otlp_http"), "metrics")
	require.NoError(t, err)
	for _, key := range []string{"key-a", "key-b", "key-c"} {
		require.NoError(t, client.Set(t.Context(), key, bytes.Repeat([]byte("value "), 500)))
	}
	require.NoError(t, client.Close(t.Context()))
	return filepath.Join(dir, storeFile)
}

// rewrite changes the bytes of a file.
func rewrite(t *testing.T, path string, change func(data []byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, change(data), 0o600))
}

// rootPage is where the newest of the two meta pages of a bbolt file says that its tree begins.
func rootPage(data []byte) int {
	const header, root, txid = 16, 16, 48
	first, second := data[header:], data[pageSize+header:]
	if binary.NativeEndian.Uint64(second[txid:]) > binary.NativeEndian.Uint64(first[txid:]) {
		first = second
	}
	return int(binary.NativeEndian.Uint64(first[root:])) * pageSize
}

// Guarantees: what internal/checkpoint/README.md says of damaged files is what the shipped binary does.
func TestWhatADamagedStoreDoesIsWhatTheDocumentSays(t *testing.T) {
	t.Parallel()
	const starts, refuses, crashes = 0, 1, 2
	document, err := os.ReadFile(filepath.Join(spawn.Root(t), "internal", "checkpoint", "README.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(document), "\n## When the store is damaged\n")
	require.True(t, found)

	f := func(name string, damage func(path string), says string, without, with int) {
		t.Helper()
		assert.Contains(t, section, name)
		assert.Contains(t, section, says)
		for recreate, want := range map[bool]int{false: without, true: with} {
			t.Run(fmt.Sprintf("%s, recreate=%t", name, recreate), func(t *testing.T) {
				parallel(t)
				dir := t.TempDir()
				damage(newStore(t, dir))
				c := spawn.Start(t, spawn.Options{Configs: []string{spawn.WriteConfig(t, fmt.Sprintf(storeConfig, dir, recreate))}})
				backups := func() []string {
					all, err := filepath.Glob(filepath.Join(dir, storeFile+".*.backup"))
					require.NoError(t, err)
					return all
				}
				if want == starts {
					c.WaitReady()
					assert.Equal(t, 0, c.Stop())
					if without != starts {
						assert.Contains(t, c.Logs(), "Database corruption detected, recreating database file")
						assert.Len(t, backups(), 1)
					}
					return
				}
				c.WaitLog(says, patience)
				require.Eventually(t, func() bool { return !c.Running() }, patience, 10*time.Millisecond, "it hangs")
				assert.Equal(t, want, c.Stop())
				assert.Empty(t, backups())
			})
		}
	}
	cut := func(size int64) func(string) {
		return func(path string) { require.NoError(t, os.Truncate(path, size)) }
	}
	f("sound", func(string) {}, "", starts, starts)
	f("empty", cut(0), "", starts, starts)
	f("a flipped bit in a value", func(path string) {
		rewrite(t, path, func(data []byte) []byte { return bytes.ReplaceAll(data, []byte("value"), []byte("valuf")) })
	}, "", starts, starts)
	f("another file's content", func(path string) {
		rewrite(t, path, func([]byte) []byte { return bytes.Repeat([]byte("this is no database\n"), 1000) })
	}, `failed to start "otlp_http" exporter: invalid database`, refuses, refuses)
	f("cut to one page", cut(pageSize), `failed to start "otlp_http" exporter: file size too small 4096`, refuses, refuses)
	f("cut short", cut(2*pageSize), "fatal error: fault", crashes, crashes)
	f("a lost page", func(path string) {
		rewrite(t, path, func(data []byte) []byte {
			clear(data[rootPage(data):][:pageSize])
			return data
		})
	}, "panic: assertion failed: Page expected to be: ", crashes, starts)
	f("a damaged key", func(path string) {
		rewrite(t, path, func(data []byte) []byte { return bytes.ReplaceAll(data, []byte("key-b"), []byte("kez-b")) })
	}, "panic: freepages: failed to get all reachable pages (", crashes, crashes)
	f("locked", func(path string) {
		file, err := os.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, file.Close()) })
		require.NoError(t, syscall.Flock(int(file.Fd()), syscall.LOCK_EX))
	}, `failed to start "otlp_http" exporter: timeout`, refuses, refuses)
	if os.Geteuid() != 0 { // root may read everything
		f("another user's", func(path string) { require.NoError(t, os.Chmod(path, 0)) }, "permission denied", refuses, refuses)
	}
}
