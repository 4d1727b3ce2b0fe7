// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/nvml"
)

// reading is that of one device: what it has answered so far.
type reading struct {
	d                *gpu.Device
	answered, failed int
	gone             int          // of failed: answers as of a driver that went away
	end              nvml.Outcome // Lost once that was an answer; then nothing more is asked
}

// ok takes the outcome of a call and reports whether it has told.
func (r *reading) ok(o nvml.Outcome) bool {
	switch o {
	case nvml.OK:
		r.answered++
		return true
	case nvml.Unsupported, nvml.Absent:
		r.answered++
	case nvml.Blank:
		r.answered++
		r.d.Refuse(gpu.Blank)
	case nvml.Failed:
		r.failed++
		r.d.Refuse(gpu.Failed)
	case nvml.Over: // of this call, as long as the GPU answers others
		r.failed++
		r.gone++
		r.d.Refuse(gpu.Failed)
	case nvml.Lost:
		r.end = o
	}
	return false
}

// set32 and set64 set a point to what a call has told, in the unit of its metric.
func (r *reading) set32(p gpu.Point, scale float64, v uint32, o nvml.Outcome) {
	if r.ok(o) {
		r.d.Set(p, gpu.Scaled(float64(v), scale))
	}
}

func (r *reading) set64(p gpu.Point, v uint64, o nvml.Outcome) {
	if r.ok(o) {
		r.d.SetInt(p, v)
	}
}

func (r *reading) over() bool { return r.end != nvml.OK }

// readCard reads a GPU and its instances. The outcome is OK, Lost, or Over where every answer was that the driver is gone.
func (s *Source) readCard(c *card, into *gpu.Snapshot) nvml.Outcome {
	if c.here {
		c.learn()
	}
	d := c.introduce(into)
	if !c.here {
		d.State = gpu.Lost
		return nvml.Lost
	}
	r := &s.whole
	*r = reading{d: d}
	first := len(into.Devices)
	s.readState(c, r)
	s.readInstances(c, r, into)
	s.readProcesses(c, r)
	switch {
	case r.end == nvml.OK && r.answered == 0 && r.gone > 0:
		r.end = nvml.Over
		forget(into, d, first)
	case r.end == nvml.Lost:
		forget(into, d, first)
	case r.end == nvml.OK && r.answered == 0 && r.failed > 0:
		d.State = gpu.Degraded
	case r.end == nvml.OK:
		d.State = max(c.rows, c.pages)
	}
	return r.end
}

// forget takes everything back that a device has told before it was lost. Its instances are lost with it.
func forget(into *gpu.Snapshot, d *gpu.Device, first int) {
	for p := range gpu.DevicePoints {
		d.Unset(p)
	}
	d.State, d.Unified, d.Processes, d.Known = gpu.Lost, false, d.Processes[:0], false
	for _, instance := range into.Devices[first:] {
		forget(into, instance, len(into.Devices))
	}
}

// readState reads what is a GPU's own, one call after the other until it is lost.
func (s *Source) readState(c *card, r *reading) {
	d, dev, want := r.d, c.dev, &s.plan.want
	for _, ask := range [...]struct {
		wanted bool
		read   func(*Source, *card, *reading)
	}{
		{true, readTemperature},
		{want.Any(gpu.MemoryLimit, gpu.MemoryUsage, gpu.MemoryReserved, gpu.MemoryUtilization, gpu.MemoryUnattributed), readMemory},
		{want.Any(gpu.Utilization, gpu.ControllerUtilization), readUtilization},
		{s.plan.fields.Len() > 0, readFields},
		{s.plan.rows, readRows},
		{s.plan.retired, readRetired},
		{len(s.plan.gpmOf) > 0, readProfile},
		{s.plan.rates, readRates},
	} {
		if ask.wanted && !r.over() {
			ask.read(s, c, r)
		}
	}
	for i := range numbers {
		if n := &numbers[i]; want.Has(n.point) && !r.over() {
			v, o := n.read(dev)
			r.set32(n.point, n.scale, v, o)
		}
	}
	if want.Has(gpu.Energy) && !r.over() {
		if mJ, o := dev.Energy(); r.ok(o) {
			d.Set(gpu.Energy, float64(mJ)/1000)
		}
	}
	if want.Has(gpu.ECCCorrected) && !r.over() {
		v, o := dev.ECC(false)
		r.set64(gpu.ECCCorrected, v, o)
	}
	if want.Has(gpu.ECCUncorrected) && !r.over() {
		v, o := dev.ECC(true)
		r.set64(gpu.ECCUncorrected, v, o)
	}
	if want.Any(gpu.ThrottleIdle, gpu.ThrottleApplicationClocks, gpu.ThrottleSoftwarePower, gpu.ThrottleHardware, gpu.ThrottleSyncBoost,
		gpu.ThrottleSoftwareThermal, gpu.ThrottleHardwareThermal, gpu.ThrottlePowerBrake, gpu.ThrottleDisplay) && !r.over() {
		if bits, o := dev.EventReasons(); r.ok(o) {
			d.SetThrottle(bits, c.throttled(r, bits))
		}
	}
}

// numbers are the points that one call tells, each.
var numbers = [...]struct {
	point gpu.Point
	scale float64
	read  func(nvml.Device) (uint32, nvml.Outcome)
}{
	{gpu.EncoderUtilization, 0.01, nvml.Device.Encoder},
	{gpu.DecoderUtilization, 0.01, nvml.Device.Decoder},
	{gpu.Power, 0.001, nvml.Device.Power},
	{gpu.PowerLimit, 0.001, nvml.Device.PowerLimit},
	{gpu.SlowdownTemperature, 1, nvml.Device.Slowdown},
	{gpu.ShutdownTemperature, 1, nvml.Device.Shutdown},
	{gpu.GraphicsClock, 1e6, func(d nvml.Device) (uint32, nvml.Outcome) { return d.Clock(nvml.GraphicsClock) }},
	{gpu.SMClock, 1e6, func(d nvml.Device) (uint32, nvml.Outcome) { return d.Clock(nvml.SMClock) }},
	{gpu.MemoryClock, 1e6, func(d nvml.Device) (uint32, nvml.Outcome) { return d.Clock(nvml.MemoryClock) }},
	{gpu.VideoClock, 1e6, func(d nvml.Device) (uint32, nvml.Outcome) { return d.Clock(nvml.VideoClock) }},
}

// readTemperature is asked for whatever is wanted, so that a GPU that is lost says so.
func readTemperature(s *Source, c *card, r *reading) {
	v, o := c.dev.Temperature()
	switch {
	case s.plan.want.Has(gpu.Temperature):
		r.set32(gpu.Temperature, 1, v, o)
	case o == nvml.Blank:
		r.answered++
	default:
		r.ok(o)
	}
	if o == nvml.Absent { // perhaps nothing was asked
		_, o = c.dev.UUID()
		r.ok(o)
	}
}

// readMemory reads that of a GPU. One that does not support the question, and never did, has none of its own.
func readMemory(_ *Source, c *card, r *reading) {
	o := r.memory(c.dev)
	c.memory = c.memory || o == nvml.OK
	r.d.Unified = o == nvml.Unsupported && !c.memory
}

// memory reads that of a GPU or of an instance.
func (r *reading) memory(dev nvml.Device) nvml.Outcome {
	m, o := dev.Memory()
	if !r.ok(o) {
		return o
	}
	r.d.SetInt(gpu.MemoryLimit, m.Total)
	r.d.SetInt(gpu.MemoryUsage, m.Used)
	if m.HasReserved {
		r.d.SetInt(gpu.MemoryReserved, m.Reserved)
	}
	return nvml.OK
}

func readUtilization(_ *Source, c *card, r *reading) {
	if all, memory, o := c.dev.Utilization(); r.ok(o) {
		r.d.Set(gpu.Utilization, float64(all)/100)
		r.d.Set(gpu.ControllerUtilization, float64(memory)/100)
	}
}

func readFields(s *Source, c *card, r *reading) {
	if !r.ok(c.dev.Read(&s.plan.fields)) {
		return
	}
	var failed gpu.Set // what another field tells is another number
	for i, f := range s.plan.of {
		if r.d.Has(f.point) || failed.Has(f.point) {
			continue
		}
		read := s.plan.fields.Uint
		if f.counter {
			read = s.plan.fields.Counter
		}
		switch v, o := read(i); {
		case !r.ok(o):
			if !settled(o) {
				failed.Add(f.point)
			}
		case f.scale >= 1:
			r.d.SetInt(f.point, v*uint64(f.scale))
		default:
			r.d.Set(f.point, float64(v)*f.scale)
		}
	}
}

// readRows reads the rows that were replaced, and remembers what they say of the state of the device.
func readRows(_ *Source, c *card, r *reading) {
	rows, o := c.dev.Remapped()
	if !r.ok(o) {
		return
	}
	r.d.SetInt(gpu.RemappedCorrectable, uint64(rows.Correctable))
	r.d.SetInt(gpu.RemappedUncorrectable, uint64(rows.Uncorrectable))
	r.d.SetInt(gpu.RemapPending, bit(rows.Pending))
	r.d.SetInt(gpu.RemapFailure, bit(rows.Failure))
	switch {
	case rows.Failure:
		c.rows = gpu.PredictedFailure
	case rows.Pending:
		c.rows = gpu.Degraded
	default:
		c.rows = gpu.OK
	}
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func readRetired(_ *Source, c *card, r *reading) {
	if n, o := c.dev.RetiredPages(false); r.ok(o) {
		r.d.SetInt(gpu.RetiredSingleBit, uint64(n))
	}
	if r.over() {
		return
	}
	if n, o := c.dev.RetiredPages(true); r.ok(o) {
		r.d.SetInt(gpu.RetiredDoubleBit, uint64(n))
	}
	if r.over() {
		return
	}
	if pending, o := c.dev.RetirementPending(); r.ok(o) {
		c.pages = gpu.OK
		if pending {
			c.pages = gpu.Degraded
		}
	}
}
