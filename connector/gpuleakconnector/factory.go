// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/shared"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
	"github.com/otelcol-llm/otelcol-llm/internal/trend"
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

// NewFactory returns the factory of the gpu_leak connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(metadata.Type, createDefaultConfig, kind.Options(metadata.Stability)...)
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
