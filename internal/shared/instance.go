// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pipeline"
)

// Hears are how an engine hears a batch of each signal, as its methods; nil for a signal that its component does not take. Nothing
// in a batch is an error of the sender's that a retry would mend: what cannot be used is counted by reason.
type Hears[E any] struct {
	Metrics func(E, context.Context, pmetric.Metrics)
	Traces  func(E, context.Context, ptrace.Traces)
	Logs    func(E, context.Context, plog.Logs)
}

// Instance is what the Collector sees of a connector: one for each pair of input and output signal. Only one of those that take a
// signal feeds the engine with it, since each gets every batch.
type Instance[E component.Component] struct {
	*Member[E]
	hears Hears[E]
	feeds bool
	open  *atomic.Bool
}

// Instance joins the engine that belongs to cfg as one that takes a signal. connect gives the engine where its output goes, and
// returns what the engine asks before it sends anything there: it becomes true once the consumer behind has started. The engine
// itself starts with the first of its instances, and is shut down even where others never start.
func (g *Group[E]) Instance(cfg component.Config, from pipeline.Signal, create func() (E, error), connect func(E) (open *atomic.Bool)) (*Instance[E], error) {
	m, err := g.Join(cfg, create)
	if err != nil {
		return nil, err
	}
	return &Instance[E]{Member: m, hears: g.Hears, feeds: m.Claim(from), open: connect(m.Engine())}, nil
}

// Start starts the engine with the first instance. The Collector has started the consumer behind this one before.
func (i *Instance[E]) Start(ctx context.Context, host component.Host) error {
	if err := i.Member.Start(ctx, host); err != nil {
		return err
	}
	i.open.Store(true)
	return nil
}

// Capabilities are those of a component that only reads.
func (*Instance[E]) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics hears a batch.
func (i *Instance[E]) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if i.feeds {
		i.hears.Metrics(i.Engine(), ctx, md)
	}
	return nil
}

// ConsumeTraces hears a batch.
func (i *Instance[E]) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if i.feeds {
		i.hears.Traces(i.Engine(), ctx, td)
	}
	return nil
}

// ConsumeLogs hears a batch.
func (i *Instance[E]) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	if i.feeds {
		i.hears.Logs(i.Engine(), ctx, ld)
	}
	return nil
}

// Started are the signals of an engine's output whose consumers have started. The engine starts with its first instance, and the
// consumers of another one may start later, or never, where something else does not start.
type Started struct{ Metrics, Logs atomic.Bool }
