// SPDX-License-Identifier: Apache-2.0

package gpu

// Snapshot is what a Source knows at a moment. It is filled anew for each reading, and keeps its memory and what it doubts.
type Snapshot struct {
	// Driver is the version of the driver, e.g. "590.48.01"; empty where it is not known.
	Driver string
	// Devices are the GPUs, each followed by its MIG instances. Every GPU that the Source has ever seen since it was opened
	// is among them, whatever its state: one that is idle, or lost, is still there. So is one that the driver counts and that
	// has never said who it is: it is Lost and has an Index, and no UUID.
	Devices []*Device
	// Refused counts what was not taken, by Reason.
	Refused [Reasons]int64

	spare  []*Device
	doubts map[string]int // readings in which the profiling of a device, by its UUID, contradicted its utilization
}

// Reset empties the snapshot for another reading.
func (s *Snapshot) Reset() {
	s.spare = append(s.spare, s.Devices...)
	s.Driver, s.Devices, s.Refused = "", s.Devices[:0], [Reasons]int64{}
}

// Add returns a new device of the snapshot. It is the snapshot's until the next Reset.
func (s *Snapshot) Add() *Device {
	var d *Device
	if n := len(s.spare); n > 0 {
		d, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		d = &Device{}
	}
	*d = Device{Minor: -1, Processes: d.Processes[:0], snapshot: s}
	s.Devices = append(s.Devices, d)
	return d
}

// Find is the device with a UUID, nil where there is none.
func (s *Snapshot) Find(uuid string) *Device {
	for _, d := range s.Devices {
		if d.UUID == uuid {
			return d
		}
	}
	return nil
}

// Refuse counts something that was not taken.
func (s *Snapshot) Refuse(why Reason) { s.Refused[why]++ }

// Reason is why a value was not taken.
type Reason uint8

const (
	// Blank is a value that stands for none: DCGM's and NVML's, such as 2⁶³−16.
	Blank Reason = iota
	// OutOfRange is a value that cannot be, such as a utilization of 4294967295 percent.
	OutOfRange
	// Failed is a call that failed with an error that is neither a missing support nor a lost device.
	Failed
	// Scrambled is an answer of processes that contradicts itself, as of a structure in another version.
	Scrambled
	// Implausible is profiling that says 0 while the device is busy.
	Implausible
	// NotOnMIG is a value that a MIG instance does not have.
	NotOnMIG
	// Stale is a value that is older than it may be, as of a host engine that has stopped watching.
	Stale
	// Reasons is how many there are.
	Reasons
)

func (r Reason) String() string {
	return [...]string{"blank", "out_of_range", "failed", "scrambled", "implausible", "not_on_mig", "stale"}[r]
}
