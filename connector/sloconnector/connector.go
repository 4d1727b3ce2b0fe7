// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/shared"
)

// instance is what the Collector sees: one for each output signal. Only one of them feeds the engine, since each
// gets every batch.
type instance struct {
	*shared.Member[*engine]
	feeds bool
}

func (*instance) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

func (i *instance) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if i.feeds {
		i.Engine().consume(ctx, md)
	}
	return nil
}
