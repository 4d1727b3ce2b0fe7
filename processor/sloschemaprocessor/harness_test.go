// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/processor/sloschemaprocessor/internal/metadata"
)

// host is a Collector that runs one slo_catalog, whose catalog a test may change.
type host struct {
	component.Host
	catalog atomic.Pointer[openslo.Catalog]
}

func newHost(catalog *openslo.Catalog) *host {
	h := &host{Host: componenttest.NewNopHost()}
	h.catalog.Store(catalog)
	return h
}

func (h *host) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("slo_catalog"): h}
}
func (*host) Start(context.Context, component.Host) error { return nil }
func (*host) Shutdown(context.Context) error              { return nil }
func (h *host) Catalog() *openslo.Catalog                 { return h.catalog.Load() }

// parse reads SLO documents.
func parse(t testing.TB, docs string) *openslo.Catalog {
	t.Helper()
	catalog, err := openslo.Parse(openslo.Source{Name: "slo.yaml", Data: []byte(docs)})
	require.NoError(t, err)
	return catalog
}

// rig is an engine under test.
type rig struct {
	*engine
	t     testing.TB
	tel   *componenttest.Telemetry
	host  *host
	clock time.Time
	logs  *observer.ObservedLogs
}

func newRig(t testing.TB, catalog *openslo.Catalog, configure func(*Config)) *rig {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	if configure != nil {
		configure(cfg)
	}
	require.NoError(t, cfg.Validate())
	core, logs := observer.New(zap.InfoLevel)
	tel := componenttest.NewTelemetry()
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	set.Logger = zap.New(core)
	e, err := newEngine(set, cfg)
	require.NoError(t, err)
	r := &rig{engine: e, t: t, tel: tel, host: newHost(catalog), clock: time.Unix(1_700_000_000, 0), logs: logs}
	e.now = func() time.Time { return r.clock }
	require.NoError(t, e.Start(t.Context(), r.host))
	t.Cleanup(func() {
		require.NoError(t, e.Shutdown(context.Background()))
		require.NoError(t, tel.Shutdown(context.Background()))
	})
	return r
}

// counted is a counter of the processor's own, by the value of its one attribute.
func (r *rig) counted(name string) map[string]int64 {
	r.t.Helper()
	m, err := r.tel.GetMetric("otelcol_slo_schema_" + name)
	if err != nil {
		return map[string]int64{}
	}
	values := map[string]int64{}
	var points []metricdata.DataPoint[int64]
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		points = data.DataPoints
	case metricdata.Gauge[int64]:
		points = data.DataPoints
	}
	for _, p := range points {
		key := ""
		for _, kv := range p.Attributes.ToSlice() {
			key = kv.Value.AsString()
		}
		values[key] += p.Value
	}
	return values
}

// gauges makes a metric of gauge points with the attributes given.
func gauges(md pmetric.Metrics, name string, value float64, attributes ...map[string]any) {
	if md.ResourceMetrics().Len() == 0 {
		md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	}
	m := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
	m.SetName(name)
	points := m.SetEmptyGauge().DataPoints()
	for _, a := range attributes {
		p := points.AppendEmpty()
		p.SetDoubleValue(value)
		_ = p.Attributes().FromRaw(a)
	}
}

// attributesOf are the attributes of the points of a metric, in their order.
func attributesOf(md pmetric.Metrics, name string) (all []map[string]any) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != name {
					continue
				}
				each(m, func(a pcommon.Map) { all = append(all, a.AsRaw()) })
			}
		}
	}
	return all
}

// each calls f with the attributes of every point of a metric.
func each(m pmetric.Metric, f func(pcommon.Map)) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			f(p.Attributes())
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			f(p.Attributes())
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			f(p.Attributes())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			f(p.Attributes())
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			f(p.Attributes())
		}
	default:
	}
}
