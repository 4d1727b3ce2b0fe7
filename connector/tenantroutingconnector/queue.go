// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.uber.org/zap"
)

// sendFunc hands data on.
type sendFunc[T any] func(context.Context, T) error

// queue takes a tenant's data for one pipeline.
type queue[T any] struct {
	target *target[T]
	send   sendFunc[T]
	size   func() int64 // how much waits, in the unit of its sizer
	stop   func(context.Context) error
}

// exporting is an exporter of exporterhelper.
type exporting[T any] struct {
	component.Component
	send sendFunc[T]
}

// newQueue opens a tenant's queue for a pipeline. Without a storage it begins empty.
func (r *router[T]) newQueue(t *tenantOf[T], to *target[T]) *queue[T] {
	if !r.cfg.Queue.HasValue() {
		return newDirect(to, func(ctx context.Context, data T) error { return to.send(r.whose(ctx, t), data) })
	}
	log := r.set.Logger.With(zap.String("tenant", t.id), zap.Stringer("pipeline", to.id))
	cfg, host := r.queueConfig(), r.host
	var disk *careful
	if r.store != nil {
		opened, err := r.store.open(t.id, to.id, log, func(reading bool) {
			if reading {
				t.unread.Add(1)
			} else {
				t.unwritten.Add(1)
			}
		})
		if err != nil {
			log.Error("the tenant's queue is in memory only: its storage cannot be opened", zap.Error(err))
			r.degraded(err)
			cfg.StorageID = nil
			t.inMemory.Store(true)
		} else {
			host, disk = opened, opened.client
		}
	}
	set := exporter.Settings{ID: r.set.ID, TelemetrySettings: r.set.TelemetrySettings, BuildInfo: r.set.BuildInfo}
	set.Logger = log
	probe := &queueProbe{MeterProvider: set.MeterProvider, sent: func(n int64) { t.sent.Add(n) }, lost: func(n int64) {
		if disk == nil || !r.stopped.Load() { // what is interrupted then stays in the storage
			r.dropped(t, undelivered, int(n))
		}
	}}
	set.MeterProvider = probe
	e, err := r.signal.export(set, r.cfg, r.pusher(t, to),
		exporterhelper.WithQueue(configoptional.Some(cfg)), exporterhelper.WithRetry(r.cfg.Retry),
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}), // that of the exporter behind holds
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	if err == nil {
		err = e.Start(context.Background(), host)
	}
	if err == nil && disk != nil {
		if err := disk.settle(context.Background()); err != nil {
			log.Warn("what the queue has sent anew cannot be removed from its storage", zap.Error(err))
		}
	}
	if err != nil { // exporterhelper takes what Validate lets pass, and the storage is open already
		log.Error("the tenant's queue does not start: its data is refused", zap.Error(err))
		r.degraded(err)
		return newDirect(to, func(context.Context, T) error { return err })
	}
	put := e.send
	if disk != nil {
		put = func(ctx context.Context, data T) error {
			return disk.put(ctx, func() int { return r.signal.bytes(data) }, func(ctx context.Context) error { return e.send(ctx, data) })
		}
	}
	send := func(ctx context.Context, data T) error {
		err := put(ctx, data)
		if err != nil {
			if size := r.sizeOf(data, cfg.Sizer); size > cfg.QueueSize {
				return consumererror.NewPermanent(&oversize{t.id, size, cfg})
			}
		}
		return err
	}
	return &queue[T]{target: to, size: probe.size, send: send, stop: e.Shutdown}
}

// sizeOf is how much of a queue data takes.
func (r *router[T]) sizeOf(data T, sizer exporterhelper.RequestSizerType) int64 {
	switch sizer {
	case exporterhelper.RequestSizerTypeBytes:
		return int64(r.signal.bytes(data))
	case exporterhelper.RequestSizerTypeItems:
		return int64(r.signal.items(data))
	default:
		return 1
	}
}

// newDirect is no queue: the sender waits, and hears of what fails.
func newDirect[T any](to *target[T], send sendFunc[T]) *queue[T] {
	return &queue[T]{target: to, send: send, size: func() int64 { return 0 }, stop: func(context.Context) error { return nil }}
}

// queueConfig is that of a tenant's queue, its own to change.
func (r *router[T]) queueConfig() exporterhelper.QueueBatchConfig {
	cfg := *r.cfg.Queue.Get()
	if batch := cfg.Batch.Get(); batch != nil && len(batch.Partition.MetadataKeys) == 0 {
		batch.Partition.MetadataKeys = r.cfg.KeepMetadata // a batch has one set of metadata
	}
	return cfg
}

// pusher is what a queue does with its data. It alone says whose they are, so that nothing that was written to a disk, or put
// together in a batch, can say otherwise.
func (r *router[T]) pusher(t *tenantOf[T], to *target[T]) sendFunc[T] {
	faults := newFaults[T](r.cfg.RetryServerErrors)
	return func(ctx context.Context, data T) error {
		r.signal.own(data) // the queue holds it until the last try, whoever read it from a disk or put it together
		ctx, cancel := context.WithCancel(r.whose(ctx, t))
		defer cancel()
		defer context.AfterFunc(r.cut, cancel)()
		return faults.judge(data, to.send(ctx, data), r.now())
	}
}

// whose is the context under which a tenant's data is handed on: of what the client sent, only what is configured is left.
func (r *router[T]) whose(ctx context.Context, t *tenantOf[T]) context.Context {
	if len(r.cfg.KeepMetadata) == 0 {
		return client.NewContext(ctx, t.info)
	}
	kept := r.kept(ctx)
	kept[r.cfg.MetadataKey] = []string{t.id}
	return client.NewContext(ctx, client.Info{Metadata: client.NewMetadata(kept)})
}

// stripped is the context under which data waits in a queue: a storage writes its metadata down, and no secret may be in it.
func (r *router[T]) stripped(ctx context.Context) context.Context {
	if len(r.cfg.KeepMetadata) == 0 {
		return client.NewContext(ctx, client.Info{})
	}
	return client.NewContext(ctx, client.Info{Metadata: client.NewMetadata(r.kept(ctx))})
}

func (r *router[T]) kept(ctx context.Context) map[string][]string {
	from := client.FromContext(ctx).Metadata
	kept := make(map[string][]string, len(r.cfg.KeepMetadata)+1)
	for _, key := range r.cfg.KeepMetadata {
		if values := from.Get(key); len(values) > 0 {
			kept[key] = values
		}
	}
	return kept
}
