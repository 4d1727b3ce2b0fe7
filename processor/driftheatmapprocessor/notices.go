// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/baseline"
	"github.com/otelcol-llm/otelcol-llm/internal/openslo"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/heat"
)

// notices are what is to be said in the log of what cannot be told. The engine's mutex guards them; they are said without it.
type notices struct {
	wide      map[string]bool // promises that are said to be left open, since the catalog changed last
	open      []notice
	unmatched bool          // it is said that nothing is compared with before a change
	beyond    heat.Identity // one of those that there is no room for
	items     uint64        // for which there was none since it was said last
	next      time.Time     // when it may be said again
}

// notice is a promise, and between which boundaries it is left open.
type notice struct {
	slo     *openslo.SLO
	between baseline.Span
}

// noRoomAgain is how long it is not said again that there is no room.
const noRoomAgain = time.Minute

// leftOpen notes that buckets leave open whether a promise is kept.
func (n *notices) leftOpen(slo *openslo.SLO, between baseline.Span) {
	if n.wide[slo.ID] {
		return
	}
	if n.wide == nil {
		n.wide = map[string]bool{}
	}
	n.wide[slo.ID] = true
	n.open = append(n.open, notice{slo, between})
}

// say says what there is to say, and counts what there was no room for.
func (e *engine) say() {
	e.mu.Lock()
	n := &e.notices
	open := n.open
	n.open = nil
	unmatched := !n.unmatched && e.heat.Unmatched()
	n.unmatched = n.unmatched || unmatched
	items, beyond := e.heat.TakeOverflowed()
	n.items += items
	if beyond.SLO != nil {
		n.beyond = beyond
	}
	var noRoom []zap.Field
	if now := e.now(); n.items > 0 && !now.Before(n.next) {
		noRoom = []zap.Field{zap.Int("max_cells", e.cfg.MaxCells), zap.Uint64("items", n.items)}
		if n.beyond.SLO != nil {
			noRoom = append(noRoom, zap.String("slo_id", n.beyond.SLO.ID), zap.Strings("values", n.beyond.Values))
		}
		n.items, n.next = 0, now.Add(noRoomAgain)
	}
	e.mu.Unlock()

	if items > 0 {
		e.overflowed.Add(context.Background(), int64(items))
	}
	if noRoom != nil {
		e.set.Logger.Warn("there is no room for more cells, so what is new shares the overflow cell of its SLO, which is never ok: raise max_cells, or take fewer dimensions", noRoom...)
	}
	if unmatched {
		e.set.Logger.Warn("canary: changed_at: no cell has enough values of before the change, so nothing is compared with it: it has to be set before the change, and storage keeps what was known then",
			zap.Time("changed_at", e.cfg.Canary.Get().ChangedAt), zap.Int("min_samples", e.cfg.Canary.Get().MinSamples))
	}
	for _, of := range open {
		e.set.Logger.Warn("the buckets of the source leave open whether the promise is kept, so it is insufficient_data when that matters: let the objective be one of their boundaries",
			zap.String("slo_id", of.slo.ID), zap.Float64("objective", of.slo.Objective.Value), zap.Float64("above", of.between.Lo), zap.Float64("up_to", of.between.Hi))
	}
}

// warnOfQuantiles says which promises take more values than min_samples, whatever it is.
func (e *engine) warnOfQuantiles(slos *openslo.Catalog) {
	for i := range slos.SLOs {
		slo := &slos.SLOs[i]
		if slo.Indicator.Threshold == nil || !slo.Evaluated() {
			continue
		}
		if least := baseline.MinimumSamples(slo.Objective.Target); least > e.cfg.MinSamples {
			e.set.Logger.Warn("a window with min_samples values is too few for what is promised: it is insufficient_data with fewer than it takes, so make window longer where there are not so many",
				zap.String("slo_id", slo.ID), zap.Float64("target", slo.Objective.Target), zap.Int("min_samples", e.cfg.MinSamples), zap.Int("takes", least))
		}
	}
}
