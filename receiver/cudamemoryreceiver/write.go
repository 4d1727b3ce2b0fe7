// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/metadata"
)

// writer makes metrics of a book. It writes them itself and not by emit.Batch, whose histograms are deltas.
type writer struct {
	columns []*instrument
	width   int    // points of a process
	version string // of the distribution
	// overflown says that there is a series for the processes beyond the limit.
	overflown bool

	// Of the batch that is being written.
	pages   []pmetric.Metrics
	points  int                 // of the last page
	metrics pmetric.MetricSlice // of the last page
	open    []pmetric.Metric    // by column; valid where begun
	begun   []bool
}

// A process that has ended is told a last time, and its series end, before what there is now: it may have the same labels, and no
// backend takes two values of one instant.
const (
	lastWords = int64(2 * time.Millisecond)
	itsEnd    = int64(time.Millisecond)
)

func newWriter(columns []*instrument, version string) *writer {
	w := &writer{columns: columns, version: version, open: make([]pmetric.Metric, len(columns)), begun: make([]bool, len(columns))}
	for _, c := range columns {
		w.width += c.points()
	}
	return w
}

// write returns a reading as metrics, in batches of a size that consumers take. What was written before and is not so any more
// is ended.
func (w *writer) write(b *book, now int64) []pmetric.Metrics {
	w.pages = nil
	for _, r := range b.ended {
		if r.values.Ended {
			w.process(r, now-lastWords)
		}
		w.end(&r.told, now-itsEnd)
	}
	for _, r := range b.records {
		w.process(r, now)
	}
	w.overflow(b, now)
	return w.pages
}

// process writes the points of a process. Where more is known of it than before, or less, its series go on under another name.
func (w *writer) process(r *record, at int64) {
	if r.told != r.who {
		w.end(&r.told, at-itsEnd)
		r.told = r.who
	}
	w.room()
	for i, c := range w.columns {
		if c.kind == histogram {
			p := w.metric(i).ExponentialHistogram().DataPoints().AppendEmpty()
			p.SetStartTimestamp(pcommon.Timestamp(r.since))
			p.SetTimestamp(pcommon.Timestamp(at))
			fill(p, c.buckets(&r.values))
			r.who.label(p.Attributes(), "", "")
			continue
		}
		for _, part := range c.parts {
			p := w.metric(i).Sum().DataPoints().AppendEmpty()
			p.SetStartTimestamp(pcommon.Timestamp(r.since))
			p.SetTimestamp(pcommon.Timestamp(at))
			p.SetIntValue(int64(part.number(&r.values)))
			r.who.label(p.Attributes(), c.attribute, part.value)
		}
	}
}

// fill writes the buckets that are not empty.
func fill(p pmetric.ExponentialHistogramDataPoint, d distribution) {
	first, last, count := len(d.counts), 0, uint64(0)
	for i, n := range d.counts {
		if n > 0 {
			first, last, count = min(first, i), i+1, count+n
		}
	}
	p.SetScale(d.scale)
	p.SetCount(count)
	p.SetSum(d.sum)
	if count > 0 {
		p.Positive().SetOffset(d.offset + int32(first))
		p.Positive().BucketCounts().FromRaw(d.counts[first:last])
	}
}

// end ends the series of a process (https://opentelemetry.io/docs/specs/otel/metrics/data-model/#no-recorded-value), if there are
// any. Such a point is the last of its pmetric.Metric, as in an emit.Batch.
func (w *writer) end(told *identity, at int64) {
	if told.PID == 0 {
		return
	}
	w.room()
	for i, c := range w.columns {
		if c.kind == histogram {
			told.label(w.ended(i, at), "", "")
		}
		for _, part := range c.parts {
			told.label(w.ended(i, at), c.attribute, part.value)
		}
	}
	*told = identity{}
}

func (w *writer) ended(column int, at int64) pcommon.Map {
	m := w.metric(column)
	w.begun[column] = false
	none := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
	if w.columns[column].kind == histogram {
		p := m.ExponentialHistogram().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.Timestamp(at))
		p.SetFlags(none)
		return p.Attributes()
	}
	p := m.Sum().DataPoints().AppendEmpty()
	p.SetTimestamp(pcommon.Timestamp(at))
	p.SetFlags(none)
	return p.Attributes()
}

// overflow writes what the processes hold for which there was no room. Of counters there is no such sum: it would fall when one
// of them ends.
func (w *writer) overflow(b *book, now int64) {
	for i, c := range w.columns {
		if c != &live || b.beyond == 0 && !w.overflown {
			continue
		}
		w.room()
		if w.overflown = b.beyond > 0; !w.overflown {
			w.ended(i, now).PutBool(overflow, true)
			continue
		}
		p := w.metric(i).Sum().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.Timestamp(now))
		p.SetIntValue(int64(b.rest))
		p.Attributes().PutBool(overflow, true)
	}
}

const overflow = "otel.metric.overflow"

// room makes sure of a page that the points of a process fit in.
func (w *writer) room() {
	if len(w.pages) > 0 && w.points+w.width <= emit.MaxBatchPoints {
		return
	}
	page := pmetric.NewMetrics()
	scope := page.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	scope.SetSchemaUrl(metadata.SchemaURL)
	scope.Scope().SetName(metadata.ScopeName)
	scope.Scope().SetVersion(w.version)
	w.pages, w.points, w.metrics = append(w.pages, page), 0, scope.Metrics()
	clear(w.begun)
}

// metric is where the next point of a column goes, which is there from its first point on.
func (w *writer) metric(column int) pmetric.Metric {
	w.points++
	if w.begun[column] {
		return w.open[column]
	}
	c, m := w.columns[column], w.metrics.AppendEmpty()
	m.SetName(c.name)
	m.SetDescription(c.description)
	m.SetUnit(c.unit)
	if c.kind == histogram {
		m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	} else {
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(c.kind == counter)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	w.open[column], w.begun[column] = m, true
	return m
}

// label writes who a process is, as nvidia.gpu.process.memory.usage has it, and an attribute of the point's own.
func (i *identity) label(m pcommon.Map, key, value string) {
	texts := [...]struct{ key, value string }{
		{"hw.id", i.device}, {"process.executable.name", i.Executable}, {"container.id", i.ContainerID},
		{"k8s.namespace.name", i.Namespace}, {"k8s.pod.name", i.Pod}, {"k8s.pod.uid", i.PodUID}, {"k8s.container.name", i.Container},
		{key, value},
	}
	known := 1
	for _, text := range texts {
		if text.value != "" {
			known++
		}
	}
	m.EnsureCapacity(known)
	m.PutInt("process.pid", int64(i.PID))
	for _, text := range texts {
		if text.value != "" {
			m.PutStr(text.key, text.value)
		}
	}
}
