// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/attrs"
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
)

// ofResource is the tenant of all items of a resource; known is false where it may differ from item to item. name is what told
// it, and why says that it is not the tenant which the name stands for.
func (r *router[T]) ofResource(resource pcommon.Map) (owner *tenantOf[T], name string, why reason, known bool) {
	if r.cfg.TrustTenant {
		if v, ok := resource.Get(labels.Tenant); ok && v.Type() == pcommon.ValueTypeStr && v.Str() != "" {
			owner, why = r.tenant(v.Str())
			return owner, v.Str(), why, true
		}
	}
	attrs.Remove(resource, labels.Tenant) // what a client claims, however often
	if r.source.data == nil {
		owner, name, why = r.named("")
		return owner, name, why, true
	}
	name, known = r.source.data.OfResource(resource)
	if !known {
		return nil, "", noReason, false
	}
	owner, name, why = r.named(name)
	return owner, name, why, true
}

// ofItem is the tenant of a point, span or record, once its resource was asked.
func (r *router[T]) ofItem(item, scope, resource pcommon.Map) (owner *tenantOf[T], name string, why reason) {
	return r.named(r.source.data.Of(item, scope, resource))
}

// named is the tenant that a name stands for.
func (r *router[T]) named(name string) (owner *tenantOf[T], as string, why reason) {
	if name == "" {
		return r.strangers[unknownName], name, unknownName
	}
	id := r.mapping.id(name)
	if id == "" {
		return r.strangers[invalidName], name, invalidName
	}
	owner, why = r.tenant(id)
	return owner, name, why
}

// tenant is the one with an id, and the one that takes its place when it is not to be.
func (r *router[T]) tenant(id string) (*tenantOf[T], reason) {
	if t, ok := r.tenants.Get(id); ok {
		return t, noReason
	}
	switch {
	case !tenant.Valid(id):
		return r.strangers[invalidName], invalidName
	case id == r.fallback.id:
		return r.fallback, noReason
	case id == r.overflow.id:
		return r.overflow, noReason
	}
	id = strings.Clone(id) // it has the memory of the batch
	if t, ok := r.tenants.GetOrPut(id, func() *tenantOf[T] { return r.meet(id) }); ok {
		return t, noReason
	}
	return r.overflow, overflowing
}
