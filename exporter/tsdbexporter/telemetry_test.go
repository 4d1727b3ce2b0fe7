// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

var encoder = attribute.DefaultEncoder()

// points are the points of a metric, their attributes to their values.
func points(t testing.TB, data metricdata.Aggregation) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	switch d := data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range d.DataPoints {
			out[p.Attributes.Encoded(encoder)] = float64(p.Value)
		}
	case metricdata.Gauge[int64]:
		for _, p := range d.DataPoints {
			out[p.Attributes.Encoded(encoder)] = float64(p.Value)
		}
	case metricdata.Sum[float64]:
		for _, p := range d.DataPoints {
			out[p.Attributes.Encoded(encoder)] = p.Value
		}
	case metricdata.Histogram[float64]:
		for _, p := range d.DataPoints {
			out[p.Attributes.Encoded(encoder)] = float64(p.Count)
		}
	default:
		t.Fatalf("a metric of %T", d)
	}
	return out
}
