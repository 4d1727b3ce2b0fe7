// SPDX-License-Identifier: Apache-2.0

package gpu

import "math"

// Point is one value that a device or a process can have: a place in Rows.
type Point uint8

// The points of a device. Units are those of the metrics: bytes, hertz, watts, joules, degrees Celsius, seconds, fractions.
const (
	MemoryLimit Point = iota
	MemoryUsage       // without MemoryReserved where that is set
	MemoryReserved
	MemoryUtilization  // derived
	MemoryUnattributed // derived
	Utilization
	EncoderUtilization
	DecoderUtilization
	ControllerUtilization
	PCIeReceived
	PCIeTransmitted
	PCIeReceiveRate
	PCIeTransmitRate
	NVLinkReceived
	NVLinkTransmitted
	NVLinkReceiveRate
	NVLinkTransmitRate
	Power
	PowerLimit
	Energy
	Temperature
	MemoryTemperature
	SlowdownTemperature
	ShutdownTemperature
	ECCCorrected
	ECCUncorrected
	PCIeReplays
	GraphicsClock
	SMClock
	MemoryClock
	VideoClock
	// The reasons stand in the order of the bits of NVML and DCGM: Device.SetThrottle.
	ThrottleIdle
	ThrottleApplicationClocks
	ThrottleSoftwarePower
	ThrottleHardware
	ThrottleSyncBoost
	ThrottleSoftwareThermal
	ThrottleHardwareThermal
	ThrottlePowerBrake
	ThrottleDisplay
	PowerViolation
	ThermalViolation
	SyncBoostViolation
	BoardLimitViolation
	LowUtilizationViolation
	ReliabilityViolation
	ApplicationClocksViolation
	BaseClocksViolation
	SoftwareThermalViolation
	HardwareThermalViolation
	PowerBrakeViolation
	RemappedCorrectable
	RemappedUncorrectable
	RemapPending
	RemapFailure
	RetiredSingleBit
	RetiredDoubleBit
	GraphicsActive
	SMActive
	SMOccupancy
	TensorActive
	DRAMActive
	FP64Active
	FP32Active
	FP16Active
	DevicePoints // how many a device has: those that follow are no values of it

	// A state, and counts that the receiver keeps.
	StatusPoint Point = iota - 1
	XidPoint
	// Of a process.
	ProcessMemory
	ProcessUtilization
	ProcessEncoderUtilization
	ProcessDecoderUtilization
	// Points is how many there are.
	Points
)

// Field is where DCGM or GPM has a value, and what makes the metric's unit of it. The zero Field is nowhere.
type Field struct {
	ID    uint16
	Scale float64
}

// In is a value of the field in the unit of the metric.
func (f Field) In(v float64) float64 { return Scaled(v, f.Scale) }

// Scaled is a value times a scale, such as 0.01 for a percentage. It divides where that is exact: 57 × 0.01 is not 0.57.
func Scaled(v, scale float64) float64 {
	if scale < 1 {
		return v / math.Round(1/scale)
	}
	return v * scale
}

// Row is what the table says of a point.
type Row struct {
	Metric *Metric
	Value  string  // of the metric's attribute
	Max    float64 // what is above it is not believed; 0 has no limit
	MIG    bool    // a MIG instance can have it, too
	NVML   string  // what is asked of NVML; empty where it cannot tell
	DCGM   Field   // a field identifier of DCGM
	GPM    Field   // a metric of NVML's GPU performance monitoring
	Needs  string  // what a device must be to have it
}

const (
	mebi    = 1 << 20
	percent = 0.01
	milli   = 0.001
	mega    = 1e6
	nano    = 1e-9
	// A believable rate is below any link there is, a temperature below what melts solder.
	maxRate        = 100e12
	maxTemperature = 250
	maxPower       = 100_000
	maxClock       = 100e9
	maxMemory      = 1 << 50
)

// Rows is the table by points.
var Rows = [Points]Row{
	MemoryLimit:           {Metric: memoryLimit, Max: maxMemory, MIG: true, NVML: "GetMemoryInfo_v2", DCGM: Field{250, mebi}},
	MemoryUsage:           {Metric: memoryUsage, Max: maxMemory, MIG: true, NVML: "GetMemoryInfo_v2", DCGM: Field{252, mebi}},
	MemoryReserved:        {Metric: memoryReserved, Max: maxMemory, MIG: true, NVML: "GetMemoryInfo_v2", DCGM: Field{253, mebi}, Needs: "driver R510"},
	MemoryUtilization:     {Metric: memoryUtilization, Max: 1, MIG: true, NVML: "GetMemoryInfo_v2", DCGM: Field{252, mebi}},
	MemoryUnattributed:    {Metric: memoryUnattributed, Max: maxMemory, MIG: true, NVML: "memory and processes", Needs: "dedicated memory"},
	Utilization:           {Metric: utilization, Value: "general", Max: 1, NVML: "GetUtilizationRates", DCGM: Field{203, percent}},
	EncoderUtilization:    {Metric: utilization, Value: "encoder", Max: 1, NVML: "GetEncoderUtilization", DCGM: Field{206, percent}, Needs: "an encoder"},
	DecoderUtilization:    {Metric: utilization, Value: "decoder", Max: 1, NVML: "GetDecoderUtilization", DCGM: Field{207, percent}, Needs: "a decoder"},
	ControllerUtilization: {Metric: controllerUtilization, Max: 1, NVML: "GetUtilizationRates", DCGM: Field{204, percent}},
	PCIeReceived:          {Metric: io, Value: "receive", NVML: "field 198", Needs: "byte counters (Hopper)"},
	PCIeTransmitted:       {Metric: io, Value: "transmit", NVML: "field 197", Needs: "byte counters (Hopper)"},
	PCIeReceiveRate:       {Metric: pcieThroughput, Value: "receive", Max: maxRate, DCGM: Field{1010, 1}, GPM: Field{21, mebi}, Needs: "profiling"},
	PCIeTransmitRate:      {Metric: pcieThroughput, Value: "transmit", Max: maxRate, DCGM: Field{1009, 1}, GPM: Field{20, mebi}, Needs: "profiling"},
	NVLinkReceived:        {Metric: nvlinkIO, Value: "receive", NVML: "field 139, 204", Needs: "NVLink"},
	NVLinkTransmitted:     {Metric: nvlinkIO, Value: "transmit", NVML: "field 138, 202", Needs: "NVLink"},
	NVLinkReceiveRate:     {Metric: nvlinkThroughput, Value: "receive", Max: maxRate, DCGM: Field{1012, 1}, GPM: Field{60, mebi}, Needs: "NVLink, profiling"},
	NVLinkTransmitRate:    {Metric: nvlinkThroughput, Value: "transmit", Max: maxRate, DCGM: Field{1011, 1}, GPM: Field{61, mebi}, Needs: "NVLink, profiling"},
	Power:                 {Metric: power, Max: maxPower, NVML: "GetPowerUsage", DCGM: Field{155, 1}},
	PowerLimit:            {Metric: powerLimit, Max: maxPower, NVML: "GetEnforcedPowerLimit", DCGM: Field{164, 1}},
	Energy:                {Metric: energy, NVML: "GetTotalEnergyConsumption", DCGM: Field{156, milli}, Needs: "Volta"},
	Temperature:           {Metric: temperature, Value: "gpu", Max: maxTemperature, NVML: "GetTemperature", DCGM: Field{150, 1}},
	MemoryTemperature:     {Metric: temperature, Value: "memory", Max: maxTemperature, NVML: "field 82", DCGM: Field{140, 1}, Needs: "HBM"},
	SlowdownTemperature:   {Metric: temperatureLimit, Value: "throttled", Max: maxTemperature, NVML: "GetTemperatureThreshold", DCGM: Field{158, 1}},
	ShutdownTemperature:   {Metric: temperatureLimit, Value: "high.critical", Max: maxTemperature, NVML: "GetTemperatureThreshold", DCGM: Field{159, 1}},
	ECCCorrected:          {Metric: errorCount, Value: "ecc_corrected", NVML: "GetTotalEccErrors", DCGM: Field{312, 1}, Needs: "ECC"},
	ECCUncorrected:        {Metric: errorCount, Value: "ecc_uncorrected", NVML: "GetTotalEccErrors", DCGM: Field{313, 1}, Needs: "ECC"},
	PCIeReplays:           {Metric: errorCount, Value: "pcie_replay", NVML: "field 94", DCGM: Field{202, 1}},
	GraphicsClock:         {Metric: clock, Value: "graphics", Max: maxClock, NVML: "GetClockInfo"},
	SMClock:               {Metric: clock, Value: "sm", Max: maxClock, NVML: "GetClockInfo", DCGM: Field{100, mega}},
	MemoryClock:           {Metric: clock, Value: "memory", Max: maxClock, NVML: "GetClockInfo", DCGM: Field{101, mega}},
	VideoClock:            {Metric: clock, Value: "video", Max: maxClock, NVML: "GetClockInfo", DCGM: Field{102, mega}},

	ThrottleIdle:              throttled("idle"),
	ThrottleApplicationClocks: throttled("application_clocks"),
	ThrottleSoftwarePower:     throttled("sw_power_cap"),
	ThrottleHardware:          throttled("hw_slowdown"),
	ThrottleSyncBoost:         throttled("sync_boost"),
	ThrottleSoftwareThermal:   throttled("sw_thermal_slowdown"),
	ThrottleHardwareThermal:   throttled("hw_thermal_slowdown"),
	ThrottlePowerBrake:        throttled("hw_power_brake_slowdown"),
	ThrottleDisplay:           throttled("display_clocks"),

	PowerViolation:             {Metric: throttleTime, Value: "power", NVML: "field 74", DCGM: Field{240, nano}},
	ThermalViolation:           {Metric: throttleTime, Value: "thermal", NVML: "field 75", DCGM: Field{241, nano}},
	SyncBoostViolation:         {Metric: throttleTime, Value: "sync_boost", NVML: "field 76", DCGM: Field{242, nano}},
	BoardLimitViolation:        {Metric: throttleTime, Value: "board_limit", NVML: "field 77", DCGM: Field{243, nano}},
	LowUtilizationViolation:    {Metric: throttleTime, Value: "low_utilization", NVML: "field 78", DCGM: Field{244, nano}},
	ReliabilityViolation:       {Metric: throttleTime, Value: "reliability", NVML: "field 79", DCGM: Field{245, nano}},
	ApplicationClocksViolation: {Metric: throttleTime, Value: "application_clocks", NVML: "field 80", DCGM: Field{246, nano}},
	BaseClocksViolation:        {Metric: throttleTime, Value: "base_clocks", NVML: "field 81", DCGM: Field{247, nano}},

	SoftwareThermalViolation: {Metric: throttleTime, Value: "sw_thermal_slowdown", NVML: "field 269", Needs: "driver R570"},
	HardwareThermalViolation: {Metric: throttleTime, Value: "hw_thermal_slowdown", NVML: "field 270", Needs: "driver R570"},
	PowerBrakeViolation:      {Metric: throttleTime, Value: "hw_power_brake_slowdown", NVML: "field 271", Needs: "driver R570"},

	RemappedCorrectable:   {Metric: remappedRows, Value: "correctable", NVML: "GetRemappedRows", DCGM: Field{394, 1}, Needs: "Ampere, MIG off"},
	RemappedUncorrectable: {Metric: remappedRows, Value: "uncorrectable", NVML: "GetRemappedRows", DCGM: Field{393, 1}, Needs: "Ampere, MIG off"},
	RemapPending:          {Metric: remapPending, Max: 1, NVML: "GetRemappedRows", DCGM: Field{396, 1}, Needs: "Ampere, MIG off"},
	RemapFailure:          {Metric: remapFailure, Max: 1, NVML: "GetRemappedRows", DCGM: Field{395, 1}, Needs: "Ampere, MIG off"},
	RetiredSingleBit:      {Metric: retiredPages, Value: "single_bit", NVML: "GetRetiredPages", DCGM: Field{390, 1}, Needs: "Volta or older, ECC"},
	RetiredDoubleBit:      {Metric: retiredPages, Value: "double_bit", NVML: "GetRetiredPages", DCGM: Field{391, 1}, Needs: "Volta or older, ECC"},

	GraphicsActive: profiled(graphicsActive, "", 1001, 1),
	SMActive:       profiled(smActive, "", 1002, 2),
	SMOccupancy:    profiled(smOccupancy, "", 1003, 3),
	TensorActive:   profiled(tensorActive, "", 1004, 5),
	DRAMActive:     profiled(dramActive, "", 1005, 10),
	FP64Active:     profiled(pipeActive, "fp64", 1006, 11),
	FP32Active:     profiled(pipeActive, "fp32", 1007, 12),
	FP16Active:     profiled(pipeActive, "fp16", 1008, 13),

	StatusPoint: {Metric: status, MIG: true, NVML: "every call", DCGM: Field{230, 1}},
	XidPoint:    {Metric: xid, NVML: "events", DCGM: Field{230, 1}},

	ProcessMemory:             {Metric: processMemory, Max: maxMemory, MIG: true, NVML: "Get{Compute,Graphics}RunningProcesses"},
	ProcessUtilization:        {Metric: processUtilization, Value: "general", Max: 1, NVML: "GetProcessUtilization", Needs: "Maxwell, MIG off"},
	ProcessEncoderUtilization: {Metric: processUtilization, Value: "encoder", Max: 1, NVML: "GetProcessUtilization", Needs: "Maxwell, MIG off"},
	ProcessDecoderUtilization: {Metric: processUtilization, Value: "decoder", Max: 1, NVML: "GetProcessUtilization", Needs: "Maxwell, MIG off"},
}

func throttled(reason string) Row {
	return Row{Metric: throttle, Value: reason, Max: 1, NVML: "GetCurrentClocksEventReasons", DCGM: Field{112, 1}}
}

// profiled is a fraction of DCGM's profiling, which has it as such, and of GPM, which has it in percent.
func profiled(m *Metric, value string, dcgm, gpm uint16) Row {
	return Row{Metric: m, Value: value, Max: 1, MIG: true, DCGM: Field{dcgm, 1}, GPM: Field{gpm, percent}, Needs: "DCGM, or GPM (Hopper)"}
}

// Set is a set of points.
type Set [2]uint64

// Add adds points.
func (s *Set) Add(points ...Point) {
	for _, p := range points {
		s[p/64] |= 1 << (p % 64)
	}
}

// Remove takes points out.
func (s *Set) Remove(points ...Point) {
	for _, p := range points {
		s[p/64] &^= 1 << (p % 64)
	}
}

// Has reports whether a point is in the set.
func (s *Set) Has(p Point) bool { return s[p/64]&(1<<(p%64)) != 0 }

// Any reports whether one of the points is in the set: whether a call that tells them is worth it.
func (s *Set) Any(points ...Point) bool {
	for _, p := range points {
		if s.Has(p) {
			return true
		}
	}
	return false
}

// Union adds another set.
func (s *Set) Union(other *Set) {
	s[0] |= other[0]
	s[1] |= other[1]
}

// Minus takes another set out.
func (s *Set) Minus(other *Set) {
	s[0] &^= other[0]
	s[1] &^= other[1]
}

// Empty reports whether there is nothing in it.
func (s *Set) Empty() bool { return s[0]|s[1] == 0 }

// Profiled are the points that only profiling tells: DCGM's, or GPM's.
var Profiled = func() (s Set) {
	for p := range Points {
		if Rows[p].GPM.ID != 0 {
			s.Add(p)
		}
	}
	return s
}()
