// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/component/componentstatus"
	"go.uber.org/zap"
)

// opening is how many tenants' queues are opened at once: a file for each takes its time.
const opening = 16

// openAll opens the queues of the tenants of a request of whom nothing was heard before.
func (r *router[T]) openAll(ctx context.Context, q *request[T]) {
	var fresh []*tenantOf[T]
	for i := range q.parts {
		if p := &q.parts[i]; p.owner.id != "" && p.why == noReason && p.items > 0 && !p.owner.noted.Load() {
			fresh = append(fresh, p.owner)
		}
	}
	if len(fresh) < 2 {
		return // it is opened when it is its turn
	}
	slots := make(chan struct{}, opening)
	var all sync.WaitGroup
	for _, t := range fresh {
		slots <- struct{}{}
		all.Go(func() {
			r.open(t)
			<-slots
		})
	}
	all.Wait()
	_ = r.note(ctx, fresh...) // else each is refused when it is its turn
}

// open opens a tenant's queues.
func (r *router[T]) open(t *tenantOf[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opened || t.closed {
		return
	}
	t.opened = true
	for _, to := range t.targets {
		t.queues = append(t.queues, r.newQueue(t, to))
	}
	for _, id := range t.leftover {
		if to := r.targets[id]; to != nil && !slices.Contains(t.targets, to) {
			t.rest = append(t.rest, r.newQueue(t, to))
		}
	}
}

// note tells the index whose queues may have something in them from now on, before they have.
func (r *router[T]) note(ctx context.Context, tenants ...*tenantOf[T]) error {
	queues := map[string][]string{}
	for _, t := range tenants {
		for _, to := range t.targets {
			queues[t.id] = append(queues[t.id], to.id.String())
		}
		for _, id := range t.leftover {
			if !slices.Contains(queues[t.id], id.String()) {
				queues[t.id] = append(queues[t.id], id.String())
			}
		}
	}
	if err := r.index.set(ctx, queues); err != nil {
		return err
	}
	for _, t := range tenants {
		t.noted.Store(true)
	}
	return nil
}

// forget tells the index whose queues have nothing in them any more, but for those of pipelines that are not there: what is in them
// waits until the pipelines are there again.
func (r *router[T]) forget(ctx context.Context, tenants ...*tenantOf[T]) {
	queues := map[string][]string{}
	for _, t := range tenants {
		queues[t.id] = nil
		for _, id := range t.leftover {
			if r.targets[id] == nil {
				queues[t.id] = append(queues[t.id], id.String())
			}
		}
	}
	if err := r.index.set(ctx, queues); err != nil {
		r.set.Logger.Warn("the index of queues cannot be written: some that are empty will be looked at after the next start", zap.Error(err))
	}
}

// toStorage lets queues that had to be in memory have their storage, once they are empty and it can be opened.
func (r *router[T]) toStorage(ctx context.Context) {
	found, left := 0, 0
	for _, t := range r.everybody() {
		if !t.inMemory.Load() {
			continue
		}
		left++
		if !t.mu.TryLock() {
			continue
		}
		if t.closed || t.waiting() > 0 {
			t.mu.Unlock()
			continue
		}
		if err := r.store.try(queueName(t.id, t.targets[0].id)); err != nil {
			t.mu.Unlock()
			return // that of others is no better
		}
		if err := t.stop(ctx); err != nil {
			r.set.Logger.Warn("a queue in memory did not close well", zap.String("tenant", t.id), zap.Error(err))
		}
		t.queues, t.rest, t.opened = nil, nil, false // until the tenant sends something, or at once where the storage may have something
		t.noted.Store(false)
		t.inMemory.Store(false)
		t.mu.Unlock()
		if len(t.leftover) > 0 {
			r.open(t)
		}
		found++
	}
	if found == 0 {
		return
	}
	r.set.Logger.Info("queues that were in memory only have their storage again", zap.Int("tenants", found), zap.Int("left", left-found))
	if left == found && r.index != nil {
		r.report(componentstatus.NewEvent(componentstatus.StatusOK))
	}
}
