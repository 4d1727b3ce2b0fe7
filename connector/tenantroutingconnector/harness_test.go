// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/xpdata/pref"
	"go.opentelemetry.io/collector/pipeline"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/tenantroutingconnector/internal/metadata"
)

var (
	toTenants = pipeline.NewIDWithName(pipeline.SignalMetrics, "tenants")
	toPremium = pipeline.NewIDWithName(pipeline.SignalMetrics, "premium")
)

// destination is what stands behind a pipeline. It keeps what it takes by the tenant of the metadata, and fails when told so.
type destination struct {
	mu      sync.Mutex
	taken   map[string][]pmetric.Metrics
	times   map[string][]time.Time
	info    []client.Info
	tries   map[string]int
	failing func(ctx context.Context, tenant string) error
}

func newDestination() *destination {
	return &destination{taken: map[string][]pmetric.Metrics{}, times: map[string][]time.Time{}, tries: map[string]int{}}
}

func (*destination) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeMetrics takes a batch, or fails.
func (d *destination) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if pref.MarkPipelineOwnedMetrics(md) { // as the Collector does at the entry of each component
		defer pref.UnrefMetrics(md)
	}
	info := client.FromContext(ctx)
	tenant := fmt.Sprint(info.Metadata.Get("X-Scope-OrgID"))
	tenant = tenant[1 : len(tenant)-1]
	d.mu.Lock()
	d.tries[tenant]++
	failing := d.failing
	d.mu.Unlock()
	if failing != nil {
		if err := failing(ctx, tenant); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken[tenant] = append(d.taken[tenant], md)
	d.times[tenant] = append(d.times[tenant], time.Now())
	d.info = append(d.info, info)
	return nil
}

// fail decides what fails from now on.
func (d *destination) fail(f func(ctx context.Context, tenant string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failing = f
}

// names are the metrics that a tenant got.
func (d *destination) names(tenant string) (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, md := range d.taken[tenant] {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					names = append(names, m.Name())
				}
			}
		}
	}
	return names
}

// points are how many points each tenant got.
func (d *destination) points() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := map[string]int{}
	for tenant, all := range d.taken {
		for _, md := range all {
			n[tenant] += md.DataPointCount()
		}
	}
	return n
}

func (d *destination) tried(tenant string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tries[tenant]
}

// host is a Collector with extensions, which keeps what is reported to it.
type host struct {
	component.Host
	extensions map[component.ID]component.Component
	mu         sync.Mutex
	events     []*componentstatus.Event
}

func newHost() *host {
	return &host{Host: componenttest.NewNopHost(), extensions: map[component.ID]component.Component{}}
}

func (h *host) GetExtensions() map[component.ID]component.Component { return h.extensions }

func (h *host) Report(e *componentstatus.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

// rig is a connector for metrics under test.
type rig struct {
	metricsRouter
	t    testing.TB
	tel  *componenttest.Telemetry
	host *host
	to   map[pipeline.ID]*destination
}

// direct switches the queues off: what is sent has arrived when consume returns.
func direct(c *Config) { c.Queue = configoptional.None[exporterhelper.QueueBatchConfig]() }

// impatient makes retries fast.
func impatient(c *Config) {
	c.Retry.InitialInterval, c.Retry.MaxInterval = 5*time.Millisecond, 20*time.Millisecond
	c.DrainTimeout = time.Second
}

func newRig(t testing.TB, configure ...func(*Config)) *rig {
	t.Helper()
	return newRigOn(t, newHost(), zap.NewNop(), configure...)
}

func newRigOn(t testing.TB, h *host, log *zap.Logger, configure ...func(*Config)) *rig {
	t.Helper()
	r := buildRig(t, h, log, configure...)
	require.NoError(t, r.Start(t.Context(), h))
	return r
}

// buildRig is a connector that has not started.
func buildRig(t testing.TB, h *host, log *zap.Logger, configure ...func(*Config)) *rig {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	impatient(cfg)
	ids := []pipeline.ID{toTenants}
	for _, f := range configure {
		f(cfg)
	}
	require.NoError(t, validate(cfg))
	for _, g := range cfg.Groups {
		ids = append(ids, g.Pipelines.Metrics...)
	}
	r := &rig{t: t, tel: componenttest.NewTelemetry(), host: h, to: map[pipeline.ID]*destination{}}
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = r.tel.NewTelemetrySettings()
	set.Logger = log
	set.ID = component.NewID(metadata.Type)
	next := map[pipeline.ID]consumer.Metrics{}
	for _, id := range ids {
		r.to[id] = newDestination()
		next[id] = r.to[id]
	}
	c, err := NewFactory().CreateMetricsToMetrics(t.Context(), set, cfg, connector.NewMetricsRouter(next))
	require.NoError(t, err)
	r.metricsRouter = c.(metricsRouter)
	t.Cleanup(func() {
		require.NoError(t, r.Shutdown(context.Background()))
		require.NoError(t, r.tel.Shutdown(context.Background()))
	})
	return r
}

// arrive waits until tenants have got so many points.
func (r *rig) arrive(want map[string]int) {
	r.t.Helper()
	require.EventuallyWithT(r.t, func(c *collect) {
		require.Equal(c, want, r.to[toTenants].points())
	}, time.Minute, 5*time.Millisecond)
}

// counted is one of the connector's own counters or gauges, by the attributes that tell its points apart.
func (r *rig) counted(name string, by ...string) map[string]int64 {
	r.t.Helper()
	all := map[string]int64{}
	m, err := r.tel.GetMetric(name)
	if err != nil {
		return all
	}
	add := func(points []metricdata.DataPoint[int64]) {
		for _, p := range points {
			key := ""
			for _, k := range by {
				v, _ := p.Attributes.Value(attributeKey(k))
				key += "/" + v.AsString()
			}
			all[key[min(1, len(key)):]] += p.Value
		}
	}
	switch d := m.Data.(type) {
	case metricdata.Sum[int64]:
		add(d.DataPoints)
	case metricdata.Gauge[int64]:
		add(d.DataPoints)
	}
	return all
}

// batch has resources with the given attributes, as "key=value key=value", of one gauge with points each.
func batch(points int, resources ...string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	for _, text := range resources {
		rm := md.ResourceMetrics().AppendEmpty()
		put(rm.Resource().Attributes(), text)
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("m")
		ps := m.SetEmptyGauge().DataPoints()
		for i := range points {
			p := ps.AppendEmpty()
			p.SetIntValue(int64(i))
			p.Attributes().PutInt("i", int64(i))
		}
	}
	return md
}
