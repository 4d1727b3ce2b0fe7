// SPDX-License-Identifier: Apache-2.0

package sloconnector

import (
	"context"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/connector/sloconnector/internal/judge"
	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
)

// A connector that tells distributions tells each minute, after them, that this was all it has heard up to then: a point of
// slo.sli.distribution without slo_id and without events, from the end of the one before on. Who judges the whole knows by that
// who is dead, and who had nothing to tell (judge.Told). Those who have no use for it refuse it as of an SLO that is not known.

// The attributes of the resource by which a part is known.
const (
	instanceKey  = "service.instance.id"
	componentKey = "otelcol.component.id"
)

// begin goes on after a restart with what is not closed yet: what was told of it before is told again.
func (d *distributions) begin(lateBefore int64) {
	if d.upTo = window.Unset; lateBefore != window.Unset {
		d.upTo = window.Start(lateBefore, judge.Tick)
	}
}

// tellProgress tells up to when all was told, where that is news. The caller holds the mutex.
func (e *engine) tellProgress(now time.Time) {
	at := e.judge.LateBefore()
	if at == window.Unset { // nothing that ends before the watermark has counted yet
		at = e.intake.Watermark.At()
	}
	if at == window.Unset || !e.enabled.Has(sliDistribution) || e.out.Metrics == nil {
		return
	}
	if now.Sub(e.listened) >= e.cfg.SeriesTTL {
		// Event time does not catch up after a restart into silence. After so long a one there is nothing to wait for.
		at = max(at, now.Add(-e.cfg.Lateness).UnixNano())
	}
	d, end := &e.parts, window.Start(at, judge.Tick)
	start := d.upTo
	if start == window.Unset {
		start = end - int64(judge.Tick)
	}
	if end <= start {
		return
	}
	d.upTo = end
	if d.lost { // whoever hears the next one sees that something is missing before it
		d.lost = false
		return
	}
	d.points++
	to := d.out.Next().Resource("part", func(m pcommon.Map) { e.describePart(m) }).Series(func(pcommon.Map) {})
	to.Histogram(sliDistribution, start, end, nil, []uint64{0}, math.NaN())
}

// describePart writes what tells the connectors of one Collector apart, too.
func (e *engine) describePart(m pcommon.Map) {
	e.describeCollector(m)
	m.PutStr(componentKey, e.id.String())
}

// isProgress tells a point by which a connector says that it has told all.
func isProgress(p pmetric.HistogramDataPoint) bool {
	_, judged := p.Attributes().Get(labels.SLOID)
	return !judged && p.Count() == 0
}

// progress notes how far another connector has told all, and reports false for a point that does not say whose it is.
func (e *engine) progress(b *intake.Batch, p pmetric.HistogramDataPoint) bool {
	instance, id := b.Value(instanceKey, p.Attributes()), b.Value(componentKey, p.Attributes())
	start, end := int64(p.StartTimestamp()), int64(p.Timestamp())
	switch {
	case id == "":
		return false
	case start <= 0 || end <= start:
		e.intake.Counts.Refuse(intake.NoTimestamp, 1)
	case e.intake.Watermark.Ahead(end, b.Now()):
		e.intake.Counts.Refuse(intake.Future, 1)
	case !e.judge.Told(partName(instance, id), start, end):
		e.intake.Counts.Refuse(intake.SeriesLimit, 1)
	default:
		b.Heard(end)
		e.intake.Counts.Accepted++
	}
	return true
}

// partName is how people are told of a part.
func partName(instance, id string) string { return instance + "/" + id }

// hearOfParts says what has become of the parts. The caller holds the mutex.
func (e *engine) hearOfParts(ctx context.Context) {
	for _, n := range e.judge.TakeTellerNews() {
		fields := []zap.Field{zap.String("part", n.Name), zap.Time("event_time", time.Unix(0, n.At).UTC())}
		switch n.What {
		case judge.TellerMissed:
			e.set.Logger.Warn("a part is away: what is judged without it is marked incomplete", append(fields, zap.Duration("part_ttl", e.cfg.PartTTL))...)
		case judge.TellerBack:
			e.set.Logger.Info("a part is back", fields...)
		case judge.TellerForgotten:
			e.gone.Add(ctx, 1)
			e.set.Logger.Warn("a part was away for so long that it is not waited for any more", append(fields, zap.Duration("part_ttl", e.cfg.PartTTL))...)
		}
	}
}

// completeness says of a verdict whether all was told that is known to have been heard. Without parts there is nothing to say.
func (e *engine) completeness(to emit.Series, at int64, r *judge.Result) {
	switch {
	case r.Incomplete:
		to.Gauge(sliIncomplete, at, 1)
	case e.judge.Parts() > 0:
		to.Gauge(sliIncomplete, at, 0)
	}
}
