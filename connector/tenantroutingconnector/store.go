// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"syscall"

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

// passing are errors of the system, not of a file: it can be opened later, and nobody would look for what is in a spare then.
var passing = []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE}

// spares is how many names are tried for one storage.
const spares = 3

// open opens a queue's storage, as a host on which exporterhelper finds it. One that cannot be opened is left where it is, and
// the next name is taken: a tenant's damaged file must keep neither the Collector nor the tenant from working.
func (s *store) open(tenant string, to pipeline.ID, log *zap.Logger, failed func(reading bool)) (*handing, error) {
	client, err := s.client(queueName(tenant, to), log)
	if err != nil {
		return nil, err
	}
	return &handing{Host: s.host, id: s.storage, client: &careful{Client: client, failed: failed}}, nil
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
		if slices.ContainsFunc(passing, func(e error) bool { return errors.Is(err, e) }) {
			break
		}
	}
	return nil, fmt.Errorf("%s: %w", name, first)
}

// try says why a storage cannot be opened.
func (s *store) try(name string) error {
	client, err := checkpoint.Client(context.Background(), s.host, s.storage, component.KindConnector, s.owner, name)
	if err != nil {
		return err
	}
	return client.Close(context.Background())
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
