// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/metadata"
)

// t0 is a full hour.
var t0 = time.Unix(1_700_002_800, 0).UTC()

const gib = float64(1 << 30)

// rig is an engine under test: it has a clock of its own and no goroutine, so tests decide when something happens.
type rig struct {
	*engine
	t       testing.TB
	tel     *componenttest.Telemetry
	clock   time.Time
	metrics *consumertest.MetricsSink
	logs    *consumertest.LogsSink
}

func defaults() *Config { return createDefaultConfig().(*Config) }

func newRig(t testing.TB, configure func(*Config)) *rig {
	t.Helper()
	return newRigOn(t, componenttest.NewNopHost(), configure)
}

func newRigOn(t testing.TB, host component.Host, configure func(*Config)) *rig {
	t.Helper()
	cfg := defaults()
	if configure != nil {
		configure(cfg)
	}
	require.NoError(t, cfg.Validate())
	tel := componenttest.NewTelemetry()
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	set.Resource.Attributes().PutStr("service.instance.id", "collector-1")
	e, err := newEngine(set, cfg)
	require.NoError(t, err)
	r := &rig{engine: e, t: t, tel: tel, clock: t0.Add(24 * time.Hour), metrics: new(consumertest.MetricsSink), logs: new(consumertest.LogsSink)}
	e.now = func() time.Time { return r.clock }
	e.out.Metrics, e.out.Logs = r.metrics, r.logs
	e.out.Started.Metrics.Store(true)
	e.out.Started.Logs.Store(true)
	require.NoError(t, e.begin())
	_, err = e.keeper.Restore(t.Context(), host, cfg.Storage, component.KindConnector, e.id)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	return r
}

// send hears a batch and tells what follows from it.
func (r *rig) send(md pmetric.Metrics) {
	r.t.Helper()
	md.MarkReadOnly()
	r.consume(r.t.Context(), md)
	r.publishMetrics(r.t.Context())
	r.publishEvents(r.t.Context())
}

// scrape is a batch of one host.
type scrape struct {
	pmetric.Metrics
	at time.Time
	sm pmetric.ScopeMetrics
}

func newScrape(at time.Time) scrape {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("host.name", "node-1")
	rm.Resource().Attributes().PutStr("k8s.namespace.name", "team-a")
	return scrape{md, at, rm.ScopeMetrics().AppendEmpty()}
}

// put adds a point; attributes are a key and its value in turn.
func (s scrape) put(name string, v float64, attributes ...any) scrape {
	m := s.sm.Metrics().AppendEmpty()
	m.SetName(name)
	sum := m.SetEmptySum()
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	fill(sum.DataPoints().AppendEmpty(), s.at, v, attributes)
	return s
}

func (s scrape) gauge(name string, v float64, attributes ...any) scrape {
	m := s.sm.Metrics().AppendEmpty()
	m.SetName(name)
	fill(m.SetEmptyGauge().DataPoints().AppendEmpty(), s.at, v, attributes)
	return s
}

func fill(p pmetric.NumberDataPoint, at time.Time, v float64, attributes []any) {
	p.SetTimestamp(pcommon.NewTimestampFromTime(at))
	p.SetDoubleValue(v)
	for i := 0; i < len(attributes); i += 2 {
		_ = p.Attributes().PutEmpty(attributes[i].(string)).FromRaw(attributes[i+1])
	}
}

// leaking is a server that leaks 1 % an hour, with its GPU and its traffic, h hours after t0.
func leaking(h float64) scrape {
	used := 40 * gib * (1 + 0.01*h)
	return newScrape(t0.Add(time.Duration(h*float64(time.Hour)))).
		put("hw.gpu.memory.limit", 80*gib, "hw.id", "GPU-0").
		put("hw.gpu.memory.usage", used+gib, "hw.id", "GPU-0").
		put("nvidia.gpu.memory.unattributed", 0, "hw.id", "GPU-0").
		put("nvidia.gpu.process.memory.usage", used, "hw.id", "GPU-0", "process.pid", 71, "process.executable.name", "python3").
		gauge("vllm:num_requests_running", 8, "process.pid", 71, "model_name", "qwen2-72b").
		put("vllm:request_success_total", h*3600, "process.pid", 71, "model_name", "qwen2-72b", "finished_reason", "stop")
}

// run scrapes every 30 seconds from one hour to another.
func (r *rig) run(from, to float64) {
	for tick := int(from * 120); tick < int(to*120); tick++ {
		r.send(leaking(float64(tick) / 120).Metrics)
	}
}

// records are the log records so far.
func (r *rig) records() (all []plog.LogRecord) {
	for _, ld := range r.logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, record := range rl.ScopeLogs().At(0).LogRecords().All() {
				all = append(all, record)
			}
		}
	}
	return all
}

// last is the newest point of a metric with some attributes.
func (r *rig) last(name string, attributes ...string) (found pmetric.NumberDataPoint, ok bool) {
	for _, md := range r.metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() != name {
					continue
				}
				for _, p := range m.Gauge().DataPoints().All() {
					matches := true
					for i := 0; i < len(attributes); i += 2 {
						v, has := p.Attributes().Get(attributes[i])
						matches = matches && has && v.AsString() == attributes[i+1]
					}
					if matches {
						found, ok = p, true
					}
				}
			}
		}
	}
	return found, ok
}

// counted is one of the connector's own counters, by reason.
func (r *rig) counted(name string) map[string]int64 {
	all := map[string]int64{}
	m, err := r.tel.GetMetric("otelcol_gpu_leak_" + name)
	if err != nil {
		return all
	}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		reason, _ := p.Attributes.Value("reason")
		all[reason.AsString()] += p.Value
	}
	return all
}

// disk is a storage extension in memory. It outlives those that use it.
type disk struct {
	component.Component
	values map[string][]byte
}

var diskID = component.MustNewID("file_storage")

// on is a host with a storage.
type on struct {
	component.Host
	disk *disk
}

func (h on) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{diskID: h.disk}
}

func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}
func (d *disk) Get(_ context.Context, key string) ([]byte, error) { return d.values[key], nil }
func (d *disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}
func (d *disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}
func (*disk) Close(context.Context) error { return nil }

func (d *disk) Batch(_ context.Context, ops ...*storage.Operation) error {
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			op.Value = d.values[op.Key]
		case storage.Set:
			d.values[op.Key] = slices.Clone(op.Value)
		default:
			delete(d.values, op.Key)
		}
	}
	return nil
}
