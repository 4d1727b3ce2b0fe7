// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/connector"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/alertmanager"
	"github.com/otelcol-llm/otelcol-llm/internal/shared"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
)

// kind is what all connectors of this type have in common.
var kind = shared.Connector[*engine]{
	Create: func(set connector.Settings, cfg component.Config) (*engine, error) {
		return newEngine(set, cfg.(*Config))
	},
	Outputs: func(e *engine) *shared.Outputs { return &e.out },
	Metrics: (*engine).consume, Traces: (*engine).consumeTraces, Logs: (*engine).consumeLogs,
}

type instance = shared.Instance[*engine]

// NewFactory returns the factory of the slo connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(metadata.Type, createDefaultConfig, kind.Options(metadata.Stability)...)
}

func createDefaultConfig() component.Config {
	return &Config{
		Catalog:            component.MustNewID("slo_catalog"),
		Window:             5 * time.Minute,
		Lateness:           30 * time.Second,
		IdleTimeout:        time.Minute,
		MaxLag:             time.Hour,
		MaxSeries:          10_000,
		MaxInputSeries:     100_000,
		MaxSources:         10_000,
		MaxRecentSpans:     100_000,
		SeriesTTL:          time.Hour,
		TenantFrom:         tenant.DefaultKeys(),
		MaxParts:           1000,
		PartTTL:            time.Hour,
		BurnRates:          workbook(),
		CheckpointInterval: 10 * time.Second,
		Alertmanager:       configoptional.Default(alertmanager.DefaultConfig()),
		Backfill:           configoptional.Default(defaultBackfill()),
		RefreshInterval:    15 * time.Second,
	}
}
