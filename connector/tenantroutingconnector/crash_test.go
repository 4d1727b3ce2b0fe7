// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

// disk is a storage that a crash can stop: after so many transactions, nothing is written any more.
type disk struct {
	component.StartFunc
	component.ShutdownFunc
	mu     sync.Mutex
	values map[string][]byte // by client and key
	left   int
	full   bool // what writes anything fails
}

// after is the disk as a new process finds it, which is to crash after so many transactions.
func (d *disk) after(transactions int) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &disk{values: maps.Clone(d.values), left: transactions}
}

// fill makes it a full one, or one that is not full any more.
func (d *disk) fill(full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full = full
}

func (d *disk) GetClient(_ context.Context, _ component.Kind, _ component.ID, name string) (storage.Client, error) {
	return &diskClient{d, name}, nil
}

type diskClient struct {
	disk *disk
	name string
}

func (c *diskClient) Batch(_ context.Context, ops ...*storage.Operation) error {
	c.disk.mu.Lock()
	defer c.disk.mu.Unlock()
	if c.disk.full && slices.ContainsFunc(ops, func(op *storage.Operation) bool { return op.Type != storage.Get }) {
		return syscall.ENOSPC
	}
	writes := false
	for _, op := range ops {
		key := c.name + "\x00" + op.Key
		if op.Type == storage.Get {
			op.Value = bytes.Clone(c.disk.values[key])
			continue
		}
		writes = true
		switch {
		case c.disk.left <= 0:
		case op.Type == storage.Set:
			c.disk.values[key] = bytes.Clone(op.Value)
		default:
			delete(c.disk.values, key)
		}
	}
	if writes {
		c.disk.left--
	}
	return nil
}

func (c *diskClient) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	err := c.Batch(ctx, op)
	return op.Value, err
}

func (c *diskClient) Set(ctx context.Context, key string, value []byte) error {
	return c.Batch(ctx, storage.SetOperation(key, value))
}

func (c *diskClient) Delete(ctx context.Context, key string) error {
	return c.Batch(ctx, storage.DeleteOperation(key))
}
func (*diskClient) Close(context.Context) error { return nil }

const forEver = 1 << 30

// on is a process on a disk, whose destination fails from the first or works.
func on(t testing.TB, d *disk, fails func(context.Context, string) error) *rig {
	t.Helper()
	h := newHost()
	h.extensions[storageID] = d
	r := buildRig(t, h, zap.NewNop(), persistent)
	r.to[toTenants].fail(fails)
	require.NoError(t, r.Start(t.Context(), h))
	return r
}

// Scenario: a process is killed while it sends, and the next one is killed after any number of writes to its disk, from the
// first of its start on. Guarantees: the one after that sends all that was taken, at least once.
func TestACrashAtAnyMomentLosesNothing(t *testing.T) {
	const items = 8
	first := &disk{values: map[string][]byte{}, left: forEver}
	r := on(t, first, failAll)
	for i := range items {
		md := batch(1, "service.name=a")
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetName(fmt.Sprint(i))
		require.NoError(t, r.ConsumeMetrics(t.Context(), md))
	}
	require.Eventually(t, func() bool { return r.to[toTenants].tried("a") >= 4 }, time.Minute, time.Millisecond)
	killed := first.after(forEver)
	require.NoError(t, r.Shutdown(t.Context()))

	for writes := range 30 {
		second := killed.after(writes)
		r := on(t, second, failAll)
		require.Eventually(t, func() bool { return r.to[toTenants].tried("a") >= 4 }, time.Minute, 100*time.Microsecond)
		left := second.after(forEver)
		require.NoError(t, r.Shutdown(t.Context()))

		r = on(t, left, nil)
		require.Eventually(t, func() bool {
			names := r.to[toTenants].names("a")
			slices.Sort(names)
			return len(slices.Compact(names)) == items
		}, time.Minute, time.Millisecond, "after a crash at write %d", writes)
		require.NoError(t, r.Shutdown(t.Context()))
	}
}
