// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-llm/otelcol-llm/connector/tenantroutingconnector/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/internal/tenant"
)

// NewFactory returns the factory of the tenant_routing connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(metadata.Type, createDefaultConfig,
		connector.WithMetricsToMetrics(createMetrics, metadata.Stability),
		connector.WithLogsToLogs(createLogs, metadata.Stability),
		connector.WithTracesToTraces(createTraces, metadata.Stability))
}

func createDefaultConfig() component.Config {
	return &Config{
		TenantFrom:     tenant.DefaultKeys(),
		Mapping:        MappingConfig{Template: placeholder, ReloadInterval: 10 * time.Second},
		OnUnknown:      ToDefault,
		DefaultTenant:  "default",
		MaxTenants:     1000,
		OverflowTenant: "overflow",
		TenantTTL:      time.Hour,
		Groups:         nil,
		Limits:         defaultLimits(),
		MetadataKey:    "x-scope-orgid",
		Queue:          configoptional.Some(defaultQueue()),
		Retry:          defaultRetry(),
		DrainTimeout:   10 * time.Second,
	}
}

func defaultLimits() Limits { return Limits{Burst: 10 * time.Second} }

// defaultQueue is exporterhelper's, with fewer consumers: there is such a queue for every tenant, and each consumer is a
// goroutine.
func defaultQueue() exporterhelper.QueueBatchConfig {
	q := exporterhelper.NewDefaultQueueConfig()
	q.NumConsumers = 4
	return q
}

// defaultRetry is exporterhelper's, but does not give up: a destination that is gone delays only its own tenant, whose queue
// bounds what waits.
func defaultRetry() configretry.BackOffConfig {
	r := configretry.NewDefaultBackOffConfig()
	r.MaxElapsedTime = 0
	return r
}

var errNotYet = errors.New("tenant_routing does not route yet")

func createMetrics(context.Context, connector.Settings, component.Config, consumer.Metrics) (connector.Metrics, error) {
	return nil, errNotYet
}

func createLogs(context.Context, connector.Settings, component.Config, consumer.Logs) (connector.Logs, error) {
	return nil, errNotYet
}

func createTraces(context.Context, connector.Settings, component.Config, consumer.Traces) (connector.Traces, error) {
	return nil, errNotYet
}
