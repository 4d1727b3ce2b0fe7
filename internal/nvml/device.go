// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Device is a handle of a GPU or of an instance of one. It is good until its library is closed.
type Device struct {
	lib *Library
	dev nvml.Device
}

// Same reports whether two handles are of one device.
func (d Device) Same(other Device) bool { return d.dev == other.dev }

// Texts are what a device is called. An unknown one is empty.

// UUID is GPU-… or MIG-….
func (d Device) UUID() (string, Outcome) { return d.text(fnUUID, nvml.Device.GetUUID) }

// Name is e.g. "NVIDIA H100 80GB HBM3"; of an instance, with " MIG 1g.10gb" after it.
func (d Device) Name() (string, Outcome) { return d.text(fnName, nvml.Device.GetName) }

// Serial is what is printed on the card.
func (d Device) Serial() (string, Outcome) { return d.text(fnSerial, nvml.Device.GetSerial) }

// VBIOS is the version of the card's firmware.
func (d Device) VBIOS() (string, Outcome) { return d.text(fnVBIOS, nvml.Device.GetVbiosVersion) }

func (d Device) text(fn function, get func(nvml.Device) (string, nvml.Return)) (string, Outcome) {
	if !d.lib.has[fn] {
		return "", Absent
	}
	text, ret := get(d.dev)
	if o := outcome(ret); o != OK {
		return "", o
	}
	return text, OK
}

// PCI is the address on the bus, as the driver spells it, e.g. "00000000:00:09.0".
func (d Device) PCI() (string, Outcome) {
	if !d.lib.has[fnPCI] {
		return "", Absent
	}
	info, ret := d.dev.GetPciInfo()
	if o := outcome(ret); o != OK {
		return "", o
	}
	var buf [len(info.BusId)]byte
	for i, c := range info.BusId {
		if c == 0 {
			return string(buf[:i]), OK
		}
		buf[i] = byte(c)
	}
	return string(buf[:]), OK
}

// Memory is that of a device, in bytes. Used has what is Reserved in it where the driver cannot tell them apart.
type Memory struct {
	Total, Used, Reserved uint64
	HasReserved           bool
}

// Memory asks for the memory, with the part that is reserved where the driver knows it (R510). Which of the two it tells stays:
// a step in what is used, because the one failed once, would be one in what is leaked.
func (d Device) Memory() (Memory, Outcome) {
	if d.lib.has[fnMemory2] {
		m, ret := d.dev.GetMemoryInfo_v2()
		o := outcome(ret)
		if o == OK {
			d.lib.tellsReserved.Store(true)
			return checked(Memory{m.Total, m.Used, m.Reserved, true})
		}
		if !unknownStructure(ret) || d.lib.tellsReserved.Load() {
			return Memory{}, o
		}
	}
	if !d.lib.has[fnMemory1] {
		return Memory{}, Absent
	}
	m, ret := d.dev.GetMemoryInfo()
	if o := outcome(ret); o != OK {
		return Memory{}, o
	}
	return checked(Memory{Total: m.Total, Used: m.Used})
}

// unknownStructure reports whether an answer is that of a driver that has a function but not this structure of it.
func unknownStructure(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_INVALID_ARGUMENT, nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_ARGUMENT_VERSION_MISMATCH:
		return true
	default:
		return false
	}
}

func checked(m Memory) (Memory, Outcome) {
	if m.Total >= blank64 || m.Used >= blank64 || m.Reserved >= blank64 {
		return Memory{}, Blank
	}
	return m, OK
}

// Utilization is the load of the GPU and of its memory's controller since the driver's last sample, in percent, and not
// checked: more than 100 has been seen.
func (d Device) Utilization() (gpu, memory uint32, o Outcome) {
	if !d.lib.has[fnUtilization] {
		return 0, 0, Absent
	}
	u, ret := d.dev.GetUtilizationRates()
	return u.Gpu, u.Memory, outcome(ret)
}

// Encoder is the load of the video encoders in percent, not checked.
func (d Device) Encoder() (uint32, Outcome) {
	if !d.lib.has[fnEncoder] {
		return 0, Absent
	}
	v, _, ret := d.dev.GetEncoderUtilization()
	return v, outcome(ret)
}

// Decoder is the load of the video decoders in percent, not checked.
func (d Device) Decoder() (uint32, Outcome) {
	if !d.lib.has[fnDecoder] {
		return 0, Absent
	}
	v, _, ret := d.dev.GetDecoderUtilization()
	return v, outcome(ret)
}

// Power is what the device draws, in mW; since Ampere averaged over a second.
func (d Device) Power() (uint32, Outcome) {
	if !d.lib.has[fnPower] {
		return 0, Absent
	}
	return of32(d.dev.GetPowerUsage())
}

// PowerLimit is the limit that is enforced, in mW.
func (d Device) PowerLimit() (uint32, Outcome) {
	if !d.lib.has[fnPowerLimit] {
		return 0, Absent
	}
	return of32(d.dev.GetEnforcedPowerLimit())
}

// Energy is what the device has used since the driver was loaded, in mJ.
func (d Device) Energy() (uint64, Outcome) {
	if !d.lib.has[fnEnergy] {
		return 0, Absent
	}
	return of64(d.dev.GetTotalEnergyConsumption())
}

// Temperature is that of the GPU, in degrees Celsius. R570 has another function for it, and will lose the old one.
func (d Device) Temperature() (uint32, Outcome) {
	if d.lib.has[fnTemperature] {
		return of32(d.dev.GetTemperature(nvml.TEMPERATURE_GPU))
	}
	if !d.lib.has[fnTemperature2] {
		return 0, Absent
	}
	t, ret := d.dev.GetTemperatureV().V1()
	return of32(uint32(t.Temperature), ret)
}

// Slowdown is the temperature at which the device slows down, in degrees Celsius.
func (d Device) Slowdown() (uint32, Outcome) {
	return d.threshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN)
}

// Shutdown is the temperature at which the device is switched off, in degrees Celsius.
func (d Device) Shutdown() (uint32, Outcome) {
	return d.threshold(nvml.TEMPERATURE_THRESHOLD_SHUTDOWN)
}

func (d Device) threshold(which nvml.TemperatureThresholds) (uint32, Outcome) {
	if !d.lib.has[fnThreshold] {
		return 0, Absent
	}
	return of32(d.dev.GetTemperatureThreshold(which))
}

// Clock is one of the clocks of a device.
type Clock = nvml.ClockType

// The clocks.
const (
	GraphicsClock Clock = nvml.CLOCK_GRAPHICS
	SMClock       Clock = nvml.CLOCK_SM
	MemoryClock   Clock = nvml.CLOCK_MEM
	VideoClock    Clock = nvml.CLOCK_VIDEO
)

// Clock is the frequency of a clock, in MHz.
func (d Device) Clock(which Clock) (uint32, Outcome) {
	if !d.lib.has[fnClock] {
		return 0, Absent
	}
	return of32(d.dev.GetClockInfo(which))
}

// EventReasons are the bits for why the clocks are as they are. Drivers before R535 call them throttle reasons.
func (d Device) EventReasons() (uint64, Outcome) {
	if d.lib.has[fnEventReasons] {
		return of64(d.dev.GetCurrentClocksEventReasons())
	}
	if d.lib.has[fnThrottleReasons] {
		return of64(d.dev.GetCurrentClocksThrottleReasons())
	}
	return 0, Absent
}

// SupportedEventReasons are the bits of EventReasons that the device can have.
func (d Device) SupportedEventReasons() (uint64, Outcome) {
	if d.lib.has[fnSupportedEventReasons] {
		return of64(d.dev.GetSupportedClocksEventReasons())
	}
	if d.lib.has[fnSupportedThrottleReasons] {
		return of64(d.dev.GetSupportedClocksThrottleReasons())
	}
	return 0, Absent
}

// PCIeThroughput is what goes over the bus, in kB/s. It blocks for about 20 ms: not for a scrape.
func (d Device) PCIeThroughput(transmit bool) (uint32, Outcome) {
	if !d.lib.has[fnThroughput] {
		return 0, Absent
	}
	if transmit {
		return of32(d.dev.GetPcieThroughput(nvml.PCIE_UTIL_TX_BYTES))
	}
	return of32(d.dev.GetPcieThroughput(nvml.PCIE_UTIL_RX_BYTES))
}

// ECC are the errors of memory over the life of the device.
func (d Device) ECC(uncorrected bool) (uint64, Outcome) {
	if !d.lib.has[fnECC] {
		return 0, Absent
	}
	kind := nvml.MEMORY_ERROR_TYPE_CORRECTED
	if uncorrected {
		kind = nvml.MEMORY_ERROR_TYPE_UNCORRECTED
	}
	return of64(d.dev.GetTotalEccErrors(kind, nvml.AGGREGATE_ECC))
}

// Remapped are the rows of memory that were replaced (Ampere and later; not while MIG divides the device).
type Remapped struct {
	Correctable, Uncorrectable int
	Pending, Failure           bool
}

// Remapped asks for the rows of memory that were replaced.
func (d Device) Remapped() (r Remapped, o Outcome) {
	if !d.lib.has[fnRemapped] {
		return r, Absent
	}
	var ret nvml.Return
	r.Correctable, r.Uncorrectable, r.Pending, r.Failure, ret = d.dev.GetRemappedRows()
	if o := outcome(ret); o != OK {
		return r, o
	}
	if uint32(r.Correctable) == math.MaxUint32 || uint32(r.Uncorrectable) == math.MaxUint32 {
		return Remapped{}, Blank
	}
	return r, OK
}

// RetiredPages is how many pages of memory are not used any more (before Ampere).
func (d Device) RetiredPages(doubleBit bool) (n int, o Outcome) {
	if !d.lib.has[fnRetired] {
		return 0, Absent
	}
	defer survive(&o)
	cause := nvml.PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS
	if doubleBit {
		cause = nvml.PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR
	}
	pages, ret := d.dev.GetRetiredPages(cause)
	return len(pages), outcome(ret)
}

// RetirementPending reports whether pages wait for a reset to be retired (before Ampere).
func (d Device) RetirementPending() (bool, Outcome) {
	if !d.lib.has[fnRetiredPending] {
		return false, Absent
	}
	pending, ret := d.dev.GetRetiredPagesPendingStatus()
	return pending == nvml.FEATURE_ENABLED, outcome(ret)
}

// survive makes a failure of a panic: go-nvml indexes buffers by what the driver says of them.
func survive(o *Outcome) {
	if recover() != nil {
		*o = Failed
	}
}
