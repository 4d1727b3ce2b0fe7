// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/pipeline"
	"go.uber.org/zap"
)

// complainEvery is how often it is logged what did not go where it was to.
const complainEvery = time.Minute

// restoreEvery is how often it is tried whether queues that are in memory only can have their storage.
const restoreEvery = 5 * time.Second

// Start opens the storage, and sends what was left in it.
func (r *router[T]) Start(ctx context.Context, host component.Host) error {
	if err := r.prepare(ctx, host); err != nil {
		return err
	}
	running, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.running.Go(func() { r.restore(running) })
	r.running.Go(func() { r.watch(running) })
	r.started.Store(true)
	return nil
}

// prepare is Start without goroutines.
func (r *router[T]) prepare(ctx context.Context, host component.Host) (err error) {
	r.host = host
	if r.own, err = newTelemetry(r.set.TelemetrySettings, r.observe); err != nil {
		return err
	}
	if r.cfg.Mapping.Table != "" {
		r.table = &tableFile{path: r.cfg.Mapping.Table}
		table, err := r.table.load()
		if err != nil {
			return errors.Join(fmt.Errorf("mapping::table: %w", err), r.own.shutdown())
		}
		r.mapping.table.Store(&table)
	}
	if cfg := r.cfg.Queue.Get(); cfg != nil && cfg.StorageID != nil {
		if _, ok := host.GetExtensions()[*cfg.StorageID]; !ok {
			return errors.Join(fmt.Errorf("sending_queue::storage: no extension %q is running: add it under extensions and service.extensions", *cfg.StorageID), r.own.shutdown())
		}
		r.store = &store{host: host, storage: *cfg.StorageID, owner: r.set.ID, damaged: func() { r.own.damaged.Add(context.Background(), 1, r.mine()) }}
		r.openIndex(ctx)
	}
	return nil
}

// openIndex reads whose queues may not be empty. Without it, the queues of tenants that send something are found.
func (r *router[T]) openIndex(ctx context.Context) {
	r.leftovers = map[string][]pipeline.ID{}
	client, err := r.store.client("/index/"+r.signal.id.String(), r.set.Logger)
	var problems []error
	if err == nil {
		if r.index, problems, err = openIndex(ctx, client); err != nil {
			err = errors.Join(err, client.Close(ctx))
		}
	}
	for _, p := range problems {
		r.degraded(p)
	}
	if err != nil {
		r.degraded(fmt.Errorf("what was left in queues is not sent before its tenant sends something: %w", err))
		return
	}
	for tenant, ids := range r.index.all() {
		for _, text := range ids {
			var id pipeline.ID
			if err := id.UnmarshalText([]byte(text)); err != nil {
				continue
			}
			r.leftovers[tenant] = append(r.leftovers[tenant], id)
			if r.targets[id] == nil {
				r.set.Logger.Warn("a queue in the storage may hold data for a pipeline that is not there any more; it stays",
					zap.String("tenant", tenant), zap.Stringer("pipeline", id))
			}
		}
	}
	for _, t := range []*tenantOf[T]{r.fallback, r.overflow} { // they were made before this was known
		t.leftover = r.leftovers[t.id]
	}
}

// restore opens the queues that may not be empty. Those of tenants for which there is no room wait until there is.
func (r *router[T]) restore(ctx context.Context) {
	left := slices.Collect(maps.Keys(r.leftovers))
	for told := false; ; {
		left = slices.DeleteFunc(left, func(id string) bool {
			if ctx.Err() != nil {
				return false
			}
			t, why := r.tenant(id)
			if why == noReason {
				r.open(t)
			}
			return why == noReason
		})
		r.unopened.Store(int64(len(left)))
		switch {
		case len(left) == 0 && told:
			r.set.Logger.Info("queues in the storage that waited for room are open")
			return
		case len(left) == 0:
			return
		case !told:
			r.set.Logger.Warn("max_tenants is less than it was: queues in the storage wait for room", zap.Int("tenants", len(left)))
			told = true
		}
		select {
		case <-ctx.Done():
			return
		case <-r.room:
		}
	}
}

// watch does what has to be done from time to time.
func (r *router[T]) watch(ctx context.Context) {
	complain, expire := time.NewTicker(complainEvery), time.NewTicker(min(complainEvery, max(r.cfg.TenantTTL/4, time.Millisecond)))
	defer complain.Stop()
	defer expire.Stop()
	var reload, restore <-chan time.Time
	if r.store != nil {
		t := time.NewTicker(restoreEvery)
		defer t.Stop()
		restore = t.C
	}
	if r.table != nil && r.cfg.Mapping.ReloadInterval > 0 {
		t := time.NewTicker(r.cfg.Mapping.ReloadInterval)
		defer t.Stop()
		reload = t.C
	}
	for {
		select {
		case <-ctx.Done():
			r.complain()
			return
		case <-complain.C:
			r.complain()
		case <-expire.C:
			r.expire(ctx, r.now())
		case <-restore:
			r.toStorage(ctx)
		case <-reload:
			r.reload(ctx)
		}
	}
}

// reload takes over what the table says now. While something in it is wrong, the one before stays.
func (r *router[T]) reload(ctx context.Context) {
	if !r.table.changed() {
		return
	}
	table, err := r.table.load()
	if err != nil {
		r.own.loadFailures.Add(ctx, 1, r.mine())
		r.set.Logger.Error("the table of tenants has changed but is not used; the one before stays", zap.Error(err))
		r.report(componentstatus.NewRecoverableErrorEvent(err))
		return
	}
	r.mapping.table.Store(&table)
	r.set.Logger.Info("the table of tenants was read", zap.Int("names", len(table)))
	r.report(componentstatus.NewEvent(componentstatus.StatusOK))
}

// degraded tells of something that works less well than it is to.
func (r *router[T]) degraded(err error) {
	r.set.Logger.Error("tenant_routing works with less than was configured", zap.Error(err))
	r.report(componentstatus.NewRecoverableErrorEvent(err))
}

func (r *router[T]) report(event *componentstatus.Event) { componentstatus.ReportStatus(r.host, event) }

// expire closes the queues of tenants that have sent nothing for long, and forgets them. What is not empty stays.
func (r *router[T]) expire(ctx context.Context, now time.Time) {
	var gone []*tenantOf[T]
	for _, t := range r.everybody() {
		if t == r.fallback || t == r.overflow || !r.gone(t, now) || !t.mu.TryLock() {
			continue
		}
		if t.closed || !r.gone(t, now) || t.waiting() > 0 || !t.opened && len(t.leftover) > 0 {
			t.mu.Unlock()
			continue
		}
		t.closed = true
		if err := t.stop(ctx); err != nil {
			r.set.Logger.Warn("the queue of an idle tenant did not close well", zap.String("tenant", t.id), zap.Error(err))
		}
		gone = append(gone, t)
	}
	if len(gone) == 0 {
		return
	}
	// Whoever wants one of them meanwhile waits for its mu, and finds a new one: two must not have one storage open, nor may the
	// index forget the new one.
	r.forget(ctx, gone...)
	r.tenants.Retain(func(_ string, t *tenantOf[T]) bool { return !t.closed })
	r.knownMu.Lock()
	for _, t := range gone {
		delete(r.known, t)
	}
	r.knownMu.Unlock()
	r.own.evicted.Add(ctx, int64(len(gone)), r.mine())
	for _, t := range gone {
		t.mu.Unlock()
	}
	select {
	case r.room <- struct{}{}:
	default: // there was some already
	}
}

// gone reports whether a tenant need not be remembered: it has sent nothing for long, or nothing since the start, while queues of
// others wait for room.
func (r *router[T]) gone(t *tenantOf[T], now time.Time) bool {
	return t.idle(now, r.cfg.TenantTTL) || r.unopened.Load() > 0 && t.accepted.Load() == 0
}

// everybody is a list of all tenants.
func (r *router[T]) everybody() []*tenantOf[T] {
	r.knownMu.Lock()
	defer r.knownMu.Unlock()
	all := make([]*tenantOf[T], 0, len(r.known))
	for t := range r.known {
		all = append(all, t)
	}
	return all
}

// stop ends a tenant's queues. It is closed already, so that nothing comes to them any more.
func (t *tenantOf[T]) stop(ctx context.Context) error {
	var errs []error
	for _, q := range slices.Concat(t.queues, t.rest) {
		errs = append(errs, q.stop(ctx))
	}
	return errors.Join(errs...)
}
