// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/metadata"
)

var t0 = time.Unix(1_700_002_800, 0).UTC()

const second = int64(time.Second)

// plain is a source of plain values: what its functions say.
type plain struct {
	open           func() error        // nil opens
	read           func(*gpu.Snapshot) // what there is
	fails          func() error        // of a reading; nil does not
	events         func(gpu.Event)     // while it is open
	wanted         []gpu.Set           // by reading
	closing        error               // of the next Close
	opened, closed int
}

func (p *plain) Open(_ context.Context, events func(gpu.Event)) error {
	if p.open != nil {
		if err := p.open(); err != nil {
			return err
		}
	}
	p.opened++
	p.events = events
	return nil
}

func (p *plain) Read(_ context.Context, want *gpu.Set, s *gpu.Snapshot) error {
	p.wanted = append(p.wanted, *want)
	if p.fails != nil {
		if err := p.fails(); err != nil {
			return err
		}
	}
	if p.read != nil {
		p.read(s)
	}
	return nil
}

func (p *plain) Close() error {
	if p.events != nil {
		p.closed++
	}
	p.events = nil
	return p.closing
}

// named knows processes by a table.
type named map[uint32]workload.Process

func (n named) Resolve(pid uint32, _ workload.Device, _ int64) workload.Process {
	p := n[pid]
	p.PID = pid
	return p
}

// rig is an engine under test: it has a clock of its own and no goroutine, so tests decide when something happens.
type rig struct {
	*engine
	t       testing.TB
	tel     *componenttest.Telemetry
	clock   time.Time
	source  *plain
	metrics *consumertest.MetricsSink
	logs    *consumertest.LogsSink
	console *observer.ObservedLogs
}

func newRig(t testing.TB, read func(*gpu.Snapshot), configure func(*Config)) *rig {
	t.Helper()
	cfg := defaults()
	cfg.KubeletSocket = ""
	if configure != nil {
		configure(cfg)
	}
	require.NoError(t, cfg.Validate())
	tel := componenttest.NewTelemetry()
	set := receivertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	core, console := observer.New(zapcore.InfoLevel)
	set.Logger = zap.New(core)
	e, err := newEngine(set, cfg)
	require.NoError(t, err)
	r := &rig{
		engine: e, t: t, tel: tel, clock: t0, source: &plain{read: read},
		metrics: new(consumertest.MetricsSink), logs: new(consumertest.LogsSink), console: console,
	}
	e.now = func() time.Time { return r.clock }
	e.outbox.Clock(e.now)
	e.source, e.metrics, e.logs, e.who = r.source, r.metrics, r.logs, named{}
	e.prepare()
	t.Cleanup(func() {
		require.NoError(t, e.own.shutdown())
		require.NoError(t, tel.Shutdown(context.Background()))
	})
	return r
}

func defaults() *Config { return createDefaultConfig().(*Config) }

// scrape lets the time pass until something is due, and does it.
func (r *rig) scrape() {
	r.t.Helper()
	r.metrics.Reset()
	wait := r.step(r.t.Context())
	r.send(r.t.Context())
	r.outbox.Send(r.t.Context())
	r.clock = r.clock.Add(wait)
}

// series are the points of the last scrape as text, sorted: name{attributes} value.
func (r *rig) series(names ...string) []string {
	var all []string
	for _, md := range r.metrics.AllMetrics() {
		each(md, func(m pmetric.Metric, p pmetric.NumberDataPoint) {
			for _, name := range names {
				if name == m.Name() {
					all = append(all, text(m.Name(), p))
				}
			}
		})
	}
	sort.Strings(all)
	return all
}

// names are the metrics of the last scrape.
func (r *rig) names() map[string]bool {
	names := map[string]bool{}
	for _, md := range r.metrics.AllMetrics() {
		each(md, func(m pmetric.Metric, _ pmetric.NumberDataPoint) { names[m.Name()] = true })
	}
	return names
}

func each(md pmetric.Metrics, f func(pmetric.Metric, pmetric.NumberDataPoint)) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for _, p := range numbers(m).All() {
				f(m, p)
			}
		}
	}
}

func numbers(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints()
	}
	return m.Gauge().DataPoints()
}

// text writes a point without what all points of its device carry.
func text(name string, p pmetric.NumberDataPoint) string {
	var of []string
	for k, v := range p.Attributes().All() {
		if k != "hw.name" && k != "hw.type" && k != "hw.parent" {
			of = append(of, k+"="+v.AsString())
		}
	}
	sort.Strings(of)
	value := ""
	switch {
	case p.Flags().NoRecordedValue():
		value = "ended"
	case p.ValueType() == pmetric.NumberDataPointValueTypeInt:
		value = fmt.Sprint(p.IntValue())
	default:
		value = fmt.Sprint(p.DoubleValue())
	}
	return fmt.Sprintf("%s{%s} %s", name, strings.Join(of, ","), value)
}

// events are the log records so far.
func (r *rig) events() (all []plog.LogRecord) {
	for _, ld := range r.logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, rec := range rl.ScopeLogs().At(0).LogRecords().All() {
				all = append(all, rec)
			}
		}
	}
	return all
}

func (r *rig) eventNames() (names []string) {
	for _, rec := range r.events() {
		names = append(names, rec.EventName())
	}
	return names
}

// counted returns the values of an own instrument by the value of an attribute.
func (r *rig) counted(name, key string) map[string]int64 {
	got, err := r.tel.GetMetric("otelcol_nvidia_gpu_" + name)
	require.NoError(r.t, err)
	values := map[string]int64{}
	var points []metricdata.DataPoint[int64]
	switch data := got.Data.(type) {
	case metricdata.Sum[int64]:
		points = data.DataPoints
	case metricdata.Gauge[int64]:
		points = data.DataPoints
	}
	for _, p := range points {
		v, _ := p.Attributes.Value(attribute.Key(key))
		values[v.AsString()] += p.Value
	}
	return values
}

// one is a GPU that has everything.
func one(s *gpu.Snapshot) { full(s, 0) }

// full adds a GPU with every value and one process.
func full(s *gpu.Snapshot, index int) *gpu.Device {
	s.Driver = "590.48.01"
	d := s.Add()
	d.UUID, d.Index, d.Minor = fmt.Sprintf("GPU-%d", index), index, index
	d.Model, d.Serial, d.Firmware, d.PCI = "NVIDIA H100 80GB HBM3", "123", "96.00.A5.00.01", "0000:00:09.0"
	for p := range gpu.DevicePoints {
		switch p {
		case gpu.MemoryUtilization, gpu.MemoryUnattributed, gpu.RemapFailure, gpu.RemapPending:
		case gpu.MemoryLimit:
			d.SetInt(p, 85520809984)
		case gpu.MemoryUsage:
			d.SetInt(p, 11665408000)
		case gpu.MemoryReserved:
			d.SetInt(p, 502267904)
		default:
			if gpu.Rows[p].Max == 1 {
				d.Set(p, 1)
			} else {
				d.SetInt(p, 100)
			}
		}
	}
	d.SetInt(gpu.RemapFailure, 0)
	d.SetInt(gpu.RemapPending, 0)
	d.Known = true
	p := d.AddProcess(4242)
	p.Memory, p.Utilization = 11588861952, [3]float64{0.5, 0, 0}
	return d
}

// discard takes everything and keeps nothing.
type discard struct{ consumertest.Consumer }

func (discard) Capabilities() consumer.Capabilities                   { return consumer.Capabilities{} }
func (discard) ConsumeMetrics(context.Context, pmetric.Metrics) error { return nil }

// largest is the largest value of a batch, memory and counters in bytes left out.
func largest(md pmetric.Metrics) (most float64) {
	each(md, func(m pmetric.Metric, p pmetric.NumberDataPoint) {
		if m.Unit() != "By" {
			most = max(most, p.DoubleValue(), float64(p.IntValue()))
		}
	})
	return most
}
