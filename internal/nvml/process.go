// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// UnknownMemory is the memory of a process that the driver does not tell.
const UnknownMemory = math.MaxUint64

// NoInstance is the GPU instance and the compute instance of a process that is in none.
const NoInstance = math.MaxUint32

// Process is one that holds memory of a device.
type Process struct {
	PID                          uint32 // as the host counts
	Memory                       uint64 // bytes, or UnknownMemory
	GPUInstance, ComputeInstance uint32 // or NoInstance
}

// lists are those in which a driver tells processes. All of them have the first one. A driver or a device that does not have one
// of the others has no processes of that kind.
var lists = [...]struct {
	fn     function
	newest func(nvml.Device) ([]nvml.ProcessInfo, nvml.Return)
	second string // the symbol of its version 2
}{
	{fnCompute, nvml.Device.GetComputeRunningProcesses, "nvmlDeviceGetComputeRunningProcesses_v2"},
	{fnGraphics, nvml.Device.GetGraphicsRunningProcesses, "nvmlDeviceGetGraphicsRunningProcesses_v2"},
	{fnMPS, nvml.Device.GetMPSComputeRunningProcesses, "nvmlDeviceGetMPSComputeRunningProcesses_v2"},
}

// Processes adds to list those that compute on the device, those that draw on it, and those that use it by way of MPS: each
// once, though a process can be of several kinds. They are all of them or none: where one of the lists is not told, nothing is
// added, and the outcome is that list's. sane is false when the answer contradicts itself, as when the driver writes another
// structure than the header has: then nothing was added, since none of it can be believed.
func (d Device) Processes(list []Process) (_ []Process, sane bool, o Outcome) {
	first := len(list)
	for i := range lists {
		infos, o := d.processes(i)
		if i > 0 && (o == Unsupported || !d.lib.has[lists[i].fn]) {
			continue
		}
		if o != OK {
			return list[:first], true, o
		}
		for j := range infos {
			if !plausible(&infos[j]) {
				return list[:first], false, OK
			}
			list = add(list, first, &infos[j])
		}
	}
	return list, true, OK
}

func (d Device) processes(which int) (infos []nvml.ProcessInfo, o Outcome) {
	defer survive(&o)
	if !d.lib.has[lists[which].fn] {
		return nil, Absent
	}
	get := lists[which].newest
	if d.lib.scrambles {
		get = d.lib.second[which].get
	}
	infos, ret := get(d.dev)
	return infos, outcome(ret)
}

// add adds a process, or what another list has of it, to those from first on.
func add(list []Process, first int, info *nvml.ProcessInfo) []Process {
	for i := first; i < len(list); i++ {
		if p := &list[i]; p.PID == info.Pid && p.GPUInstance == info.GpuInstanceId && p.ComputeInstance == info.ComputeInstanceId {
			// The same memory, told twice; or unknown to one of the lists.
			if p.Memory == UnknownMemory || info.UsedGpuMemory != UnknownMemory && info.UsedGpuMemory > p.Memory {
				p.Memory = info.UsedGpuMemory
			}
			return list
		}
	}
	return append(list, Process{info.Pid, info.UsedGpuMemory, info.GpuInstanceId, info.ComputeInstanceId})
}

const (
	maxPID      = 1 << 22 // Linux gives out no higher ones
	maxInstance = 64
)

// plausible reports whether a record can be one of a process. Its memory is for who knows how much there is.
func plausible(info *nvml.ProcessInfo) bool {
	instance := func(id uint32) bool { return id < maxInstance || id == NoInstance }
	return info.Pid != 0 && info.Pid <= maxPID && instance(info.GpuInstanceId) && instance(info.ComputeInstanceId)
}

// ProcessLoad is the share of the device that a process had lately, in percent, not checked; its time is in microseconds since
// 1970.
type ProcessLoad = nvml.ProcessUtilizationSample

// ProcessLoads are the samples since a time, in microseconds since 1970. That nothing ran is no error: there are none.
func (d Device) ProcessLoads(since uint64) (loads []ProcessLoad, o Outcome) {
	if !d.lib.has[fnProcessUtilization] {
		return nil, Absent
	}
	defer survive(&o)
	loads, ret := d.dev.GetProcessUtilization(since)
	if ret == nvml.ERROR_NOT_FOUND || ret == nvml.ERROR_INSUFFICIENT_SIZE && len(loads) == 0 {
		return nil, OK
	}
	if o := outcome(ret); o != OK {
		return nil, o
	}
	return loads, OK
}
