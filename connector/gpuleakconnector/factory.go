// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/shared"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// engines are shared between the instances that serve different signals of one connector.
var engines = shared.Group[*engine]{Hears: shared.Hears[*engine]{
	Metrics: (*engine).consume, Traces: (*engine).consumeTraces, Logs: (*engine).consumeLogs,
}}

type instance = shared.Instance[*engine]

// NewFactory returns the factory of the gpu_leak connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(metadata.Type, createDefaultConfig,
		connector.WithMetricsToMetrics(createMetricsToMetrics, metadata.Stability),
		connector.WithMetricsToLogs(createMetricsToLogs, metadata.Stability),
		connector.WithLogsToMetrics(createLogsToMetrics, metadata.Stability),
		connector.WithLogsToLogs(createLogsToLogs, metadata.Stability),
		connector.WithTracesToMetrics(createTracesToMetrics, metadata.Stability),
		connector.WithTracesToLogs(createTracesToLogs, metadata.Stability))
}

func createDefaultConfig() component.Config {
	o := trend.DefaultOptions()
	return &Config{
		MinDuration:        o.MinDuration,
		MinRise:            o.MinRise,
		Traffic:            defaultTraffic(),
		Objects:            defaultObjects(),
		Lateness:           30 * time.Second,
		IdleTimeout:        time.Minute,
		MaxLag:             time.Hour,
		MaxProcesses:       4096,
		MaxInputSeries:     100_000,
		MaxSources:         10_000,
		ProcessTTL:         10 * time.Minute,
		TenantFrom:         tenant.DefaultKeys(),
		CheckpointInterval: time.Minute,
	}
}

func createMetricsToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Metrics, error) {
	return join(set, cfg, pipeline.SignalMetrics, toMetrics(next))
}

func createMetricsToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Metrics, error) {
	return join(set, cfg, pipeline.SignalMetrics, toLogs(next))
}

func createLogsToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Logs, error) {
	return join(set, cfg, pipeline.SignalLogs, toMetrics(next))
}

func createLogsToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Logs, error) {
	return join(set, cfg, pipeline.SignalLogs, toLogs(next))
}

func createTracesToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Traces, error) {
	return join(set, cfg, pipeline.SignalTraces, toMetrics(next))
}

func createTracesToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Traces, error) {
	return join(set, cfg, pipeline.SignalTraces, toLogs(next))
}

// output connects an engine to the consumer of a signal.
type output func(*engine) *atomic.Bool

func toMetrics(next consumer.Metrics) output {
	return func(e *engine) *atomic.Bool {
		e.metrics = next
		return &e.open.Metrics
	}
}

func toLogs(next consumer.Logs) output {
	return func(e *engine) *atomic.Bool {
		e.logs = next
		return &e.open.Logs
	}
}

func join(set connector.Settings, cfg component.Config, from pipeline.Signal, connect output) (*instance, error) {
	return engines.Instance(cfg, from, func() (*engine, error) { return newEngine(set, cfg.(*Config)) }, connect)
}
