// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/workload/workloadtest"
)

const soon = time.Minute

// listening is Pods beside what OnChange has heard. Unless opts say otherwise, a kubelet is waited for however slow the machine is.
func listening(t testing.TB, opts PodsOptions) (*Pods, func() []error) {
	var mu sync.Mutex
	var heard []error
	opts.OnChange = func(err error) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, err)
	}
	opts.Timeout = orDefault(opts.Timeout, time.Hour)
	p := NewPods(opts)
	t.Cleanup(p.Close)
	return p, func() []error {
		mu.Lock()
		defer mu.Unlock()
		return append([]error(nil), heard...)
	}
}

func knows(p *Pods, device, pod string) func() bool {
	return func() bool {
		owner, ok := p.Owner(Device{UUID: device})
		return ok && owner.Pod == pod
	}
}

func TestTheKubeletSaysWhoHoldsADevice(t *testing.T) {
	k := workloadtest.NewKubelet(t, holds("chat-0", container("vllm", gpu0)))
	p, heard := listening(t, PodsOptions{Socket: k.Socket})
	require.Eventually(t, knows(p, gpu0, "chat-0"), soon, time.Millisecond)
	owner, ok := p.Owner(Device{UUID: gpu0})
	assert.True(t, ok)
	assert.Equal(t, Owner{Names: Names{Namespace: "llm", Pod: "chat-0", Container: "vllm"}}, owner)
	_, ok = p.Owner(Device{UUID: gpu1})
	assert.False(t, ok)
	known, beyond := p.Devices()
	assert.Equal(t, 1, known)
	assert.Zero(t, beyond)
	assert.Equal(t, []error{nil}, heard())
	p.Close()
	p.Close()
}

// Scenario: a machine without a kubelet, on which one is started later.
// Guarantees: one word about it, that the socket is missing; then the pods, without a restart.
func TestAKubeletThatComesLaterIsFound(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	p, heard := listening(t, PodsOptions{Socket: socket})
	require.Eventually(t, func() bool { return len(heard()) == 1 }, soon, time.Millisecond)
	require.ErrorIs(t, heard()[0], fs.ErrNotExist)
	_, ok := p.Owner(Device{UUID: gpu0})
	assert.False(t, ok)

	k := &workloadtest.Kubelet{Socket: socket}
	k.Hold(holds("chat-0", container("vllm", gpu0)))
	k.Start(t)
	defer k.Stop()
	require.Eventually(t, knows(p, gpu0, "chat-0"), soon, 10*time.Millisecond)
	assert.Equal(t, 2, len(heard()))
	assert.NoError(t, heard()[1])
}

// Scenario: the kubelet ends, leaves its socket behind, and starts anew with other pods.
// Guarantees: what it said holds for MaxAge, then nothing is known; then the new pods are.
func TestAKubeletMayRestart(t *testing.T) {
	t.Parallel()
	k := workloadtest.NewKubelet(t, holds("chat-0", container("vllm", gpu0)))
	old, told := listening(t, PodsOptions{Socket: k.Socket, Interval: 10 * time.Millisecond, MaxAge: time.Hour})
	p, heard := listening(t, PodsOptions{Socket: k.Socket, Interval: 10 * time.Millisecond, MaxAge: 2 * time.Second})
	require.Eventually(t, knows(old, gpu0, "chat-0"), soon, time.Millisecond)
	require.Eventually(t, knows(p, gpu0, "chat-0"), soon, time.Millisecond)
	k.Stop()
	require.NoError(t, os.WriteFile(k.Socket, nil, 0o600)) // as after a crash: a file on which nobody listens
	require.Eventually(t, func() bool { return len(told()) == 2 }, soon, time.Millisecond)
	require.Error(t, told()[1])
	assert.NotErrorIs(t, told()[1], fs.ErrNotExist)
	old.Close() // and so the question that had no answer has had its consequences
	assert.True(t, knows(old, gpu0, "chat-0")())
	require.Eventually(t, func() bool { _, ok := p.Owner(Device{UUID: gpu0}); return !ok }, soon, 10*time.Millisecond)
	require.Error(t, heard()[1])

	require.NoError(t, os.Remove(k.Socket))
	k.Hold(holds("chat-1", container("vllm", gpu0)))
	k.Start(t)
	require.Eventually(t, knows(p, gpu0, "chat-1"), soon, 10*time.Millisecond)
}

// Scenario: a kubelet that does not answer. Guarantees: nobody waits for it, and the deadline holds.
func TestASlowKubeletBlocksNobody(t *testing.T) {
	t.Parallel()
	k := workloadtest.NewKubelet(t, holds("chat-0", container("vllm", gpu0)))
	forever := make(chan struct{})
	k.Wait(forever)
	p, heard := listening(t, PodsOptions{Socket: k.Socket}) // who waited for an answer would wait for an hour
	_, ok := p.Owner(Device{UUID: gpu0})
	assert.False(t, ok)
	require.Eventually(t, func() bool { return k.Asked() == 1 }, soon, time.Millisecond)
	p.Hurry()
	_, ok = p.Owner(Device{UUID: gpu0})
	assert.False(t, ok)
	p.Close() // a question that is under way does not hold the end up
	assert.Empty(t, heard())

	p, heard = listening(t, PodsOptions{Socket: k.Socket, Timeout: 200 * time.Millisecond})
	require.Eventually(t, func() bool { return len(heard()) == 1 }, soon, time.Millisecond)
	assert.ErrorContains(t, heard()[0], "DeadlineExceeded")
	k.Wait(nil)
	require.Eventually(t, knows(p, gpu0, "chat-0"), soon, 10*time.Millisecond)
}

// Guarantees: a hurry is answered within a second or so, and a thousand of them are one question.
func TestAHurryIsOneQuestion(t *testing.T) {
	t.Parallel()
	k, answer := workloadtest.NewKubelet(t), make(chan struct{})
	k.Wait(answer)
	p, _ := listening(t, PodsOptions{Socket: k.Socket, Interval: time.Hour})
	require.Eventually(t, func() bool { return k.Asked() == 1 }, soon, time.Millisecond)
	for range 1000 {
		p.Hurry()
	}
	close(answer) // and so none of the thousand was heeded before all were there
	require.Eventually(t, func() bool { return k.Asked() == 2 }, soon, time.Millisecond)
	time.Sleep(1500 * time.Millisecond)
	assert.Equal(t, 2, k.Asked())
}
