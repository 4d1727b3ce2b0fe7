// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

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

// BenchmarkProcess labels points with 6 attributes while 1,000 SLOs are loaded. How that compares with others, and with the
// number of SLOs, is measured in bench/.
func BenchmarkProcess(b *testing.B) {
	other := func(md pmetric.Metrics) {
		md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).SetName("something.else")
	}
	condition := catalogOf(1_000, false)
	condition.SLOs[0].Indicator.Threshold.Condition = `IsMatch(datapoint.attributes["model_name"], "^model-0$")`
	for _, bm := range []struct {
		name    string
		catalog *openslo.Catalog
		change  func(pmetric.Metrics)
	}{
		{"catalog", catalogOf(1_000, false), func(pmetric.Metrics) {}},
		{"catalog_of_one_metric", catalogOf(1_000, true), func(pmetric.Metrics) {}},
		{"catalog_with_ottl", condition, func(pmetric.Metrics) {}},
		{"sloth", catalogOf(1_000, false), func(md pmetric.Metrics) {
			other(md)
			for _, p := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().All() {
				p.Attributes().PutStr("sloth_id", "chat-ttft")
				p.Attributes().PutStr("sloth_service", "chat")
			}
		}},
		{"unselected", catalogOf(1_000, false), other},
	} {
		for _, n := range []int{10, 1_000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d_points", bm.name, n), func(b *testing.B) {
				r := newRig(b, bm.catalog, nil)
				md := pmetric.NewMetrics()
				gauges(md, "slo:objective:ratio", 0.95, slothLabels("chat-ttft"))
				r.send(md)
				pristine := points(n)
				bm.change(pristine)
				var took time.Duration
				for b.Loop() {
					md := pmetric.NewMetrics() // each batch is new, as it is when it comes from a receiver
					pristine.CopyTo(md)
					begin := time.Now()
					r.send(md)
					took += time.Since(begin)
				}
				md = pmetric.NewMetrics()
				pristine.CopyTo(md)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				r.send(md)
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(took.Nanoseconds())/float64(b.N*n), "ns/point")
				b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(n), "allocs/point")
			})
		}
	}
}
