// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/ledger"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/metadata"
)

// writer makes metrics of snapshots. It writes them itself and not by emit.Batch, because the table is one of points: nothing
// is looked up for them, and a scrape should cost little beside the driver's own work.
type writer struct {
	columns []column
	version string            // of the distribution
	shown   map[string]*shown // by UUID: the devices of the last snapshot
	turn    uint64

	// Of the batch that is being written.
	now     int64
	plan    *plan
	pages   []pmetric.Metrics
	points  int // of the last page
	of      *shown
	metrics pmetric.MetricSlice // of the device; not there before its first point
	begun   bool
	column  *column
	numbers pmetric.NumberDataPointSlice // of the column; not there before its first point
	room    int                          // for so many points that follow each other in the next metric
	opened  bool
}

// unifiedMemory marks memory that a GPU shares with its host.
const unifiedMemory = "unified"

func newWriter(columns []column, version string) *writer {
	return &writer{columns: columns, version: version, shown: map[string]*shown{}}
}

// write returns a reading as metrics, in batches of a size that consumers take. What was written before and is not there any
// more is ended.
func (w *writer) write(s *gpu.Snapshot, book *ledger.Ledger, who owners, p *plan, now int64) []pmetric.Metrics {
	w.turn++
	w.now, w.plan, w.pages, w.points = now, p, nil, 0
	var parent *gpu.Device
	for _, d := range s.Devices {
		if !d.MIG() {
			parent = d
		}
		sh := w.shown[d.UUID]
		if sh == nil {
			sh = &shown{}
			w.shown[d.UUID] = sh
		}
		sh.turn = w.turn
		of := parent
		if !d.MIG() || parent != nil && parent.UUID != d.Parent {
			of = nil
		}
		if id := sh.identityOf(d, of, s.Driver); id != sh.identity {
			w.rename(sh)
			sh.identify(id)
		}
		w.begin(sh)
		w.device(d, book.Device(d.UUID), who)
	}
	for uuid, sh := range w.shown {
		if sh.turn != w.turn {
			w.begin(sh)
			w.end()
			delete(w.shown, uuid)
		}
	}
	return w.pages
}

// stop ends all series.
func (w *writer) stop(now int64) []pmetric.Metrics {
	return w.write(&gpu.Snapshot{}, nil, nil, nil, now)
}

// rename ends the series of a device that is called otherwise from now on: another index, another driver. Where a backend does
// not look at what has changed, the series are the same: they end just before they go on, since no backend takes two values of
// one instant.
func (w *writer) rename(sh *shown) {
	now := w.now
	w.now -= int64(time.Millisecond)
	w.begin(sh)
	w.end()
	w.now = now
	sh.forget()
}

// begin is about a device from now on.
func (w *writer) begin(sh *shown) { w.of, w.begun = sh, false }

func (w *writer) device(d *gpu.Device, m *ledger.Device, who owners) {
	if w.plan.write.Any(gpu.ProcessMemory, gpu.ProcessUtilization) {
		w.identify(d, who)
	}
	for i := range w.columns {
		c := &w.columns[i]
		if !w.plan.write.Has(c.points[0]) {
			continue
		}
		w.column, w.opened = c, false
		switch {
		case c.Process:
			w.perProcess(d)
		case c.points[0] == gpu.StatusPoint:
			w.status(d.State)
		case c.points[0] == gpu.XidPoint:
			switch {
			case m == nil || d.MIG():
			case d.Deaf: // that none is heard is no count
				w.endXids()
			default:
				w.xids(m)
			}
		default:
			w.values(d, m)
		}
	}
}

// values writes the points of the column that are values of the device.
func (w *writer) values(d *gpu.Device, m *ledger.Device) {
	c, told := w.column, &w.of.points
	w.room = len(c.points)
	for _, p := range c.points {
		if !d.Has(p) {
			w.endValue(p)
			continue
		}
		unified := d.Unified && p <= gpu.MemoryUtilization
		if unified != w.of.unified.Has(p) {
			w.endValue(p) // it was another series
		}
		told.Add(p)
		point := w.point()
		value := 0.0
		if c.Double {
			value = d.Float(p)
			point.SetDoubleValue(value)
		} else {
			value = float64(d.Int(p))
			point.SetIntValue(int64(d.Int(p)))
		}
		if c.Kind == gpu.Counter {
			since := w.now
			if m != nil {
				since = m.Start(p, value, w.now)
			}
			point.SetStartTimestamp(pcommon.Timestamp(since))
		}
		if unified {
			w.of.unified.Add(p)
			w.label(point, gpu.Rows[p].Value, 1).PutStr(gpu.AttributeMemory, unifiedMemory)
		} else {
			w.label(point, gpu.Rows[p].Value, 0)
		}
	}
}

// status writes the state set of a device.
func (w *writer) status(current gpu.State) {
	w.of.points.Add(gpu.StatusPoint)
	w.room = int(gpu.States)
	for state := range gpu.States {
		point := w.point()
		if state == current {
			point.SetIntValue(1)
		} else {
			point.SetIntValue(0)
		}
		w.label(point, state.String(), 0)
	}
}

// xids writes the counters of the codes that mean trouble, from zero, and of those that were heard besides.
func (w *writer) xids(m *ledger.Device) {
	w.of.points.Add(gpu.XidPoint)
	codes := w.of.codes[:0]
	for i := range gpu.KnownXids {
		codes = append(codes, gpu.KnownXids[i].Code)
	}
	for _, x := range m.Xids {
		if gpu.XidMeaning(x.Code) == "" {
			codes = append(codes, x.Code)
		}
	}
	w.of.codes = codes
	w.room = len(codes)
	for _, code := range codes {
		w.xid(m.Since, m.Xid(code)).PutInt(gpu.AttributeXid, int64(code))
	}
	if m.Others > 0 {
		w.of.overflow = true
		w.xid(m.Since, m.Others).PutBool("otel.metric.overflow", true)
	}
}

func (w *writer) xid(since int64, count uint64) pcommon.Map {
	point := w.point()
	point.SetStartTimestamp(pcommon.Timestamp(since))
	point.SetIntValue(int64(count))
	return w.label(point, "", 1)
}

// end ends all series of a device.
func (w *writer) end() {
	sh := w.of
	for i := range w.columns {
		c := &w.columns[i]
		w.column, w.opened = c, false
		switch {
		case c.Process:
			for i := range sh.processes {
				w.endProcess(&sh.processes[i])
			}
		case !sh.points.Any(c.points...):
		case c.points[0] == gpu.StatusPoint:
			for state := range gpu.States {
				w.ended(state.String(), 0)
			}
		case c.points[0] == gpu.XidPoint:
			w.endXids()
		default:
			for _, p := range c.points {
				w.endValue(p)
			}
		}
	}
}

// endXids ends the counters of Xids of the device, if there are any.
func (w *writer) endXids() {
	sh := w.of
	if !sh.points.Has(gpu.XidPoint) {
		return
	}
	sh.points.Remove(gpu.XidPoint)
	for _, code := range sh.codes {
		w.ended("", 1).PutInt(gpu.AttributeXid, int64(code))
	}
	if sh.overflow {
		w.ended("", 1).PutBool("otel.metric.overflow", true)
	}
	sh.codes, sh.overflow = sh.codes[:0], false
}

// endValue ends the series of a value of the device, if there is one.
func (w *writer) endValue(p gpu.Point) {
	sh := w.of
	if !sh.points.Has(p) {
		return
	}
	sh.points.Remove(p)
	if sh.unified.Has(p) {
		sh.unified.Remove(p)
		w.ended(gpu.Rows[p].Value, 1).PutStr(gpu.AttributeMemory, unifiedMemory)
		return
	}
	w.ended(gpu.Rows[p].Value, 0)
}

// ended ends a series of the column (https://opentelemetry.io/docs/specs/otel/metrics/data-model/#no-recorded-value). Such a
// point is the last of its pmetric.Metric, as in an emit.Batch.
func (w *writer) ended(value string, more int) pcommon.Map {
	point := w.point()
	point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	w.opened = false
	return w.label(point, value, more)
}

// label writes the attributes of a point of the column, and leaves room for more.
func (w *writer) label(point pmetric.NumberDataPoint, value string, more int) pcommon.Map {
	attributes := point.Attributes()
	// Half of what a scrape allocates is room for attributes: as much as is used.
	attributes.EnsureCapacity(2 + set(w.of.parent) + set(w.column.Type) + set(value) + more)
	w.of.label(attributes)
	if w.column.Type != "" {
		attributes.PutStr("hw.type", w.column.Type)
	}
	if value != "" {
		attributes.PutStr(w.column.Attribute, value)
	}
	return attributes
}

// set is 1 for a text that is not empty.
func set(text string) int {
	if text == "" {
		return 0
	}
	return 1
}

// point appends a point to the column, the metric and the resource of which are there from their first point on.
func (w *writer) point() pmetric.NumberDataPoint {
	if !w.begun {
		w.resource()
	}
	c := w.column
	if !w.opened {
		w.opened = true
		metric := w.metrics.AppendEmpty()
		metric.SetName(c.Name)
		metric.SetDescription(c.Description)
		metric.SetUnit(c.Unit)
		switch c.Kind {
		case gpu.Counter, gpu.UpDownCounter:
			sum := metric.SetEmptySum()
			sum.SetIsMonotonic(c.Kind == gpu.Counter)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			w.numbers = sum.DataPoints()
		default:
			w.numbers = metric.SetEmptyGauge().DataPoints()
		}
		w.numbers.EnsureCapacity(w.room)
		w.room = 1
	}
	w.points++
	point := w.numbers.AppendEmpty()
	point.SetTimestamp(pcommon.Timestamp(w.now))
	return point
}

// resource begins the device's resource, in a new page where the last one is full.
func (w *writer) resource() {
	if len(w.pages) == 0 || w.points >= emit.MaxBatchPoints {
		w.pages = append(w.pages, pmetric.NewMetrics())
		w.points = 0
	}
	rm := w.pages[len(w.pages)-1].ResourceMetrics().AppendEmpty()
	w.of.describe(rm.Resource().Attributes())
	scope := rm.ScopeMetrics().AppendEmpty()
	scope.SetSchemaUrl(metadata.SchemaURL)
	scope.Scope().SetName(metadata.ScopeName)
	scope.Scope().SetVersion(w.version)
	w.metrics = scope.Metrics()
	w.metrics.EnsureCapacity(len(w.columns))
	w.begun = true
}
