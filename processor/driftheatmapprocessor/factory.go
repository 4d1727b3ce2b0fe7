// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/shared"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
	"github.com/otelcol-llm/otelcol-llm/internal/twosample"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/metadata"
)

// engines are shared between the pipelines that name one processor.
var engines shared.Group[*engine]

// NewFactory returns the factory of the drift_heatmap processor.
func NewFactory() processor.Factory {
	return processor.NewFactory(metadata.Type, createDefaultConfig,
		processor.WithMetrics(createMetrics, metadata.Stability),
		processor.WithTraces(createTraces, metadata.Stability),
		processor.WithLogs(createLogs, metadata.Stability))
}

func createDefaultConfig() component.Config {
	normal, pair := baseline.DefaultOptions(), twosample.DefaultOptions()
	return &Config{
		Catalog:            component.MustNewID("slo_catalog"),
		Window:             normal.Decay.Window,
		Dimensions:         []Dimension{{Key: "tenant"}, {Key: "cloud.region"}, {Key: "device.type"}, {Key: "model.version"}},
		Decay:              normal.Decay.Factor,
		MinSamples:         normal.MinSamples,
		ReferenceWindows:   normal.Reference,
		MaxCells:           10_000,
		CellTTL:            24 * time.Hour,
		Canary:             configoptional.Default(CanaryConfig{Alpha: pair.Alpha, MinSamples: int(pair.MinSamples)}),
		Coupling:           configoptional.Default(defaultCoupling()),
		Lateness:           30 * time.Second,
		IdleTimeout:        time.Minute,
		MaxLag:             time.Hour,
		MaxInputSeries:     100_000,
		MaxSources:         10_000,
		MaxRecentSpans:     100_000,
		SeriesTTL:          time.Hour,
		TenantFrom:         tenant.DefaultKeys(),
		CheckpointInterval: 10 * time.Second,
		RefreshInterval:    time.Minute,
	}
}

// The input is passed on as it came.
var capabilities = processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: false})

func createMetrics(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
	m, err := join(set, cfg)
	if err != nil {
		return nil, err
	}
	e, out := m.Engine(), &output{to: next}
	e.outputs = append(e.outputs, out)
	start := func(ctx context.Context, host component.Host) error {
		err := m.Start(ctx, host)
		out.open.Store(err == nil)
		return err
	}
	hear := func(ctx context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
		e.consume(ctx, md)
		return md, nil
	}
	return processorhelper.NewMetrics(ctx, set, cfg, next, hear, capabilities, processorhelper.WithStart(start), processorhelper.WithShutdown(m.Shutdown))
}

func createTraces(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	m, err := join(set, cfg)
	if err != nil {
		return nil, err
	}
	hear := func(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
		m.Engine().consumeTraces(ctx, td)
		return td, nil
	}
	return processorhelper.NewTraces(ctx, set, cfg, next, hear, capabilities, processorhelper.WithStart(m.Start), processorhelper.WithShutdown(m.Shutdown))
}

func createLogs(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
	m, err := join(set, cfg)
	if err != nil {
		return nil, err
	}
	hear := func(ctx context.Context, ld plog.Logs) (plog.Logs, error) {
		m.Engine().consumeLogs(ctx, ld)
		return ld, nil
	}
	return processorhelper.NewLogs(ctx, set, cfg, next, hear, capabilities, processorhelper.WithStart(m.Start), processorhelper.WithShutdown(m.Shutdown))
}

func join(set processor.Settings, cfg component.Config) (*shared.Member[*engine], error) {
	return engines.Join(cfg, func() (*engine, error) { return newEngine(set, cfg.(*Config)) })
}
