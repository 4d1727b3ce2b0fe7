// SPDX-License-Identifier: Apache-2.0

package driftheatmapprocessor

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/delta"
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
	sampled       []*served // of this batch
	curves        *coupling.Map
	told          int64 // end of the window that was told last, 0 before the first
	checked       int64
}

// served is an engine.
type served struct {
	by                    []string
	tokens, hits, queries delta.Number
	prompts, length       delta.Number // number of prompts, and their length in all
	newHits, newQueries   float64      // since the last sample
	newPrompts, newLength float64
	batch, batchBefore    float64 // the last two points; NaN where there is none
	throughput            float64 // of the interval that this batch ends, 0 for none
	heard                 int64   // wall clock
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

func (c *coupled) role(name string) role {
	if r, known := c.roles[name]; known {
		return r
	}
	r := noRole
	for i, metric := range [...]string{c.cfg.Throughput, c.cfg.Batch, c.cfg.Context, c.cfg.CacheHits, c.cfg.CacheQueries} {
		if metric != "" && selection.SameMetric(metric, name) {
			r = role(i + 1)
		}
	}
	if len(c.roles) < maxRoles {
		c.roles[strings.Clone(name)] = r
	}
	return r
}

// listen hears a metric of an engine. It leaves it to the catalog as well.
func (e *engine) listen(b *intake.Batch) bool {
	r := e.coupled.role(b.Metric.Name())
	if r == noRole {
		return false
	}
	switch m := b.Metric; m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			if s := couple(e, b, p); s != nil {
				s.number(e.coupled, r, p, false)
			}
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			if s := couple(e, b, p); s != nil {
				s.number(e.coupled, r, p, m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta)
			}
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			if s := couple(e, b, p); s != nil && r == contextRole && p.HasSum() {
				s.prompted(pointOf(p), float64(p.Count()), p.Sum(), m.Histogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta)
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			if s := couple(e, b, p); s != nil && r == contextRole && p.HasSum() {
				s.prompted(pointOf(p), float64(p.Count()), p.Sum(), m.ExponentialHistogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta)
			}
		}
	default:
	}
	return false
}

// couple is the engine that a point is of, nil for a point that cannot be believed, or for which there is no room.
func couple[P interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
	Flags() pmetric.DataPointFlags
}](e *engine, b *intake.Batch, p P) *served {
	c, at := e.coupled, int64(p.Timestamp())
	if at <= 0 || p.Flags().NoRecordedValue() || e.intake.Watermark.Ahead(at, b.Now()) {
		return nil
	}
	id := b.Source(p.Attributes())
	s := c.engines[id]
	if s == nil {
		if len(c.engines) >= c.max {
			e.intake.Counts.Refuse(intake.SeriesLimit, 1)
			return nil
		}
		s = &served{batch: math.NaN(), batchBefore: math.NaN()}
		for _, key := range c.cfg.By {
			s.by = append(s.by, strings.Clone(b.Value(key, p.Attributes())))
		}
		c.engines[id] = s
	}
	s.heard = b.Now()
	b.Heard(at)
	return s
}

func pointOf(p interface {
	StartTimestamp() pcommon.Timestamp
	Timestamp() pcommon.Timestamp
}) delta.Point {
	return delta.Point{Start: int64(p.StartTimestamp()), Time: int64(p.Timestamp()), Since: math.MaxInt64} // the first says nothing
}

// number takes a point that is one number.
func (s *served) number(c *coupled, r role, p pmetric.NumberDataPoint, isDelta bool) {
	v := p.DoubleValue()
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		v = float64(p.IntValue())
	}
	if !(v >= 0) || math.IsInf(v, 1) {
		return
	}
	at := pointOf(p)
	switch r {
	case batchRole:
		s.batchBefore, s.batch = s.batch, v
	case contextRole:
		s.newPrompts, s.newLength = 1, v
	case hitsRole:
		s.newHits += added(&s.hits, at, v, isDelta)
	case queriesRole:
		s.newQueries += added(&s.queries, at, v, isDelta)
	case throughputRole:
		since := s.tokens.Last()
		if isDelta {
			since = at.Start
		}
		n := added(&s.tokens, at, v, isDelta)
		if since > 0 && since < at.Time && n > 0 {
			s.throughput = n / time.Duration(at.Time-since).Seconds()
			c.sampled = append(c.sampled, s)
		}
	default:
	}
}

// prompted takes a point that says how many prompts there were, and how long they were in all.
func (s *served) prompted(at delta.Point, n, length float64, isDelta bool) {
	if !(length >= 0) || math.IsInf(length, 1) {
		return
	}
	s.newPrompts += added(&s.prompts, at, n, isDelta)
	s.newLength += added(&s.length, at, length, isDelta)
}

func added(of *delta.Number, at delta.Point, v float64, isDelta bool) float64 {
	if isDelta {
		return v
	}
	n, outcome := of.Add(at, v)
	if outcome != delta.Added {
		return 0
	}
	return n
}

// finish makes samples of the engines that a batch has told of, and returns for how many there was no room.
func (c *coupled) finish() (refused int) {
	for _, s := range c.sampled {
		batch := s.batch
		if !math.IsNaN(s.batchBefore) {
			batch = (s.batch + s.batchBefore) / 2 // at both ends of the interval
		}
		sample := coupling.Sample{Batch: batch, Throughput: s.throughput}
		if c.context != nil && s.newPrompts > 0 {
			sample.Context = c.context.of(s.newLength / s.newPrompts)
		}
		if c.hits != nil && s.newQueries > 0 {
			sample.Hits = c.hits.of(min(s.newHits/s.newQueries, 1))
		}
		if !c.curves.Add(s.by, sample) {
			refused++
		}
		s.throughput, s.newPrompts, s.newLength, s.newHits, s.newQueries = 0, 0, 0, 0, 0
	}
	clear(c.sampled)
	c.sampled = c.sampled[:0]
	return refused
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
	c.curves.Close(func(of *coupling.Cell) {
		if batch := e.room(pointsOfCell); batch != nil {
			e.curve(batch, of, end)
		}
	})
}

// curve writes what is known of a cell as of an event time: the throughput by batch size, and the knee where it is known.
func (e *engine) curve(batch *emit.Batch, of *coupling.Cell, at int64) {
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
	})
	of.Octaves(func(upTo, v float64) { to.Gauge(throughput, at, v, "batch", "<="+short(upTo)) })
	if batch, ok := of.Knee(); ok {
		to.Gauge(kneeMetric, at, batch)
	}
}
