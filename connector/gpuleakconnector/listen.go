// SPDX-License-Identifier: Apache-2.0

package gpuleakconnector

import (
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/leak"
	"github.com/otelcol-llm/otelcol-llm/internal/attrs"
	"github.com/otelcol-llm/otelcol-llm/internal/delta"
	"github.com/otelcol-llm/otelcol-llm/internal/intake"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
)

// memory are the metrics of memory, by their names in OTLP.
var memory = map[string]leak.Kind{
	"nvidia.gpu.process.memory.usage": leak.Used,
	"cuda.memory.live":                leak.Live,
	"hw.gpu.memory.limit":             leak.Limit,
	"hw.gpu.memory.usage":             leak.DeviceUsed,
	"nvidia.gpu.memory.unattributed":  leak.Unattributed,
}

// identity are attributes of a process that its results carry, as points and resources have them.
var identity = []string{
	"container.id", "k8s.namespace.name", "k8s.pod.name", "k8s.pod.uid", "k8s.container.name", "k8s.node.name", "host.name", "tenant",
}

// hosts are the attributes that tell hosts apart, of which the first that is set decides.
var hosts = []string{"host.id", "k8s.node.name", "host.name"}

// counter is how far a series of finished requests has come.
type counter struct {
	number delta.Number
	once   delta.Once
	heard  int64 // wall clock
}

// maxNames bounds the memory of metric names; beyond it a name is looked at anew each time it comes.
const maxNames = 10_000

// kindOf is what a metric tells; ok is false for one that tells nothing here.
func (e *engine) kindOf(name string) (kind leak.Kind, ok bool) {
	if known, seen := e.names[name]; seen {
		return known.kind, known.ok
	}
	for spec, of := range memory {
		if selection.SameMetric(spec, name) {
			kind, ok = of, true
		}
	}
	for of, specs := range map[leak.Kind][]string{leak.Running: e.cfg.Traffic.Running, leak.Cache: e.cfg.Traffic.Cache, leak.Served: e.cfg.Traffic.Served} {
		for _, spec := range specs {
			if selection.SameMetric(spec, name) {
				kind, ok = of, true
			}
		}
	}
	if len(e.names) < maxNames {
		e.names[strings.Clone(name)] = named{kind, ok}
	}
	return kind, ok
}

type named struct {
	kind leak.Kind
	ok   bool
}

// listen hears a metric, and reports that it was for this component: no catalog is asked.
func (e *engine) listen(b *intake.Batch) bool {
	kind, ok := e.kindOf(b.Metric.Name())
	if !ok {
		return true
	}
	counts := &e.intake.Counts
	switch m := b.Metric; {
	case m.Type() == pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			count(counts, e.point(b, kind, p, false))
		}
	case m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityCumulative:
		for _, p := range m.Sum().DataPoints().All() {
			count(counts, e.point(b, kind, p, false))
		}
	case m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta && kind == leak.Served:
		for _, p := range m.Sum().DataPoints().All() {
			count(counts, e.point(b, kind, p, true))
		}
	default:
		counts.Refuse(intake.UnsupportedShape, intake.Points(m)) // what is held now is no difference, and no distribution
	}
	return true
}

func count(counts *intake.Counts, why intake.Reason) {
	if why == intake.None {
		counts.Accepted++
		return
	}
	counts.Refuse(why, 1)
}

// point gives a point to the fleet, or says why it does not count.
func (e *engine) point(b *intake.Batch, kind leak.Kind, p pmetric.NumberDataPoint, isDelta bool) intake.Reason {
	at := int64(p.Timestamp())
	switch {
	case at <= 0:
		return intake.NoTimestamp
	case p.Flags().NoRecordedValue():
		return intake.NoRecordedValue
	case e.intake.Watermark.Ahead(at, b.Now()):
		return intake.Future
	}
	where := e.where(b, kind, p.Attributes())
	b.Heard(at) // the batch knows by now what resource it is of
	v, why := intake.Measured(p)
	if why != intake.None {
		return why
	}
	if kind == leak.Served {
		if v, why = e.added(b, where.Series, p, v, isDelta); why != intake.None {
			return why
		}
	}
	return e.hear(at, kind, where, v)
}

// hear gives what was heard to the fleet, or says why it does not count.
func (e *engine) hear(at int64, kind leak.Kind, where leak.Where, v float64) intake.Reason {
	switch e.fleet.Hear(at, kind, where, v) {
	case leak.Late:
		return intake.Late
	case leak.Full:
		return intake.SeriesLimit
	case leak.Nowhere:
		return intake.Excluded
	default:
		return intake.None
	}
}

// added is what a counter of requests has added since its last point.
func (e *engine) added(b *intake.Batch, series uint64, p pmetric.NumberDataPoint, v float64, isDelta bool) (float64, intake.Reason) {
	c := e.counters[series]
	if c == nil {
		if len(e.counters) >= e.cfg.MaxInputSeries {
			return 0, intake.SeriesLimit
		}
		c = &counter{}
		e.counters[series] = c
	}
	c.heard = b.Now()
	at := delta.Point{Start: int64(p.StartTimestamp()), Time: int64(p.Timestamp()), Since: math.MaxInt64}
	if isDelta {
		if c.once.Seen(at.Start, at.Time, e.fleet.Late()) {
			return 0, intake.Duplicate
		}
		return v, intake.None
	}
	n, outcome := c.number.Add(at, v)
	return n, intake.ReasonOf(outcome)
}

// where is what a point is about, the same for all points of a series.
func (e *engine) where(b *intake.Batch, kind leak.Kind, point pcommon.Map) leak.Where {
	series := attrs.Combine(b.Source(point), uint64(kind), attrs.String(b.Metric.Name()))
	if w, known := e.places[series]; known {
		return w
	}
	if len(e.places) >= e.cfg.MaxInputSeries {
		clear(e.places) // those that are in use come again
	}
	w := e.locate(b, kind, point)
	w.Series = series
	e.places[series] = w
	return w
}

// locate finds what a point is about. A process is known by process.pid, which is that on the host; what has none is about a device.
func (e *engine) locate(b *intake.Batch, kind leak.Kind, point pcommon.Map) leak.Where {
	text := func(key string) string { return strings.Clone(b.Value(key, point)) } // not the memory of a batch
	w := leak.Where{Device: text("hw.id")}
	for _, key := range hosts {
		if w.Host == "" {
			w.Host = text(key)
		}
	}
	if kind <= leak.Live || kind >= leak.Running {
		w.PID = text("process.pid")
	}
	if kind >= leak.Running {
		w.Service = text("service.name")
		return w
	}
	if kind <= leak.Live {
		w.Executable = text("process.executable.name")
	}
	keys := e.tenants.Keys()
	for _, key := range slices.Concat(identity, keys) {
		if v := text(key); v != "" && !slices.ContainsFunc(w.Labels, func(l leak.Label) bool { return l.Key == key }) {
			w.Labels = append(w.Labels, leak.Label{Key: key, Value: v, Resource: slices.Contains(keys, key)})
		}
	}
	return w
}
