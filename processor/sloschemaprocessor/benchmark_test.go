// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
)

// catalogOf has SLOs on metrics of their own, or, where a model is to be told apart, all on one metric.
func catalogOf(n int, sameMetric bool) *openslo.Catalog {
	c := &openslo.Catalog{}
	for i := range n {
		s := &openslo.Selector{Type: openslo.TypeOpenTelemetry, Signal: openslo.SignalMetrics, Metric: fmt.Sprint("metric_", i), Scale: 1}
		if sameMetric {
			s.Metric, s.Condition = "metric_0", fmt.Sprintf(`datapoint.attributes["model_name"] == "model-%d"`, i)
		}
		c.SLOs = append(c.SLOs, openslo.SLO{ID: fmt.Sprintf("llm:chat:ttft-%05d:p95", i), Name: "chat", Service: "chat",
			Class: openslo.ClassLatency, Unit: "seconds", Indicator: openslo.Indicator{Threshold: s},
			Objective: openslo.Objective{Op: openslo.OpLTE, Value: 0.8, Target: 0.95}})
	}
	return c
}

// points makes n gauge points with 6 attributes.
func points(n int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("metric_0")
	all := m.SetEmptyGauge().DataPoints()
	all.EnsureCapacity(n)
	for i := range n {
		p := all.AppendEmpty()
		p.SetDoubleValue(0.5)
		a := p.Attributes()
		a.EnsureCapacity(6)
		a.PutStr("model_name", "model-0")
		a.PutStr("engine", "0")
		a.PutStr("cloud.region", "eu-central-1")
		a.PutStr("device.type", "h100")
		a.PutStr("model.version", "v1")
		a.PutStr("pod", fmt.Sprintf("chat-%d", i))
	}
	return md
}

// fivePuts is what labelling costs at the least.
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

// each batch is new to what is measured, as it is when it comes from a receiver.
func measure(b *testing.B, n int, do func(pmetric.Metrics)) {
	b.Helper()
	pristine := points(n)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		md := pmetric.NewMetrics()
		pristine.CopyTo(md)
		b.StartTimer()
		do(md)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/point")
}

// BenchmarkProcess labels points with 6 attributes: beside five bare PutStr, with SLOs on other metrics, with all SLOs on
// the metric of the points, and of a metric that no SLO is made of.
func BenchmarkProcess(b *testing.B) {
	for _, n := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprintf("five_PutStr/%d_points", n), func(b *testing.B) { measure(b, n, fivePuts) })
	}
	for _, slos := range []int{1, 10, 50, 1_000, 10_000} {
		for _, same := range []bool{false, true} {
			name := "slos"
			if same {
				name = "slos_of_one_metric"
			}
			sizes := []int{1_000}
			if slos == 1_000 && !same {
				sizes = []int{10, 1_000, 10_000}
			}
			for _, n := range sizes {
				b.Run(fmt.Sprintf("%d_%s/%d_points", slos, name, n), func(b *testing.B) {
					r := newRig(b, catalogOf(slos, same), nil)
					measure(b, n, func(md pmetric.Metrics) {
						_, err := r.process(b.Context(), md)
						require.NoError(b, err)
					})
				})
			}
		}
	}
	b.Run("unselected/1000_points", func(b *testing.B) {
		c := catalogOf(1_000, false)
		c.SLOs = c.SLOs[1:]
		r := newRig(b, c, nil)
		measure(b, 1_000, func(md pmetric.Metrics) {
			_, err := r.process(b.Context(), md)
			require.NoError(b, err)
		})
	})
}
