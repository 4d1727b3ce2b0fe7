// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/otelcol-llm/otelcol-llm/connector/tenantroutingconnector/internal/metadata"
)

type discard struct{}

func (discard) Capabilities() consumer.Capabilities                   { return consumer.Capabilities{} }
func (discard) ConsumeMetrics(context.Context, pmetric.Metrics) error { return nil }

// BenchmarkQueue is what a batch of one tenant's costs: found, marked, and put into a queue that is emptied at once.
func BenchmarkOneTenant(b *testing.B) {
	for _, queued := range []bool{false, true} {
		for _, points := range []int{10, 1000, 10_000} {
			b.Run(fmt.Sprintf("queue=%v/%d", queued, points), func(b *testing.B) {
				cfg := createDefaultConfig().(*Config)
				if !queued {
					direct(cfg)
				}
				set := connectortest.NewNopSettings(metadata.Type)
				r, err := NewFactory().CreateMetricsToMetrics(b.Context(), set, cfg, connector.NewMetricsRouter(map[pipeline.ID]consumer.Metrics{toTenants: discard{}}))
				require.NoError(b, err)
				require.NoError(b, r.Start(b.Context(), newHost()))
				defer func() { require.NoError(b, r.Shutdown(b.Context())) }()
				md := batch(points, "service.name=a host.name=h k8s.pod.name=p")
				b.ReportAllocs()
				for b.Loop() {
					for r.ConsumeMetrics(b.Context(), md) != nil { // its queue is full
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(points), "ns/point")
			})
		}
	}
}
