// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/shared"
)

// engines are shared between the instances that serve different outputs of one connector.
var engines shared.Group[*engine]

// NewFactory returns the factory of the slo connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(metadata.Type, createDefaultConfig,
		connector.WithMetricsToMetrics(createMetricsToMetrics, metadata.MetricsToMetricsStability),
		connector.WithMetricsToLogs(createMetricsToLogs, metadata.MetricsToLogsStability))
}

func createDefaultConfig() component.Config {
	return &Config{
		Catalog:         component.MustNewID("slo_catalog"),
		Window:          5 * time.Minute,
		Lateness:        30 * time.Second,
		IdleTimeout:     time.Minute,
		MaxLag:          time.Hour,
		MaxSeries:       10_000,
		MaxInputSeries:  100_000,
		MaxSources:      10_000,
		SeriesTTL:       time.Hour,
		RefreshInterval: 15 * time.Second,
	}
}

func createMetricsToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Metrics, error) {
	return join(set, cfg, func(e *engine) { e.metrics = next })
}

func createMetricsToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Metrics, error) {
	return join(set, cfg, func(e *engine) { e.logs = next })
}

func join(set connector.Settings, cfg component.Config, connect func(*engine)) (connector.Metrics, error) {
	member, err := engines.Join(cfg, func() (*engine, error) { return newEngine(set, cfg.(*Config)) })
	if err != nil {
		return nil, err
	}
	connect(member.Engine())
	return &instance{Member: member, feeds: member.Claim(pipeline.SignalMetrics)}, nil
}
