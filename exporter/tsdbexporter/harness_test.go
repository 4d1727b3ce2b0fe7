// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/spawn"
)

func defaults() *Config { return createDefaultConfig().(*Config) }

// rig is an exporter that runs until the test ends, and a Prometheus client of it.
type rig struct {
	t    testing.TB
	cfg  *Config
	tel  *componenttest.Telemetry
	logs *observer.ObservedLogs
	exporter.Metrics
	promv1.API
	client *http.Client
}

// settings are those of a test: a directory and a port of its own.
func settings(t testing.TB, change ...func(*Config)) *Config {
	cfg := defaults()
	cfg.HTTP.NetAddr.Endpoint = spawn.FreeEndpoint(t)
	cfg.Directory = t.TempDir()
	cfg.MinFreeBytes = 0
	for _, f := range change {
		f(cfg)
	}
	require.NoError(t, cfg.Validate())
	return cfg
}

func newRig(t testing.TB, cfg *Config) *rig {
	t.Helper()
	r := create(t, cfg)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	return r
}

// create does not start it.
func create(t testing.TB, cfg *Config) *rig {
	t.Helper()
	r := &rig{t: t, cfg: cfg, tel: componenttest.NewTelemetry(), client: &http.Client{Transport: &http.Transport{}}}
	set := exportertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = r.tel.NewTelemetrySettings()
	var core zapcore.Core
	core, r.logs = observer.New(zap.WarnLevel)
	set.Logger = zap.New(core)
	var err error
	r.Metrics, err = NewFactory().CreateMetrics(t.Context(), set, cfg)
	require.NoError(t, err)
	client, err := api.NewClient(api.Config{Address: "http://" + cfg.HTTP.NetAddr.Endpoint, Client: r.client})
	require.NoError(t, err)
	r.API = promv1.NewAPI(client)
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		assert.NoError(t, r.Shutdown(context.Background()))
		assert.NoError(t, r.tel.Shutdown(context.Background()))
	})
	return r
}

// stop ends it before the test does.
func (r *rig) stop() {
	r.t.Helper()
	r.client.CloseIdleConnections()
	require.NoError(r.t, r.Shutdown(r.t.Context()))
}

func (r *rig) push(md pmetric.Metrics) {
	r.t.Helper()
	md.MarkReadOnly()
	require.NoError(r.t, r.ConsumeMetrics(r.t.Context(), md))
}

// ask evaluates a query at a time and returns what comes out as PromQL writes it, without times.
func (r *rig) ask(query string, at time.Time) map[string]string {
	r.t.Helper()
	value, warnings, err := r.Query(r.t.Context(), query, at)
	require.NoError(r.t, err, query)
	assert.Empty(r.t, warnings, query)
	out := map[string]string{}
	for _, s := range value.(model.Vector) {
		if s.Histogram != nil {
			out[s.Metric.String()] = s.Histogram.String()
		} else {
			out[s.Metric.String()] = s.Value.String()
		}
	}
	return out
}

// value is that of a query that gives one.
func (r *rig) value(query string, at time.Time) float64 {
	r.t.Helper()
	value, _, err := r.Query(r.t.Context(), query, at)
	require.NoError(r.t, err, query)
	require.Len(r.t, value, 1, query)
	return float64(value.(model.Vector)[0].Value)
}

// counted is a metric of its own, as attributes of a point to its value.
func (r *rig) counted(name string) map[string]float64 {
	r.t.Helper()
	m, err := r.tel.GetMetric(name)
	if err != nil {
		return nil
	}
	return points(r.t, m.Data)
}

var resource = map[string]any{
	"service.name": "chat", "service.namespace": "shop", "service.instance.id": "i-1",
	"k8s.namespace.name": "team-a", "cloud.region": "eu-1",
}

// batch is one with a scope, of a resource.
func batch(resource map[string]any) (pmetric.Metrics, pmetric.MetricSlice) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	if err := rm.Resource().Attributes().FromRaw(resource); err != nil {
		panic(err)
	}
	return md, rm.ScopeMetrics().AppendEmpty().Metrics()
}

func stamp(t time.Time) pcommon.Timestamp { return pcommon.NewTimestampFromTime(t) }

// gauge is a batch of one point.
func gauge(name string, value float64, at time.Time, attributes map[string]any) pmetric.Metrics {
	md, ms := batch(resource)
	addGauge(ms, name, value, at, attributes)
	return md
}

func addGauge(ms pmetric.MetricSlice, name string, value float64, at time.Time, attributes map[string]any) {
	m := ms.AppendEmpty()
	m.SetName(name)
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetDoubleValue(value)
	p.SetTimestamp(stamp(at))
	if err := p.Attributes().FromRaw(attributes); err != nil {
		panic(err)
	}
}

func sum(name, unit string, value float64, start, at time.Time, temporality pmetric.AggregationTemporality) pmetric.Metrics {
	md, ms := batch(resource)
	m := ms.AppendEmpty()
	m.SetName(name)
	m.SetUnit(unit)
	s := m.SetEmptySum()
	s.SetIsMonotonic(true)
	s.SetAggregationTemporality(temporality)
	p := s.DataPoints().AppendEmpty()
	p.SetDoubleValue(value)
	p.SetStartTimestamp(stamp(start))
	p.SetTimestamp(stamp(at))
	return md
}

// now is whole, so that times are what they are in milliseconds.
func now() time.Time { return time.Now().Truncate(time.Second) }

var _ component.Component = (*rig)(nil)

func (r *rig) url(path string) string {
	return fmt.Sprintf("http://%s%s", r.cfg.HTTP.NetAddr.Endpoint, path)
}

// started is an exporter without exporterhelper around it.
func started(t testing.TB) *tsdbExporter {
	t.Helper()
	e := newExporter(exportertest.NewNopSettings(metadata.Type), settings(t))
	require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, e.shutdown(context.Background())) })
	return e
}
