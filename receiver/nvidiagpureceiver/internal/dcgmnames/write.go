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

// Reading is what Write makes series of.
type Reading struct {
	*gpu.Snapshot
	// Now is in Unix nanoseconds.
	Now int64
	// Hostname is that of the machine, or of the node.
	Hostname string
	// Pod returns the pod that has a device for itself; empty names where that is not known. Nil: it never is.
	Pod func(*gpu.Device) workload.Names
	// Xid returns the code of the last Xid of a GPU, 0 when there was none. Nil: it is not written in this reading.
	Xid func(*gpu.Device) uint64
}

// Write adds the series of all devices to metrics, one metric for each name.
//
// All of them are gauges without a unit, counters too: otherwise an exporter for Prometheus would add _total to the name,
// which dcgm-exporter does not, and no dashboard would find it. rate() and increase() read a gauge as they do a counter.
func Write(metrics pmetric.MetricSlice, r Reading) {
	labels := make([]pcommon.Map, len(r.Devices))
	var parent *gpu.Device
	for i, d := range r.Devices {
		if !d.MIG() {
			parent = d
		}
		labels[i] = r.labels(d, parent)
	}
	for i := range Table {
		s := &Table[i]
		var points pmetric.NumberDataPointSlice
		begun := false
		for j, d := range r.Devices {
			v, ok := r.value(s, d)
			if !ok {
				continue
			}
			if !begun {
				begun = true
				metric := metrics.AppendEmpty()
				metric.SetName(s.Name)
				metric.SetDescription(s.Help)
				points = metric.SetEmptyGauge().DataPoints()
			}
			point := points.AppendEmpty()
			point.SetTimestamp(pcommon.Timestamp(r.Now))
			point.SetDoubleValue(v)
			labels[j].CopyTo(point.Attributes())
		}
	}
}

func (r *Reading) value(s *Series, d *gpu.Device) (v float64, ok bool) {
	if s.Name == lastXid {
		if r.Xid == nil || d.MIG() {
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
