// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"fmt"
	"maps"
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

// set notes the pipelines for which tenants have queues from now on, none where nothing is in them any more. It has to be written
// before anything is in them. What cannot be written is not noted.
func (x *index) set(ctx context.Context, queues map[string][]string) error {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	before := map[string][]string{}
	for tenant, pipelines := range queues {
		if was := x.shards[shardOf(tenant)][tenant]; !slices.Equal(was, pipelines) {
			before[tenant] = was
			x.put(tenant, pipelines)
		}
	}
	if len(before) == 0 {
		return nil
	}
	err := x.save(ctx, slices.Collect(maps.Keys(before))...)
	if err != nil {
		for tenant, was := range before {
			x.put(tenant, was)
		}
	}
	return err
}

func (x *index) put(tenant string, pipelines []string) {
	shard := x.shards[shardOf(tenant)]
	if len(pipelines) == 0 {
		delete(shard, tenant)
		return
	}
	shard[tenant] = pipelines
}

// save writes the shards of tenants. The caller holds mu.
func (x *index) save(ctx context.Context, tenants ...string) error {
	changed := map[string][]byte{}
	for _, tenant := range tenants {
		i := shardOf(tenant)
		if _, done := changed[strconv.Itoa(i)]; done {
			continue
		}
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
