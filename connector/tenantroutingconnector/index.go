// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/extension/xextension/storage"

	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
)

// index knows whose queues may have something in the storage, so that they are sent after a restart even when the tenant does
// not say anything more: a storage cannot be asked what is in it. A nil one knows nothing.
type index struct {
	client storage.Client

	mu     sync.Mutex
	store  *checkpoint.Store
	shards [shards]map[string][]string // tenant → pipelines
}

// shards keep what a new tenant has to write small.
const shards = 64

func shardOf(tenant string) int { return int(xxhash.Sum64String(tenant) % shards) }

// openIndex reads what was left. problems are of what is damaged and was passed over.
func openIndex(ctx context.Context, client storage.Client) (x *index, problems []error, err error) {
	x = &index{client: client, store: checkpoint.New(client, "queues")}
	state, problems, err := x.store.Load(ctx)
	if err != nil {
		return nil, problems, err
	}
	for i := range x.shards {
		x.shards[i] = map[string][]string{}
		if part, ok := state.Parts[strconv.Itoa(i)]; ok {
			if err := checkpoint.Decode(part, &x.shards[i]); err != nil {
				problems = append(problems, fmt.Errorf("queues %d: %w", i, err))
			}
		}
	}
	return x, problems, nil
}

// all is what was left, by tenant.
func (x *index) all() map[string][]string {
	all := map[string][]string{}
	if x == nil {
		return all
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, shard := range x.shards {
		for tenant, pipelines := range shard {
			all[tenant] = slices.Clone(pipelines)
		}
	}
	return all
}

// add notes that a tenant has queues from now on. It has to be written before anything is in them.
func (x *index) add(ctx context.Context, tenant string, pipelines []string) error {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	shard := x.shards[shardOf(tenant)]
	if slices.Equal(shard[tenant], pipelines) {
		return nil
	}
	shard[tenant] = pipelines
	return x.save(ctx, tenant)
}

// remove notes that nothing is in the queues of tenants any more.
func (x *index) remove(ctx context.Context, tenants ...string) error {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, tenant := range tenants {
		delete(x.shards[shardOf(tenant)], tenant)
	}
	return x.save(ctx, tenants...)
}

// save writes the shards of tenants. The caller holds mu.
func (x *index) save(ctx context.Context, tenants ...string) error {
	changed := map[string][]byte{}
	for _, tenant := range tenants {
		i := shardOf(tenant)
		part, err := checkpoint.Encode(x.shards[i])
		if err != nil {
			return err
		}
		changed[strconv.Itoa(i)] = part
	}
	return x.store.Save(ctx, changed, nil)
}

func (x *index) close(ctx context.Context) error {
	if x == nil {
		return nil
	}
	return x.client.Close(ctx)
}
