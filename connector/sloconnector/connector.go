// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/internal/shared"
)

// instance is what the Collector sees: one for each pair of input and output signal. Only one of those that take a signal
// feeds the engine with it, since each gets every batch.
type instance struct {
	*shared.Member[*engine]
	feeds bool
	open  *atomic.Bool // of the signal that goes out
}

// Start starts the engine with the first instance. The Collector has started the consumer behind this one before.
func (i *instance) Start(ctx context.Context, host component.Host) error {
	if err := i.Member.Start(ctx, host); err != nil {
		return err
	}
	i.open.Store(true)
	return nil
}

// Capabilities are those of a component that only reads.
func (*instance) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics hears a batch. Nothing in it is an error of the sender's that a retry would mend: what cannot be used is
// counted by reason.
func (i *instance) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if i.feeds {
		i.Engine().consume(ctx, md)
	}
	return nil
}

// ConsumeTraces hears a batch, like ConsumeMetrics.
func (i *instance) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if i.feeds {
		i.Engine().consumeTraces(ctx, td)
	}
	return nil
}

// ConsumeLogs hears a batch, like ConsumeMetrics.
func (i *instance) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	if i.feeds {
		i.Engine().consumeLogs(ctx, ld)
	}
	return nil
}
