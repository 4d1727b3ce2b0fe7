// SPDX-License-Identifier: Apache-2.0

package dcgmnames

import (
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
)

// t4 is the machine of testdata/gpu/dcgm_exporter_t4.prom.txt, which two exporters of two drivers were taken from.
func t4(s *gpu.Snapshot) *gpu.Device {
	s.Driver = "460.106.00"
	d := s.Add()
	d.UUID, d.Model, d.PCI = "GPU-20c56d28-0da5-6d26-a36a-e7af1ce2586e", "Tesla T4", "0000:00:1e.0"
	d.SetInt(gpu.SMClock, 300e6)
	d.SetInt(gpu.MemoryClock, 405e6)
	d.Set(gpu.Temperature, 25)
	d.Set(gpu.SlowdownTemperature, 93)
	d.Set(gpu.Power, 8.969)
	d.Set(gpu.PowerLimit, 70)
	d.Set(gpu.Energy, 128996.013)
	d.SetInt(gpu.PCIeReplays, 0)
	d.Set(gpu.Utilization, 0)
	d.Set(gpu.ControllerUtilization, 0)
	d.Set(gpu.EncoderUtilization, 0)
	d.Set(gpu.DecoderUtilization, 0)
	d.SetInt(gpu.MemoryLimit, 15109<<20)
	d.SetInt(gpu.MemoryUsage, 126734) // 0.000008 of it
	d.SetInt(gpu.MemoryReserved, 0)
	d.SetThrottle(1, gpu.AllThrottle)
	return d
}

// what the dump has and Table has not, and why.
var without = map[string]string{
	"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": "neither its unit nor whether it is a rate is the same in all versions of DCGM",
	"DCGM_FI_DEV_VGPU_LICENSE_STATUS":    "no metric here tells it",
	"DCGM_FI_DEV_COUNT":                  "count(DCGM_FI_DEV_GPU_TEMP) says the same",
	"DCGM_FI_DEV_PSTATE":                 "no metric here tells it",
}

// Scenario: a Tesla T4, and what a real dcgm-exporter said of one.
// Guarantees: the same names, kinds, words, labels and values; what is left out is named here.
func TestTheSeriesAreThoseOfDcgmExporter(t *testing.T) {
	dump := read(t)
	var s gpu.Snapshot
	t4(&s)
	metrics := pmetric.NewMetricSlice()
	new(Writer).Write(metrics, Reading{Snapshot: &s, Now: 1, Hostname: "424773df46e0", Xid: func(*gpu.Device) uint64 { return 0 }})
	written := map[string]pmetric.Metric{}
	for _, m := range metrics.All() {
		written[m.Name()] = m
	}
	kinds := map[string]bool{}
	for _, s := range Table {
		kinds[s.Name] = s.Counter
	}

	require.Greater(t, len(dump), 20)
	for name, family := range dump {
		if without[name] != "" {
			assert.NotContains(t, written, name)
			continue
		}
		m, ok := written[name]
		if !assert.True(t, ok, name) {
			continue
		}
		assert.Equal(t, family.GetType() == dto.MetricType_COUNTER, kinds[name], name)
		if help := strings.TrimSpace(family.GetHelp()); help != "" {
			assert.Equal(t, help, m.Description(), name)
		}
		assert.Empty(t, m.Unit(), name)
		require.Equal(t, pmetric.MetricTypeGauge, m.Type(), name)
		require.Equal(t, 1, m.Gauge().DataPoints().Len(), name)
		point, sample := m.Gauge().DataPoints().At(0), family.GetMetric()[0]

		value := sample.GetGauge().GetValue() + sample.GetCounter().GetValue()
		switch name {
		case "DCGM_FI_DEV_FB_RESERVED": // the dump's own note: copied from FB_TOTAL
		case "DCGM_FI_DEV_FB_USED_PERCENT":
			assert.InDelta(t, value, point.DoubleValue(), 1e-6, name)
		case "DCGM_FI_DEV_FB_FREE": // the two machines differ by the 120 KiB in use on one
			assert.InDelta(t, value, point.DoubleValue(), 1, name)
		default:
			assert.Equal(t, value, point.DoubleValue(), name)
		}

		// Labels that any field of DCGM can be made of do not belong to the exporter's own, but for the driver's version.
		want := map[string]string{}
		for _, l := range sample.GetLabel() {
			if !strings.HasPrefix(l.GetName(), "DCGM_FI_") || l.GetName() == "DCGM_FI_DRIVER_VERSION" {
				want[l.GetName()] = l.GetValue()
			}
		}
		got := text(point.Attributes())
		assert.Equal(t, "00000000:00:1E.0", got["pci_bus_id"]) // of newer versions
		delete(got, "pci_bus_id")
		assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)), name)
		if want["Hostname"] == "424773df46e0" { // the other of the two machines
			assert.Equal(t, want, got, name)
		}
	}
}

// Guarantees: nothing that was not read is written, and a MIG instance has what is its own, with its GPU's labels.
func TestAnInstanceHasWhatIsItsOwn(t *testing.T) {
	var s gpu.Snapshot
	s.Driver = "590.48.01"
	card := s.Add()
	card.UUID, card.Index, card.Model, card.MIGEnabled = "GPU-1", 3, "NVIDIA H100 80GB HBM3", true
	card.Set(gpu.Temperature, 41)
	part := s.Add()
	part.UUID, part.Parent, part.Profile, part.GPUInstance = "MIG-1", "GPU-1", "1g.10gb", 7
	part.SetInt(gpu.MemoryLimit, 10<<30)
	part.SetInt(gpu.MemoryUsage, 1<<30)
	part.SetInt(gpu.MemoryReserved, 5<<20)
	part.Set(gpu.SMActive, 0.25)

	// The exporter knows GPU instances only: compute instances that share one are one series.
	other := s.Add()
	other.UUID, other.Parent, other.Profile, other.GPUInstance, other.ComputeInstance = "MIG-2", "GPU-1", "1g.10gb", 7, 1
	other.Shared = true
	other.SetInt(gpu.MemoryLimit, 10<<30)
	other.SetInt(gpu.MemoryUsage, 1<<30)

	metrics := pmetric.NewMetricSlice()
	new(Writer).Write(metrics, Reading{Snapshot: &s, Now: 5, Hostname: "node-1", Pod: func(d *gpu.Device) workload.Names {
		if d.MIG() {
			return workload.Names{Namespace: "llm", Pod: "chat-0", Container: "vllm"}
		}
		return workload.Names{}
	}})
	got := map[string]float64{}
	for _, m := range metrics.All() {
		require.Equal(t, 1, m.Gauge().DataPoints().Len(), m.Name())
		point := m.Gauge().DataPoints().At(0)
		got[m.Name()] = point.DoubleValue()
		labels := map[string]string{"gpu": "3", "UUID": "GPU-1", "device": "nvidia3", "modelName": "NVIDIA H100 80GB HBM3",
			"Hostname": "node-1", "DCGM_FI_DRIVER_VERSION": "590.48.01"}
		if m.Name() != "DCGM_FI_DEV_GPU_TEMP" {
			maps.Copy(labels, map[string]string{"GPU_I_PROFILE": "1g.10gb", "GPU_I_ID": "7", "namespace": "llm", "pod": "chat-0", "container": "vllm"})
		}
		assert.Equal(t, labels, text(point.Attributes()), m.Name())
		assert.Equal(t, pcommon.Timestamp(5), point.Timestamp())
	}
	used := got["DCGM_FI_DEV_FB_USED_PERCENT"]
	delete(got, "DCGM_FI_DEV_FB_USED_PERCENT")
	assert.InDelta(t, 1024.0/(10240-5), used, 1e-9)
	assert.Equal(t, map[string]float64{
		"DCGM_FI_DEV_GPU_TEMP": 41, "DCGM_FI_DEV_FB_TOTAL": 10240, "DCGM_FI_DEV_FB_USED": 1024, "DCGM_FI_DEV_FB_RESERVED": 5,
		"DCGM_FI_DEV_FB_FREE": 9211, "DCGM_FI_PROF_SM_ACTIVE": 0.25,
	}, got)
}

// Scenario: two GPUs, one of which gets a pod, loses a value, is asked for less, and is gone.
// Guarantees: what was written and is not there any more is ended, under the labels that it had, in a metric of its own, and once;
// what was not asked for goes on.
func TestWhatIsGoneIsEnded(t *testing.T) {
	var w Writer
	all := Points()
	var asked gpu.Set
	pod, there := "", true
	values := []gpu.Point{gpu.Temperature, gpu.Power}
	f := func(want ...string) {
		t.Helper()
		var s gpu.Snapshot
		for _, uuid := range []string{"GPU-0", "GPU-1"} {
			d := s.Add()
			d.UUID = uuid
			if uuid == "GPU-1" {
				d.Index = 1
				for _, p := range values {
					d.Set(p, 7)
				}
			} else {
				d.Set(gpu.Temperature, 5)
			}
		}
		if !there {
			s.Devices = s.Devices[:1]
		}
		metrics := pmetric.NewMetricSlice()
		w.Write(metrics, Reading{Snapshot: &s, Asked: asked, Now: 1, Pod: func(d *gpu.Device) workload.Names {
			if d.Index == 1 {
				return workload.Names{Pod: pod}
			}
			return workload.Names{}
		}})
		var got []string
		for _, m := range metrics.All() {
			for i, p := range m.Gauge().DataPoints().All() {
				l := text(p.Attributes())
				line := strings.TrimPrefix(m.Name(), "DCGM_FI_DEV_") + " " + l["UUID"] + l["pod"]
				if p.Flags().NoRecordedValue() {
					line += " ended"
					assert.Equal(t, m.Gauge().DataPoints().Len()-1, i)
				}
				got = append(got, line)
			}
		}
		assert.Equal(t, want, got)
	}
	asked = all
	f("GPU_TEMP GPU-0", "GPU_TEMP GPU-1", "POWER_USAGE GPU-1")
	pod = "a"
	f("GPU_TEMP GPU-1 ended", "POWER_USAGE GPU-1 ended", "GPU_TEMP GPU-0", "GPU_TEMP GPU-1a", "POWER_USAGE GPU-1a")
	values, asked = values[:1], gpu.Set{}
	asked.Add(gpu.Temperature)
	f("GPU_TEMP GPU-0", "GPU_TEMP GPU-1a")
	asked = all
	f("GPU_TEMP GPU-0", "GPU_TEMP GPU-1a", "POWER_USAGE GPU-1a ended")
	there = false
	f("GPU_TEMP GPU-1a ended", "GPU_TEMP GPU-0")
	f("GPU_TEMP GPU-0")
	w.Write(pmetric.NewMetricSlice(), Reading{Snapshot: &gpu.Snapshot{}})
	assert.Empty(t, w.devices)
}

// Scenario: a GPU instance is destroyed and made anew between two readings. It has another UUID, which is no label here.
// Guarantees: its series go on: no backend takes an end and a value of one instant.
func TestAnInstanceThatIsMadeAnewGoesOn(t *testing.T) {
	var w Writer
	for _, uuid := range []string{"MIG-1", "MIG-2"} {
		var s gpu.Snapshot
		card := s.Add()
		card.UUID, card.MIGEnabled = "GPU-1", true
		part := s.Add()
		part.UUID, part.Parent, part.Profile, part.GPUInstance = uuid, "GPU-1", "1g.10gb", 7
		part.Set(gpu.SMActive, 0.25)
		metrics := pmetric.NewMetricSlice()
		w.Write(metrics, Reading{Snapshot: &s, Asked: Points(), Now: 1})
		require.Equal(t, 1, metrics.Len())
		assert.Equal(t, 1, metrics.At(0).Gauge().DataPoints().Len())
	}
}

// Guarantees: a GPU of which no Xid can be heard has no last one, and one that shares the host's memory has none of its own, as with
// dcgm-exporter; what it had before ends. Reasons that a device does not know are bits that are 0.
func TestWhatCannotBeKnownIsNotWritten(t *testing.T) {
	var w Writer
	write := func(deaf, unified bool) (values, ends []string) {
		var s gpu.Snapshot
		d := s.Add()
		d.UUID, d.Deaf, d.Unified = "GPU-1", deaf, unified
		d.SetInt(gpu.MemoryLimit, 100<<20)
		d.SetInt(gpu.MemoryUsage, 50<<20)
		d.SetInt(gpu.ThrottleSoftwarePower, 1)
		metrics := pmetric.NewMetricSlice()
		w.Write(metrics, Reading{Snapshot: &s, Asked: Points(), Now: 1, Xid: func(*gpu.Device) uint64 { return 0 }})
		for _, m := range metrics.All() {
			for _, p := range m.Gauge().DataPoints().All() {
				if name := strings.TrimPrefix(m.Name(), "DCGM_FI_DEV_"); p.Flags().NoRecordedValue() {
					ends = append(ends, name)
				} else {
					values = append(values, fmt.Sprint(name, " ", p.DoubleValue()))
				}
			}
		}
		return values, ends
	}
	values, ends := write(false, false)
	assert.Equal(t, []string{"XID_ERRORS 0", "CLOCK_THROTTLE_REASONS 4", "FB_FREE 50", "FB_USED 50", "FB_TOTAL 100", "FB_USED_PERCENT 0.5"}, values)
	assert.Empty(t, ends)
	values, ends = write(true, true)
	assert.Equal(t, []string{"CLOCK_THROTTLE_REASONS 4"}, values)
	assert.Equal(t, []string{"XID_ERRORS", "FB_FREE", "FB_USED", "FB_TOTAL", "FB_USED_PERCENT"}, ends)
}

func TestTheTableIsComplete(t *testing.T) {
	names := map[string]bool{}
	for _, s := range Table {
		assert.Regexp(t, regexp.MustCompile(`^DCGM_FI_(DEV|PROF)_[A-Z0-9_]+$`), s.Name)
		assert.NotEmpty(t, s.Help, s.Name)
		assert.False(t, names[s.Name], s.Name)
		names[s.Name] = true
		assert.Equal(t, s.Name == lastXid, s.value == nil, s.Name)
	}
	wanted := Points()
	assert.True(t, wanted.Has(gpu.SMActive))
	assert.False(t, wanted.Has(gpu.ProcessMemory))
}

func TestClocksThatAreDownSayWhyInBits(t *testing.T) {
	var s gpu.Snapshot
	d := s.Add()
	d.SetThrottle(0x4|0x80|0x100, gpu.AllThrottle)
	for i := range Table {
		if Table[i].Name == "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS" {
			v, ok := Table[i].Value(d)
			assert.True(t, ok)
			assert.Equal(t, float64(0x184), v)
		}
	}
}

func read(t testing.TB) map[string]*dto.MetricFamily {
	t.Helper()
	file, err := os.Open("../../../../testdata/gpu/dcgm_exporter_t4.prom.txt")
	require.NoError(t, err)
	defer file.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.MultiReader(file, strings.NewReader("\n")))
	require.NoError(t, err)
	return families
}

func text(m pcommon.Map) map[string]string {
	out := map[string]string{}
	for k, v := range m.All() {
		out[k] = v.Str()
	}
	return out
}

func BenchmarkWrite(b *testing.B) {
	var s gpu.Snapshot
	for range 8 {
		t4(&s)
	}
	b.ReportAllocs()
	points := 0
	var w Writer
	for b.Loop() {
		metrics := pmetric.NewMetricSlice()
		w.Write(metrics, Reading{Snapshot: &s, Now: 1, Hostname: "node-1"})
		points = metrics.Len() * 8
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(points), "ns/point")
}
