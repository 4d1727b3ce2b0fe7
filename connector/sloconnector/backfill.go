// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"errors"
	"math"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/backfill"
	"github.com/otelcol-llm/otelcol-llm/internal/budget"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/internal/promsli"
)

func (e *engine) prometheus(ctx context.Context, host component.Host) (backfill.API, error) {
	client, err := e.cfg.Backfill.Get().ToClient(ctx, host.GetExtensions(), e.set)
	if err != nil {
		return nil, err
	}
	return backfill.NewAPI(e.cfg.Backfill.Get().Endpoint, client)
}

// backfill asks for the past of every SLO, one after the other. What cannot be had is not observed, and said.
func (e *engine) backfill(ctx context.Context, api backfill.API) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Backfill.Get().Deadline)
	defer cancel()
	slos, until := e.catalog(), e.now()
	for i := range slos.SLOs {
		slo := &slos.SLOs[i]
		if !slo.Evaluated() || len(slo.Indicator.Parts) > 0 || slo.TimeWindow.Duration.Count == 0 {
			continue
		}
		groups, err := e.past(ctx, api, slo, until)
		log := e.set.Logger.With(zap.String("slo_id", slo.ID), zap.String("endpoint", e.cfg.Backfill.Get().Endpoint))
		switch {
		case errors.Is(err, backfill.ErrUnsupported):
			log.Info("the past of an SLO cannot be asked for: its budget begins unobserved", zap.Error(err))
		case err != nil && ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
			return // shutting down
		case err != nil:
			log.Warn("the past of an SLO was not to be had: its budget begins unobserved", zap.Error(err))
		default:
			log.Info("the error budget was filled with what had happened before", zap.Int("groups", groups))
		}
	}
}

// past asks for the past of an SLO and enters it, and returns of how many groups something was known.
func (e *engine) past(ctx context.Context, api backfill.API, slo *openslo.SLO, until time.Time) (groups int, err error) {
	from, _, ok := slo.TimeWindow.Bounds(until)
	groupBy, known := e.groupBy(slo.ID)
	if !ok || !known {
		return 0, nil
	}
	kinds := promsli.Kinds{Histograms: e.cfg.Backfill.Get().Histograms, Gauges: e.cfg.Backfill.Get().Gauges}
	for _, span := range backfill.Plan(from, until, e.cfg.Backfill.Get().Step, slo.Objective.TimeSliceWindow) {
		answer, err := backfill.Query(ctx, api, backfill.Request{
			SLO: slo, GroupBy: groupBy, Span: span, MaxSeries: e.cfg.MaxSeries, Kinds: kinds,
		})
		if err != nil {
			return groups, err
		}
		if len(answer.Warnings) > 0 || len(answer.Withheld) > 0 {
			e.set.Logger.Warn("not all that a Prometheus knows of the past of an SLO could be taken", zap.String("slo_id", slo.ID),
				zap.Strings("warnings", answer.Warnings), zap.Any("withheld", answer.Withheld))
		}
		groups = max(groups, e.fill(slo, answer.Series, until))
	}
	return groups, nil
}

// groupBy are the keys by which an SLO is judged apart, if it is still in the catalog.
func (e *engine) groupBy(id string) (keys []string, known bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if i := e.judge.IndexOf(id); i >= 0 {
		return e.judge.GroupBy(i), true
	}
	return nil, false
}

// fill enters what is known of the past, unless the catalog has changed meanwhile.
func (e *engine) fill(slo *openslo.SLO, series []backfill.Series, until time.Time) (groups int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := e.judge.IndexOf(slo.ID)
	if i < 0 || len(e.judge.GroupBy(i)) != groupKeys(series) {
		return 0
	}
	for _, s := range series {
		var fills []judge.Fill
		for _, slot := range s.Slots {
			fills = appendSpread(fills, slot)
		}
		if e.judge.Backfill(i, s.Values, until.UnixNano(), fills) > 0 {
			groups++
		}
	}
	return groups
}

func groupKeys(series []backfill.Series) int {
	if len(series) == 0 {
		return -1
	}
	return len(series[0].Values)
}

// grain is how finely the past is spread: a slot of an hour must not look like one minute of it.
const grain = 5 * time.Minute

// appendSpread spreads what happened in a slot evenly over it, to the event.
func appendSpread(fills []judge.Fill, slot backfill.Slot) []judge.Fill {
	n := max(int(min(slot.Length, time.Hour)/grain), 1) // what is coarser is kept coarser, too
	length := slot.Length / time.Duration(n)
	share := func(whole float64, i int) float64 {
		if whole != math.Trunc(whole) {
			return whole / float64(n)
		}
		return math.Round(whole*float64(i+1)/float64(n)) - math.Round(whole*float64(i)/float64(n))
	}
	for i := range n {
		c := budget.Counts{
			Good: share(slot.Good, i), Total: share(slot.Total, i),
			Observed: time.Duration(share(slot.Observed.Seconds(), i) * float64(time.Second)),
		}
		c.Good = min(c.Good, c.Total)
		fills = append(fills, judge.Fill{Start: slot.Start.Add(time.Duration(i) * length).UnixNano(), Counts: c})
	}
	return fills
}
