// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/extension/extensiontest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pipeline"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

var storageID = component.MustNewID("file_storage")

// onDisk is a host with a file_storage in a folder.
func onDisk(t testing.TB, dir string, configure ...func(*filestorage.Config)) *host {
	t.Helper()
	f := filestorage.NewFactory()
	cfg := f.CreateDefaultConfig().(*filestorage.Config)
	cfg.Directory = dir
	for _, f := range configure {
		f(cfg)
	}
	ext, err := f.Create(t.Context(), extensiontest.NewNopSettings(f.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, ext.Start(t.Context(), componenttest.NewNopHost()))
	h := newHost()
	h.extensions[storageID] = ext
	return h
}

func persistent(c *Config) { c.Queue.Get().StorageID = &storageID }

// batching puts several requests into one, which forgets what metadata they came with.
func batching(c *Config) {
	c.Queue.Get().Batch.GetOrInsertDefault().FlushTimeout = 10 * time.Millisecond
}

func failAll(context.Context, string) error { return assert.AnError }

// Scenario: the destination fails, the Collector ends, and begins again when the destination works, while no tenant says
// anything more. Guarantees: core#14795: what waited arrives, once, each as its own tenant's, whether or not requests are put
// together; and no secret was written to the disk.
func TestReport4QueuesOutliveARestartAndNeverMixTenants(t *testing.T) {
	for name, configure := range map[string]func(*Config){"request by request": func(*Config) {}, "in batches": batching} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first := newRigOn(t, onDisk(t, dir), zap.NewNop(), persistent, configure)
			first.to[toTenants].fail(failAll)
			ctx := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{"authorization": {"s3cr3t"}, "x-scope-orgid": {"v1ctim"}})})
			for range 20 {
				require.NoError(t, first.ConsumeMetrics(ctx, batch(2, "service.name=a", "service.name=b", "k8s.namespace.name=*c*")))
			}
			require.NoError(t, first.Shutdown(t.Context()))
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			require.NoError(t, err)
			require.Len(t, files, 4, "one for each tenant, and the index")
			for _, f := range files {
				data, err := os.ReadFile(f)
				require.NoError(t, err)
				assert.False(t, bytes.Contains(data, []byte("s3cr3t")) || bytes.Contains(data, []byte("v1ctim")), f)
			}

			second := newRigOn(t, onDisk(t, dir), zap.NewNop(), persistent, configure)
			second.arrive(map[string]int{"a": 40, "b": 40, "*c*": 40})
			for tenant, all := range second.to[toTenants].taken {
				for _, md := range all {
					for _, rm := range md.ResourceMetrics().All() {
						v, _ := rm.Resource().Attributes().Get("tenant")
						assert.Equal(t, tenant, v.Str())
					}
				}
			}
			require.NoError(t, second.Shutdown(t.Context()))

			third := newRigOn(t, onDisk(t, dir), zap.NewNop(), persistent, configure)
			assert.Empty(t, third.index.all(), "nothing is left to be looked for")
			require.NoError(t, third.ConsumeMetrics(t.Context(), batch(1, "service.name=a")))
			third.arrive(map[string]int{"a": 1})
		})
	}
}

// Guarantees: what waits for a pipeline that a tenant has been moved from is sent there, and what is new to where it belongs now.
func TestAQueueOfAPipelineThatIsNoLongerATenantsIsEmptied(t *testing.T) {
	dir := t.TempDir()
	premium := func(tenants ...string) func(*Config) {
		return func(c *Config) {
			c.Groups = []Group{{Name: "premium", Tenants: tenants, Pipelines: Pipelines{Metrics: []pipeline.ID{toPremium}}}}
		}
	}
	first := newRigOn(t, onDisk(t, dir), zap.NewNop(), persistent, premium("other"))
	first.to[toTenants].fail(failAll)
	require.NoError(t, first.ConsumeMetrics(t.Context(), batch(2, "service.name=a")))
	require.NoError(t, first.Shutdown(t.Context()))

	second := newRigOn(t, onDisk(t, dir), zap.NewNop(), persistent, premium("a"))
	require.NoError(t, second.ConsumeMetrics(t.Context(), batch(3, "service.name=a")))
	second.arrive(map[string]int{"a": 2})
	require.Eventually(t, func() bool { return second.to[toPremium].points()["a"] == 3 }, time.Minute, time.Millisecond)
}

// Scenario: the file of a tenant's queue, or of the index, is damaged. Guarantees: contrib#35899, core#7198: the connector
// starts, what others have in their queues arrives, the tenant's new data flows, the damaged file is still there to be looked
// at, and it is told.
func TestReport11ADamagedStoreIsSetAsideAndNobodyElseSuffers(t *testing.T) {
	for _, damaged := range []string{"a", "index"} {
		t.Run(damaged, func(t *testing.T) {
			dir := t.TempDir()
			first := newRigOn(t, onDisk(t, dir), zap.NewNop(), persistent)
			first.to[toTenants].fail(failAll)
			require.NoError(t, first.ConsumeMetrics(t.Context(), batch(2, "service.name=a", "service.name=b")))
			require.NoError(t, first.Shutdown(t.Context()))
			file := filepath.Join(dir, "connector_tenant_routing__a~002Fmetrics~002Ftenants")
			if damaged == "index" {
				file = filepath.Join(dir, "connector_tenant_routing__~002Findex~002Fmetrics")
			}
			noise := bytes.Repeat([]byte("noise"), 10_000)
			require.NoError(t, os.WriteFile(file, noise, 0o600))

			h := onDisk(t, dir)
			core, logs := observer.New(zap.ErrorLevel)
			second := newRigOn(t, h, zap.New(core), persistent)
			want := map[string]int{"a": 1, "b": 2}
			if damaged == "index" { // queues are found when their tenants send something
				want = map[string]int{"a": 3, "b": 3}
				require.NoError(t, second.ConsumeMetrics(t.Context(), batch(1, "service.name=b")))
			}
			require.NoError(t, second.ConsumeMetrics(t.Context(), batch(1, "service.name=a")))
			second.arrive(want)
			left, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, noise, left)
			assert.Equal(t, map[string]int64{"": 1}, second.counted("otelcol_tenant_routing_storages_damaged"))
			assert.NotEmpty(t, logs.FilterMessageSnippet("another one takes its place").All())

			second.to[toTenants].fail(failAll)
			require.NoError(t, second.ConsumeMetrics(t.Context(), batch(5, "service.name=a")))
			require.NoError(t, second.Shutdown(t.Context()))
			third := newRigOn(t, onDisk(t, dir), zap.NewNop(), persistent)
			third.arrive(map[string]int{"a": 5})
		})
	}
}

// full is a storage on a disk that is full, at once or later.
type full struct {
	component.StartFunc
	component.ShutdownFunc
	opens   bool
	written atomic.Int64
	names   sync.Map // of what was asked for
}

func (f *full) GetClient(_ context.Context, _ component.Kind, _ component.ID, name string) (storage.Client, error) {
	f.names.Store(name, true)
	if !f.opens {
		return nil, syscall.ENOSPC
	}
	return f, nil
}

func (f *full) Batch(_ context.Context, ops ...*storage.Operation) error {
	for _, op := range ops {
		if op.Type == storage.Set {
			f.written.Add(1)
			return syscall.ENOSPC
		}
	}
	return nil
}
func (f *full) Get(context.Context, string) ([]byte, error) { return nil, nil }
func (f *full) Set(context.Context, string, []byte) error   { return syscall.ENOSPC }
func (f *full) Delete(context.Context, string) error        { return nil }
func (f *full) Close(context.Context) error                 { return nil }

// Guarantees: core#7198: on a full disk, the connector starts, and works without the disk where it can; where it cannot, the
// sender is told.
func TestReport11AFullDiskKeepsNothingFromStarting(t *testing.T) {
	h := newHost()
	h.extensions[storageID] = &full{}
	core, logs := observer.New(zap.ErrorLevel)
	r := newRigOn(t, h, zap.New(core), persistent)
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=a")))
	r.arrive(map[string]int{"a": 1})
	assert.NotEmpty(t, logs.FilterMessageSnippet("in memory only").All())
	require.NotEmpty(t, h.events)
	assert.Equal(t, componentstatus.StatusRecoverableError, h.events[0].Status())
	for name := range h.extensions[storageID].(*full).names.Range {
		assert.NotContains(t, name, "/1/", "what is not damaged has no spare: nobody would look for it later")
	}

	h = newHost()
	h.extensions[storageID] = &full{opens: true}
	r = newRigOn(t, h, zap.NewNop(), persistent)
	require.ErrorIs(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=a")), syscall.ENOSPC)
	assert.Equal(t, map[string]int64{"a/failed": 1}, r.counted("otelcol_tenant_routing_items_refused", "tenant", "reason"))
}

// Scenario: a tenant comes while no storage can be opened, and it can be later. Guarantees: its queue is in memory meanwhile, and in
// the storage afterwards, so that a restart loses nothing.
func TestAQueueInMemoryReturnsToItsStorage(t *testing.T) {
	h, broken := newHost(), &full{}
	h.extensions[storageID] = broken
	r := newRigOn(t, h, zap.NewNop(), persistent)
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=a")))
	r.arrive(map[string]int{"a": 1})
	inMemory := func() int64 {
		return r.counted("otelcol_tenant_routing_tenants_in_memory", "connector")["tenant_routing"]
	}
	assert.Equal(t, int64(1), inMemory())
	require.Eventually(t, func() bool { return r.counted("otelcol_tenant_routing_queue_size", "tenant")["a"] == 0 }, time.Minute, time.Millisecond)
	r.toStorage(t.Context())
	assert.Equal(t, int64(1), inMemory(), "it cannot be opened yet")

	d := &disk{values: map[string][]byte{}, left: forEver}
	h.extensions[storageID] = d
	r.toStorage(t.Context())
	assert.Zero(t, inMemory())
	r.to[toTenants].fail(failAll)
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(2, "service.name=a")))
	require.Eventually(t, func() bool { return r.to[toTenants].tried("a") >= 3 }, time.Minute, time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))

	h = newHost()
	h.extensions[storageID] = d.after(forEver)
	r = newRigOn(t, h, zap.NewNop(), persistent)
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(3, "service.name=a")))
	r.arrive(map[string]int{"a": 5})
}

// Scenario: the pipeline for which a tenant's data waits is taken out of the configuration, the tenant goes on, is idle and
// forgotten, and the pipeline comes back. Guarantees: what waited arrives, though the tenant says nothing more.
func TestWhatWaitsForAPipelineThatIsGoneIsNotForgotten(t *testing.T) {
	dir := t.TempDir()
	premium := func(c *Config) {
		c.Groups = []Group{{Name: "premium", Tenants: []string{"a"}, Pipelines: Pipelines{Metrics: []pipeline.ID{toPremium}}}}
	}
	r := newRigOn(t, onDisk(t, dir), zap.NewNop(), persistent, premium)
	r.to[toPremium].fail(failAll)
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(2, "service.name=a")))
	require.NoError(t, r.Shutdown(t.Context()))
	for range 2 {
		r = newRigOn(t, onDisk(t, dir), zap.NewNop(), persistent, func(c *Config) { c.TenantTTL = 20 * time.Millisecond })
		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=a")))
		r.arrive(map[string]int{"a": 1})
		require.Eventually(t, func() bool { return r.counted("otelcol_tenant_routing_evictions")[""] > 0 }, time.Minute, time.Millisecond)
		require.NoError(t, r.Shutdown(t.Context()))
	}
	r = newRigOn(t, onDisk(t, dir), zap.NewNop(), persistent, premium)
	require.Eventually(t, func() bool { return r.to[toPremium].points()["a"] == 2 }, time.Minute, time.Millisecond)
}

// Scenario: eight tenants' queues wait in the storage, and the next process may know three. Guarantees: all that waits is sent, though
// nobody says anything more, and what comes meanwhile is its tenant's.
func TestQueuesForWhichThereIsNoRoomAreOpenedWhenThereIs(t *testing.T) {
	dir, want := t.TempDir(), map[string]int{}
	r := newRigOn(t, onDisk(t, dir), zap.NewNop(), persistent)
	r.to[toTenants].fail(failAll)
	for i := range 8 {
		tenant := fmt.Sprint("t", i)
		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(2, "service.name="+tenant)))
		want[tenant] = 2
	}
	require.NoError(t, r.Shutdown(t.Context()))

	core, logs := observer.New(zap.InfoLevel)
	r = newRigOn(t, onDisk(t, dir), zap.New(core), persistent, func(c *Config) { c.MaxTenants = 3 })
	require.EventuallyWithT(t, func(c *collect) {
		r.expire(t.Context(), r.now())
		require.Equal(c, want, r.to[toTenants].points())
		require.Zero(c, r.unopened.Load())
	}, 20*time.Second, 5*time.Millisecond)
	assert.Len(t, logs.FilterMessageSnippet("queues in the storage wait for room").All(), 1)
	require.Eventually(t, func() bool { return logs.FilterMessageSnippet("that waited for room are open").Len() == 1 }, 5*time.Second, time.Millisecond)
}

// Scenario: a tenant's queue waits in a storage that cannot be opened at the start, and can be later. Guarantees: it is sent then,
// though the tenant says nothing more.
func TestAQueueWhoseStorageCouldNotBeOpenedIsSentLater(t *testing.T) {
	h, d := newHost(), &disk{values: map[string][]byte{}, left: forEver}
	h.extensions[storageID] = d
	r := newRigOn(t, h, zap.NewNop(), persistent)
	r.to[toTenants].fail(failAll)
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(2, "service.name=a")))
	require.NoError(t, r.Shutdown(t.Context()))

	h = newHost()
	h.extensions[storageID] = &scarce{disk: d.after(forEver)}
	r = newRigOn(t, h, zap.NewNop(), persistent)
	require.Eventually(t, func() bool { return r.counted("otelcol_tenant_routing_tenants_in_memory")[""] == 1 }, 5*time.Second, time.Millisecond)
	h.extensions[storageID].(*scarce).enough.Store(true)
	require.EventuallyWithT(t, func(c *collect) {
		r.toStorage(t.Context())
		require.Equal(c, map[string]int{"a": 2}, r.to[toTenants].points())
	}, 10*time.Second, 5*time.Millisecond)
}

// scarce is a disk of which nothing but the index can be opened before there is enough of what that takes.
type scarce struct {
	*disk
	enough atomic.Bool
}

func (s *scarce) GetClient(ctx context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	if !s.enough.Load() && !strings.HasPrefix(name, "/index/") {
		return nil, syscall.EMFILE
	}
	return s.disk.GetClient(ctx, kind, id, name)
}

// Guarantees: what the README says of the files of tenants that are gone.
func TestTheFilesOfTenantsThatAreGoneAreSmallAndMayBeRemoved(t *testing.T) {
	dir, want := t.TempDir(), map[string]int{}
	r := newRigOn(t, onDisk(t, dir), zap.NewNop(), persistent)
	for i := range 20 {
		tenant := fmt.Sprint("pr-", i)
		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(10, "service.name="+tenant)))
		want[tenant] = 10
	}
	r.arrive(want)
	require.EventuallyWithT(t, func(c *collect) {
		for _, size := range r.counted("otelcol_tenant_routing_queue_size", "tenant") {
			require.Zero(c, size)
		}
	}, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
	files, err := filepath.Glob(filepath.Join(dir, "*pr-*"))
	require.NoError(t, err)
	require.Len(t, files, 20)
	for _, f := range files {
		info, err := os.Stat(f)
		require.NoError(t, err)
		assert.LessOrEqual(t, info.Size(), int64(32<<10))
	}
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Mkdir(dir, 0o700))
	core, logs := observer.New(zap.WarnLevel)
	r = newRigOn(t, onDisk(t, dir), zap.New(core), persistent)
	require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=pr-1")))
	r.arrive(map[string]int{"pr-1": 1})
	assert.Empty(t, logs.All())
}

func TestAStorageThatIsNotRunningIsNamed(t *testing.T) {
	r := buildRig(t, newHost(), zap.NewNop(), persistent)
	assert.EqualError(t, r.Start(t.Context(), r.host),
		`sending_queue::storage: no extension "file_storage" is running: add it under extensions and service.extensions`)
}

// Guarantees: a tenant that was idle, and whose queue was closed, finds its storage free when it comes back, however fast.
func TestATenantThatComesAndGoesKeepsItsStorage(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	r := newRigOn(t, onDisk(t, t.TempDir()), zap.New(core), persistent, func(c *Config) { c.TenantTTL = 4 * time.Millisecond })
	sent := 0
	for i := 0; i < 100 || r.counted("otelcol_tenant_routing_evictions")[""] == 0; i++ { // until it has gone at least once
		require.NoError(t, r.ConsumeMetrics(t.Context(), batch(1, "service.name=a")))
		sent++
		time.Sleep(time.Duration(i%10) * time.Millisecond)
	}
	r.arrive(map[string]int{"a": sent})
	assert.Empty(t, logs.All())
}

// Guarantees: the index knows of a tenant before anything of its data lies in a queue, and a crash at any moment loses none.
func TestTheIndexSurvivesACrashAtAnyMoment(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	open := func() *index {
		h := onDisk(t, dir)
		client, err := h.extensions[storageID].(storage.Extension).GetClient(ctx, component.KindConnector, component.MustNewID("x"), "index")
		require.NoError(t, err)
		x, problems, err := openIndex(ctx, client)
		require.NoError(t, err)
		require.Empty(t, problems)
		return x
	}
	x := open()
	for i := range 200 {
		require.NoError(t, x.set(ctx, map[string][]string{fmt.Sprint("t", i): {"metrics/a", "metrics/b"}}))
	}
	require.NoError(t, x.set(ctx, map[string][]string{"t3": nil, "t4": nil, "never was": nil}))
	require.NoError(t, x.close(ctx))
	x = open()
	all := x.all()
	assert.Len(t, all, 198)
	assert.Equal(t, []string{"metrics/a", "metrics/b"}, all["t199"])
	require.NoError(t, x.close(ctx))
}
