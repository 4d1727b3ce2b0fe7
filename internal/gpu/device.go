// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"math"
	"strings"
)

// State is the state of a device.
type State uint8

const (
	// OK answers, and has nothing to complain of.
	OK State = iota
	// Degraded works, but waits for a reset, or does not answer as it should.
	Degraded
	// Lost has fallen off the bus, or needs a reset: nothing is known of it but that.
	Lost
	// PredictedFailure works still.
	PredictedFailure
	// States is how many there are.
	States
)

// String is the state as a value of hw.state.
func (s State) String() string {
	return [...]string{"ok", "degraded", "failed", "predicted_failure"}[s]
}

// Device is a GPU, or a MIG instance. Its texts and numbers are set by the Source; empty texts are not known.
type Device struct {
	UUID     string // GPU-… or MIG-…; empty of a GPU that was lost before it could be asked
	Parent   string // of a MIG instance: the UUID of its GPU
	Index    int    // of a GPU among GPUs, of a MIG instance among those of its GPU; as nvidia-smi -L counts
	Minor    int    // of /dev/nvidia<minor>; -1 is not known
	Model    string // e.g. "NVIDIA H100 80GB HBM3"
	Serial   string
	Firmware string // of the VBIOS
	PCI      string // bus id as the kernel spells it, e.g. 0000:00:09.0
	Profile  string // of a MIG instance, e.g. 1g.10gb

	// GPUInstance and ComputeInstance are the ids of a MIG instance.
	GPUInstance, ComputeInstance uint32
	// MIGEnabled says that a GPU is divided: what runs on it runs in its instances.
	MIGEnabled bool

	State State
	// Unified says that the device has no memory of its own but uses the host's: NVML answers NOT_SUPPORTED. Whoever
	// reads the snapshot asks the host.
	Unified bool
	// Shared says that a MIG instance has its memory together with others: what they use of it, it shows, too.
	Shared bool
	// Deaf says that the driver does not tell Xids of a GPU: that none was heard is no count of 0.
	Deaf bool
	// Implausible says that profiling was not believed: CheckProfiling.
	Implausible bool

	// Processes are those that the driver names. Known says that they were asked for and told: none is then none.
	Processes []Process
	Known     bool

	values   [DevicePoints]uint64
	has      Set
	snapshot *Snapshot
}

// Unknown is memory of a process that the driver does not tell.
const Unknown = math.MaxUint64

// Process is what a process does on a device. A process on several devices stands at each.
type Process struct {
	PID    uint32 // as the host counts
	Memory uint64 // bytes, or Unknown
	// Utilization since the last reading, as fractions by the tasks general, encoder, decoder; negative is not known.
	Utilization [3]float64
}

// AddProcess adds a process of which nothing is known but its id. It is the device's until the next one is added.
func (d *Device) AddProcess(pid uint32) *Process {
	d.Processes = append(d.Processes, Process{PID: pid, Memory: Unknown, Utilization: [3]float64{-1, -1, -1}})
	return &d.Processes[len(d.Processes)-1]
}

// Process is the process with an id, nil where there is none.
func (d *Device) Process(pid uint32) *Process {
	for i := range d.Processes {
		if d.Processes[i].PID == pid {
			return &d.Processes[i]
		}
	}
	return nil
}

// MIG reports whether the device is a MIG instance.
func (d *Device) MIG() bool { return d.Parent != "" }

// Set sets a point in the unit of its metric. What cannot be is not set, and counted.
func (d *Device) Set(p Point, v float64) {
	if !d.allows(p, v) {
		return
	}
	if Rows[p].Metric.Double {
		d.put(p, math.Float64bits(v))
	} else {
		d.put(p, uint64(math.Round(v)))
	}
}

// SetInt is Set for what is counted in integers: it loses nothing above 2⁵³.
func (d *Device) SetInt(p Point, v uint64) {
	if !d.allows(p, float64(v)) {
		return
	}
	if Rows[p].Metric.Double {
		d.put(p, math.Float64bits(float64(v)))
	} else {
		d.put(p, v)
	}
}

// AllThrottle are the bits of all reasons for which clocks can be down.
const AllThrottle = 1<<(ThrottleDisplay-ThrottleIdle+1) - 1

// SetThrottle sets the reasons for which clocks are down from NVML's and DCGM's bits. Those that the device does not support are
// none, and not 0.
func (d *Device) SetThrottle(bits, supported uint64) {
	for p := ThrottleIdle; p <= ThrottleDisplay; p++ {
		if at := p - ThrottleIdle; supported>>at&1 != 0 {
			d.SetInt(p, bits>>at&1)
		}
	}
}

// blankInt is the least of the integers that stand for no value.
const blankInt = 0x7ffffffffffffff0

func (d *Device) allows(p Point, v float64) bool {
	row := &Rows[p]
	switch {
	case d.MIG() && !row.MIG:
		d.Refuse(NotOnMIG)
	case math.IsNaN(v) || v < 0 || row.Max != 0 && v > row.Max:
		d.Refuse(OutOfRange)
	case v >= blankInt:
		d.Refuse(Blank)
	default:
		return true
	}
	return false
}

func (d *Device) put(p Point, bits uint64) {
	d.values[p] = bits
	d.has.Add(p)
}

// Copy sets a point as another device has it.
func (d *Device) Copy(p Point, from *Device) {
	if from.has.Has(p) {
		d.put(p, from.values[p])
	}
}

// Unset takes a value back.
func (d *Device) Unset(p Point) { d.has.Remove(p) }

// Has reports whether a point is set.
func (d *Device) Has(p Point) bool { return d.has.Has(p) }

// Float is a point whose metric is of doubles, 0 where it is not set.
func (d *Device) Float(p Point) float64 {
	if !d.has.Has(p) {
		return 0
	}
	return math.Float64frombits(d.values[p])
}

// Int is a point whose metric is of integers, 0 where it is not set.
func (d *Device) Int(p Point) uint64 {
	if !d.has.Has(p) {
		return 0
	}
	return d.values[p]
}

// Refuse counts something of the device that was not taken.
func (d *Device) Refuse(why Reason) { d.snapshot.Refuse(why) }

// KernelBus spells NVML's and DCGM's 00000000:00:09.0 as the kernel does, 0000:00:09.0; what is no address is empty.
func KernelBus(bus string) string {
	domain, rest, ok := strings.Cut(strings.ToLower(bus), ":")
	if !ok {
		return ""
	}
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	return domain + ":" + rest
}
