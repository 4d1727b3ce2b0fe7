// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// careful is a client that lets a queue lose nothing that was taken when its storage cannot be written. exporterhelper v0.149
// (persistent_queue.go) does not see to that:
//   - what it cannot note as being sent, it deletes unsent: here it is read all the same, and noted later;
//   - the place of what it cannot write stays taken, and who waits for it is not woken: here it is, finds nothing, and gives the
//     place back, while the sender is refused;
//   - what was being sent when a process was killed, it first deletes and then writes anew: here it is deleted at the end.
//
// What the storage has not been told goes with the next transaction that writes, so that what it says is never half of it: a
// process that is killed before finds what was there, and sends it again.
type careful struct {
	storage.Client
	failed func(reading bool)

	full atomic.Bool // what was to be put last was refused

	mu      sync.Mutex
	started bool
	later   []*storage.Operation          // is deleted when the queue has started
	owed    map[string]*storage.Operation // is to be told, by key
}

// Keys that are of no item.
const (
	queueMetadata = "qmv0" // what the queue knows of itself
	probe         = "room"
)

// refusalKey is of a context in which something is put, and leads to a *error: what the storage says of it.
type refusalKey struct{}

// Batch does several things at once. Of what cannot be written, only what is put is refused.
func (c *careful) Batch(ctx context.Context, ops ...*storage.Operation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	gets, deletes := 0, 0
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			gets++
		case storage.Delete:
			deletes++
		}
	}
	switch {
	case gets == len(ops):
		return c.read(ctx, ops)
	case deletes == len(ops) && !c.started:
		c.later = append(c.later, ops...)
		return nil
	}
	err := c.write(ctx, ops)
	if err == nil {
		return nil
	}
	if c.refuse(ctx, ops, err) {
		return nil
	}
	for _, op := range ops {
		if op.Type != storage.Get {
			c.owe(op)
		}
	}
	return c.read(ctx, slices.DeleteFunc(slices.Clone(ops), func(op *storage.Operation) bool { return op.Type != storage.Get }))
}

// refuse tells who puts something in that it cannot be written. Where a queue puts something in while it starts, there is nobody.
func (c *careful) refuse(ctx context.Context, ops []*storage.Operation, err error) bool {
	refusal, ok := ctx.Value(refusalKey{}).(*error)
	if !ok || !slices.ContainsFunc(ops, func(op *storage.Operation) bool { return op.Type == storage.Set && op.Key != queueMetadata }) {
		return false
	}
	*refusal = err
	c.full.Store(true)
	return true
}

func (c *careful) owe(op *storage.Operation) {
	if c.owed == nil {
		c.owed = map[string]*storage.Operation{}
	}
	c.owed[op.Key] = op
}

// write does what is owed, and something else.
func (c *careful) write(ctx context.Context, ops []*storage.Operation) error {
	if len(c.owed) > 0 {
		ops = slices.Concat(slices.Collect(maps.Values(c.owed)), ops)
	}
	if err := c.Client.Batch(ctx, ops...); err != nil {
		c.failed(false)
		return err
	}
	c.owed = nil
	return nil
}

// read gets what is there, or would be.
func (c *careful) read(ctx context.Context, gets []*storage.Operation) error {
	if len(gets) == 0 {
		return nil
	}
	err := c.Client.Batch(ctx, gets...)
	unread := false
	for _, op := range gets {
		if owed, ok := c.owed[op.Key]; ok {
			op.Value = owed.Value // nil of what is deleted
		} else {
			unread = err != nil
		}
	}
	if !unread {
		return nil
	}
	c.failed(true)
	return err
}

// put sends something to a queue whose storage may be full. Once something was refused, nothing is put in before there is room:
// a place in which there is nothing is given back only when it is its turn.
func (c *careful) put(ctx context.Context, bytes func() int, send func(context.Context) error) error {
	if err := c.room(ctx, bytes); err != nil {
		return err
	}
	var refusal error
	if err := send(context.WithValue(ctx, refusalKey{}, &refusal)); err != nil {
		return err
	}
	return refusal
}

// room says why so many bytes could not be put. Where nothing was refused, it does not try.
func (c *careful) room(ctx context.Context, bytes func() int) error {
	if !c.full.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.write(ctx, []*storage.Operation{storage.SetOperation(probe, make([]byte, bytes()))}); err != nil {
		return err
	}
	c.full.Store(false)
	c.owe(storage.DeleteOperation(probe))
	_ = c.write(ctx, nil) // else the next time
	return nil
}

// settle deletes what was put off while the queue started. The places are used once only, so nothing new stands there.
func (c *careful) settle(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.started = true
	for _, op := range c.later {
		c.owe(op)
	}
	c.later = nil
	if len(c.owed) == 0 {
		return nil
	}
	return c.write(ctx, nil)
}

// Close tells the storage what it was not told. Where it cannot, what was sent is sent again.
func (c *careful) Close(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.owed) > 0 {
		_ = c.write(ctx, nil)
	}
	return c.Client.Close(ctx)
}
