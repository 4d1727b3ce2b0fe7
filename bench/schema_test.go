// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"

	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/processor/sloschemaprocessor"
)

// catalogHost runs one slo_catalog.
type catalogHost struct {
	component.Host
	catalog *openslo.Catalog
}

func (h *catalogHost) GetExtensions() map[component.ID]component.Component {
	return map[component.ID]component.Component{component.MustNewID("slo_catalog"): h}
}
func (*catalogHost) Start(context.Context, component.Host) error { return nil }
func (*catalogHost) Shutdown(context.Context) error              { return nil }
func (h *catalogHost) Catalog() *openslo.Catalog                 { return h.catalog }

// labelCase is what is to be labelled: SLOs on metrics of their own, or all on one metric, each for another model. The
// points belong to the last SLO, so that who looks at one after another has to look at all.
type labelCase struct {
	slos int
	one  bool // metric
}

func (c labelCase) metric(i int) string {
	if c.one {
		return "vllm:time_to_first_token_seconds"
	}
	return fmt.Sprintf("metric_%d", i)
}

func (c labelCase) id(i int) string { return fmt.Sprintf("llm:chat:ttft-%05d:p95", i) }

func (c labelCase) condition(i int) string {
	return fmt.Sprintf(`datapoint.attributes["model_name"] == "model-%d"`, i)
}

// points makes n gauge points with 6 attributes.
func (c labelCase) points(n int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(c.metric(c.slos - 1))
	all := m.SetEmptyGauge().DataPoints()
	for i := range n {
		p := all.AppendEmpty()
		p.SetDoubleValue(0.5)
		a := p.Attributes()
		a.EnsureCapacity(6)
		a.PutStr("model_name", fmt.Sprintf("model-%d", c.slos-1))
		a.PutStr("engine", "0")
		a.PutStr("cloud.region", "eu-central-1")
		a.PutStr("device.type", "h100")
		a.PutStr("model.version", "v1")
		a.PutStr("pod", fmt.Sprintf("chat-%d", i))
	}
	return md
}

// slo_schema with the SLOs in its catalog.
func (c labelCase) schema(b *testing.B) processor.Metrics {
	catalog := &openslo.Catalog{}
	for i := range c.slos {
		s := &openslo.Selector{Type: openslo.TypeOpenTelemetry, Signal: openslo.SignalMetrics, Metric: c.metric(i), Scale: 1}
		if c.one {
			s.Condition = c.condition(i)
		}
		catalog.SLOs = append(catalog.SLOs, openslo.SLO{ID: c.id(i), Name: "chat", Service: "chat", Class: openslo.ClassLatency,
			Unit: "seconds", Indicator: openslo.Indicator{Threshold: s}, Objective: openslo.Objective{Op: openslo.OpLTE, Value: 0.8, Target: 0.95}})
	}
	f := sloschemaprocessor.NewFactory()
	return started(b, f, f.CreateDefaultConfig(), &catalogHost{componenttest.NewNopHost(), catalog})
}

// transform with a statement for each SLO, in the form that costs it least: one condition, one function.
func (c labelCase) transform(b *testing.B) processor.Metrics {
	var statements []any
	for i := range c.slos {
		where := fmt.Sprintf("metric.name == %q", c.metric(i))
		if c.one {
			where += " and " + c.condition(i)
		}
		statements = append(statements, fmt.Sprintf(
			`merge_maps(datapoint.attributes, {"slo_id": %q, "service": "chat", "slo_class": "latency", "target": "0.8000", "unit": "seconds"}, "upsert") where %s`,
			c.id(i), where))
	}
	f := transformprocessor.NewFactory()
	cfg := f.CreateDefaultConfig()
	conf := confmap.NewFromStringMap(map[string]any{"metric_statements": []any{map[string]any{"context": "datapoint", "statements": statements}}})
	require.NoError(b, conf.Unmarshal(cfg))
	return started(b, f, cfg, componenttest.NewNopHost())
}

func started(b *testing.B, f processor.Factory, cfg component.Config, host component.Host) processor.Metrics {
	p, err := f.CreateMetrics(b.Context(), processortest.NewNopSettings(f.Type()), cfg, consumertest.NewNop())
	require.NoError(b, err)
	require.NoError(b, p.Start(b.Context(), host))
	b.Cleanup(func() { require.NoError(b, p.Shutdown(context.Background())) })
	return p
}

// fivePuts is the least that it takes.
func fivePuts(md pmetric.Metrics) {
	for _, p := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().All() {
		a := p.Attributes()
		a.PutStr(labels.SLOID, "llm:chat:ttft-00000:p95")
		a.PutStr(labels.Service, "chat")
		a.PutStr(labels.Class, "latency")
		a.PutStr(labels.Target, "0.8000")
		a.PutStr(labels.Unit, "seconds")
	}
}

// BenchmarkLabel puts the five labels on 1,000 points of an SLO while others are loaded, by slo_schema and by transform;
// between each two batches five bare PutStr are measured, so that whatever else the machine does hits both alike. Figures
// are medians over the batches: ns/point, that of the five PutStr, and how many times as much. Each batch is new to whom it
// is given, as it is when it comes from a receiver.
func BenchmarkLabel(b *testing.B) {
	for _, one := range []bool{false, true} {
		for _, slos := range []int{1, 10, 50, 1_000, 10_000} {
			c := labelCase{slos, one}
			name := fmt.Sprintf("%d_slos", slos)
			if one {
				name += "_of_one_metric"
			}
			b.Run("slo_schema/"+name, func(b *testing.B) { c.label(b, c.schema(b)) })
			b.Run("transform/"+name, func(b *testing.B) { c.label(b, c.transform(b)) })
		}
	}
}

func (c labelCase) label(b *testing.B, p processor.Metrics) {
	const n = 1_000
	pristine := c.points(n)
	fresh := func() pmetric.Metrics {
		md := pmetric.NewMetrics()
		pristine.CopyTo(md)
		return md
	}
	// The benchmark's own timer is no use here: to stop and start it costs as much as a batch.
	perPoint := func(do func(pmetric.Metrics)) float64 {
		md := fresh()
		begin := time.Now()
		do(md)
		took := time.Since(begin)
		last := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(n - 1)
		require.Equal(b, 11, last.Attributes().Len())
		return float64(took.Nanoseconds()) / n
	}
	consume := func(md pmetric.Metrics) { require.NoError(b, p.ConsumeMetrics(b.Context(), md)) }

	var by, five []float64
	for b.Loop() {
		five = append(five, perPoint(fivePuts))
		by = append(by, perPoint(consume))
	}
	slices.Sort(by)
	slices.Sort(five)
	median := len(by) / 2
	b.ReportMetric(by[median], "ns/point")
	b.ReportMetric(five[median], "five-PutStr-ns/point")
	b.ReportMetric(by[median]/five[median], "x-five-PutStr")
	b.ReportMetric(allocs(fresh(), consume)/n, "allocs/point")
	b.ReportMetric(allocs(fresh(), fivePuts)/n, "five-PutStr-allocs/point")
}

// allocs is the number of allocations that labelling a batch takes.
func allocs(md pmetric.Metrics, do func(pmetric.Metrics)) float64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do(md)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs - before.Mallocs)
}
