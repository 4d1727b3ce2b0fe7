// SPDX-License-Identifier: Apache-2.0

package sloschemaprocessor

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/otelcol-llm/otelcol-llm/internal/shared"
	"github.com/otelcol-llm/otelcol-llm/processor/sloschemaprocessor/internal/metadata"
)

// engines are shared between the pipelines that name one processor: what one of them learns of an SLO, all know.
var engines shared.Group[*engine]

// NewFactory returns the factory of the slo_schema processor.
func NewFactory() processor.Factory {
	return processor.NewFactory(metadata.Type, createDefaultConfig,
		processor.WithMetrics(createMetrics, metadata.MetricsStability))
}

func createDefaultConfig() component.Config {
	return &Config{
		Catalog:           component.MustNewID("slo_catalog"),
		OnMultiple:        First,
		OnUnknown:         Keep,
		Dialects:          slices.Clone(dialectNames[:]),
		ServiceFrom:       []string{"service", "service.name", "job"},
		KeepDialectLabels: true,
		MaxDialectSLOs:    10_000,
		DialectTTL:        time.Hour,
	}
}

func createMetrics(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
	member, err := engines.Join(cfg, func() (*engine, error) { return newEngine(set, cfg.(*Config)) })
	if err != nil {
		return nil, err
	}
	return processorhelper.NewMetrics(ctx, set, cfg, next, member.Engine().process,
		processorhelper.WithStart(member.Start), processorhelper.WithShutdown(member.Shutdown),
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}))
}
