// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
)

func TestAContainerHasADeviceWhenItHasOneOnly(t *testing.T) {
	f := func(name, want string, pods ...*podresources.PodResources) {
		t.Helper()
		assert.Equal(t, want, ownersOf(pods, 1).given[Names{Namespace: "llm", Pod: "chat-0", Container: "vllm"}], name)
	}
	f("one", gpu0, holds("chat-0", container("vllm", gpu0)))
	f("a MIG device", mig0, holds("chat-0", container("vllm", mig0)))
	f("two shares of one", gpu0, holds("chat-0", container("vllm", gpu0+"::0", gpu0+"::3")))
	f("shared with another pod", gpu0, holds("chat-0", container("vllm", gpu0+"::0")), holds("chat-1", container("vllm", gpu0+"::1")))
	f("its neighbour has another one", gpu0, holds("chat-0", container("vllm", gpu0), container("lora", gpu1)))
	f("two", "", holds("chat-0", container("vllm", gpu0, gpu1)))
	f("three", "", holds("chat-0", container("vllm", gpu0, gpu1, gpu0)))
	f("two, of which one by a claim", "", holds("chat-0", container("vllm", gpu0), claim("vllm", draDriver, "gpu-1")))
	f("none", "", holds("chat-0", container("vllm")))
	f("another pod", "", holds("chat-1", container("vllm", gpu0)))
}

// Guarantees: memory is bounded by what a machine has, and one for which there is no room is not known.
func TestContainersThatHaveDevicesAreBounded(t *testing.T) {
	o := &owners{of: map[string]Owner{}, given: map[Names]string{}}
	for i := range maxDevices + 10 {
		o.add(fmt.Sprint("GPU-", i), Names{Pod: fmt.Sprint(i)})
	}
	assert.Len(t, o.given, maxDevices)
	assert.Equal(t, "GPU-0", o.given[Names{Pod: "0"}])
	o.add("GPU-x", Names{Pod: "0"})
	assert.Empty(t, o.given[Names{Pod: "0"}], "one beyond the limit is one more")
}

// Scenario: a process whose container the kubelet has a log for, and then one that has started after the kubelet was asked.
// Guarantees: the device of the first is known; an old answer is not about the second.
func TestTheDeviceOfAContainerIsThatOfItsProcess(t *testing.T) {
	k := workloadtest.NewKubelet(t, holds("chat-0", container("vllm", gpu0)))
	p, _ := listening(t, PodsOptions{Socket: k.Socket, Interval: time.Hour})
	require.Eventually(t, knows(p, gpu0, "chat-0"), soon, time.Millisecond)
	r := newResolver(t, Options{Pods: p})
	named := Process{Start: 1, Names: Names{Namespace: "llm", Pod: "chat-0", Container: "vllm"}}
	assert.Equal(t, gpu0, r.Device(named))
	assert.Empty(t, r.Device(Process{Start: 1}), "a process that has no name")
	named.Start = 1 << 62
	assert.Empty(t, r.Device(named))
	require.Eventually(t, func() bool { return k.Asked() > 1 }, soon, time.Millisecond, "the kubelet is asked again")
	assert.Empty(t, newResolver(t, Options{}).Device(named), "no kubelet")
}
