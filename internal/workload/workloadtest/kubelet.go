// SPDX-License-Identifier: Apache-2.0

package workloadtest

import (
	"context"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Kubelet answers List on a real socket, and nothing else: Get is Unimplemented, as in many.
type Kubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	// Socket is the path of its socket.
	Socket string
	server *grpc.Server

	mu    sync.Mutex
	pods  []*podresources.PodResources
	asked int
	slow  <-chan struct{}
}

// NewKubelet returns a kubelet that runs until the test ends, or until Stop.
func NewKubelet(t testing.TB, pods ...*podresources.PodResources) *Kubelet {
	t.Helper()
	k := &Kubelet{Socket: filepath.Join(t.TempDir(), "kubelet.sock"), pods: pods}
	k.Start(t)
	t.Cleanup(k.Stop)
	return k
}

// Start starts it anew after Stop.
func (k *Kubelet) Start(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("unix", k.Socket)
	require.NoError(t, err)
	k.server = grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(k.server, k)
	go func() { _ = k.server.Serve(listener) }() // ends with Stop
}

// Stop ends it. Its socket is gone.
func (k *Kubelet) Stop() { k.server.Stop() }

// Hold says which pods hold devices from now on.
func (k *Kubelet) Hold(pods ...*podresources.PodResources) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = pods
}

// Wait keeps answers back until the channel is closed; nil answers at once again.
func (k *Kubelet) Wait(until <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.slow = until
}

// Asked is how often it was asked.
func (k *Kubelet) Asked() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

// List implements the API.
func (k *Kubelet) List(ctx context.Context, _ *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k.mu.Lock()
	k.asked++
	pods, slow := k.pods, k.slow
	k.mu.Unlock()
	if slow != nil {
		select {
		case <-slow:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &podresources.ListPodResourcesResponse{PodResources: pods}, nil
}

// Holds is a pod of the namespace llm, each of whose containers holds devices.
func Holds(pod string, containers ...*podresources.ContainerResources) *podresources.PodResources {
	return &podresources.PodResources{Namespace: "llm", Name: pod, Containers: containers}
}

// Container is one to which a device plugin has given devices.
func Container(name string, devices ...string) *podresources.ContainerResources {
	return &podresources.ContainerResources{Name: name, Devices: []*podresources.ContainerDevices{{ResourceName: "nvidia.com/gpu", DeviceIds: devices}}}
}

// Claim is a container whose claims a driver for dynamic resource allocation has given devices to.
func Claim(name, driver string, devices ...string) *podresources.ContainerResources {
	c := &podresources.ContainerResources{Name: name}
	for _, device := range devices {
		c.DynamicResources = append(c.DynamicResources, &podresources.DynamicResource{ClaimName: "gpu", ClaimNamespace: "llm",
			ClaimResources: []*podresources.ClaimResource{{DriverName: driver, PoolName: "node-1", DeviceName: device}}})
	}
	return c
}
