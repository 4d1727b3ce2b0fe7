// SPDX-License-Identifier: Apache-2.0

package gpu

// Derive sets what follows from what was read: the fraction of memory that is used, and the memory that nobody accounts for;
// and takes back what contradicts itself, such as more memory in use than there is.
func (s *Snapshot) Derive() {
	for i, d := range s.Devices {
		d.CheckProfiling()
		limit := d.Int(MemoryLimit)
		if limit == 0 || !d.Has(MemoryUsage) {
			continue
		}
		used := d.Int(MemoryUsage)
		if used > limit {
			d.Unset(MemoryUsage)
			d.Refuse(OutOfRange)
			continue
		}
		d.Set(MemoryUtilization, float64(used)/float64(limit))
		if d.Unified || d.Shared {
			continue // the memory is the host's, or others', and so is who uses it
		}
		held, known := d.held()
		if d.MIGEnabled {
			for _, part := range s.Instances(i) {
				inside, told := part.held()
				held, known = held+inside, known && told
			}
		}
		if known {
			d.SetInt(MemoryUnattributed, used-min(held, used))
		}
	}
}

// held is the memory of the processes on a device, and whether all of it is known. Of a GPU that is divided, the processes
// stand at its instances.
func (d *Device) held() (sum uint64, known bool) {
	for i := range d.Processes {
		if d.Processes[i].Memory == Unknown {
			return 0, false
		}
		sum += d.Processes[i].Memory
	}
	return sum, d.Known
}

// Instances are the MIG instances of the device at a place.
func (s *Snapshot) Instances(at int) []*Device {
	first := at + 1
	last := first
	for last < len(s.Devices) && s.Devices[last].MIG() && s.Devices[last].Parent == s.Devices[at].UUID {
		last++
	}
	return s.Devices[first:last]
}

const (
	// busy is a utilization that leaves no doubt.
	busy = 0.9
	// contradictions is in how many readings profiling has to say 0 of a busy device, one after the other, to be doubted. One is
	// nothing: work has just begun, and profiling is of the time before, or a value of DCGM's is as old as its interval.
	contradictions = 3
	// maxDoubted is how many devices can be doubted at once.
	maxDoubted = 1024
)

// CheckProfiling takes profiling back that says 0 again and again while the device is busy: after some Xid errors DCGM goes on
// with zeros (https://github.com/NVIDIA/DCGM/issues/303). It is false then, and Implausible is set, until profiling says more
// or the device is idle. It is for once a reading.
func (d *Device) CheckProfiling() bool {
	if !d.Has(GraphicsActive) && !d.Has(SMActive) {
		return true
	}
	if d.snapshot.contradicted(d) < contradictions {
		return true
	}
	for p := range DevicePoints {
		if Profiled.Has(p) && d.Has(p) {
			d.Unset(p)
			d.Refuse(Implausible)
		}
	}
	d.Implausible = true
	return false
}

// contradicted is in how many readings, this one included, the profiling of a device has contradicted its utilization.
func (s *Snapshot) contradicted(d *Device) int {
	switch load := d.Float(Utilization); {
	case d.Float(GraphicsActive)+d.Float(SMActive) > 0, d.Has(Utilization) && load == 0:
		delete(s.doubts, d.UUID)
	case load >= busy && len(s.doubts) < maxDoubted:
		if s.doubts == nil {
			s.doubts = map[string]int{}
		}
		s.doubts[d.UUID]++
	}
	return s.doubts[d.UUID]
}
