// SPDX-License-Identifier: Apache-2.0

// Package gpuwatch is how those who see the memory of GPUs (cuda_memory, nvidia_gpu, gpu_leak) tell the one who may act on
// it (gpu_guard), within milliseconds and without a pipeline between.
package gpuwatch

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
)

// Watcher hears what is seen. Its methods may be called from any goroutine, return at once, and keep nothing of what they are
// given but copies. Times are Unix nanoseconds of this machine.
type Watcher interface {
	// Device is a reading of a device.
	Device(Device)
	// Live is told whenever the live bytes of a process have changed, at most some milliseconds later.
	Live(Live)
	// Gone is told when a process of which Live told has ended.
	Gone(Process)
	// Leak is told when a leak opens or closes.
	Leak(Leak)
}

// Process is one on this machine. The time of its start keeps a PID that is given anew from being taken for it.
type Process struct {
	PID int
	// StartTime is field 22 of /proc/PID/stat, in clock ticks since boot. 0: not known.
	StartTime uint64
}

// Device is a GPU or a MIG device.
type Device struct {
	ID          string // hw.id, its UUID
	Total, Used uint64 // bytes; 0 of Total: not known
	At          int64
	// Processes hold memory on it; nil: not read this time.
	Processes []Held
}

// Held is the memory that a process holds on a device.
type Held struct {
	Process
	Bytes uint64
}

// Live is what a process has allocated and not freed, over all devices.
type Live struct {
	Process
	Device string // hw.id; empty: not known
	Bytes  uint64
	// At is when the last allocation or release returned.
	At int64
}

// Leak is a verdict on a process of some host, which need not be this one.
type Leak struct {
	ID     string // gpu.leak.id
	Open   bool
	Host   string // host.id, k8s.node.name or host.name, the first that is set
	PID    int
	Device string // hw.id
	// Executable is its base name; empty: not known.
	Executable string
	Cause      string
	At         int64
	// Exhaustion is how long from At on, by the verdict, something of the device is left. 0: not known.
	Exhaustion time.Duration
}

// Find returns the Watcher with the id among the host's extensions, nil for none, and lets that know, by its method Found if it has one, that
// somebody is going to tell it something.
func Find(host component.Host, id *component.ID) (Watcher, error) {
	if id == nil {
		return nil, nil
	}
	extension, ok := host.GetExtensions()[*id]
	if !ok {
		return nil, fmt.Errorf("guard: there is no extension %q under service::extensions", id)
	}
	watcher, ok := extension.(Watcher)
	if !ok {
		return nil, fmt.Errorf("guard: extension %q is no gpu_guard", id)
	}
	if f, ok := extension.(interface{ Found() }); ok {
		f.Found()
	}
	return watcher, nil
}
