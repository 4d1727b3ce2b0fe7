// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"
)

// Connector is a kind of connector that derives metrics and logs from all three signals, with one engine behind each component id.
type Connector[E component.Component] struct {
	// Create makes the engine of a component id.
	Create func(connector.Settings, component.Config) (E, error)
	// Outputs are where an engine sends what it derives; they are set before it starts.
	Outputs func(E) *Outputs
	// Metrics, Traces and Logs are how an engine hears a batch, as its methods. Nothing in a batch is an error of the sender's that a
	// retry would mend: what cannot be used is counted by reason.
	Metrics func(E, context.Context, pmetric.Metrics)
	Traces  func(E, context.Context, ptrace.Traces)
	Logs    func(E, context.Context, plog.Logs)

	group Group[E]
}

// Outputs are where an engine sends what it derives. It starts with the first of its instances, and the consumer behind another one
// may start later, or never, where something else does not start: nothing is sent before it has.
type Outputs struct {
	Metrics consumer.Metrics // nil where no pipeline takes them
	Logs    consumer.Logs
	Started struct{ Metrics, Logs atomic.Bool }
}

// Options are those of the connector's factory.
func (c *Connector[E]) Options(level component.StabilityLevel) []connector.FactoryOption {
	return []connector.FactoryOption{
		connector.WithMetricsToMetrics(func(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Metrics, error) {
			return c.toMetrics(set, cfg, pipeline.SignalMetrics, next)
		}, level),
		connector.WithTracesToMetrics(func(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Traces, error) {
			return c.toMetrics(set, cfg, pipeline.SignalTraces, next)
		}, level),
		connector.WithLogsToMetrics(func(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Logs, error) {
			return c.toMetrics(set, cfg, pipeline.SignalLogs, next)
		}, level),
		connector.WithMetricsToLogs(func(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Metrics, error) {
			return c.toLogs(set, cfg, pipeline.SignalMetrics, next)
		}, level),
		connector.WithTracesToLogs(func(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Traces, error) {
			return c.toLogs(set, cfg, pipeline.SignalTraces, next)
		}, level),
		connector.WithLogsToLogs(func(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Logs, error) {
			return c.toLogs(set, cfg, pipeline.SignalLogs, next)
		}, level),
	}
}

func (c *Connector[E]) toMetrics(set connector.Settings, cfg component.Config, from pipeline.Signal, next consumer.Metrics) (*Instance[E], error) {
	return c.join(set, cfg, from, func(out *Outputs) *atomic.Bool {
		out.Metrics = next
		return &out.Started.Metrics
	})
}

func (c *Connector[E]) toLogs(set connector.Settings, cfg component.Config, from pipeline.Signal, next consumer.Logs) (*Instance[E], error) {
	return c.join(set, cfg, from, func(out *Outputs) *atomic.Bool {
		out.Logs = next
		return &out.Started.Logs
	})
}

func (c *Connector[E]) join(set connector.Settings, cfg component.Config, from pipeline.Signal, connect func(*Outputs) *atomic.Bool) (*Instance[E], error) {
	m, err := c.group.Join(cfg, func() (E, error) { return c.Create(set, cfg) })
	if err != nil {
		return nil, err
	}
	return &Instance[E]{Member: m, of: c, feeds: m.Claim(from), started: connect(c.Outputs(m.Engine()))}, nil
}

// Instance is what the Collector sees of a connector: one for each pair of input and output signal. Only one of those that take a
// signal feeds the engine with it, since each gets every batch.
type Instance[E component.Component] struct {
	*Member[E]
	of      *Connector[E]
	feeds   bool
	started *atomic.Bool
}

// Start starts the engine with the first instance. The Collector has started the consumer behind this one before.
func (i *Instance[E]) Start(ctx context.Context, host component.Host) error {
	if err := i.Member.Start(ctx, host); err != nil {
		return err
	}
	i.started.Store(true)
	return nil
}

// Capabilities are those of a component that only reads.
func (*Instance[E]) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics hears a batch.
func (i *Instance[E]) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if i.feeds {
		i.of.Metrics(i.Engine(), ctx, md)
	}
	return nil
}

// ConsumeTraces hears a batch.
func (i *Instance[E]) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if i.feeds {
		i.of.Traces(i.Engine(), ctx, td)
	}
	return nil
}

// ConsumeLogs hears a batch.
func (i *Instance[E]) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	if i.feeds {
		i.of.Logs(i.Engine(), ctx, ld)
	}
	return nil
}
