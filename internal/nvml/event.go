// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Events is a set of devices whose Xids are waited for. It has to be freed before its library is closed.
type Events struct {
	lib *Library
	set nvml.EventSet
}

// Xid is an error that the driver reports.
type Xid struct {
	Device                       Device
	Code                         uint64
	GPUInstance, ComputeInstance uint32 // or NoInstance
}

// NewEvents makes an empty set.
func (l *Library) NewEvents() (*Events, Outcome) {
	for _, fn := range [...]function{fnEventSetCreate, fnEventSetFree, fnRegister, fnWait} {
		if !l.has[fn] {
			return nil, Absent
		}
	}
	set, ret := l.api.EventSetCreate()
	if o := outcome(ret); o != OK {
		return nil, o
	}
	return &Events{l, set}, OK
}

// Register adds a GPU to the set, where it can tell Xids.
func (e *Events) Register(d Device) Outcome {
	if e.lib.has[fnEventTypes] {
		types, ret := d.dev.GetSupportedEventTypes()
		if o := outcome(ret); o != OK {
			return o
		}
		if types&nvml.EventTypeXidCriticalError == 0 {
			return Absent
		}
	}
	return outcome(d.dev.RegisterEvents(nvml.EventTypeXidCriticalError, e.set))
}

// Wait returns the next Xid. It blocks until there is one or the time is over; then it is Absent.
func (e *Events) Wait(timeout time.Duration) (Xid, Outcome) {
	data, ret := e.set.Wait(uint32(timeout.Milliseconds()))
	if o := outcome(ret); o != OK {
		return Xid{}, o
	}
	if data.EventType&nvml.EventTypeXidCriticalError == 0 {
		return Xid{}, Absent
	}
	return Xid{Device{e.lib, data.Device}, data.EventData, data.GpuInstanceId, data.ComputeInstanceId}, OK
}

// Free gives the set back. Nobody may wait any more.
func (e *Events) Free() Outcome { return outcome(e.set.Free()) }
