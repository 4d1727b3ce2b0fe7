// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
	"github.com/otelcol-llm/otelcol-llm/internal/window"
	"github.com/otelcol-llm/otelcol-llm/processor/driftheatmapprocessor/internal/coupling"
)

// role is what a metric tells of an engine.
type role uint8

const (
	noRole role = iota
	throughputRole
	batchRole
	contextRole
	hitsRole
	queriesRole
)

// coupled makes samples of what the metrics of an engine, which have its resource and equal attributes, say of an interval:
// that between two points of its throughput. What is not there by the end of a batch is not known.
type coupled struct {
	cfg           *CouplingConfig
	max           int
	ttl           int64
	context, hits *buckets // nil for none
	roles         map[string]role
	engines       map[uint64]*served
	ended         []*served // in this batch of points, an interval
	noRoom        int       // samples for which there was no room
	unsteady      int       // samples of an interval that is of no one batch size
	curves        *coupling.Map
	told          int64 // end of the window that was told last, 0 before the first
	checked       int64
	touched       bool // engines, since the last checkpoint
}

// maxRoles bounds the memory of metric names; beyond it a name is looked at anew each time it comes.
const maxRoles = 10_000

func newCoupled(cfg *Config) *coupled {
	c := cfg.Coupling.Get()
	if c == nil {
		return nil
	}
	of := &coupled{
		cfg: c, max: cfg.MaxInputSeries, ttl: int64(cfg.SeriesTTL), roles: map[string]role{}, engines: map[uint64]*served{},
		curves: coupling.New(cfg.MaxCells, cfg.Decay),
	}
	if len(c.ContextBuckets) > 0 {
		of.context = newBuckets(c.ContextBuckets)
	}
	if len(c.HitBuckets) > 0 {
		of.hits = newBuckets(c.HitBuckets)
	}
	return of
}

// names are those of the metrics, by their role less one.
func (c *coupled) names() []string {
	return []string{c.cfg.Throughput, c.cfg.Batch, c.cfg.Context, c.cfg.CacheHits, c.cfg.CacheQueries}
}

func (c *coupled) role(name string) role {
	if r, known := c.roles[name]; known {
		return r
	}
	r := noRole
	for i, metric := range c.names() {
		if metric != "" && selection.SameMetric(metric, name) {
			r = role(i + 1)
		}
	}
	if len(c.roles) < maxRoles {
		c.roles[strings.Clone(name)] = r
	}
	return r
}

// listen hears a metric of an engine. It leaves it to the catalog as well, which counts what it refuses for itself.
func (e *engine) listen(b *intake.Batch) bool {
	r := e.coupled.role(b.Metric.Name())
	if r == noRole {
		return false
	}
	isDelta := intake.Temporality(b.Metric) == pmetric.AggregationTemporalityDelta
	switch m := b.Metric; m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			couple(e, b, p, func(s *served) intake.Reason { return s.number(e.coupled, r, p, false) })
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			couple(e, b, p, func(s *served) intake.Reason { return s.number(e.coupled, r, p, isDelta) })
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			couple(e, b, p, func(s *served) intake.Reason {
				return s.prompted(r, pointOf(p), p.Count(), p.HasSum(), p.Sum(), isDelta)
			})
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			couple(e, b, p, func(s *served) intake.Reason {
				return s.prompted(r, pointOf(p), p.Count(), p.HasSum(), p.Sum(), isDelta)
			})
		}
	default:
		e.intake.Counts.Refuse(intake.UnsupportedShape, intake.Points(b.Metric))
	}
	return false
}

// couple gives a point to the engine that it is of, and counts what cannot be believed or has no room.
func couple[P interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
	Flags() pmetric.DataPointFlags
}](e *engine, b *intake.Batch, p P, take func(*served) intake.Reason) {
	at := int64(p.Timestamp())
	var why intake.Reason
	switch {
	case at <= 0:
		why = intake.NoTimestamp
	case p.Flags().NoRecordedValue():
		why = intake.NoRecordedValue
	case e.intake.Watermark.Ahead(at, b.Now()):
		why = intake.Future
	default:
		s := e.coupled.engine(b, p.Attributes())
		if s == nil {
			why = intake.SeriesLimit
			break
		}
		b.Heard(at)
		why = take(s)
	}
	e.intake.Counts.Refuse(why, 1)
}

// engine is the engine that a point with some attributes is of, nil where there is no room for it.
func (c *coupled) engine(b *intake.Batch, point pcommon.Map) *served {
	id := b.Source(point)
	s := c.engines[id]
	if s == nil {
		if len(c.engines) >= c.max {
			return nil
		}
		s = newServed()
		for _, key := range c.cfg.By {
			s.by = append(s.by, strings.Clone(b.GroupValue(key, point)))
		}
		c.engines[id] = s
	}
	s.heard = b.Now()
	c.touched = true
	return s
}

// finish makes samples of the intervals that have ended in a batch of points, and counts those that are none.
func (c *coupled) finish(counts *intake.Counts) {
	for _, s := range c.ended {
		if s.ended {
			c.sample(s)
		}
	}
	clear(c.ended)
	c.ended = c.ended[:0]
	counts.Refuse(intake.SeriesLimit, c.noRoom)
	counts.Refuse(intake.NoInterval, c.unsteady)
	c.noRoom, c.unsteady = 0, 0
}

// sample makes a sample of the interval of an engine that has ended, and begins the next.
func (c *coupled) sample(s *served) {
	if batch, steady := s.between(); s.throughput > 0 && !steady {
		c.unsteady++
	} else if s.throughput > 0 {
		sample := coupling.Sample{Batch: batch, Throughput: s.throughput}
		if c.context != nil && s.since.prompts > 0 {
			sample.Context = c.context.of(s.since.length / s.since.prompts)
		}
		if c.hits != nil && s.since.queries > 0 {
			sample.Hits = c.hits.of(min(s.since.hits/s.since.queries, 1))
		}
		if !c.curves.Add(s.by, sample) {
			c.noRoom++
		}
	}
	s.batchBefore, s.batch = s.batch, math.NaN()
	s.throughput, s.since, s.ended = 0, sinceSample{}, false
}

// expire forgets engines that were silent for too long at a wall time.
func (c *coupled) expire(now int64) {
	if now-c.checked < c.ttl/4 {
		return
	}
	c.checked = now
	for id, s := range c.engines {
		if now-s.heard > c.ttl {
			delete(c.engines, id)
			c.touched = true
		}
	}
}

// tellCurves tells the curves when a window is over. The caller holds the mutex.
func (e *engine) tellCurves(watermark int64) {
	c := e.coupled
	if c == nil || watermark == window.Unset {
		return
	}
	end := window.Start(watermark, e.cfg.Window)
	if c.told == 0 {
		c.told = end
	}
	if end <= c.told {
		return
	}
	c.told = end
	c.curves.Close(func(of *coupling.Cell, before coupling.Curve) {
		if batch := e.room(pointsOfCell); batch != nil {
			to := e.curve(batch, of, end)
			for _, o := range before.Octaves {
				if !of.Told().Has(o.UpTo) {
					to.Stale(throughput, end, "batch", "<="+short(o.UpTo))
				}
			}
			if before.Knee > 0 && !(of.Told().Knee > 0) {
				to.Stale(kneeMetric, end)
			}
		}
	})
}

// curve writes what was told of a cell when the last window was over, as of an event time: the throughput by batch size, and the
// knee where it is known.
func (e *engine) curve(batch *emit.Batch, of *coupling.Cell, at int64) emit.Series {
	group := func(f func(key, value string)) {
		for i, v := range of.By {
			if v != "" {
				f(e.coupled.cfg.By[i], v)
			}
		}
	}
	to := e.resource(batch, group).Series(func(m pcommon.Map) {
		group(func(k, v string) { m.PutStr(k, v) })
		if of.Context != "" {
			m.PutStr("context", of.Context)
		}
		if of.Hits != "" {
			m.PutStr("cache_hit", of.Hits)
		}
		e.sign(m)
	})
	told := of.Told()
	for _, o := range told.Octaves {
		to.Gauge(throughput, at, o.Throughput, "batch", "<="+short(o.UpTo))
	}
	if told.Knee > 0 {
		to.Gauge(kneeMetric, at, told.Knee)
	}
	return to
}
