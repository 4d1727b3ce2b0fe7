// SPDX-License-Identifier: Apache-2.0

package tenantroutingconnector

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/config/configretry"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"

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
		TenantFrom: tenant.DefaultKeys(),
		Mapping:    MappingConfig{Template: placeholder, ReloadInterval: 10 * time.Second},
		OnUnknown:  ToDefault,
		// An underscore, which no namespace of Kubernetes has: what is unknown must not be somebody's.
		DefaultTenant:     "_unknown",
		MaxTenants:        1000,
		OverflowTenant:    "_overflow",
		TenantTTL:         time.Hour,
		Limits:            Limits{Burst: 10 * time.Second},
		OnExcess:          RefuseExcess,
		MetadataKey:       "x-scope-orgid",
		Queue:             configoptional.Some(defaultQueue()),
		Retry:             defaultRetry(),
		RetryServerErrors: 15 * time.Minute,
		DrainTimeout:      10 * time.Second,
	}
}

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

func createMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Metrics, error) {
	r, err := routerTo(set, cfg, metricsSignal, next, func(c consumer.Metrics) sendFunc[pmetric.Metrics] { return c.ConsumeMetrics })
	return metricsRouter{r}, err
}

func createLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Logs, error) {
	r, err := routerTo(set, cfg, logsSignal, next, func(c consumer.Logs) sendFunc[plog.Logs] { return c.ConsumeLogs })
	return logsRouter{r}, err
}

func createTraces(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Traces) (connector.Traces, error) {
	r, err := routerTo(set, cfg, tracesSignal, next, func(c consumer.Traces) sendFunc[ptrace.Traces] { return c.ConsumeTraces })
	return tracesRouter{r}, err
}

// routerTo makes the router of a signal to the pipelines behind the connector, which the Collector hands over as one consumer
// that knows them.
func routerTo[T comparable, C any](set connector.Settings, cfg component.Config, s *signal[T], next C, send func(C) sendFunc[T]) (*router[T], error) {
	behind, ok := any(next).(interface {
		PipelineIDs() []pipeline.ID
		Consumer(...pipeline.ID) (C, error)
	})
	if !ok {
		return nil, fmt.Errorf("%T does not tell the pipelines behind the connector", next)
	}
	to := map[pipeline.ID]sendFunc[T]{}
	for _, id := range behind.PipelineIDs() {
		c, err := behind.Consumer(id)
		if err != nil {
			return nil, err
		}
		to[id] = send(c)
	}
	return newRouter(set, cfg.(*Config), s, to)
}
