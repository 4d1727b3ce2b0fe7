// SPDX-License-Identifier: Apache-2.0

package dcgmnames

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
)

// Reading is what a Writer makes series of.
type Reading struct {
	*gpu.Snapshot
	// Asked are the points that were asked for: a series that has no value although all that it is made of was asked for is ended.
	Asked gpu.Set
	// Now is in Unix nanoseconds.
	Now int64
	// Hostname is that of the machine, or of the node.
	Hostname string
	// Pod returns the pod that has a device for itself; empty names where that is not known. Nil: it never is.
	Pod func(*gpu.Device) workload.Names
	// Xid returns the code of the last Xid of a GPU, 0 when there was none. Nil: it is not written in this reading.
	Xid func(*gpu.Device) uint64
}

// Writer writes readings, and ends what was written and is not there any more. The zero value has written nothing.
type Writer struct {
	devices map[key]*told // those of the last reading
	turn    uint64
	now     int64
	metrics pmetric.MetricSlice
}

// key is what tells devices apart: GPU instances have no UUID here, and one that is made anew goes on with the series of the last.
type key struct {
	uuid string // of the GPU
	mig  bool
	gi   uint32
}

// told is what was written of a device.
type told struct {
	labels pcommon.Map
	series []bool // by their place in Table
	turn   uint64
}

// Write adds the series of all devices to metrics, one metric for each name, and one for each series that ends: the Prometheus
// exporter does not see what stands behind an end.
//
// All of them are gauges without a unit, counters too: otherwise an exporter for Prometheus would add _total to the name,
// which dcgm-exporter does not, and no dashboard would find it. rate() and increase() read a gauge as they do a counter.
func (w *Writer) Write(metrics pmetric.MetricSlice, r Reading) {
	w.turn++
	w.now, w.metrics = r.Now, metrics
	if w.devices == nil {
		w.devices = map[key]*told{}
	}
	devices := make([]*told, len(r.Devices))
	var parent *gpu.Device
	for i, d := range r.Devices {
		if !d.MIG() {
			parent = d
		}
		if i > 0 && d.MIG() && r.Devices[i-1].Parent == d.Parent && r.Devices[i-1].GPUInstance == d.GPUInstance {
			continue // the exporter has one series for a GPU instance, whoever shares it
		}
		devices[i] = w.device(keyOf(d), r.labels(d, parent))
	}
	for k, of := range w.devices {
		if of.turn != w.turn {
			w.end(of)
			delete(w.devices, k)
		}
	}
	for i := range Table {
		s := &Table[i]
		var points pmetric.NumberDataPointSlice
		begun := false
		for j, d := range r.Devices {
			v, ok := r.value(s, d)
			if !ok || devices[j] == nil {
				if devices[j] != nil && r.asked(s) {
					w.endOne(devices[j], i)
				}
				continue
			}
			if !begun {
				begun = true
				points = w.metric(s)
			}
			w.point(points, devices[j]).SetDoubleValue(v)
			devices[j].series[i] = true
		}
	}
}

func keyOf(d *gpu.Device) key {
	if d.MIG() {
		return key{d.Parent, true, d.GPUInstance}
	}
	return key{uuid: d.UUID}
}

// device returns what was written of a device under these labels. What was written under others has ended.
func (w *Writer) device(k key, labels pcommon.Map) *told {
	of := w.devices[k]
	switch {
	case of == nil:
		of = &told{labels: labels, series: make([]bool, len(Table))}
		w.devices[k] = of
	case !of.labels.Equal(labels):
		w.end(of)
		of.labels = labels
	}
	of.turn = w.turn
	return of
}

// end ends all series of a device.
func (w *Writer) end(of *told) {
	for i := range Table {
		w.endOne(of, i)
	}
}

func (w *Writer) endOne(of *told, i int) {
	if of.series[i] {
		of.series[i] = false
		w.point(w.metric(&Table[i]), of).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	}
}

func (w *Writer) metric(s *Series) pmetric.NumberDataPointSlice {
	metric := w.metrics.AppendEmpty()
	metric.SetName(s.Name)
	metric.SetDescription(s.Help)
	return metric.SetEmptyGauge().DataPoints()
}

func (w *Writer) point(points pmetric.NumberDataPointSlice, of *told) pmetric.NumberDataPoint {
	point := points.AppendEmpty()
	point.SetTimestamp(pcommon.Timestamp(w.now))
	of.labels.CopyTo(point.Attributes())
	return point
}

// asked says whether a series that has no value has none because the device does not tell it.
func (r *Reading) asked(s *Series) bool {
	if s.Name == lastXid {
		return r.Xid != nil
	}
	for _, p := range s.Points {
		if !r.Asked.Has(p) {
			return false
		}
	}
	return true
}

func (r *Reading) value(s *Series, d *gpu.Device) (v float64, ok bool) {
	if s.Name == lastXid {
		if r.Xid == nil || d.MIG() || d.Deaf {
			return 0, false
		}
		return float64(r.Xid(d)), true
	}
	return s.Value(d)
}

// labels are those of dcgm-exporter. Of a MIG instance they name its GPU, and beside it the instance.
func (r *Reading) labels(d, parent *gpu.Device) pcommon.Map {
	m := pcommon.NewMap()
	m.EnsureCapacity(12)
	card := d
	if d.MIG() && parent != nil && parent.UUID == d.Parent {
		card = parent
	}
	put := func(key, value string) {
		if value != "" {
			m.PutStr(key, value)
		}
	}
	put("gpu", strconv.Itoa(card.Index))
	put("UUID", card.UUID)
	put("pci_bus_id", busID(card.PCI))
	put("device", "nvidia"+strconv.Itoa(card.Index)) // not the minor number: dcgm-exporter counts as DCGM does
	put("modelName", card.Model)
	if d.MIG() {
		put("GPU_I_PROFILE", d.Profile)
		put("GPU_I_ID", strconv.FormatUint(uint64(d.GPUInstance), 10))
	}
	put("Hostname", r.Hostname)
	put("DCGM_FI_DRIVER_VERSION", r.Driver)
	if r.Pod != nil {
		pod := r.Pod(d)
		put("container", pod.Container)
		put("namespace", pod.Namespace)
		put("pod", pod.Pod)
	}
	return m
}

// busID spells 0000:3b:00.0 as NVML does, 00000000:3B:00.0.
func busID(pci string) string {
	domain, rest, ok := strings.Cut(pci, ":")
	if !ok {
		return pci
	}
	return strings.Repeat("0", max(0, 8-len(domain))) + strings.ToUpper(domain+":"+rest)
}
