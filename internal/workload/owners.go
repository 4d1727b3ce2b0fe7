// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strconv"
	"strings"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Device is how a GPU or a MIG device is called.
type Device struct {
	uuid string
	node node
}

// node is the file below /dev by which GKE's device plugin and NVIDIA's DRA driver call a device: nvidia0 and gpu-0 are
// {1, 0}, nvidia0/gi1 is {1, 2}. Each number is one more than what it stands for; 0 is none.
type node struct{ minor, instance int }

// GPU is a GPU with a UUID (GPU-…) and the minor number of its file, /dev/nvidia<minor>; -1 where that is not known.
func GPU(uuid string, minor int) Device {
	return Device{uuid: uuid, node: node{minor: minor + 1}}
}

// MIG is a MIG device with a UUID (MIG-…), the minor number of its GPU and the id of its GPU instance.
func MIG(uuid string, minor, instance int) Device {
	d := GPU(uuid, minor)
	d.node.instance = instance + 1
	return d
}

// Owner is whom the kubelet has given a device to.
type Owner struct {
	// Names are those of the only pod and its only container there; Container is empty when it is several of one pod.
	Names
	// Shared says that it is several pods, of which none is named.
	Shared bool
}

const (
	// draDriver is NVIDIA's. It calls a GPU gpu-<minor number>, and a MIG device by its place on the GPU, which is not looked
	// up here.
	draDriver = "gpu.nvidia.com"
	// maxDevices is far above what a machine has: 16 GPUs of 7 MIG devices are 112.
	maxDevices = 4096
)

// owners are those of each device, by the name that the kubelet knows. It is never written to once it is made.
type owners struct {
	of map[Device]Owner // either uuid or node is set
	// asked is when the kubelet was asked, in clock ticks since boot.
	asked uint64
	// beyond counts devices that were too many.
	beyond int
}

// ownersOf reads what the kubelet has answered.
func ownersOf(pods []*podresources.PodResources, asked uint64) *owners {
	o := &owners{of: map[Device]Owner{}, asked: asked}
	for _, pod := range pods {
		for _, container := range pod.GetContainers() {
			names := Names{Namespace: pod.GetNamespace(), Pod: pod.GetName(), Container: container.GetName()}
			for _, devices := range container.GetDevices() {
				for _, id := range devices.GetDeviceIds() {
					o.add(deviceOf(id), names)
				}
			}
			for _, claim := range container.GetDynamicResources() {
				for _, resource := range claim.GetClaimResources() {
					if resource.GetDriverName() == draDriver {
						o.add(Device{node: nodeOf(resource.GetDeviceName(), "gpu-")}, names)
					}
				}
			}
		}
	}
	return o
}

// deviceOf returns the device itself of an id that may stand for a share of it: GPU-…::0 of time-slicing and MPS,
// nvidia0/vgpu1 at GKE. What is no GPU gives none.
func deviceOf(id string) Device {
	id, _, _ = strings.Cut(id, "::")
	if strings.HasPrefix(id, "GPU-") || strings.HasPrefix(id, "MIG-") {
		return Device{uuid: id}
	}
	id, _, _ = strings.Cut(id, "/vgpu")
	return Device{node: nodeOf(id, "nvidia")}
}

// nodeOf reads <prefix><minor> and <prefix><minor>/gi<instance>.
func nodeOf(id, prefix string) node {
	number, isNode := strings.CutPrefix(id, prefix)
	number, part, divided := strings.Cut(number, "/gi")
	minor, err := strconv.ParseUint(number, 10, 16)
	if !isNode || err != nil {
		return node{}
	}
	if !divided {
		return node{minor: int(minor) + 1}
	}
	instance, err := strconv.ParseUint(part, 10, 16)
	if err != nil {
		return node{}
	}
	return node{int(minor) + 1, int(instance) + 1}
}

func (o *owners) add(device Device, names Names) {
	if device == (Device{}) {
		return
	}
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
	if owner, ok := o.of[Device{uuid: device.uuid}]; ok {
		return owner, true
	}
	if device.node.minor == 0 {
		return Owner{}, false
	}
	owner, ok := o.of[Device{node: device.node}]
	return owner, ok
}
