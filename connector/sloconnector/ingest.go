// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
)

func (e *engine) consume(ctx context.Context, md pmetric.Metrics) {
	e.hear(ctx, func(in *intake.Intake, now int64) { in.Metrics(ctx, md, now) })
}

func (e *engine) consumeTraces(ctx context.Context, td ptrace.Traces) {
	e.hear(ctx, func(in *intake.Intake, now int64) { in.Traces(ctx, td, now) })
}

func (e *engine) consumeLogs(ctx context.Context, ld plog.Logs) {
	e.hear(ctx, func(in *intake.Intake, now int64) { in.Logs(ctx, ld, now) })
}

// sink gives the judge what the intake finds. Its series are all the judge's.
type sink struct{ engine *engine }

func (s sink) GroupBy(slo int) []string { return s.engine.judge.GroupBy(slo) }

func (s sink) Series(slo int, values []string) intake.Series {
	return s.engine.judge.Series(slo, values)
}

func (s sink) Late(of intake.Series, t int64) bool { return s.engine.judge.Late(of.(*judge.Series), t) }

func (s sink) PaneStart(slo int, t int64) int64 { return s.engine.judge.PaneStart(slo, t) }

func (s sink) WindowStart(slo int, t int64) int64 { return s.engine.judge.WindowStart(slo, t) }

func (s sink) LateBefore() int64 { return s.engine.judge.LateBefore() }

func (s sink) Exemplar(of intake.Series, t int64, x intake.Exemplar) {
	of.(*judge.Series).AddExemplar(t, judge.Exemplar{TraceID: x.TraceID, SpanID: x.SpanID, Value: x.Value})
}

func (s sink) Unknown(slo int) {
	s.engine.warnOnce("some values of an SLO are not a number: they could be good or bad", s.engine.judge.SLO(slo))
}
