// SPDX-License-Identifier: Apache-2.0

package nvml

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// Sample is a moment of GPU performance monitoring. It has to be freed before its library is closed.
type Sample struct {
	lib    *Library
	sample nvml.GpmSample
}

// MeasuresPerformance reports whether the GPU has performance monitoring (Hopper and later), and the driver all of it. Only
// OK is for good.
func (d Device) MeasuresPerformance() (bool, Outcome) {
	for _, fn := range [...]function{fnGPMSupport, fnGPMAlloc, fnGPMFree, fnGPMSample, fnGPMMetrics} {
		if !d.lib.has[fn] {
			return false, OK
		}
	}
	support, ret := d.dev.GpmQueryDeviceSupport()
	if ret == nvml.ERROR_NOT_SUPPORTED {
		return false, OK
	}
	return ret == nvml.SUCCESS && support.IsSupportedDevice != 0, outcome(ret)
}

// NewSample makes room for a sample.
func (l *Library) NewSample() (Sample, Outcome) {
	if !l.has[fnGPMAlloc] || !l.has[fnGPMFree] {
		return Sample{}, Absent
	}
	s, ret := l.api.GpmSampleAlloc()
	return Sample{l, s}, outcome(ret)
}

// Free gives the room back.
func (s Sample) Free() Outcome { return outcome(s.sample.Free()) }

// Take takes a sample of a GPU.
func (s Sample) Take(d Device) Outcome {
	if !s.lib.has[fnGPMSample] {
		return Absent
	}
	return outcome(s.sample.Get(d.dev))
}

// TakeInstance takes a sample of an instance of a GPU.
func (s Sample) TakeInstance(gpu Device, instance uint32) Outcome {
	if !s.lib.has[fnGPMInstance] {
		return Absent
	}
	return outcome(s.sample.MigGet(gpu.dev, int(instance)))
}

// Performance is what is to be known of the time between two samples.
type Performance struct {
	get nvml.GpmMetricsGetType
}

// Ask sets which of NVML's metrics are wanted.
func (p *Performance) Ask(ids []uint32) {
	p.get.NumMetrics = uint32(len(ids))
	for i, id := range ids {
		p.get.Metrics[i].MetricId = id
	}
}

// Between asks for the metrics between two samples of one device.
func (p *Performance) Between(from, to Sample) Outcome {
	if !from.lib.has[fnGPMMetrics] || p.get.NumMetrics == 0 {
		return Absent
	}
	p.get.Sample1, p.get.Sample2 = from.sample, to.sample
	return outcome(from.lib.api.GpmMetricsGet(&p.get))
}

// Value is the metric at a place of Ask, in NVML's unit.
func (p *Performance) Value(place int) (float64, Outcome) {
	m := &p.get.Metrics[place]
	return m.Value, outcome(nvml.Return(m.NvmlReturn))
}
