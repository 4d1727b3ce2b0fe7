// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
)

// named is a batch of a tenant's, whose metric has a name.
func named(tenant string, i int) pmetric.Metrics {
	md := batch(1, "service.name="+tenant)
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetName(fmt.Sprint(i))
	return md
}

// Scenario: a disk becomes full while tenants send, and has room again, over and over; one tenant's destination is gone, and comes
// back. Guarantees: what was taken arrives, once, what was not taken was refused, and nobody's queue is smaller afterwards.
func TestAFullDiskLosesNothingThatWasTaken(t *testing.T) {
	for name, configure := range map[string]func(*Config){
		"requests": func(c *Config) { c.Queue.Get().QueueSize = 1000 },
		"bytes": func(c *Config) {
			c.Queue.Get().Sizer, c.Queue.Get().QueueSize = exporterhelper.RequestSizerTypeBytes, 1e6
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &disk{values: map[string][]byte{}, left: forEver}
			h := newHost()
			h.extensions[storageID] = d
			r := newRigOn(t, h, zap.NewNop(), persistent, configure)
			r.to[toTenants].fail(func(_ context.Context, tenant string) error {
				if tenant == "gone" {
					return assert.AnError
				}
				return nil
			})
			taken, refused := map[string][]string{}, 0
			for i := range 400 {
				d.fill(i/20%2 == 1)
				for _, tenant := range []string{"good", "gone"} {
					if err := r.ConsumeMetrics(t.Context(), named(tenant, i)); err != nil {
						require.ErrorIs(t, err, syscall.ENOSPC)
						refused++
						continue
					}
					taken[tenant] = append(taken[tenant], fmt.Sprint(i))
				}
			}
			d.fill(false)
			assert.Positive(t, refused)
			assert.GreaterOrEqual(t, len(taken["gone"]), 200)
			r.to[toTenants].fail(nil)
			for tenant, want := range taken {
				require.Eventually(t, func() bool { return len(r.to[toTenants].names(tenant)) >= len(want) }, time.Minute, time.Millisecond)
				assert.ElementsMatch(t, want, r.to[toTenants].names(tenant))
			}
			require.Eventually(t, func() bool {
				size := r.counted("otelcol_tenant_routing_queue_size", "tenant")
				return size["good"] == 0 && size["gone"] == 0
			}, time.Minute, time.Millisecond)
			require.NoError(t, r.Shutdown(t.Context()))
			for key := range d.values {
				assert.NotRegexp(t, `\x00(\d+|room)$`, key, "nothing that was sent lies there for ever")
			}
		})
	}
}

// Scenario: the disk is full, and the destination gone. Guarantees: what was refused takes no room in a queue, however small.
func TestWhatIsRefusedByADiskTakesNoRoom(t *testing.T) {
	d := &disk{values: map[string][]byte{}, left: forEver}
	h := newHost()
	h.extensions[storageID] = d
	r := newRigOn(t, h, zap.NewNop(), persistent, func(c *Config) { c.Queue.Get().QueueSize, c.Queue.Get().NumConsumers = 10, 1 })
	r.to[toTenants].fail(failAll)
	require.NoError(t, r.ConsumeMetrics(t.Context(), named("a", 0)))
	d.fill(true)
	for range 30 {
		require.ErrorIs(t, r.ConsumeMetrics(t.Context(), named("a", 1)), syscall.ENOSPC)
	}
	d.fill(false)
	for i := range 8 {
		require.NoError(t, r.ConsumeMetrics(t.Context(), named("a", 2+i)))
	}
	r.to[toTenants].fail(nil)
	r.arrive(map[string]int{"a": 9})
	require.Eventually(t, func() bool { return r.counted("otelcol_tenant_routing_queue_size", "tenant")["a"] == 0 }, time.Minute, time.Millisecond)
}

// Scenario: the disk becomes full at some moment, the process is killed at another, and the next one finds the disk full, or not.
// Guarantees: the one after that, whose disk has room, sends all that was taken, at least once.
func TestAKillWhileTheDiskIsFullLosesNothing(t *testing.T) {
	for fills := range 8 {
		for _, stillFull := range []bool{false, true} {
			first := &disk{values: map[string][]byte{}, left: forEver}
			var taken []string
			r := on(t, first, failAll)
			for i := range 8 {
				first.fill(i >= fills && i < 7)
				if r.ConsumeMetrics(t.Context(), named("a", i)) == nil {
					taken = append(taken, fmt.Sprint(i))
				}
			}
			first.fill(fills%2 == 0)
			require.Eventually(t, func() bool { return r.to[toTenants].tried("a") >= 4 }, time.Minute, time.Millisecond)
			killed := first.after(forEver)
			require.NoError(t, r.Shutdown(t.Context()))

			killed.fill(stillFull)
			r = on(t, killed, failAll)
			require.Eventually(t, func() bool { return r.to[toTenants].tried("a") >= 4 }, time.Minute, time.Millisecond)
			killed.fill(false)
			if r.ConsumeMetrics(t.Context(), named("a", 100)) == nil {
				taken = append(taken, "100")
			}
			left := killed.after(forEver)
			require.NoError(t, r.Shutdown(t.Context()))

			r = on(t, left, nil)
			require.Eventually(t, func() bool {
				names := r.to[toTenants].names("a")
				return !slices.ContainsFunc(taken, func(name string) bool { return !slices.Contains(names, name) })
			}, time.Minute, time.Millisecond, "full from %d, full after the kill: %v: want %v, have %v", fills, stillFull, taken, r.to[toTenants].names("a"))
			require.NoError(t, r.Shutdown(t.Context()))
		}
	}
}

// Guarantees: with compaction on rebound, a queue's file gives back what it took as it is emptied, while it is open, and the queue goes
// on. A file that is not larger than rebound_needed_threshold_mib is left alone.
func TestAnEmptiedFileGivesItsRoomBack(t *testing.T) {
	dir := t.TempDir()
	r := newRigOn(t, onDisk(t, dir, func(c *filestorage.Config) {
		c.Compaction.OnRebound, c.Compaction.Directory, c.Compaction.CheckInterval = true, dir, 50*time.Millisecond
		c.Compaction.ReboundNeededThresholdMiB, c.Compaction.ReboundTriggerThresholdMiB = 4, 2
	}), zap.NewNop(), persistent)
	r.to[toTenants].fail(failAll)
	for i := range 20 {
		md := named("a", i)
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr("x", strings.Repeat("x", 500_000))
		require.NoError(t, r.ConsumeMetrics(t.Context(), md))
	}
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, "connector_tenant_routing__a~002Fmetrics~002Ftenants"))
		if err != nil {
			return -1 // it is just being replaced
		}
		return info.Size()
	}
	require.Greater(t, size(), int64(10_000_000))
	r.to[toTenants].fail(nil)
	r.arrive(map[string]int{"a": 20})
	require.Eventually(t, func() bool { n := size(); return n > 0 && n <= 4<<20 }, time.Minute, 10*time.Millisecond)
	require.NoError(t, r.ConsumeMetrics(t.Context(), named("a", 20)))
	r.arrive(map[string]int{"a": 21})
}
