// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	"pgregory.net/rapid"

	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
)

const (
	gpu0 = "GPU-96fde4d6-9a69-bfd8-bf26-ee1bf6b35ba1"
	gpu1 = "GPU-20c56d28-0da5-6d26-a36a-e7af1ce2586e"
	mig0 = "MIG-1f0b7cd5-cb0d-5e1d-9f4a-0f3a6f1b8f0c"
)

var (
	holds     = workloadtest.Holds
	container = workloadtest.Container
	claim     = workloadtest.Claim
)

func TestADeviceBelongsToTheOnlyPodThatHoldsIt(t *testing.T) {
	f := func(name string, device Device, want Owner, pods ...*podresources.PodResources) {
		t.Helper()
		got, ok := ownersOf(pods, 1).owner(device)
		assert.Equal(t, want, got, name)
		assert.Equal(t, want != Owner{}, ok, name)
	}
	of := func(pod, container string) Owner {
		return Owner{Names: Names{Namespace: "llm", Pod: pod, Container: container}}
	}
	shared := Owner{Shared: true}

	f("a GPU", Device{UUID: gpu0}, of("chat-0", "vllm"), holds("chat-0", container("vllm", gpu0, gpu1)))
	f("another one of the pod", Device{UUID: gpu1}, of("chat-0", "vllm"), holds("chat-0", container("vllm", gpu0, gpu1)))
	f("a MIG device", Device{UUID: mig0}, of("chat-0", "vllm"), holds("chat-0", container("vllm", mig0)))
	f("held by nobody", Device{UUID: gpu1}, Owner{}, holds("chat-0", container("vllm", gpu0)))
	f("no pods", Device{UUID: gpu1}, Owner{})

	// dcgm-exporter#587, #582: a GPU that is shared is nobody's.
	f("time-slicing", Device{UUID: gpu0}, shared, holds("chat-0", container("vllm", gpu0+"::0")), holds("chat-1", container("vllm", gpu0+"::1")))
	f("three pods", Device{UUID: gpu0}, shared, holds("a", container("c", gpu0+"::0")), holds("b", container("c", gpu0+"::1")), holds("a", container("c", gpu0+"::2")))
	f("the only one of a shared GPU", Device{UUID: gpu0}, of("chat-0", "vllm"), holds("chat-0", container("vllm", gpu0+"::0")))
	f("two shares of one pod", Device{UUID: gpu0}, of("chat-0", "vllm"), holds("chat-0", container("vllm", gpu0+"::0", gpu0+"::3")))
	f("a shared MIG device", Device{UUID: mig0}, shared, holds("chat-0", container("vllm", mig0+"::0")), holds("chat-1", container("vllm", mig0+"::1")))
	f("two containers of one pod", Device{UUID: gpu0}, of("chat-0", ""), holds("chat-0", container("vllm", gpu0+"::0"), container("lora", gpu0+"::1")))
	f("pods of one name in two namespaces", Device{UUID: gpu0}, shared, holds("chat-0", container("vllm", gpu0+"::0")),
		&podresources.PodResources{Namespace: "beta", Name: "chat-0", Containers: []*podresources.ContainerResources{container("vllm", gpu0+"::1")}})

	// GKE's device plugin.
	f("by number", Device{UUID: gpu0, Aliases: []string{"nvidia0", "gpu-0"}}, of("chat-0", "vllm"), holds("chat-0", container("vllm", "nvidia0")))
	f("a GPU instance", Device{UUID: mig0, Aliases: []string{"nvidia0/gi1"}}, of("chat-0", "vllm"), holds("chat-0", container("vllm", "nvidia0/gi1")))
	f("an instance is not its GPU", Device{UUID: gpu0, Aliases: []string{"nvidia0", "gpu-0"}}, Owner{}, holds("chat-0", container("vllm", "nvidia0/gi1")))
	f("nor another instance", Device{UUID: mig0, Aliases: []string{"nvidia0/gi2"}}, Owner{}, holds("chat-0", container("vllm", "nvidia0/gi1")))
	f("an unknown number is not the first", Device{UUID: gpu0}, Owner{}, holds("chat-0", container("vllm", "nvidia0")))
	f("no number", Device{UUID: gpu0, Aliases: []string{"nvidia0", "gpu-0"}}, Owner{}, holds("chat-0", container("vllm", "nvidia", "nvidia-1", "nvidia0/gi", "nvidia0/gix", "nvidiactl", "")))
	f("a virtual share", Device{UUID: gpu0, Aliases: []string{"nvidia0", "gpu-0"}}, shared, holds("chat-0", container("vllm", "nvidia0/vgpu0")), holds("chat-1", container("vllm", "nvidia0/vgpu1")))

	// Dynamic resource allocation.
	f("a claim", Device{UUID: gpu0, Aliases: []string{"nvidia0", "gpu-0"}}, of("chat-0", "vllm"), holds("chat-0", claim("vllm", "gpu.nvidia.com", "gpu-0")))
	f("a claim of two pods", Device{UUID: gpu0, Aliases: []string{"nvidia0", "gpu-0"}}, shared, holds("chat-0", claim("vllm", "gpu.nvidia.com", "gpu-0")), holds("chat-1", claim("vllm", "gpu.nvidia.com", "gpu-0")))
	f("a MIG device of a claim", Device{UUID: gpu0, Aliases: []string{"nvidia0", "gpu-0"}}, Owner{}, holds("chat-0", claim("vllm", "gpu.nvidia.com", "gpu-0-mig-1g.10gb-19-0")))
	f("another driver's", Device{UUID: gpu0, Aliases: []string{"nvidia0", "gpu-0"}}, Owner{}, holds("chat-0", claim("vllm", "gpu.example.com", "gpu-0")))

	f("no GPU", Device{UUID: "0000:3b:00.0"}, Owner{}, holds("net-0", container("dpdk", "0000:3b:00.0")))
}

// Guarantees: in whatever order the kubelet tells its pods, a device that two pods hold is shared, one that one pod holds is
// that pod's, and the container is named if it is the only one.
func TestTheOrderOfPodsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gpus := []string{"GPU-a", "GPU-b", "GPU-c"}
		type holding struct{ pod, container, gpu string }
		held := rapid.SliceOf(rapid.Custom(func(t *rapid.T) holding {
			return holding{rapid.SampledFrom([]string{"p", "q"}).Draw(t, "pod"), rapid.SampledFrom([]string{"c", "d"}).Draw(t, "container"),
				rapid.SampledFrom(gpus).Draw(t, "gpu")}
		})).Draw(t, "held")
		answer := func(all []holding) (pods []*podresources.PodResources) {
			for i, h := range all {
				pods = append(pods, holds(h.pod, container(h.container, fmt.Sprintf("%s::%d", h.gpu, i))))
			}
			return pods
		}
		one, other := ownersOf(answer(held), 1), ownersOf(answer(rapid.Permutation(held).Draw(t, "order")), 1)
		assert.Equal(t, one.of, other.of)
		for _, gpu := range gpus {
			pods, containers := map[string]bool{}, map[string]bool{}
			for _, h := range held {
				if h.gpu == gpu {
					pods[h.pod], containers[h.container] = true, true
				}
			}
			owner, ok := one.owner(Device{UUID: gpu})
			assert.Equal(t, len(pods) > 0, ok)
			assert.Equal(t, len(pods) > 1, owner.Shared)
			assert.Equal(t, len(pods) == 1, owner.Pod != "")
			assert.Equal(t, len(pods) == 1 && len(containers) == 1, owner.Container != "")
		}
	})
}

func TestDevicesAreLimited(t *testing.T) {
	var ids []string
	for i := range maxDevices + 10 {
		ids = append(ids, fmt.Sprintf("GPU-%d", i))
	}
	o := ownersOf([]*podresources.PodResources{holds("chat-0", container("vllm", ids...))}, 1)
	assert.Len(t, o.of, maxDevices)
	assert.Equal(t, 10, o.beyond)
	_, ok := o.owner(Device{UUID: "GPU-0"})
	assert.True(t, ok)
}

func TestTheNameOfALogTellsTheContainer(t *testing.T) {
	f := func(file, wantID string, want Names) {
		t.Helper()
		id, names, ok := parseLog(file)
		assert.Equal(t, wantID, id, file)
		assert.Equal(t, want, names, file)
		assert.Equal(t, wantID != "", ok, file)
	}
	f("chat-0_llm_vllm-"+id1+".log", id1, Names{Namespace: "llm", Pod: "chat-0", Container: "vllm"})
	f("a.b-c_kube-system_side-car-"+id1+".log", id1, Names{Namespace: "kube-system", Pod: "a.b-c", Container: "side-car"})
	f("chat-0_llm_vllm-"+id1[:60]+".log", "", Names{}) // cut at 255 bytes
	f("chat-0_llm_vllm-"+id1, "", Names{})
	f("chat-0_vllm-"+id1+".log", "", Names{})
	f("a_b_c_d-"+id1+".log", "", Names{})
	f("_llm_vllm-"+id1+".log", "", Names{})
	f("syslog.log", "", Names{})
	f("", "", Names{})
}
