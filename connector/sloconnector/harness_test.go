// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// t0 is a full hour.
var t0 = time.Unix(1_700_002_800, 0).UTC()

var ttftBounds = []float64{0.1, 0.25, 0.5, 0.8, 1, 2.5}

// host is a Collector that runs one slo_catalog.
type host struct {
	component.Host
	catalog *openslo.Catalog
	others  map[component.ID]component.Component // a storage
}

func (h *host) GetExtensions() map[component.ID]component.Component {
	all := map[component.ID]component.Component{component.MustNewID("slo_catalog"): h}
	maps.Copy(all, h.others)
	return all
}
func (*host) Start(context.Context, component.Host) error { return nil }
func (*host) Shutdown(context.Context) error              { return nil }
func (h *host) Catalog() *openslo.Catalog                 { return h.catalog }

// swapping is a host whose catalog changes.
type swapping struct {
	*host
	pick func() *host
}

func (s *swapping) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("slo_catalog"): s}
}
func (s *swapping) Catalog() *openslo.Catalog { return s.pick().catalog }

// newHost parses SLO documents.
func newHost(t testing.TB, docs string) *host {
	t.Helper()
	catalog, err := openslo.Parse(openslo.Source{Name: "slo.yaml", Data: []byte(docs)})
	require.NoError(t, err)
	return &host{Host: componenttest.NewNopHost(), catalog: catalog}
}

// rig is an engine under test: it has a clock of its own and no goroutine, so tests decide when something happens.
type rig struct {
	*engine
	t       testing.TB
	tel     *componenttest.Telemetry
	clock   time.Time
	metrics *consumertest.MetricsSink
	logs    *consumertest.LogsSink
	known   bool // a checkpoint was taken up
}

func newRig(t testing.TB, docs string, configure func(*Config)) *rig {
	t.Helper()
	return newRigOn(t, newHost(t, docs), configure)
}

func newRigOn(t testing.TB, h component.Host, configure func(*Config)) *rig {
	t.Helper()
	return newLoggedRig(t, h, zap.NewNop(), configure)
}

func newLoggedRig(t testing.TB, h component.Host, log *zap.Logger, configure func(*Config)) *rig {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Lateness = 0
	cfg.BurnRates = nil // what opens and closes by them has tests of its own
	if configure != nil {
		configure(cfg)
	}
	require.NoError(t, cfg.Validate())
	tel := componenttest.NewTelemetry()
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	set.Logger = log
	set.Resource.Attributes().PutStr("service.instance.id", "collector-1")
	e, err := newEngine(set, cfg)
	require.NoError(t, err)
	r := &rig{engine: e, t: t, tel: tel, clock: t0.Add(24 * time.Hour), metrics: new(consumertest.MetricsSink), logs: new(consumertest.LogsSink)}
	e.now = func() time.Time { return r.clock }
	e.out.Metrics, e.out.Logs = r.metrics, r.logs
	e.out.Started.Metrics.Store(true)
	e.out.Started.Logs.Store(true)
	r.start(h)
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	return r
}

// start is Start, without goroutines.
func (r *rig) start(h component.Host) {
	r.t.Helper()
	require.NoError(r.t, r.prepare(h))
	known, err := r.restore(r.t.Context(), h)
	require.NoError(r.t, err)
	r.known = known
	r.announce()
}

// send hears a batch and tells what follows from it.
func (r *rig) send(md pmetric.Metrics) {
	r.t.Helper()
	md.MarkReadOnly()
	r.consume(r.t.Context(), md)
	r.publish()
}

func (r *rig) publish() {
	r.publishMetrics(r.t.Context())
	r.publishEvents(r.t.Context())
}

// wait lets time pass without input.
func (r *rig) wait(d time.Duration) {
	r.clock = r.clock.Add(d)
	r.advance(r.t.Context())
	r.publish()
}

// events are the names and times (minutes after t0) of the log events so far.
func (r *rig) events() (all []event) {
	for _, ld := range r.logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, rec := range rl.ScopeLogs().At(0).LogRecords().All() {
				all = append(all, event{rec.EventName(), int(rec.Timestamp().AsTime().Sub(t0).Minutes())})
			}
		}
	}
	return all
}

type event struct {
	name   string
	minute int
}

func (r *rig) lastRecord() plog.LogRecord {
	all := r.logs.AllLogs()
	rl := all[len(all)-1].ResourceLogs().At(0)
	return rl.ScopeLogs().At(0).LogRecords().At(rl.ScopeLogs().At(0).LogRecords().Len() - 1)
}

// last returns the newest value of a metric's point whose attributes contain want.
func (r *rig) last(name string, want map[string]string) (value float64, found bool) {
	for _, md := range r.metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() != name {
					continue
				}
				for _, p := range numbers(m).All() {
					if contains(p.Attributes(), want) {
						value, found = p.DoubleValue(), true
						if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
							value = float64(p.IntValue())
						}
					}
				}
			}
		}
	}
	return value, found
}

// most is the greatest value that a metric was ever told with.
func (r *rig) most(name string) (value float64) {
	for _, md := range r.metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() == name {
					for _, p := range numbers(m).All() {
						value = max(value, p.DoubleValue())
					}
				}
			}
		}
	}
	return value
}

func numbers(m pmetric.Metric) pmetric.NumberDataPointSlice {
	if m.Type() == pmetric.MetricTypeSum {
		return m.Sum().DataPoints()
	}
	return m.Gauge().DataPoints()
}

func contains(m pcommon.Map, want map[string]string) bool {
	for k, v := range want {
		if got, ok := m.Get(k); !ok || got.AsString() != v {
			return false
		}
	}
	return true
}

// refused is the number of points refused so far, by reason.
func (r *rig) refused() map[string]int64 {
	all := map[string]int64{}
	m, err := r.tel.GetMetric("otelcol_slo_points_refused")
	if err != nil {
		return all
	}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		reason, _ := p.Attributes.Value("reason")
		all[reason.AsString()] += p.Value
	}
	return all
}

// sumInt adds up the points of one of the connector's own counters.
func sumInt(m metricdata.Metrics) (n int64) {
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		n += p.Value
	}
	return n
}

// metricsOf makes a batch of one resource and metric.
func metricsOf(name string, fill func(m pmetric.Metric)) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "replica-1")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(name)
	fill(m)
	return md
}

func histogramOf(name string, temporality pmetric.AggregationTemporality) (pmetric.Metrics, pmetric.HistogramDataPointSlice) {
	var points pmetric.HistogramDataPointSlice
	md := metricsOf(name, func(m pmetric.Metric) {
		m.SetEmptyHistogram().SetAggregationTemporality(temporality)
		points = m.Histogram().DataPoints()
	})
	return md, points
}

func fillHistogram(p pmetric.HistogramDataPoint, start, at time.Time, bounds []float64, counts ...uint64) {
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	p.SetTimestamp(pcommon.NewTimestampFromTime(at))
	p.ExplicitBounds().FromRaw(bounds)
	p.BucketCounts().FromRaw(counts)
	n, _ := sketch.Total(counts)
	p.SetCount(n)
}

func sumOf(name string, temporality pmetric.AggregationTemporality, monotonic bool) (pmetric.Metrics, pmetric.NumberDataPointSlice) {
	var points pmetric.NumberDataPointSlice
	md := metricsOf(name, func(m pmetric.Metric) {
		s := m.SetEmptySum()
		s.SetAggregationTemporality(temporality)
		s.SetIsMonotonic(monotonic)
		points = s.DataPoints()
	})
	return md, points
}

func gaugeOf(name string) (pmetric.Metrics, pmetric.NumberDataPointSlice) {
	var points pmetric.NumberDataPointSlice
	md := metricsOf(name, func(m pmetric.Metric) { points = m.SetEmptyGauge().DataPoints() })
	return md, points
}

func addNumber(points pmetric.NumberDataPointSlice, start, at time.Time, v float64) pmetric.NumberDataPoint {
	p := points.AppendEmpty()
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	p.SetTimestamp(pcommon.NewTimestampFromTime(at))
	p.SetDoubleValue(v)
	return p
}

// instances makes the two instances that the Collector would: one to metrics, one to logs.
func instances(t testing.TB, cfg *Config, m *consumertest.MetricsSink, l *consumertest.LogsSink) (toMetrics, toLogs connector.Metrics) {
	f, set := NewFactory(), connectortest.NewNopSettings(metadata.Type)
	toMetrics, err := f.CreateMetricsToMetrics(t.Context(), set, cfg, m)
	require.NoError(t, err)
	toLogs, err = f.CreateMetricsToLogs(t.Context(), set, cfg, l)
	require.NoError(t, err)
	return toMetrics, toLogs
}
