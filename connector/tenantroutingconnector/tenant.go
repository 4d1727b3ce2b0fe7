// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/otelcol-llm/otelcol-llm/connector/tenantroutingconnector/internal/limit"
)

// tenantOf is what is known of a tenant, for one signal.
type tenantOf[T any] struct {
	id      string
	targets []*target[T]
	info    client.Info // what the pipelines are told of whose data it is
	rates   *limit.Rates
	series  *limit.Series // nil without a limit
	used    atomic.Int64  // Unix nanoseconds

	accepted         atomic.Int64
	refused, dropped [reasons]atomic.Int64
	sent             atomic.Int64 // by its queues
	// unwritten and unread are what the storage of its queues has failed at.
	unwritten, unread atomic.Int64

	// mu is held for reading while something is sent, and for writing to open the queues and to close the tenant. Once it is closed,
	// the queues do not change any more.
	mu     sync.RWMutex
	opened bool
	closed bool
	noted  atomic.Bool // the index knows what is opened
	// inMemory is whether a queue is in memory because its storage could not be opened.
	inMemory atomic.Bool
	queues   []*queue[T] // one for each target
	// leftover are pipelines for which a queue in the storage was not empty, of which rest has those that are no target any more.
	leftover []pipeline.ID
	rest     []*queue[T]
}

// target is a pipeline behind the connector.
type target[T any] struct {
	id   pipeline.ID
	send sendFunc[T]
}

// nobody stands for tenants whose data goes nowhere.
func nobody[T any]() *tenantOf[T] { return &tenantOf[T]{} }

// newTenant is a tenant whose queues are not open yet.
func (r *router[T]) newTenant(id string) *tenantOf[T] {
	g := r.groupOf(id)
	t := &tenantOf[T]{id: id, targets: g.targets, leftover: r.leftovers[id]}
	t.info = client.Info{Metadata: client.NewMetadata(map[string][]string{r.cfg.MetadataKey: {id}})}
	if l := g.limits; l.ItemsPerSecond > 0 || l.BytesPerSecond > 0 {
		t.rates = limit.NewRates(l.ItemsPerSecond, l.BytesPerSecond, l.Burst)
	}
	if g.limits.ActiveSeries > 0 && r.signal.series != nil {
		t.series = limit.NewSeries(g.limits.ActiveSeries)
	}
	t.used.Store(r.now().UnixNano())
	return t
}

// group has what tenants may have of their own.
type group[T any] struct {
	patterns []string
	targets  []*target[T]
	limits   Limits
}

// groupOf is the first group that names a tenant. The last one of all names everybody.
func (r *router[T]) groupOf(id string) *group[T] {
	last := len(r.groups) - 1
	for i := range r.groups[:last] {
		if slices.ContainsFunc(r.groups[i].patterns, func(p string) bool {
			ok, err := path.Match(p, id)
			return p == id || ok && err == nil
		}) {
			return &r.groups[i]
		}
	}
	return &r.groups[last]
}

// waiting is how much is in a tenant's queues. The caller holds mu.
func (t *tenantOf[T]) waiting() (n int64) {
	for _, q := range t.queues {
		n += q.size()
	}
	for _, q := range t.rest {
		n += q.size()
	}
	return n
}

// idle reports whether a tenant has been without data for so long.
func (t *tenantOf[T]) idle(now time.Time, ttl time.Duration) bool {
	return now.UnixNano()-t.used.Load() >= int64(ttl)
}
