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

// busy is a utilization that leaves no doubt.
const busy = 0.9

// CheckProfiling takes profiling back that says 0 while the device is busy: after some Xid errors DCGM goes on with zeros
// (https://github.com/NVIDIA/DCGM/issues/303). It is false then, and Implausible is set.
func (d *Device) CheckProfiling() bool {
	if !(d.Float(Utilization) >= busy) || !d.Has(GraphicsActive) && !d.Has(SMActive) || d.Float(GraphicsActive)+d.Float(SMActive) > 0 {
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
