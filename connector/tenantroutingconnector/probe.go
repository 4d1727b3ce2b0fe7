// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"
	"go.opentelemetry.io/otel/metric/noop"
)

// queueProbe reads the size of a queue, and what becomes of its items, off what exporterhelper tells of itself: there is no other
// way to ask, and a queue must not be closed before it is empty. The gauges themselves go no further. They know no tenant, so
// those of all tenants would be one.
type queueProbe struct {
	metric.MeterProvider
	read       func(o metric.Observer) error
	sent, lost func(items int64)
}

// What exporterhelper calls what is read. Its counters have the signal's items at the end.
const (
	queueSizeGauge    = "otelcol_exporter_queue_size"
	sentCounter       = "otelcol_exporter_sent_"
	sendFailedCounter = "otelcol_exporter_send_failed_"
)

// size is how much is in the queue and on its way, in the unit of its sizer. A queue that does not tell is not taken for empty.
func (p *queueProbe) size() int64 {
	o := &sizeObserver{value: 1}
	if p.read != nil {
		_ = p.read(o) // it only reads a number
	}
	return o.value
}

// Meter is the meter of whom the queue belongs to, but for its gauges.
func (p *queueProbe) Meter(name string, opts ...metric.MeterOption) metric.Meter {
	return &probeMeter{Meter: p.MeterProvider.Meter(name, opts...), probe: p}
}

type probeMeter struct {
	metric.Meter
	probe *queueProbe
	size  metric.Observable
}

func (m *probeMeter) Int64ObservableGauge(name string, opts ...metric.Int64ObservableGaugeOption) (metric.Int64ObservableGauge, error) {
	g, err := noop.Meter{}.Int64ObservableGauge(name, opts...)
	if err != nil {
		return nil, err
	}
	if name == queueSizeGauge {
		g = &sizeGauge{}
		m.size = g
	}
	return g, nil
}

func (m *probeMeter) Int64Counter(name string, opts ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	c, err := m.Meter.Int64Counter(name, opts...)
	switch {
	case err != nil:
		return nil, err
	case strings.HasPrefix(name, sentCounter):
		return probeCounter{c, m.probe.sent}, nil
	case strings.HasPrefix(name, sendFailedCounter):
		return probeCounter{c, m.probe.lost}, nil
	}
	return c, nil
}

// probeCounter tells one more of what it counts.
type probeCounter struct {
	metric.Int64Counter
	tell func(int64)
}

func (c probeCounter) Add(ctx context.Context, n int64, opts ...metric.AddOption) {
	c.Int64Counter.Add(ctx, n, opts...)
	c.tell(n)
}

// sizeGauge is a type of its own, so that it can be told from the others.
type sizeGauge struct {
	noop.Int64ObservableGauge
	_ byte // not of size zero, all of which may have one address
}

func (m *probeMeter) RegisterCallback(f metric.Callback, of ...metric.Observable) (metric.Registration, error) {
	if len(of) == 1 && m.size != nil && of[0] == m.size {
		m.probe.read = func(o metric.Observer) error { return f(context.Background(), o) }
	}
	return noop.Registration{}, nil
}

type sizeObserver struct {
	embedded.Observer
	value int64
}

func (o *sizeObserver) ObserveInt64(_ metric.Int64Observable, value int64, _ ...metric.ObserveOption) {
	o.value = value
}
func (*sizeObserver) ObserveFloat64(metric.Float64Observable, float64, ...metric.ObserveOption) {}
