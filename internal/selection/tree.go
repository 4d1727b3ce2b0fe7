// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"slices"
)

// node finds uses by the comparisons in their conditions: one look-up an attribute, whatever the number of texts that it is
// compared with. The root is for the uses that compare nothing.
type node[K transformContext] struct {
	uses []int     // of which nothing is left to ask, rising
	rest []left[K] // of which something is
	next []equals[K]
}

// equals are the texts that an attribute is compared with.
type equals[K transformContext] struct {
	attribute
	values map[string]*node[K]
}

// left is what remains of conditions when their comparisons hold.
type left[K transformContext] struct {
	*expression[K]
	uses []int
}

// leaf reports whether nothing need be known of an item.
func (n *node[K]) leaf() bool { return len(n.rest) == 0 && len(n.next) == 0 }

func (n *node[K]) add(use int, p *program[K]) {
	for i := range p.on {
		n = n.child(&p.on[i])
	}
	if p.rest == nil {
		n.uses = append(n.uses, use)
		return
	}
	at := slices.IndexFunc(n.rest, func(l left[K]) bool { return l.expression == p.rest })
	if at < 0 {
		at = len(n.rest)
		n.rest = append(n.rest, left[K]{expression: p.rest})
	}
	n.rest[at].uses = append(n.rest[at].uses, use)
}

func (n *node[K]) child(c *comparison) *node[K] {
	at := slices.IndexFunc(n.next, func(e equals[K]) bool { return e.attribute == c.attribute })
	if at < 0 {
		at = len(n.next)
		n.next = append(n.next, equals[K]{c.attribute, map[string]*node[K]{}})
	}
	of := n.next[at].values
	if of[c.text] == nil {
		of[c.text] = &node[K]{}
	}
	return of[c.text]
}

// walk is one way through a tree. What opens the context is a parameter of its methods: as a field it would be on the heap.
type walk[K transformContext] struct {
	ctx    context.Context
	at     place
	tc     K
	opened bool // most items need no context
	errs   []error
}

func (w *walk[K]) context(open func() K) K {
	if !w.opened {
		w.tc, w.opened = open(), true
	}
	return w.tc
}

func (w *walk[K]) close() {
	if w.opened {
		w.tc.Close()
	}
}

// find returns the uses below a root, rising. They are shared, or have the memory of into.
func (w *walk[K]) find(root *node[K], open func() K, into []int) []int {
	if root.leaf() {
		return root.uses
	}
	uses := w.visit(root, open, into[:0])
	if len(uses) > 1 {
		slices.Sort(uses)
	}
	return uses
}

func (w *walk[K]) visit(n *node[K], open func() K, uses []int) []int {
	uses = append(uses, n.uses...)
	for i := range n.rest {
		l := &n.rest[i]
		holds, err := l.cond.Eval(w.ctx, w.context(open))
		if err != nil {
			w.errs = append(w.errs, &Error{l.uses[0], "condition", err})
		} else if holds {
			uses = append(uses, l.uses...)
		}
	}
	for i := range n.next {
		e := &n.next[i]
		if text, ok := w.at.text(&e.attribute); ok {
			if n := e.values[text]; n != nil {
				uses = w.visit(n, open, uses)
			}
		}
	}
	return uses
}

func (w *walk[K]) err() error {
	if len(w.errs) == 0 {
		return nil
	}
	return errors.Join(w.errs...)
}
