// SPDX-License-Identifier: Apache-2.0

package device

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

const (
	gpu0  = "GPU-96fde4d6-9a69-bfd8-bf26-ee1bf6b35ba1"
	gpu1  = "GPU-20c56d28-0da5-6d26-a36a-e7af1ce2586e"
	mig0  = "MIG-1f0b7cd5-cb0d-5e1d-9f4a-0f3a6f1b8f0c"
	old   = "MIG-GPU-96fde4d6-9a69-bfd8-bf26-ee1bf6b35ba1/7/0"
	empty = ""
)

func environ(entries ...string) []byte {
	return []byte(strings.Join(append(entries, "HOME=/root", ""), "\x00"))
}

// Guarantees: a device is told when the environment leaves one only, and never otherwise.
func TestADeviceIsToldWhenThereIsNoOther(t *testing.T) {
	f := func(name, want string, contained bool, given string, entries ...string) {
		t.Helper()
		assert.Equal(t, want, Parse(environ(entries...)).Only(contained, given), name)
	}
	const host, container = false, true

	f("nothing is set", empty, host, empty)
	f("one GPU", gpu0, host, empty, "CUDA_VISIBLE_DEVICES="+gpu0)
	f("one MIG device", mig0, host, empty, "CUDA_VISIBLE_DEVICES="+mig0)
	f("one, as drivers before R470 call it", old, host, empty, "CUDA_VISIBLE_DEVICES="+old)
	f("two", empty, host, empty, "CUDA_VISIBLE_DEVICES="+gpu0+","+gpu1)
	f("a number", empty, host, empty, "CUDA_VISIBLE_DEVICES=0")
	f("the beginning of a UUID", empty, host, empty, "CUDA_VISIBLE_DEVICES=GPU-96fd")
	f("none", empty, host, empty, "CUDA_VISIBLE_DEVICES=")
	f("set twice", gpu0, host, empty, "CUDA_VISIBLE_DEVICES="+gpu0, "CUDA_VISIBLE_DEVICES="+gpu1)
	f("another variable", empty, host, empty, "MY_CUDA_VISIBLE_DEVICES="+gpu0)
	f("what a runtime reads, where there is none", empty, host, empty, "NVIDIA_VISIBLE_DEVICES="+gpu0)

	f("one in the container", gpu0, container, empty, "NVIDIA_VISIBLE_DEVICES="+gpu0)
	f("all", empty, container, empty, "NVIDIA_VISIBLE_DEVICES=all")
	f("all, of which one", gpu1, container, empty, "NVIDIA_VISIBLE_DEVICES=all", "CUDA_VISIBLE_DEVICES="+gpu1)
	f("the first of one", gpu0, container, empty, "NVIDIA_VISIBLE_DEVICES="+gpu0, "CUDA_VISIBLE_DEVICES=0")
	f("the second of one", empty, container, empty, "NVIDIA_VISIBLE_DEVICES="+gpu0, "CUDA_VISIBLE_DEVICES=1")
	f("none of one", empty, container, empty, "NVIDIA_VISIBLE_DEVICES="+gpu0, "CUDA_VISIBLE_DEVICES=-1")
	f("the beginning of the one", gpu0, container, empty, "NVIDIA_VISIBLE_DEVICES="+gpu0, "CUDA_VISIBLE_DEVICES=GPU-96fd")
	f("the beginning of another", empty, container, empty, "NVIDIA_VISIBLE_DEVICES="+gpu0, "CUDA_VISIBLE_DEVICES=GPU-20c5")
	f("the beginning of any", empty, container, empty, "NVIDIA_VISIBLE_DEVICES="+gpu0, "CUDA_VISIBLE_DEVICES=GPU-")

	f("the kubelet's", gpu0, container, gpu0)
	f("the kubelet's, by CDI", gpu0, container, gpu0, "NVIDIA_VISIBLE_DEVICES=void")
	f("the kubelet's, by volume mounts", gpu0, container, gpu0, "NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices")
	f("more than the kubelet gave", empty, container, gpu0, "NVIDIA_VISIBLE_DEVICES=all")
	f("the kubelet's by number", empty, container, "nvidia0")
	f("the first of the kubelet's", gpu0, container, gpu0, "CUDA_VISIBLE_DEVICES=0")
}

// Guarantees: whatever an environment holds, what comes out is a whole UUID that stands in it or was given.
func FuzzOnly(f *testing.F) {
	f.Add([]byte("CUDA_VISIBLE_DEVICES="+gpu0+"\x00NVIDIA_VISIBLE_DEVICES=all\x00"), true, gpu1)
	f.Add([]byte("NVIDIA_VISIBLE_DEVICES="+old), true, empty)
	f.Add([]byte("CUDA_VISIBLE_DEVICES=0\x00"), false, "gpu-0")
	f.Fuzz(func(t *testing.T, content []byte, contained bool, given string) {
		if only := Parse(content).Only(contained, given); only != "" {
			assert.True(t, IsUUID(only))
			assert.True(t, only == given || strings.Contains(string(content), only))
		}
	})
}
