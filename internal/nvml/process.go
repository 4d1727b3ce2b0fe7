// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"math"
	"strconv"
	"strings"

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

// Processes adds to list those that compute on the device, those that draw on it, and those that use it by way of MPS: each
// once, though a process can be of several kinds. ok is false when the answer contradicts itself, as when the driver writes
// another structure than the header has: then nothing was added, since none of it can be believed.
func (d Device) Processes(list []Process, total uint64) (_ []Process, ok bool, o Outcome) {
	if d.lib.scrambles {
		return list, false, OK
	}
	first := len(list)
	found := Absent
	for _, kind := range [...]struct {
		fn  function
		get func(nvml.Device) ([]nvml.ProcessInfo, nvml.Return)
	}{
		{fnCompute, nvml.Device.GetComputeRunningProcesses},
		{fnGraphics, nvml.Device.GetGraphicsRunningProcesses},
		{fnMPS, nvml.Device.GetMPSComputeRunningProcesses},
	} {
		if !d.lib.has[kind.fn] {
			continue
		}
		infos, o := d.processes(kind.get)
		switch o {
		case OK:
			found = OK
		case Unsupported, Absent:
			continue
		default:
			return list[:first], true, o
		}
		for i := range infos {
			if !plausible(&infos[i], total) {
				return list[:first], false, OK
			}
			list = add(list, first, &infos[i])
		}
	}
	return list, true, found
}

func (d Device) processes(get func(nvml.Device) ([]nvml.ProcessInfo, nvml.Return)) (infos []nvml.ProcessInfo, o Outcome) {
	defer survive(&o)
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

// plausible reports whether a record can be one of a process. total is the memory of the device, 0 where it is not known.
func plausible(info *nvml.ProcessInfo, total uint64) bool {
	instance := func(id uint32) bool { return id < maxInstance || id == NoInstance }
	memory := info.UsedGpuMemory == UnknownMemory || total == 0 || info.UsedGpuMemory <= total
	return info.Pid != 0 && info.Pid <= maxPID && memory && instance(info.GpuInstanceId) && instance(info.ComputeInstanceId)
}

// scramblesProcesses reports whether a driver is one of those that write records of processes longer than the header has,
// beyond the memory that they were given: 535.43 to 535.86. It must not be asked.
func scramblesProcesses(driver string) bool {
	major, rest, _ := strings.Cut(driver, ".")
	minor, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(minor)
	return major == "535" && err == nil && n >= 43 && n < 98
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
