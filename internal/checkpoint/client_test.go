// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// host is a Collector with these extensions.
type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

var (
	fileStorage = component.MustNewID("file_storage")
	owner       = component.MustNewIDWithName("slo", "chat")
)

// fileHost is a Collector with a file_storage that keeps its files in dir.
func fileHost(t testing.TB, dir string, recreate ...bool) host {
	t.Helper()
	factory := filestorage.NewFactory()
	cfg := factory.CreateDefaultConfig().(*filestorage.Config)
	cfg.Directory, cfg.Recreate = dir, slices.Contains(recreate, true)
	ext, err := factory.Create(t.Context(), extensiontest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	return host{fileStorage: ext, component.MustNewID("other"): nil}
}

func fileClient(t testing.TB, dir string) storage.Client {
	t.Helper()
	client, err := Client(t.Context(), fileHost(t, dir), fileStorage, component.KindConnector, owner, "")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close(context.Background())) }) // a second Close does nothing
	return client
}

func TestAStateComesBackFromAFile(t *testing.T) {
	dir := t.TempDir()
	for i := range byte(5) {
		client := fileClient(t, dir)
		s, state := opened(t, client)
		assert.Equal(t, uint64(2*i), state.Sequence)
		if i > 0 {
			assert.Equal(t, parts{"kept": {}, "new": {i - 1}}, state.Parts)
		}
		require.NoError(t, s.Save(t.Context(), parts{"kept": {}, "gone": {i}}, nil))
		require.NoError(t, s.Save(t.Context(), parts{"new": {i}}, []string{"gone"}))
		require.NoError(t, client.Close(t.Context()))
	}
	_, err := os.Stat(filepath.Join(dir, "connector_slo_chat"))
	assert.NoError(t, err)
}

func TestADamagedValueInAFileIsPassedOver(t *testing.T) {
	client := fileClient(t, t.TempDir())
	s, _ := opened(t, client)
	require.NoError(t, s.Save(t.Context(), parts{"x": []byte("one")}, nil))
	require.NoError(t, s.Save(t.Context(), parts{"x": []byte("two")}, nil))
	require.NoError(t, client.Set(t.Context(), s.partKey("x", s.parts["x"].Slot), []byte("tvo")))
	state, problems, err := New(client, "test").Load(t.Context())
	require.NoError(t, err)
	assert.Len(t, problems, 1)
	assert.Equal(t, Generation{1, parts{"x": []byte("one")}}, state)
}

func TestWithoutAStorageTheErrorSaysWhatToDo(t *testing.T) {
	f := func(h host, id, want string) {
		t.Helper()
		_, err := Client(t.Context(), h, component.MustNewID(id), component.KindConnector, owner, "")
		assert.ErrorContains(t, err, want)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	f(host{}, "file_storage", `storage: no extension "file_storage" is running: add it under extensions and service.extensions`)
	f(fileHost(t, missing), "other", `storage: extension "other" keeps no state: name a storage extension, such as file_storage`)
	f(fileHost(t, missing), "file_storage", `storage: "file_storage": open `+missing)
}

// Scenario: a file is cut short anywhere, as a full disk or a copy that was broken off leaves it.
// Guarantees: the Collector stays up. There is an error that says what to do, or the whole last generation, or, where
// the extension recreates damaged files, an empty state.
func TestAFileThatWasCutShortDoesNotTakeTheCollectorDown(t *testing.T) {
	const damaged = "the storage is damaged, move its file away or let the extension recreate it: "
	last := parts{"x": bytes.Repeat([]byte{4}, 50<<10), "y": {4}}
	for _, recreate := range []bool{false, true} {
		for pages := int64(3); ; pages += 3 {
			dir := t.TempDir()
			client := fileClient(t, dir)
			s, _ := opened(t, client)
			for i := range byte(5) {
				require.NoError(t, s.Save(t.Context(), parts{"x": bytes.Repeat([]byte{i}, 50<<10), "y": {i}}, nil))
			}
			require.NoError(t, client.Close(t.Context()))
			file := filepath.Join(dir, "connector_slo_chat")
			info, err := os.Stat(file)
			require.NoError(t, err)
			if pages*4096 > info.Size() {
				require.Greater(t, pages, int64(60), "the file was cut in many places")
				break
			}
			require.NoError(t, os.Truncate(file, pages*4096))
			client, err = Client(t.Context(), fileHost(t, dir, recreate), fileStorage, component.KindConnector, owner, "")
			if err != nil {
				assert.False(t, recreate)
				assert.ErrorContains(t, err, damaged)
				continue
			}
			state, _, err := New(client, "test").Load(t.Context())
			assert.NoError(t, client.Close(t.Context()))
			switch {
			case err != nil:
				assert.ErrorContains(t, err, damaged)
			case state.Sequence == 5:
				assert.Equal(t, last, state.Parts)
			default:
				assert.True(t, recreate && state.Sequence == 0, "%d pages: generation %d", pages, state.Sequence)
			}
		}
	}
}

// panicking is a storage whose database panics, as that of file_storage does on a page that is not what it says.
type panicking struct {
	component.StartFunc
	component.ShutdownFunc
}

func (panicking) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return panicking{}, nil
}
func (panicking) Get(context.Context, string) ([]byte, error)        { panic("page 4") }
func (panicking) Set(context.Context, string, []byte) error          { panic("page 4") }
func (panicking) Delete(context.Context, string) error               { panic("page 4") }
func (panicking) Batch(context.Context, ...*storage.Operation) error { panic("page 4") }
func (panicking) Close(context.Context) error                        { panic("page 4") }

// Guarantees: whoever has a client, such as the queue of an exporter, gets an error where the database panics.
func TestAClientMakesErrorsOfPanics(t *testing.T) {
	ctx := t.Context()
	client, err := Client(ctx, host{fileStorage: panicking{}}, fileStorage, component.KindConnector, owner, "")
	require.NoError(t, err)
	_, err = client.Get(ctx, "k")
	for _, err := range []error{err, client.Set(ctx, "k", nil), client.Delete(ctx, "k"), client.Batch(ctx), client.Close(ctx)} {
		assert.ErrorContains(t, err, "the storage is damaged, move its file away or let the extension recreate it: page 4")
	}
}

func BenchmarkSave(b *testing.B) {
	changed := parts{}
	for i := range 100 {
		value := make([]byte, 10<<10)
		for j := range value {
			value[j] = byte(i * j)
		}
		changed[string(rune('a'+i))] = value
	}
	f := func(name string, client storage.Client) {
		b.Run(name, func(b *testing.B) {
			s, _ := opened(b, client)
			b.ReportAllocs()
			b.SetBytes(100 * 10 << 10)
			for b.Loop() {
				if err := s.Save(b.Context(), changed, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	f("memory", newMemory())
	f("file_storage", fileClient(b, b.TempDir()))
}
