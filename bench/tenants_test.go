// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/routingconnector"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/otelcol-llm/otelcol-llm/connector/tenantroutingconnector"
)

const (
	resourcesOfRequest = 10
	pointsOfResource   = 100
)

// BenchmarkTenants routes requests of ten resources with a hundred points each, whose tenants are spread over all there are. The
// routing connector has a route and a pipeline for each tenant; tenant_routing has one, and with queue=true a queue for each
// tenant, which the routing connector has not.
func BenchmarkTenants(b *testing.B) {
	for _, tenants := range []int{10, 100, 1000, 10_000} {
		b.Run(fmt.Sprintf("tenants=%d/tenant_routing", tenants), func(b *testing.B) {
			routeAll(b, tenantroutingconnector.NewFactory(), tenants, 1, map[string]any{"max_tenants": tenants, "sending_queue": map[string]any{"enabled": false}})
		})
		b.Run(fmt.Sprintf("tenants=%d/tenant_routing_queue", tenants), func(b *testing.B) {
			routeAll(b, tenantroutingconnector.NewFactory(), tenants, 1, map[string]any{"max_tenants": tenants})
		})
		b.Run(fmt.Sprintf("tenants=%d/routing", tenants), func(b *testing.B) {
			var table []any
			for i := range tenants {
				table = append(table, map[string]any{
					"condition": fmt.Sprintf(`attributes["k8s.namespace.name"] == %q`, namespace(i)), "pipelines": []any{behind(i).String()},
				})
			}
			routeAll(b, routingconnector.NewFactory(), tenants, tenants, map[string]any{"table": table})
		})
	}
}

func namespace(i int) string   { return fmt.Sprintf("team-%d", i) }
func behind(i int) pipeline.ID { return pipeline.NewIDWithName(pipeline.SignalMetrics, fmt.Sprint(i)) }

// back takes what was routed, so that it can be sent once more. Both connectors move it.
type back struct{ to pmetric.ResourceMetricsSlice }

func (back) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (b back) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	md.ResourceMetrics().MoveAndAppendTo(b.to)
	return nil
}

// nowhere is where queues are emptied to.
type nowhere struct{}

func (nowhere) Capabilities() consumer.Capabilities                   { return consumer.Capabilities{} }
func (nowhere) ConsumeMetrics(context.Context, pmetric.Metrics) error { return nil }

func routeAll(b *testing.B, factory connector.Factory, tenants, pipelines int, settings map[string]any) {
	cfg := factory.CreateDefaultConfig()
	require.NoError(b, confmap.NewFromStringMap(settings).Unmarshal(cfg))
	_, direct := settings["sending_queue"]
	direct = direct || pipelines > 1
	came := back{pmetric.NewResourceMetricsSlice()}
	to := map[pipeline.ID]consumer.Metrics{}
	for i := range pipelines {
		to[behind(i)] = came
		if !direct {
			to[behind(i)] = nowhere{}
		}
	}
	set := connectortest.NewNopSettings(factory.Type())
	set.ID = component.NewID(factory.Type())
	c, err := factory.CreateMetricsToMetrics(b.Context(), set, cfg, connector.NewMetricsRouter(to))
	require.NoError(b, err)
	require.NoError(b, c.Start(b.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(b, c.Shutdown(context.Background())) }()

	names := make([]string, tenants)
	for i := range names {
		names[i] = namespace(i)
	}
	next := 0
	// whose makes a request one of the next ten tenants.
	whose := func(md pmetric.Metrics) {
		for i := range md.ResourceMetrics().Len() {
			v, _ := md.ResourceMetrics().At(i).Resource().Attributes().Get("k8s.namespace.name")
			v.SetStr(names[next])
			next = (next + 1) % tenants
		}
	}
	warm := max(1, 3*tenants/resourcesOfRequest) // everybody is known then, and looked up without a lock
	if pipelines > 1 {
		warm = 1 // routes are there from the start
	}
	for range warm {
		first := unnamed()
		whose(first)
		require.NoError(b, c.ConsumeMetrics(b.Context(), first))
	}
	came.to.RemoveIf(func(pmetric.ResourceMetrics) bool { return true })
	md, copies := unnamed(), make([]pmetric.Metrics, chunk)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		if direct {
			whose(md)
			if err := again(b.Context(), c, md, came); err != nil {
				b.Fatal(err)
			}
			continue
		}
		if i%chunk == 0 { // what went into queues does not come back
			b.StopTimer()
			for j := range copies {
				copies[j] = pmetric.NewMetrics()
				md.CopyTo(copies[j])
				whose(copies[j])
			}
			b.StartTimer()
		}
		for c.ConsumeMetrics(b.Context(), copies[i%chunk]) != nil {
			runtime.Gosched() // the queues are full
		}
	}
	const points = resourcesOfRequest * pointsOfResource
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/points, "ns/point")
}

// chunk is how many requests are made at once.
const chunk = 500

// again routes a request, and makes it whole again.
func again(ctx context.Context, c connector.Metrics, md pmetric.Metrics, came back) error {
	if err := c.ConsumeMetrics(ctx, md); err != nil {
		return err
	}
	md.ResourceMetrics().RemoveIf(func(pmetric.ResourceMetrics) bool { return true })
	came.to.MoveAndAppendTo(md.ResourceMetrics())
	return nil
}

// unnamed is a request whose tenants are still to be named.
func unnamed() pmetric.Metrics {
	md := pmetric.NewMetrics()
	for range resourcesOfRequest {
		rm := md.ResourceMetrics().AppendEmpty()
		attrs := rm.Resource().Attributes()
		attrs.PutStr("host.name", "gpu-7")
		attrs.PutStr("k8s.pod.name", "chat-5f7d-x")
		attrs.PutStr("service.name", "chat")
		attrs.PutStr("cloud.region", "eu-1")
		attrs.PutEmpty("k8s.namespace.name")
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("vllm:num_requests_running")
		points := m.SetEmptyGauge().DataPoints()
		for i := range pointsOfResource {
			p := points.AppendEmpty()
			p.SetIntValue(int64(i))
			p.Attributes().PutInt("engine", int64(i))
		}
	}
	return md
}
