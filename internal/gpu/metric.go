// SPDX-License-Identifier: Apache-2.0

package gpu

// Kind is the instrument of a metric.
type Kind uint8

const (
	// Gauge is a value at a moment.
	Gauge Kind = iota
	// UpDownCounter is a value at a moment of which a sum over devices makes sense.
	UpDownCounter
	// Counter only grows, since the driver was loaded or the receiver began.
	Counter
	// StateSet has a point of 0 or 1 for each state, or is one of them.
	StateSet
)

func (k Kind) String() string {
	return [...]string{"gauge", "up-down counter", "counter", "state set"}[k]
}

// Group is what is read together, in an interval of its own: what it costs to ask.
type Group uint8

const (
	// Cheap takes microseconds a device: memory, utilization, clocks, power, counters.
	Cheap Group = iota
	// PerProcess takes as long as there are processes, and milliseconds on some drivers.
	PerProcess
	// Expensive takes milliseconds, or a measurement over a while: profiling, remapped rows, retired pages.
	Expensive
	// Groups is how many there are.
	Groups
)

func (g Group) String() string { return [...]string{"cheap", "process", "expensive"}[g] }

// Metric is a metric, of which a device has one or several points.
type Metric struct {
	Name        string
	Description string
	Unit        string // UCUM; empty of a StateSet, which Prometheus would call a ratio
	Kind        Kind
	Double      bool // values are doubles, not integers
	Group       Group
	Off         bool   // not written where the settings do not say otherwise
	Type        string // the value of hw.type on its points, where the conventions ask for it
	Attribute   string // what tells its points of one device apart; empty where there is one
	Process     bool   // its points belong to a process
}

// Names of attributes that are no convention's.
const (
	AttributeClock    = "nvidia.gpu.clock"
	AttributeThrottle = "nvidia.throttle.reason"
	AttributePolicy   = "nvidia.throttle.policy"
	AttributeXid      = "nvidia.xid.code"
	AttributeRemap    = "nvidia.remap.cause"
	AttributeRetired  = "nvidia.retirement.cause"
	// AttributeMemory says "unified" where the memory is the host's, and the values are those of /proc/meminfo.
	AttributeMemory = "nvidia.memory.type"
)

// The metrics.
var (
	memoryLimit = &Metric{Name: "hw.gpu.memory.limit", Unit: "By", Kind: UpDownCounter,
		Description: "Memory of the device."}
	memoryUsage = &Metric{Name: "hw.gpu.memory.usage", Unit: "By", Kind: UpDownCounter,
		Description: "Memory in use, without what the driver reserves for itself. A driver that cannot tell them apart (before R510) counts it in."}
	memoryUtilization = &Metric{Name: "hw.gpu.memory.utilization", Unit: "1", Kind: Gauge, Double: true,
		Description: "Usage as a fraction of the limit. It is not the load of the memory controller."}
	memoryReserved = &Metric{Name: "nvidia.gpu.memory.reserved", Unit: "By", Kind: UpDownCounter,
		Description: "Memory that driver and firmware keep for themselves, besides the usage."}
	memoryUnattributed = &Metric{Name: "nvidia.gpu.memory.unattributed", Unit: "By", Kind: UpDownCounter, Group: PerProcess,
		Description: "Memory in use that belongs to no visible process: used, minus that of the processes, minus the reserved. Never negative; absent where the memory of a process is not known."}
	utilization = &Metric{Name: "hw.gpu.utilization", Unit: "1", Kind: Gauge, Double: true, Attribute: "hw.gpu.task",
		Description: "Fraction of the time in which something ran."}
	controllerUtilization = &Metric{Name: "nvidia.gpu.memory_controller.utilization", Unit: "1", Kind: Gauge, Double: true,
		Description: "Fraction of the time in which memory was read or written."}
	io = &Metric{Name: "hw.gpu.io", Unit: "By", Kind: Counter, Attribute: "network.io.direction",
		Description: "Bytes over PCIe, from counters of the device: asking does not wait."}
	pcieThroughput = &Metric{Name: "nvidia.gpu.pcie.throughput", Unit: "By/s", Kind: Gauge, Double: true, Group: Expensive, Attribute: "network.io.direction",
		Description: "Bytes a second over PCIe, as profiling measures it."}
	nvlinkIO = &Metric{Name: "nvidia.gpu.nvlink.io", Unit: "By", Kind: Counter, Attribute: "network.io.direction",
		Description: "Bytes over all NVLinks of the device, without protocol overhead."}
	nvlinkThroughput = &Metric{Name: "nvidia.gpu.nvlink.throughput", Unit: "By/s", Kind: Gauge, Double: true, Group: Expensive, Attribute: "network.io.direction",
		Description: "Bytes a second over all NVLinks, as profiling measures it."}
	power = &Metric{Name: "hw.power", Unit: "W", Kind: Gauge, Double: true, Type: "gpu",
		Description: "Power drawn by the device and its memory. Since Ampere, averaged over a second."}
	powerLimit = &Metric{Name: "nvidia.gpu.power.limit", Unit: "W", Kind: Gauge, Double: true,
		Description: "The power limit that is enforced."}
	energy = &Metric{Name: "hw.energy", Unit: "J", Kind: Counter, Double: true, Type: "gpu",
		Description: "Energy since the driver was loaded."}
	temperature = &Metric{Name: "hw.temperature", Unit: "Cel", Kind: Gauge, Double: true, Type: "gpu", Attribute: "hw.sensor_location",
		Description: "Temperature."}
	temperatureLimit = &Metric{Name: "hw.temperature.limit", Unit: "Cel", Kind: Gauge, Double: true, Type: "gpu", Attribute: "hw.limit_type",
		Description: "Temperature at which the device slows down (throttled), and at which it is switched off (high.critical)."}
	status = &Metric{Name: "hw.status", Unit: "1", Kind: UpDownCounter, Type: "gpu", Attribute: "hw.state",
		Description: "1 for the state of the device, 0 for the others. Failed: lost, or needs a reset. Predicted failure: a row of its memory could not be remapped. Degraded: rows or pages wait for a reset, or it does not answer."}
	errorCount = &Metric{Name: "hw.errors", Unit: "{error}", Kind: Counter, Type: "gpu", Attribute: "error.type",
		Description: "ECC errors over the life of the device, and PCIe replays since the driver was loaded."}
	clock = &Metric{Name: "nvidia.gpu.clock.frequency", Unit: "Hz", Kind: Gauge, Attribute: AttributeClock,
		Description: "Clock frequency."}
	throttle = &Metric{Name: "nvidia.gpu.throttle.reason", Kind: StateSet, Attribute: AttributeThrottle,
		Description: "1 for each reason for which clocks are not at their highest right now. Several can hold at once, and idle is one."}
	throttleTime = &Metric{Name: "nvidia.gpu.throttle.duration", Unit: "s", Kind: Counter, Double: true, Attribute: AttributePolicy,
		Description: "Time for which a policy has kept the clocks down since the driver was loaded."}
	xid = &Metric{Name: "nvidia.gpu.xid", Unit: "{error}", Kind: Counter, Attribute: AttributeXid,
		Description: "Xid errors since the receiver first saw the device, by code. The codes of the driver's catalog that mean trouble stand at 0 from the start, others appear when they happen."}
	remappedRows = &Metric{Name: "nvidia.gpu.memory.remapped_rows", Unit: "{row}", Kind: Counter, Group: Expensive, Attribute: AttributeRemap,
		Description: "Rows of memory that were replaced, by what made it necessary."}
	remapPending = &Metric{Name: "nvidia.gpu.memory.remap.pending", Kind: StateSet, Group: Expensive,
		Description: "1 when rows wait for a reset to be replaced."}
	remapFailure = &Metric{Name: "nvidia.gpu.memory.remap.failure", Kind: StateSet, Group: Expensive,
		Description: "1 when a row could not be replaced."}
	retiredPages = &Metric{Name: "nvidia.gpu.memory.retired_pages", Unit: "{page}", Kind: Counter, Group: Expensive, Attribute: AttributeRetired,
		Description: "Pages of memory that are not used any more, by what made it necessary; devices before Ampere."}
	graphicsActive = profiling("nvidia.gpu.graphics.active", "Fraction of the time in which the graphics or compute engine was active.")
	smActive       = profiling("nvidia.gpu.sm.active", "Fraction of the time in which a multiprocessor had work, averaged over all.")
	smOccupancy    = profiling("nvidia.gpu.sm.occupancy", "Resident warps as a fraction of what fits, averaged over all multiprocessors.")
	tensorActive   = profiling("nvidia.gpu.tensor.active", "Fraction of the time in which the tensor pipe was active.")
	dramActive     = profiling("nvidia.gpu.dram.active", "Fraction of the memory's bandwidth that was used.")
	pipeActive     = &Metric{Name: "nvidia.gpu.pipe.active", Unit: "1", Kind: Gauge, Double: true, Group: Expensive, Off: true, Attribute: "nvidia.gpu.pipe",
		Description: "Fraction of the time in which an arithmetic pipe was active."}
	processMemory = &Metric{Name: "nvidia.gpu.process.memory.usage", Unit: "By", Kind: UpDownCounter, Group: PerProcess, Process: true,
		Description: "Memory of the device that a process holds."}
	processUtilization = &Metric{Name: "nvidia.gpu.process.utilization", Unit: "1", Kind: Gauge, Double: true, Group: PerProcess, Process: true, Attribute: "hw.gpu.task",
		Description: "Fraction of the time in which the process kept the device busy, since the last reading. Absent where the process was idle."}
)

func profiling(name, description string) *Metric {
	return &Metric{Name: name, Description: description, Unit: "1", Kind: Gauge, Double: true, Group: Expensive}
}

// Metrics is the table, in the order in which it is documented.
var Metrics = []*Metric{
	status, memoryLimit, memoryUsage, memoryUtilization, memoryReserved, memoryUnattributed,
	processMemory, processUtilization,
	utilization, controllerUtilization, graphicsActive, smActive, smOccupancy, tensorActive, dramActive, pipeActive,
	io, pcieThroughput, nvlinkIO, nvlinkThroughput,
	power, powerLimit, energy, temperature, temperatureLimit, clock, throttle, throttleTime,
	errorCount, xid, remappedRows, remapPending, remapFailure, retiredPages,
}
