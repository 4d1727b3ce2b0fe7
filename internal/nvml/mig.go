// SPDX-License-Identifier: Apache-2.0

package nvml

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// MIGEnabled reports whether the GPU is divided into instances now.
func (d Device) MIGEnabled() (bool, Outcome) {
	if !d.lib.has[fnMIGMode] || !d.lib.has[fnMaxMIG] || !d.lib.has[fnMIGHandle] {
		return false, Absent
	}
	current, _, ret := d.dev.GetMigMode()
	return current == nvml.DEVICE_MIG_ENABLE, outcome(ret)
}

// MaxInstances is how many instances the GPU can have: their indices are below it, with gaps.
func (d Device) MaxInstances() (int, Outcome) {
	if !d.lib.has[fnMaxMIG] {
		return 0, Absent
	}
	n, ret := d.dev.GetMaxMigDeviceCount()
	return n, outcome(ret)
}

// Instance is the instance with an index, Absent where there is none. Its handle can be another instance's later.
func (d Device) Instance(index int) (Device, Outcome) {
	if !d.lib.has[fnMIGHandle] {
		return Device{}, Absent
	}
	instance, ret := d.dev.GetMigDeviceHandleByIndex(index)
	return Device{d.lib, instance}, outcome(ret)
}

// InstanceIDs are the ids of an instance within its GPU; NoInstance, both, where one of them is not told.
func (d Device) InstanceIDs() (gpu, compute uint32, o Outcome) {
	if !d.lib.has[fnGPUInstance] || !d.lib.has[fnComputeInstance] {
		return NoInstance, NoInstance, Absent
	}
	g, ret := d.dev.GetGpuInstanceId()
	if o := outcome(ret); o != OK {
		return NoInstance, NoInstance, o
	}
	c, ret := d.dev.GetComputeInstanceId()
	if o := outcome(ret); o != OK {
		return NoInstance, NoInstance, o
	}
	return uint32(g), uint32(c), OK
}
