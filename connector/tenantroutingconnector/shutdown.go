// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// deaf is how long a destination that does not hear that it is to end is waited for. Tests do not have so long.
var deaf = 5 * time.Second

// Shutdown sends what queues in memory hold, all tenants at once, for as long as drain_timeout says. What lies in a storage
// stays there.
func (r *router[T]) Shutdown(ctx context.Context) error {
	defer r.cutOff()
	if r.stopped.Swap(true) || r.own == nil {
		return nil
	}
	if r.stop != nil {
		r.stop()
		r.running.Wait()
	}
	all := r.everybody()
	err := r.drain(ctx, all)
	if err == nil {
		r.forget(ctx, slices.DeleteFunc(all, func(t *tenantOf[T]) bool { return !t.opened || t.waiting() > 0 })...)
	}
	r.complain()
	return errors.Join(err, r.index.close(ctx), r.own.shutdown())
}

// drain closes the queues of all tenants.
func (r *router[T]) drain(ctx context.Context, all []*tenantOf[T]) error {
	drain, cancel := context.WithTimeout(ctx, r.cfg.DrainTimeout)
	defer cancel()
	defer context.AfterFunc(drain, r.cutOff)()
	var mu sync.Mutex
	var errs []error
	var closing sync.WaitGroup
	for _, t := range all {
		closing.Go(func() {
			t.mu.Lock() // whoever is sending comes to an end
			t.closed = true
			t.mu.Unlock() // whoever scrapes sees how the queues become empty
			err := t.stop(drain)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("tenant %s: %w", t.id, err))
			}
		})
	}
	done := make(chan struct{})
	go func() {
		closing.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-drain.Done():
		r.set.Logger.Warn("queues were not empty in time: what is in memory is lost, what is in a storage stays there",
			zap.Duration("drain_timeout", r.cfg.DrainTimeout))
		select {
		case <-done:
		case <-time.After(deaf):
			return errors.New("a destination does not hear that it is to end")
		}
	}
	return errors.Join(errs...)
}
