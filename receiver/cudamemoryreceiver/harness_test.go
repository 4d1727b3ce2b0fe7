// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/internal/workload"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/probe"
)

var t0 = time.Unix(1_700_002_800, 0).UTC()

const mebi = 1 << 20

// kernel is a fake of what the probes do: it says what its fields say.
type kernel struct {
	opts                   probe.Options
	refuses, scans, reads  error // nil does it
	result                 probe.ScanResult
	processes              []*probe.Process
	drops                  probe.Drops
	loaded, closed, looked int
}

func (k *kernel) load(opts probe.Options) (prober, error) {
	if k.refuses != nil {
		return nil, k.refuses
	}
	k.loaded++
	k.opts = opts
	return k, nil
}

func (k *kernel) Scan() (probe.ScanResult, error) {
	k.looked++
	return k.result, k.scans
}

func (k *kernel) Read(fn func(*probe.Process)) error {
	for _, p := range k.processes {
		fn(p)
	}
	k.processes = slices.DeleteFunc(k.processes, func(p *probe.Process) bool { return p.Ended })
	return k.reads
}

func (k *kernel) Drops() probe.Drops { return k.drops }

func (k *kernel) Close() error {
	k.closed++
	return nil
}

// add adds a process that has made allocations of a mebibyte each, and freed some.
func (k *kernel) add(pid int, allocations, frees uint64) *probe.Process {
	p := &probe.Process{PID: pid, StartTime: uint64(pid) * 10, ID: uint64(len(k.processes)+1)<<32 | uint64(pid)}
	allocate(p, allocations, frees)
	k.processes = append(k.processes, p)
	k.result = probe.ScanResult{Processes: len(k.processes), Files: 1, Functions: 12}
	return p
}

func allocate(p *probe.Process, allocations, frees uint64) {
	p.Allocations += allocations
	p.Frees += frees
	p.Allocated += allocations * mebi
	p.Freed += frees * mebi
	p.Live = p.Allocated - p.Freed
	p.Sizes[20-probe.SizeOffset-1] += allocations // (512 KiB, 1 MiB]
}

// people know processes by a table.
type people struct {
	of    map[int]workload.Process
	given map[int]string // by the PID of the process
}

func (p people) Resolve(pid uint32, _ workload.Device, _ int64) workload.Process {
	who := p.of[int(pid)]
	who.PID = pid
	return who
}

func (p people) Device(of workload.Process) string { return p.given[int(of.PID)] }

// statuses is a host that keeps what is reported to it.
type statuses struct {
	component.Host
	extensions map[component.ID]component.Component
	events     []*componentstatus.Event
}

func (s *statuses) Report(event *componentstatus.Event) { s.events = append(s.events, event) }

func (s *statuses) GetExtensions() map[component.ID]component.Component { return s.extensions }

// rig is an engine under test: it has a clock of its own and no goroutine, so tests decide when something happens.
type rig struct {
	*engine
	kernel  *kernel
	t       testing.TB
	tel     *componenttest.Telemetry
	clock   time.Time
	people  people
	host    *statuses
	metrics *consumertest.MetricsSink
	console *observer.ObservedLogs
}

func newRig(t testing.TB, configure func(*Config)) *rig {
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
	r := &rig{
		t: t, kernel: &kernel{}, tel: tel, clock: t0, people: people{map[int]workload.Process{}, map[int]string{}},
		host: &statuses{Host: componenttest.NewNopHost()}, metrics: new(consumertest.MetricsSink), console: console,
	}
	e, err := newEngine(set, cfg, r.metrics)
	require.NoError(t, err)
	e.now, e.load, e.who = func() time.Time { return r.clock }, r.kernel.load, r.people
	e.prepare(r.host)
	r.engine = e
	t.Cleanup(func() {
		require.NoError(t, e.Shutdown(context.Background()))
		require.NoError(t, tel.Shutdown(context.Background()))
	})
	return r
}

func defaults() *Config { return createDefaultConfig().(*Config) }

// pass lets the time pass and does what falls due, which is a collection after ten seconds.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	r.metrics.Reset()
	end := r.clock.Add(d)
	for {
		wait := r.step(r.t.Context())
		if r.clock.Add(wait).After(end) {
			r.clock = end
			return
		}
		r.clock = r.clock.Add(wait)
	}
}

// series are the points of the last time that passed as text, sorted: name{attributes} value.
func (r *rig) series(names ...string) []string {
	var all []string
	each(r.metrics.AllMetrics(), func(m pmetric.Metric, p point) {
		if len(names) == 0 || slices.Contains(names, m.Name()) {
			all = append(all, p.text(m.Name()))
		}
	})
	sort.Strings(all)
	return all
}

// point is what points of all shapes have in common.
type point struct {
	attributes  pcommon.Map
	start, at   time.Time
	ended       bool
	value       string
	distributed pmetric.ExponentialHistogramDataPoint
}

func (p *point) text(name string) string {
	var of []string
	for k, v := range p.attributes.All() {
		of = append(of, k+"="+v.AsString())
	}
	sort.Strings(of)
	value := p.value
	if p.ended {
		value = "ended"
	}
	return fmt.Sprintf("%s{%s} %s", name, strings.Join(of, ","), value)
}

func each(all []pmetric.Metrics, f func(pmetric.Metric, point)) {
	for _, md := range all {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Type() == pmetric.MetricTypeExponentialHistogram {
					for _, p := range m.ExponentialHistogram().DataPoints().All() {
						f(m, point{p.Attributes(), p.StartTimestamp().AsTime(), p.Timestamp().AsTime(), p.Flags().NoRecordedValue(), histogramText(p), p})
					}
					continue
				}
				for _, p := range m.Sum().DataPoints().All() {
					f(m, point{p.Attributes(), p.StartTimestamp().AsTime(), p.Timestamp().AsTime(), p.Flags().NoRecordedValue(), fmt.Sprint(p.IntValue()), pmetric.NewExponentialHistogramDataPoint()})
				}
			}
		}
	}
}

func histogramText(p pmetric.ExponentialHistogramDataPoint) string {
	return fmt.Sprintf("%d values, sum %g, scale %d, from %d: %v", p.Count(), p.Sum(), p.Scale(), p.Positive().Offset(), p.Positive().BucketCounts().AsRaw())
}

// counted returns the values of an own instrument by the value of an attribute.
func (r *rig) counted(name, key string) map[string]int64 {
	got, err := r.tel.GetMetric("otelcol_cuda_memory_" + name)
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

// status is the last that was reported.
func (r *rig) status() (componentstatus.Status, string) {
	event := r.host.events[len(r.host.events)-1]
	return event.Status(), fmt.Sprint(event.Err())
}

// discard takes everything and keeps nothing.
type discard struct{ consumertest.Consumer }

func (discard) Capabilities() consumer.Capabilities                   { return consumer.Capabilities{} }
func (discard) ConsumeMetrics(context.Context, pmetric.Metrics) error { return nil }

var errLost = errors.New("lost")
