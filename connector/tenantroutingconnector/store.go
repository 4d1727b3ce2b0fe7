// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pipeline"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
)

// store opens the storage of queues, each of which has its own: what is damaged, or full, is that of one tenant.
type store struct {
	host    component.Host
	storage component.ID
	owner   component.ID
	damaged func()
}

// spares is how many names are tried for one storage.
const spares = 3

// open opens a queue's storage, as a host on which exporterhelper finds it. One that cannot be opened is left where it is, and
// the next name is taken: a tenant's damaged file must keep neither the Collector nor the tenant from working.
func (s *store) open(tenant string, to pipeline.ID, log *zap.Logger) (*handing, error) {
	client, err := s.client(queueName(tenant, to), log)
	if err != nil {
		return nil, err
	}
	return &handing{Host: s.host, id: s.storage, client: &careful{Client: client}}, nil
}

func (s *store) client(name string, log *zap.Logger) (storage.Client, error) {
	var first error
	for i := range spares {
		spare := name
		if i > 0 {
			spare = "/" + strconv.Itoa(i) + "/" + name
		}
		client, err := checkpoint.Client(context.Background(), s.host, s.storage, component.KindConnector, s.owner, spare)
		if err == nil {
			if i > 0 {
				log.Error("a storage cannot be opened and is left where it is; what is in it is not sent, another one takes its place",
					zap.Error(first), zap.String("storage", name), zap.String("instead", spare))
				s.damaged()
			}
			return client, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, fmt.Errorf("%s: %w", name, first)
}

// queueName is how a queue's storage is found again. No id of a tenant has a slash, so no two queues have one name, and none
// that of the index or a spare.
func queueName(tenant string, to pipeline.ID) string { return tenant + "/" + to.String() }

// handing is a host that hands one client on.
type handing struct {
	component.Host
	id     component.ID
	client *careful
}

// GetExtensions has the storage, and nothing else that a queue would look for.
func (h *handing) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{h.id: h}
}

// GetClient is the one that was opened.
func (h *handing) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return h.client, nil
}

// Start is there because extensions have it.
func (*handing) Start(context.Context, component.Host) error { return nil }

// Shutdown is there because extensions have it.
func (*handing) Shutdown(context.Context) error { return nil }

// careful is a client that deletes nothing while its queue starts. What was being sent when a process was killed, exporterhelper
// v0.149 first deletes and then writes anew (enqueueNotDispatchedReqs in persistent_queue.go): killed once more in between, it
// would be lost.
type careful struct {
	storage.Client

	mu      sync.Mutex
	started bool
	later   []*storage.Operation
}

// Batch does several things at once, but puts off what only deletes.
func (c *careful) Batch(ctx context.Context, ops ...*storage.Operation) error {
	c.mu.Lock()
	if !c.started && !slices.ContainsFunc(ops, func(op *storage.Operation) bool { return op.Type != storage.Delete }) {
		c.later = append(c.later, ops...)
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	err := c.Client.Batch(ctx, ops...)
	if err != nil {
		c.mu.Lock()
		c.later = nil // what was to be written anew may not stand there
		c.mu.Unlock()
	}
	return err
}

// settle does what was put off. The places are used once only, so nothing new stands there.
func (c *careful) settle(ctx context.Context) error {
	c.mu.Lock()
	c.started = true
	later := c.later
	c.later = nil
	c.mu.Unlock()
	if len(later) == 0 {
		return nil
	}
	return c.Client.Batch(ctx, later...)
}
