// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/probe"
)

// telemetry is what the receiver says of itself.
type telemetry struct {
	dropped           metric.Int64Counter
	overflowed        metric.Int64Counter
	sessions          metric.Int64Counter
	scanning, reading metric.Float64Histogram
	only              metric.MeasurementOption
	reasons           [len(reasons)]metric.MeasurementOption
	told              probe.Drops // of this session

	// Observed, so that they end with the component.
	attached, libraries, processes, hidden, late atomic.Int64
	observe                                      metric.Registration
}

// reasons are those for which calls are not counted.
var reasons = [...]struct {
	name  string
	count func(*probe.Drops) *uint64
}{
	{"max_entries", func(d *probe.Drops) *uint64 { return &d.Live }},
	{"processes", func(d *probe.Drops) *uint64 { return &d.Processes }},
	{"threads", func(d *probe.Drops) *uint64 { return &d.Threads }},
	{"unreadable", func(d *probe.Drops) *uint64 { return &d.Unreadable }},
	{"unknown_free", func(d *probe.Drops) *uint64 { return &d.UnknownFrees }},
	{"unreturned", func(d *probe.Drops) *uint64 { return &d.Unreturned }},
	{"untold_change", func(d *probe.Drops) *uint64 { return &d.Ring }},
}

func newTelemetry(set component.TelemetrySettings, id component.ID) (*telemetry, error) {
	meter := set.MeterProvider.Meter(metadata.ScopeName)
	of := attribute.String("receiver", id.String())
	t := &telemetry{only: metric.WithAttributeSet(attribute.NewSet(of))}
	for i, reason := range reasons {
		t.reasons[i] = metric.WithAttributeSet(attribute.NewSet(of, attribute.String("reason", reason.name)))
	}
	var errs [10]error
	t.dropped, errs[0] = meter.Int64Counter("otelcol_cuda_memory_dropped", metric.WithUnit("{call}"),
		metric.WithDescription("Calls of CUDA that were not counted, by reason."))
	t.overflowed, errs[1] = meter.Int64Counter("otelcol_cuda_memory_processes_overflowed", metric.WithUnit("{process}"),
		metric.WithDescription("Processes beyond max_processes, whose live bytes were told together, at each collection."))
	t.sessions, errs[2] = meter.Int64Counter("otelcol_cuda_memory_reinitializations", metric.WithUnit("{session}"),
		metric.WithDescription("Times that the probes were loaded anew after they had been lost."))
	bounds := metric.WithExplicitBucketBoundaries(0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5)
	t.scanning, errs[3] = meter.Float64Histogram("otelcol_cuda_memory_scan_duration", metric.WithUnit("s"), bounds,
		metric.WithDescription("Time spent on one search for processes that have loaded CUDA, and on attaching to what they have loaded."))
	t.reading, errs[4] = meter.Float64Histogram("otelcol_cuda_memory_read_duration", metric.WithUnit("s"), bounds,
		metric.WithDescription("Time spent on one collection: reading the counters, and making data points of them."))
	gauges := [...]struct {
		name, unit, description string
		value                   *atomic.Int64
	}{
		{"otelcol_cuda_memory_attached", "{session}", "1 while the probes are in the kernel, 0 while that is tried.", &t.attached},
		{"otelcol_cuda_memory_libraries", "{file}", "Libraries and executables that probes are attached to.", &t.libraries},
		{"otelcol_cuda_memory_processes", "{process}", "Processes that are told, at the last collection.", &t.processes},
		{"otelcol_cuda_memory_processes_hidden", "{process}", "Processes that may not be looked at, at the last search: CAP_SYS_PTRACE is missing, or a security module forbids it.", &t.hidden},
		{"otelcol_cuda_memory_processes_late", "{process}", "Processes that had loaded CUDA when they were found: what they had allocated by then is not in their live bytes.", &t.late},
	}
	var instruments [len(gauges)]metric.Int64ObservableGauge
	var all []metric.Observable
	for i, g := range gauges {
		instruments[i], errs[5+i] = meter.Int64ObservableGauge(g.name, metric.WithUnit(g.unit), metric.WithDescription(g.description))
		all = append(all, instruments[i])
	}
	// All are there from the beginning: of what begins above nothing, no backend sees the increase.
	for _, reason := range t.reasons {
		t.dropped.Add(context.Background(), 0, reason)
	}
	t.overflowed.Add(context.Background(), 0, t.only)
	t.sessions.Add(context.Background(), 0, t.only)
	var err error
	t.observe, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for i, g := range gauges {
			o.ObserveInt64(instruments[i], g.value.Load(), t.only)
		}
		return nil
	}, all...)
	return t, errors.Join(append(errs[:], err)...)
}

func (t *telemetry) shutdown() error { return t.observe.Unregister() }

// opened notes that the probes are in the kernel, and count from nothing.
func (t *telemetry) opened() {
	t.told = probe.Drops{}
	t.attached.Store(1)
}

// closed notes that nothing is seen any more.
func (t *telemetry) closed() {
	for _, gauge := range []*atomic.Int64{&t.attached, &t.libraries, &t.processes, &t.hidden, &t.late} {
		gauge.Store(0)
	}
}

// scanned notes a search.
func (t *telemetry) scanned(ctx context.Context, result *probe.ScanResult, took time.Duration) {
	t.scanning.Record(ctx, took.Seconds(), t.only)
	t.libraries.Store(int64(result.Files))
	t.hidden.Store(int64(result.Unreadable))
	t.late.Store(int64(result.Late))
}

// collected notes a collection, and what had been dropped until then.
func (t *telemetry) collected(ctx context.Context, b *book, drops probe.Drops, took time.Duration) {
	t.reading.Record(ctx, took.Seconds(), t.only)
	t.processes.Store(int64(len(b.records) + b.beyond))
	if b.beyond > 0 {
		t.overflowed.Add(ctx, int64(b.beyond), t.only)
	}
	for i, reason := range reasons {
		if n := *reason.count(&drops) - *reason.count(&t.told); n > 0 {
			t.dropped.Add(ctx, int64(n), t.reasons[i])
		}
	}
	t.told = drops
}
