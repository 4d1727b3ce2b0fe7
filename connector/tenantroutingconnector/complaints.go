// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"strings"
	"sync"

	"go.uber.org/zap"
)

// maxExample is how many bytes of a name are logged: somewhat more than an id may have.
const maxExample = 200

// complaints gather what is logged once a minute. The zero value has none.
type complaints struct {
	mu sync.Mutex
	of [reasons]complaint
}

// complaint is about items that did not go where they were to, of which example is a name or a tenant.
type complaint struct {
	items   int
	example string
}

func (c *complaints) add(why reason, example string, items int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of[why].items == 0 {
		// Cut, since a client chooses how long a name is, and cloned, since it has the memory of the batch.
		c.of[why].example = strings.Clone(strings.ToValidUTF8(example[:min(len(example), maxExample)], ""))
	}
	c.of[why].items += items
}

// take returns what there was, and forgets it.
func (c *complaints) take() [reasons]complaint {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.of
	c.of = [reasons]complaint{}
	return of
}

// complain logs what there was since the last time.
func (r *router[T]) complain() {
	for i, c := range r.log.take() {
		if c.items == 0 {
			continue
		}
		fields := []zap.Field{zap.Stringer("reason", reason(i)), zap.Int("items", c.items), zap.Stringer("signal", r.signal.id)}
		switch reason(i) {
		case unknownName:
			r.set.Logger.Warn("items name no tenant", append(fields, zap.Strings("tenant_from", r.cfg.TenantFrom), zap.String("on_unknown", string(r.cfg.OnUnknown)))...)
		case invalidName:
			r.set.Logger.Warn("items name a tenant whose id backends would not take, or that is in no table",
				append(fields, zap.String("example", c.example), zap.String("on_unknown", string(r.cfg.OnUnknown)))...)
		case overflowing:
			r.set.Logger.Warn("there are more tenants than max_tenants",
				append(fields, zap.String("example", c.example), zap.Int("max_tenants", r.cfg.MaxTenants), zap.String("overflow_tenant", r.cfg.OverflowTenant))...)
		default:
			r.set.Logger.Warn("items of tenants were not taken", append(fields, zap.String("example", c.example))...)
		}
	}
}
