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
	"github.com/otelcol-llm/otelcol-llm/internal/labels"
	"github.com/otelcol-llm/otelcol-llm/internal/selection"
)

// memory are the metrics of memory, by their names in OTLP.
var memory = map[string]leak.Kind{
	"nvidia.gpu.process.memory.usage": leak.Used,
	"cuda.memory.live":                leak.Live,
	"cuda.memory.missed":              leak.Missed,
	"hw.gpu.memory.limit":             leak.Limit,
	"hw.gpu.memory.usage":             leak.DeviceUsed,
	"nvidia.gpu.memory.reserved":      leak.Reserved,
	"nvidia.gpu.memory.unattributed":  leak.Unattributed,
}

// budgets are the metrics of promises, which the slo connector tells.
var budgets = map[string]leak.Kind{"slo.burn_rate": leak.Burn, "slo.error_budget.remaining": leak.Remaining}

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

// named is what the name and the unit of a metric say.
type named struct {
	kind  leak.Kind
	ok    bool // false for one that tells nothing here
	unit  string
	scale float64
	fits  bool // the unit is one of what is told
}

// named finds what a metric tells, and in what.
func (e *engine) named(m pmetric.Metric) named {
	n, seen := e.names[m.Name()]
	if seen && (!n.ok || n.unit == m.Unit()) {
		return n
	}
	n.kind, n.ok = e.kindOf(m.Name())
	n.unit = strings.Clone(m.Unit())
	n.scale, n.fits = scaleOf(n.kind, m)
	if seen || len(e.names) < maxNames {
		e.names[strings.Clone(m.Name())] = n
	}
	return n
}

// kindOf is what a metric tells; ok is false for one that tells nothing here.
func (e *engine) kindOf(name string) (kind leak.Kind, ok bool) {
	for spec, of := range memory {
		if selection.SameMetric(spec, name) {
			kind, ok = of, true
		}
	}
	for spec, of := range budgets {
		if e.cfg.Catalog != nil && selection.SameMetric(spec, name) {
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
	return kind, ok
}

// listen hears a metric, and reports that it was for this component: no catalog is asked.
func (e *engine) listen(b *intake.Batch) bool {
	of := e.named(b.Metric)
	if !of.ok {
		return true
	}
	counts, kind, scale := &e.intake.Counts, of.kind, of.scale
	if !of.fits {
		e.strange(b.Metric)
		counts.Refuse(intake.UnsupportedShape, intake.Points(b.Metric))
		return true
	}
	switch m := b.Metric; {
	case m.Type() == pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			count(counts, e.point(b, kind, p, false, scale))
		}
	case m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityCumulative:
		for _, p := range m.Sum().DataPoints().All() {
			count(counts, e.point(b, kind, p, false, scale))
		}
	case m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta && kind == leak.Served:
		for _, p := range m.Sum().DataPoints().All() {
			count(counts, e.point(b, kind, p, true, scale))
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
func (e *engine) point(b *intake.Batch, kind leak.Kind, p pmetric.NumberDataPoint, isDelta bool, scale float64) intake.Reason {
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
	if kind == leak.Remaining {
		v, why = balance(p)
	}
	if why != intake.None {
		return why
	}
	if kind == leak.Served {
		if v, why = e.added(b, where.Series, p, v, isDelta); why != intake.None {
			return why
		}
	}
	return e.hear(at, kind, where, v*scale)
}

// balance is what is left of a budget, which may be overspent.
func balance(p pmetric.NumberDataPoint) (float64, intake.Reason) {
	switch v := p.DoubleValue(); {
	case p.ValueType() == pmetric.NumberDataPointValueTypeInt:
		return float64(p.IntValue()), intake.None
	case p.ValueType() != pmetric.NumberDataPointValueTypeDouble:
		return 0, intake.NoValue
	case math.IsNaN(v) || math.IsInf(v, 0):
		return 0, intake.NotFinite
	default:
		return v, intake.None
	}
}

// hear gives what was heard to the fleet, or says why it does not count.
func (e *engine) hear(at int64, kind leak.Kind, where *leak.Where, v float64) intake.Reason {
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
func (e *engine) where(b *intake.Batch, kind leak.Kind, point pcommon.Map) *leak.Where {
	series := attrs.Combine(b.Source(point), uint64(kind), attrs.String(b.Metric.Name()))
	if kind.OfPromise() {
		series = attrs.Combine(series, attrs.Hash(point)) // a source is the same whatever slo_schema has written on it
	}
	if w, known := e.places[series]; known {
		return w
	}
	if len(e.places) >= e.cfg.MaxInputSeries {
		clear(e.places) // those that are in use come again
	}
	w := e.locate(b, kind, point)
	if w.Series == 0 {
		w.Series = series
	}
	e.places[series] = w
	return w
}

// locate finds what a point is about. A process is known by process.pid, which is that on the host; what has none is about a device, or
// about all processes of a container or a pod.
func (e *engine) locate(b *intake.Batch, kind leak.Kind, point pcommon.Map) *leak.Where {
	text := func(key string) string {
		if key == labels.Tenant {
			return strings.Clone(b.GroupValue(key, point))
		}
		return strings.Clone(b.Value(key, point)) // not the memory of a batch
	}
	switch {
	case kind.OfPromise():
		const span = "window"
		return &leak.Where{
			SLO: text(labels.SLOID), Window: text(span), Series: attrs.Combine(b.Source(pcommon.NewMap()), attrs.HashWithout(point, []string{span})),
		}
	case kind.OfTraffic():
		w := e.called(text)
		w.Service, w.Device = text("service.name"), text("hw.id")
		w.Instance = engineOf(text)
		return w
	case kind.OfDevice():
		w := &leak.Where{Host: host(text), Device: text("hw.id")}
		e.describe(w, text)
		return w
	default:
		w := e.called(text)
		w.Device, w.Executable = text("hw.id"), text("process.executable.name")
		e.describe(w, text)
		return w
	}
}

// host is the one that attributes name.
func host(text func(key string) string) string {
	for _, key := range hosts {
		if name := text(key); name != "" {
			return name
		}
	}
	return ""
}

// engineOf tells the engines apart that tell traffic.
func engineOf(text func(key string) string) uint64 {
	return attrs.Combine(attrs.String(text("service.name")), attrs.String(text("service.instance.id")))
}

// called is the process that attributes name, and by what else it is known.
func (e *engine) called(text func(key string) string) *leak.Where {
	w := &leak.Where{Host: host(text), PID: text("process.pid")}
	n := &w.Names
	n.Container, n.PodUID, n.Cluster = text("container.id"), text("k8s.pod.uid"), text("k8s.cluster.name")
	if n.Namespace, n.Pod = text("k8s.namespace.name"), text("k8s.pod.name"); n.Namespace == "" || n.Pod == "" {
		n.Namespace, n.Pod = text("namespace"), text("pod") // as a PodMonitor has them
	}
	var relation strings.Builder
	for _, key := range e.cfg.Traffic.Relation {
		relation.WriteString(key + "=" + text(key) + "\x00")
	}
	n.Relation = relation.String()
	return w
}

// describe gives a place the labels that its results carry.
func (e *engine) describe(w *leak.Where, text func(key string) string) {
	keys := e.tenants.Keys()
	for _, key := range slices.Concat(identity, keys) {
		if v := text(key); v != "" && !slices.ContainsFunc(w.Labels, func(l leak.Label) bool { return l.Key == key }) {
			w.Labels = append(w.Labels, leak.Label{Key: key, Value: v, Resource: slices.Contains(keys, key)})
		}
	}
}
