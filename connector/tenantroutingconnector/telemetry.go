// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"errors"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/connector/tenantroutingconnector/internal/metadata"
)

// telemetry is what the connector says of itself. What it says of tenants is observed, so that it ends with them.
type telemetry struct {
	strays       metric.Int64Counter
	evicted      metric.Int64Counter
	damaged      metric.Int64Counter
	loadFailures metric.Int64Counter

	accepted, refused, dropped, sent, storage metric.Int64ObservableCounter
	tenants, queued, series, inMemory         metric.Int64ObservableGauge
	registration                              metric.Registration
}

func newTelemetry(set component.TelemetrySettings, observe func(metric.Observer, *telemetry)) (*telemetry, error) {
	meter := set.MeterProvider.Meter(metadata.ScopeName)
	t := &telemetry{}
	var errs [14]error
	t.accepted, errs[0] = meter.Int64ObservableCounter("otelcol_tenant_routing_items_accepted", metric.WithUnit("{item}"),
		metric.WithDescription("Data points, log records and spans that were taken for a tenant."))
	t.refused, errs[1] = meter.Int64ObservableCounter("otelcol_tenant_routing_items_refused", metric.WithUnit("{item}"),
		metric.WithDescription("Items of a tenant that the sender was told to send again, by reason."))
	t.dropped, errs[2] = meter.Int64ObservableCounter("otelcol_tenant_routing_items_dropped", metric.WithUnit("{item}"),
		metric.WithDescription("Items of a tenant that are lost, by reason."))
	t.strays, errs[3] = meter.Int64Counter("otelcol_tenant_routing_items_strayed", metric.WithUnit("{item}"),
		metric.WithDescription("Items whose tenant is not known, or not to be, by reason: what on_unknown and overflow_tenant are for."))
	t.tenants, errs[4] = meter.Int64ObservableGauge("otelcol_tenant_routing_tenants", metric.WithUnit("{tenant}"),
		metric.WithDescription("Tenants that are known, of which there are max_tenants at most."))
	t.queued, errs[5] = meter.Int64ObservableGauge("otelcol_tenant_routing_queue_size", metric.WithUnit("{unit}"),
		metric.WithDescription("What waits in a tenant's queue for a pipeline, in the unit of the setting sizer."))
	t.series, errs[6] = meter.Int64ObservableGauge("otelcol_tenant_routing_active_series", metric.WithUnit("{series}"),
		metric.WithDescription("Active series of a tenant that has a limit of them."))
	t.evicted, errs[7] = meter.Int64Counter("otelcol_tenant_routing_evictions", metric.WithUnit("{tenant}"),
		metric.WithDescription("Tenants forgotten because nothing was heard of them."))
	t.damaged, errs[8] = meter.Int64Counter("otelcol_tenant_routing_storages_damaged", metric.WithUnit("{storage}"),
		metric.WithDescription("Storages that could not be opened, and in whose place others were begun."))
	t.loadFailures, errs[9] = meter.Int64Counter("otelcol_tenant_routing_table_load_failures", metric.WithUnit("{load}"),
		metric.WithDescription("Loads of a changed table of tenants that found a problem; the table before stayed."))
	t.sent, errs[10] = meter.Int64ObservableCounter("otelcol_tenant_routing_items_sent", metric.WithUnit("{item}"),
		metric.WithDescription("Items of a tenant that its queues have sent, to each of several pipelines."))
	t.storage, errs[11] = meter.Int64ObservableCounter("otelcol_tenant_routing_storage_failures", metric.WithUnit("{operation}"),
		metric.WithDescription("What the storage of a tenant's queues could not do: write, or read, of which each is a request that is not sent."))
	t.inMemory, errs[12] = meter.Int64ObservableGauge("otelcol_tenant_routing_tenants_in_memory", metric.WithUnit("{tenant}"),
		metric.WithDescription("Tenants with a queue in memory only, because its storage cannot be opened."))
	t.registration, errs[13] = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		observe(o, t)
		return nil
	}, t.accepted, t.refused, t.dropped, t.sent, t.storage, t.tenants, t.queued, t.series, t.inMemory)
	return t, errors.Join(errs[:]...)
}

func (t *telemetry) shutdown() error { return t.registration.Unregister() }

// mine are the attributes that tell connectors and their signals apart, as exporterhelper tells its exporters, and others.
func (r *router[T]) mine(others ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(others, attribute.String("connector", r.set.ID.String()), attribute.String("data_type", r.signal.id.String()))...)
}

// observe tells how all tenants are.
func (r *router[T]) observe(o metric.Observer, own *telemetry) {
	inMemory := 0
	for _, t := range r.everybody() {
		if t.inMemory.Load() {
			inMemory++
		}
		r.observeTenant(o, own, t)
	}
	o.ObserveInt64(own.tenants, int64(r.tenants.Len()), r.mine())
	o.ObserveInt64(own.inMemory, int64(inMemory), r.mine())
}

func (r *router[T]) observeTenant(o metric.Observer, own *telemetry, t *tenantOf[T]) {
	ofTenant := attribute.String("tenant", t.id)
	count := func(of metric.Int64Observable, n *atomic.Int64, others ...attribute.KeyValue) {
		if n := n.Load(); n > 0 {
			o.ObserveInt64(of, n, r.mine(append(others, ofTenant)...))
		}
	}
	count(own.accepted, &t.accepted)
	count(own.sent, &t.sent)
	count(own.storage, &t.unwritten, attribute.String("operation", "write"))
	count(own.storage, &t.unread, attribute.String("operation", "read"))
	for why := range reasons {
		because := attribute.String("reason", why.String())
		count(own.refused, &t.refused[why], because)
		count(own.dropped, &t.dropped[why], because)
	}
	if t.series != nil && t.accepted.Load() > 0 {
		o.ObserveInt64(own.series, int64(t.series.Active(r.now())), r.mine(ofTenant))
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, queues := range [][]*queue[T]{t.queues, t.rest} {
		for _, q := range queues {
			o.ObserveInt64(own.queued, q.size(), r.mine(ofTenant, attribute.String("pipeline", q.target.id.String())))
		}
	}
}

// strays counts what of a request did not go on as what it came as.
func (r *router[T]) strays(q *request[T]) {
	for why, n := range q.strays {
		if n > 0 {
			why := reason(why)
			r.own.strays.Add(context.Background(), int64(n), r.mine(attribute.String("reason", why.String())))
			r.log.add(why, q.example[why], n)
		}
	}
}

// refuse counts the parts of a request that the sender is to send again.
func (r *router[T]) refuse(q *request[T]) {
	for i := range q.parts {
		if p := &q.parts[i]; p.owner.id != "" && p.why != noReason {
			p.owner.refused[p.why].Add(int64(p.items))
			r.log.add(p.why, p.owner.id, p.items)
		}
	}
}

// drop counts the parts of a request that are lost.
func (r *router[T]) drop(q *request[T]) {
	for i := range q.parts {
		if p := &q.parts[i]; p.owner.id != "" && p.why != noReason {
			r.dropped(p.owner, p.why, p.items)
		}
	}
}

func (r *router[T]) dropped(t *tenantOf[T], why reason, items int) {
	t.dropped[why].Add(int64(items))
	r.log.add(why, t.id, items)
}
