// SPDX-License-Identifier: Apache-2.0

package tsdbexporter

import (
	"context"
	"time"

	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-llm/otelcol-llm/exporter/tsdbexporter/internal/metadata"
)

// NewFactory returns the factory of the tsdb exporter.
func NewFactory() exporter.Factory {
	return exporter.NewFactory(metadata.Type, createDefaultConfig,
		exporter.WithMetrics(createMetrics, metadata.MetricsStability))
}

func createDefaultConfig() component.Config {
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr.Endpoint = "localhost:9191"
	server.WriteTimeout = time.Minute
	server.MaxRequestBodySize = 256 << 10 // questions are small
	return &Config{
		HTTP: server,
		Storage: Storage{
			Directory:        "otelcol-llm-data/tsdb",
			Retention:        model.Duration(15 * 24 * time.Hour),
			MaxBytes:         10 << 30,
			MinFreeBytes:     256 << 20,
			OutOfOrderWindow: time.Hour,
			MaxSeries:        500_000,
			MaxExemplars:     20_000,
			MaxDeltaSeries:   100_000,
			DeltaIdleTimeout: time.Hour,
			PromoteResourceAttributes: []string{
				"k8s.cluster.name", "k8s.namespace.name", "k8s.pod.name", "service.namespace", "service.name", "tenant",
			},
		},
		Query: Query{Timeout: 30 * time.Second, MaxSamples: 10_000_000, MaxLength: 16 << 10, MaxResults: 100_000, MaxConcurrent: 8, Lookback: 5 * time.Minute},
	}
}

// createMetrics has no queue and no retries around it: the database is in this process, and what it cannot take at the moment
// is better kept by who sent it than in memory.
func createMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	e := newExporter(set, cfg.(*Config))
	return exporterhelper.NewMetrics(ctx, set, cfg, e.push,
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{Timeout: 0}),
		exporterhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
		exporterhelper.WithStart(e.start), exporterhelper.WithShutdown(e.shutdown))
}
