// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/attrs"
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
)

// request is what one call brought, while it is taken apart.
type request[T any] struct {
	parts []part[T]
	index map[*tenantOf[T]]int // of parts
	// owners are the tenants of resources, nil where one belongs to several.
	owners []*tenantOf[T]
	// strays are items that do not go on as what they came as, and example is the name that one of them came with.
	strays  [reasons]int
	example [reasons]string
}

// part is what of a request belongs to one tenant.
type part[T any] struct {
	owner *tenantOf[T]
	data  T
	items int
	why   reason // it is not taken
}

// reset makes room for the next request.
func (q *request[T]) reset() {
	clear(q.parts)
	clear(q.owners)
	clear(q.index)
	*q = request[T]{parts: q.parts[:0], owners: q.owners[:0], index: q.index}
}

// stray notes items that do not go on as what they came as.
func (q *request[T]) stray(why reason, name string, items int) {
	if why == noReason {
		return
	}
	if q.strays[why] == 0 {
		q.example[why] = name
	}
	q.strays[why] += items
}

// Resources of all signals look alike, and none of their types knows of the others.
type (
	resource[R any] interface {
		Resource() pcommon.Resource
		MoveTo(R)
	}
	slice[S, R any] interface { // of resources
		Len() int
		At(int) R
		AppendEmpty() R
		MoveAndAppendTo(S)
		RemoveIf(func(R) bool)
	}
)

// shape says how the data of a signal is built.
type shape[T comparable, S slice[S, R], R resource[R]] struct {
	// empty is new data, owned by who makes it.
	empty     func() T
	resources func(T) S
	items     func(R) int
	// each calls f with the attributes of every item and of its scope, until f says no, and reports whether it never did.
	each func(r R, f func(item, scope pcommon.Map) bool) bool
	// divide moves every item to where it belongs, of the same resource and scope.
	divide func(r R, to func(item, scope pcommon.Map) R)
}

// split finds the tenants of a request, and moves what belongs to each to a part of its own. What is all one tenant's stays
// where it is.
func (s *shape[T, S, R]) split(r *router[T], data T, q *request[T]) {
	rs := s.resources(data)
	for i := range rs.Len() {
		if s.isEmpty(rs.At(i)) { // a tenant is made for data: what has none costs nothing, and would take the places of others
			rs.RemoveIf(s.isEmpty)
			break
		}
	}
	for i := range rs.Len() {
		res := rs.At(i)
		owner, name, why, known := r.ofResource(res.Resource().Attributes())
		if !known {
			owner, name, why = s.soleOwner(r, res)
		}
		q.owners = append(q.owners, owner)
		if owner != nil {
			if why != noReason {
				q.stray(why, name, s.items(res))
			}
			owner.mark(res.Resource())
		}
	}
	if len(q.owners) == 0 {
		return
	}
	first := q.owners[0]
	if first != nil && !slices.ContainsFunc(q.owners, func(o *tenantOf[T]) bool { return o != first }) {
		q.parts = append(q.parts, part[T]{owner: first, data: data})
		return
	}
	for i, owner := range q.owners {
		if owner != nil {
			rs.At(i).MoveTo(s.resources(q.of(owner, s.empty)).AppendEmpty())
			continue
		}
		s.deal(r, rs.At(i), q)
	}
}

// isEmpty reports whether a resource has no items.
func (s *shape[T, S, R]) isEmpty(r R) bool { return s.each(r, atOnce) }

// atOnce says no to the first item. In a generic function it would be made anew for each call.
func atOnce(_, _ pcommon.Map) bool { return false }

// of is the data of a tenant's part.
func (q *request[T]) of(owner *tenantOf[T], empty func() T) T {
	if n := len(q.parts); n > 0 && q.parts[n-1].owner == owner {
		return q.parts[n-1].data
	}
	at, ok := q.index[owner]
	if !ok {
		at = len(q.parts)
		q.index[owner] = at
		q.parts = append(q.parts, part[T]{owner: owner, data: empty()})
	}
	return q.parts[at].data
}

// soleOwner is the tenant of all items of a resource, nil when there are several.
func (s *shape[T, S, R]) soleOwner(r *router[T], res R) (owner *tenantOf[T], name string, why reason) {
	first := true
	s.each(res, func(item, scope pcommon.Map) bool {
		o, n, w := r.ofItem(item, scope, res.Resource().Attributes())
		if first {
			owner, name, why, first = o, n, w, false
			return true
		}
		if o == owner && w == why {
			return true
		}
		owner = nil
		return false
	})
	return owner, name, why
}

// deal moves each item of a resource to its tenant's part.
func (s *shape[T, S, R]) deal(r *router[T], res R, q *request[T]) {
	dealt := map[*tenantOf[T]]R{}
	s.divide(res, func(item, scope pcommon.Map) R {
		owner, name, why := r.ofItem(item, scope, res.Resource().Attributes())
		q.stray(why, name, 1)
		to, ok := dealt[owner]
		if !ok {
			to = s.resources(q.of(owner, s.empty)).AppendEmpty()
			res.Resource().CopyTo(to.Resource())
			owner.mark(to.Resource())
			dealt[owner] = to
		}
		return to
	})
}

// join puts a request together again, for a sender that is to keep it.
func (s *shape[T, S, R]) join(data T, parts []part[T]) {
	rs := s.resources(data)
	rs.RemoveIf(func(R) bool { return true }) // they were moved, or dealt out
	for i := range parts {
		s.resources(parts[i].data).MoveAndAppendTo(rs)
	}
}

// markAll is for a request that is one tenant's because the request says so.
func (s *shape[T, S, R]) markAll(data T, owner *tenantOf[T]) {
	rs := s.resources(data)
	for i := range rs.Len() {
		owner.mark(rs.At(i).Resource())
	}
}

// mark writes on a resource whose it is, and leaves no other claim.
func (t *tenantOf[T]) mark(r pcommon.Resource) {
	if t.id == "" {
		return // it goes nowhere
	}
	attrs.Set(r.Attributes(), labels.Tenant, t.id)
}
