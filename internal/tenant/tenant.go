// SPDX-License-Identifier: Apache-2.0

// Package tenant tells whose data it is. It is the one way in which components resolve the tenant, so that what is judged,
// routed and limited apart is the same everywhere.
package tenant

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/labels"
)

// DefaultKeys are the attributes of the resource that decide where nothing else is configured, in their order.
func DefaultKeys() []string {
	return []string{"k8s.namespace.name", "service.namespace", "service.name"}
}

// ofPoint begins the keys of attributes that do not stand on the resource.
const ofPoint = "point:"

// Resolver finds the tenant. It is safe for concurrent use.
type Resolver struct {
	keys []key
}

type key struct {
	name  string
	point bool
}

// NewResolver returns a resolver by attribute keys, of which the first that is set decides. A key means an attribute of
// the resource, which the platform's own processors can be made to vouch for. What anybody may write on a data point, span
// or log record is asked only where a key says so: point:customer.id.
func NewResolver(keys []string) (*Resolver, error) {
	r := &Resolver{}
	var errs []error
	if len(keys) == 0 {
		errs = append(errs, errors.New("must name an attribute, e.g. "+DefaultKeys()[0]))
	}
	for i, k := range keys {
		name, point := strings.CutPrefix(k, ofPoint)
		switch {
		case strings.TrimSpace(name) != name || name == "":
			errs = append(errs, fmt.Errorf("[%d]: %q is no attribute key", i, k))
		case slices.Contains(r.keys, key{name, point}):
			errs = append(errs, fmt.Errorf("[%d]: %q stands there twice", i, k))
		}
		r.keys = append(r.keys, key{name, point})
	}
	return r, errors.Join(errs...)
}

// Of is the tenant of an item, "" where it is unknown. It is what the attribute says, Valid or not, and has the memory of
// the batch. A tenant that stands on the resource was resolved on an earlier hop, and stays; the edge that takes data from
// clients has to remove what they claim, every copy of it: of a key that stands there more than once, the first counts.
func (r *Resolver) Of(point, scope, resource pcommon.Map) string {
	if name := text(resource, labels.Tenant); name != "" {
		return name
	}
	for i := range r.keys {
		k := &r.keys[i]
		if k.point {
			if name := text(point, k.name); name != "" {
				return name
			}
			if name := text(scope, k.name); name != "" {
				return name
			}
		}
		if name := text(resource, k.name); name != "" {
			return name
		}
	}
	return ""
}

// OfResource is the tenant of all items of a resource; known is false where it may differ from item to item.
func (r *Resolver) OfResource(resource pcommon.Map) (name string, known bool) {
	if name := text(resource, labels.Tenant); name != "" {
		return name, true
	}
	for i := range r.keys {
		k := &r.keys[i]
		if k.point {
			return "", false
		}
		if name := text(resource, k.name); name != "" {
			return name, true
		}
	}
	return "", true
}

// Keys are the attributes of the resource by which the tenant is found: what results have to keep so that the next hop
// finds the same.
func (r *Resolver) Keys() []string {
	keys := []string{labels.Tenant}
	for _, k := range r.keys {
		if !slices.Contains(keys, k.name) {
			keys = append(keys, k.name)
		}
	}
	return keys
}

// Decides reports whether an attribute of the resource with this key says who the tenant is.
func (r *Resolver) Decides(name string) bool {
	return name == labels.Tenant || slices.Contains(r.keys, key{name: name})
}

func text(m pcommon.Map, key string) string {
	v, ok := m.Get(key)
	if !ok {
		return ""
	}
	if v.Type() == pcommon.ValueTypeStr {
		return v.Str()
	}
	return v.AsString()
}

// MaxLength is that of Mimir, Loki and Tempo, in bytes.
const MaxLength = 150

// Valid reports whether backends take a name as a tenant id: at most 150 bytes of alphanumerics and !-_.*'(), and neither
// . nor .. (https://grafana.com/docs/mimir/latest/configure/about-tenant-ids/).
func Valid(name string) bool {
	if name == "" || len(name) > MaxLength || name == "." || name == ".." {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("!-_.*'()", c) >= 0:
		default:
			return false
		}
	}
	return true
}
