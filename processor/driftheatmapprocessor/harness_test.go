// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/metadata"
)

// t0 is a full hour.
var t0 = time.Unix(1_700_002_800, 0).UTC()

const ttft = "vllm:time_to_first_token_seconds"

// sloOf is an SLO document with an indicator and an objective.
func sloOf(name, id, indicator, objective string) string {
	return fmt.Sprintf(`apiVersion: openslo/v1
kind: SLO
metadata:
  name: %s
  annotations: {otelcol-llm.dev/slo-id: %q}
spec:
  service: chat
  indicator:
    metadata: {name: %s}
    spec: {%s}
  timeWindow: [{duration: 28d, isRolling: true}]
  budgetingMethod: Occurrences
  objectives: [%s]
`, name, id, name, indicator, objective)
}

// promise is a P95 of the time to the first token, in seconds.
func promise(seconds float64) string {
	return sloOf("chat-ttft", "llm:chat:ttft:p95", `thresholdMetric: {metricSource: {type: opentelemetry, spec: {metric: "vllm:time_to_first_token_seconds"}}}`,
		fmt.Sprintf("{op: lte, value: %g, target: 0.95}", seconds))
}

// host is a Collector that runs one slo_catalog.
type host struct {
	component.Host
	catalog *openslo.Catalog
	others  map[component.ID]component.Component // a storage
	asked   atomic.Int64                         // for the catalog, once at each tick of an engine
}

func (h *host) GetExtensions() map[component.ID]component.Component {
	all := map[component.ID]component.Component{component.MustNewID("slo_catalog"): h}
	maps.Copy(all, h.others)
	return all
}
func (*host) Start(context.Context, component.Host) error { return nil }
func (*host) Shutdown(context.Context) error              { return nil }
func (h *host) Catalog() *openslo.Catalog {
	h.asked.Add(1)
	return h.catalog
}

// ticks waits until an engine has looked so often what there is to tell.
func (h *host) ticks(t *testing.T, n int64) {
	t.Helper()
	n += h.asked.Load()
	require.Eventually(t, func() bool { return h.asked.Load() > n }, time.Minute, 10*time.Millisecond)
}

func parse(t testing.TB, docs string) *openslo.Catalog {
	t.Helper()
	catalog, err := openslo.Parse(openslo.Source{Name: "slo.yaml", Data: []byte(docs)})
	require.NoError(t, err)
	return catalog
}

func newHost(t testing.TB, docs string) *host {
	t.Helper()
	return &host{Host: componenttest.NewNopHost(), catalog: parse(t, docs)}
}

// rig is an engine under test: it has a clock of its own and no goroutine, so tests decide when something happens.
type rig struct {
	*engine
	t       testing.TB
	tel     *componenttest.Telemetry
	host    *host
	clock   time.Time
	metrics *consumertest.MetricsSink
	known   bool // a checkpoint was taken up
}

func newRig(t testing.TB, docs string, configure func(*Config)) *rig {
	t.Helper()
	return newRigOn(t, newHost(t, docs), configure)
}

func newRigOn(t testing.TB, h *host, configure func(*Config)) *rig {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Dimensions, cfg.RefreshInterval = []Dimension{{Key: "cloud.region"}}, 0
	if configure != nil {
		configure(cfg)
	}
	require.NoError(t, cfg.Validate())
	tel := componenttest.NewTelemetry()
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	set.Resource.Attributes().PutStr("service.instance.id", "collector-1")
	e, err := newEngine(set, cfg)
	require.NoError(t, err)
	r := &rig{engine: e, t: t, tel: tel, host: h, clock: t0.Add(24 * time.Hour), metrics: new(consumertest.MetricsSink)}
	e.now = func() time.Time { return r.clock }
	r.leaveBy(r.metrics)
	require.NoError(t, r.prepare(h))
	r.known, err = r.restore(t.Context(), h)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	return r
}

// leaveBy makes the results leave by other consumers, which have started.
func (r *rig) leaveBy(all ...consumer.Metrics) {
	r.outputs = nil
	for _, to := range all {
		out := &output{to: to}
		out.open.Store(true)
		r.outputs = append(r.outputs, out)
	}
}

// send hears a batch and tells what follows from it.
func (r *rig) send(md pmetric.Metrics) {
	r.t.Helper()
	md.MarkReadOnly()
	r.consume(r.t.Context(), md)
	r.publish(r.t.Context())
}

// wait lets time pass without input.
func (r *rig) wait(d time.Duration) {
	r.clock = r.clock.Add(d)
	r.advance(r.t.Context())
	r.publish(r.t.Context())
}

// told is the newest value of each series of the results.
func (r *rig) told() map[string]float64 {
	all := map[string]float64{}
	r.each(func(m pmetric.Metric, p pmetric.NumberDataPoint) {
		id := fmt.Sprint(m.Name(), p.Attributes().AsRaw())
		switch {
		case p.Flags().NoRecordedValue():
			delete(all, id)
		case p.ValueType() == pmetric.NumberDataPointValueTypeInt:
			all[id] = float64(p.IntValue())
		default:
			all[id] = p.DoubleValue()
		}
	})
	return all
}

func (r *rig) each(f func(m pmetric.Metric, p pmetric.NumberDataPoint)) {
	for _, md := range r.metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for _, p := range m.Gauge().DataPoints().All() {
					f(m, p)
				}
			}
		}
	}
}

// last is the newest value of a metric's point that has attributes, given as a key and its value in turn; NaN for none.
func (r *rig) last(name string, attributes ...string) float64 {
	v := math.NaN()
	r.each(func(m pmetric.Metric, p pmetric.NumberDataPoint) {
		if m.Name() != name || !has(p.Attributes(), attributes) {
			return
		}
		switch {
		case p.Flags().NoRecordedValue():
			v = math.NaN()
		case p.ValueType() == pmetric.NumberDataPointValueTypeInt:
			v = float64(p.IntValue())
		default:
			v = p.DoubleValue()
		}
	})
	return v
}

func has(m pcommon.Map, attributes []string) bool {
	for i := 0; i < len(attributes); i += 2 {
		if v, ok := m.Get(attributes[i]); !ok || v.AsString() != attributes[i+1] {
			return false
		}
	}
	return true
}

// state is the newest verdict on a cell.
func (r *rig) state(attributes ...string) string {
	r.t.Helper()
	var found string
	for _, name := range state.States {
		if r.last("slo.drift.state", append(slices.Clone(attributes), "state", name)...) == 1 {
			require.Empty(r.t, found, "exactly one state")
			found = name
		}
	}
	return found
}

// counted is a number of the processor's own, by the value of its one attribute.
func (r *rig) counted(name string) map[string]int64 {
	r.t.Helper()
	m, err := r.tel.GetMetric("otelcol_drift_heatmap_" + name)
	if err != nil {
		return map[string]int64{}
	}
	var points []metricdata.DataPoint[int64]
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		points = data.DataPoints
	case metricdata.Gauge[int64]:
		points = data.DataPoints
	}
	values := map[string]int64{}
	for _, p := range points {
		key := ""
		for _, kv := range p.Attributes.ToSlice() {
			key = kv.Value.AsString()
		}
		values[key] += p.Value
	}
	return values
}

// cell are the values of a window in a combination of attributes.
type cell struct {
	attributes map[string]any
	values     []float64
}

// at is an event time in the n-th window.
func at(n int) time.Time { return t0.Add(time.Duration(n)*5*time.Minute + time.Minute) }

// windowOf is a window of a delta exponential histogram, one point a cell.
func windowOf(n int, cells ...cell) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "replica-1")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(ttft)
	m.SetUnit("s")
	h := m.SetEmptyExponentialHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	for _, c := range cells {
		p := h.DataPoints().AppendEmpty()
		p.SetStartTimestamp(pcommon.NewTimestampFromTime(at(n).Add(-time.Minute)))
		p.SetTimestamp(pcommon.NewTimestampFromTime(at(n)))
		_ = p.Attributes().FromRaw(c.attributes)
		fill(p, c.values)
	}
	return md
}

// fill makes a point the histogram of values at scale 7: buckets of 0.5 %.
func fill(p pmetric.ExponentialHistogramDataPoint, values []float64) {
	const scale = 7
	at := func(v float64) int32 { return int32(math.Ceil(math.Ldexp(math.Log2(v), scale))) - 1 }
	lo := at(slices.Min(values))
	counts := make([]uint64, at(slices.Max(values))-lo+1)
	var sum float64
	for _, v := range values {
		counts[at(v)-lo]++
		sum += v
	}
	p.SetScale(scale)
	p.SetCount(uint64(len(values)))
	p.SetSum(sum)
	p.Positive().SetOffset(lo)
	p.Positive().BucketCounts().FromRaw(counts)
}

// traffic are n values around a median, log-normal: the P95 is 1.93 times the median.
func traffic(r *rand.Rand, n int, median float64) (values []float64) {
	for range n {
		values = append(values, median*math.Exp(0.4*r.NormFloat64()))
	}
	return values
}

// constants are n values that are the same, as points of a gauge, one a second at most: each stands for itself.
func constants(window int, n int, v float64, attributes map[string]any) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(ttft)
	points := m.SetEmptyGauge().DataPoints()
	for i := range n {
		p := points.AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(at(window).Add(time.Duration(i) * min(time.Second, 3*time.Minute/time.Duration(n)))))
		p.SetDoubleValue(v)
		_ = p.Attributes().FromRaw(attributes)
	}
	return md
}

// disk is a storage extension that outlives an engine.
type disk struct {
	component.Component
	mu     sync.Mutex
	values map[string][]byte
}

var diskID = component.MustNewID("file_storage")

func newDisk() *disk { return &disk{values: map[string][]byte{}} }

func (d *disk) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return d, nil
}
func (*disk) Start(context.Context, component.Host) error { return nil }
func (*disk) Shutdown(context.Context) error              { return nil }
func (*disk) Close(context.Context) error                 { return nil }
func (d *disk) Get(ctx context.Context, key string) ([]byte, error) {
	op := storage.GetOperation(key)
	return op.Value, d.Batch(ctx, op)
}
func (d *disk) Set(ctx context.Context, key string, value []byte) error {
	return d.Batch(ctx, storage.SetOperation(key, value))
}
func (d *disk) Delete(ctx context.Context, key string) error {
	return d.Batch(ctx, storage.DeleteOperation(key))
}

func (d *disk) Batch(_ context.Context, ops ...*storage.Operation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			op.Value = slices.Clone(d.values[op.Key])
		case storage.Set:
			d.values[op.Key] = slices.Clone(op.Value)
		case storage.Delete:
			delete(d.values, op.Key)
		}
	}
	return nil
}

// on makes an engine that has taken up what stands in a storage.
func on(t testing.TB, d *disk, docs string, configure func(*Config)) *rig {
	t.Helper()
	h := newHost(t, docs)
	h.others = map[component.ID]component.Component{diskID: d}
	return newRigOn(t, h, func(c *Config) {
		c.Storage = &diskID
		if configure != nil {
			configure(c)
		}
	})
}
