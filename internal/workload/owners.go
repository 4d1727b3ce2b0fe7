// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Device is how a GPU or a MIG device is called.
type Device struct {
	// UUID is GPU-… or MIG-….
	UUID string
	// Aliases are what else the kubelet may know it by: nvidia0 and nvidia0/gi1 (GKE's device plugin, by the number of
	// the file below /dev and the GPU instance), gpu-0 (NVIDIA's DRA driver). Nil where that is not known.
	Aliases []string
}

// Owner is whom the kubelet has given a device to.
type Owner struct {
	// Names are those of the only pod and its only container there; Container is empty when it is several of one pod.
	Names
	// Shared says that it is several pods, of which none is named.
	Shared bool
}

const (
	// draDriver is NVIDIA's, whose GPUs are called gpu-<minor number>.
	draDriver = "gpu.nvidia.com"
	// maxDevices is far above what a machine has: 16 GPUs of 7 MIG devices are 112.
	maxDevices = 4096
)

// owners are those of each device, by the name that the kubelet uses. It is never written to once it is made.
type owners struct {
	of map[string]Owner
	// given is the other way round: the only device of each container; empty where it has several.
	given map[Names]string
	// asked is when the kubelet was asked, in clock ticks since boot.
	asked uint64
	// beyond counts devices that were too many.
	beyond int
}

// ownersOf reads what the kubelet has answered.
func ownersOf(pods []*podresources.PodResources, asked uint64) *owners {
	o := &owners{of: map[string]Owner{}, given: map[Names]string{}, asked: asked}
	for _, pod := range pods {
		for _, container := range pod.GetContainers() {
			names := Names{Namespace: pod.GetNamespace(), Pod: pod.GetName(), Container: container.GetName()}
			for _, devices := range container.GetDevices() {
				for _, id := range devices.GetDeviceIds() {
					o.add(deviceName(id), names)
				}
			}
			for _, claim := range container.GetDynamicResources() {
				for _, resource := range claim.GetClaimResources() {
					if resource.GetDriverName() == draDriver {
						o.add(resource.GetDeviceName(), names)
					}
				}
			}
		}
	}
	return o
}

// deviceName returns how the device itself is called, without what marks a share of it: GPU-…::0 of time-slicing and
// MPS, nvidia0/vgpu1 at GKE. What is no GPU gives the empty string.
func deviceName(id string) string {
	id, _, _ = strings.Cut(id, "::")
	id, _, _ = strings.Cut(id, "/vgpu")
	for _, prefix := range []string{"GPU-", "MIG-", "nvidia"} {
		if strings.HasPrefix(id, prefix) {
			return id
		}
	}
	return ""
}

func (o *owners) add(device string, names Names) {
	if device == "" {
		return
	}
	o.give(device, names)
	owner, known := o.of[device]
	switch {
	case !known && len(o.of) >= maxDevices:
		o.beyond++
		return
	case !known:
		owner.Names = names
	case owner.Shared:
	case owner.Namespace != names.Namespace || owner.Pod != names.Pod:
		owner = Owner{Shared: true}
	case owner.Container != names.Container:
		owner.Container = ""
	}
	o.of[device] = owner
}

// owner returns the owner of a device, whichever of its names the kubelet uses.
func (o *owners) owner(device Device) (Owner, bool) {
	if owner, ok := o.of[device.UUID]; ok {
		return owner, true
	}
	for _, alias := range device.Aliases {
		if owner, ok := o.of[alias]; ok {
			return owner, true
		}
	}
	return Owner{}, false
}
