// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"context"
	"errors"
)

// Source reads GPUs by one library. Its methods are called from one goroutine at a time. It may be opened again after it was
// closed: that is how a session is begun anew when the driver was restarted or changed.
type Source interface {
	// Open loads the library and takes the handles. Its error Is ErrUnavailable where there is no library or no driver: then
	// it leaves nothing open, and is tried again later.
	//
	// From then on, until Close returns, events is called for what happens, from a goroutine of the Source. It does not block.
	Open(ctx context.Context, events func(Event)) error
	// Read fills an empty snapshot. Of a device it always tells who it is and how it is; and of its points and
	// processes those that are wanted, which cost a call only when they are. Processes are wanted with ProcessMemory, their
	// utilization with ProcessUtilization and its kin.
	//
	// What one device does not support, or cannot tell, is not an error. Neither is a lost one: that is its State. An error
	// means that the session is over: the snapshot must not be used, and the Source be closed.
	Read(ctx context.Context, want *Set, s *Snapshot) error
	// Close gives all handles back, so that a device can be reset, unbound or divided. Closing what is not open does nothing.
	Close() error
}

// ErrUnavailable is matched by the error of a Source whose library or driver is not there (yet).
var ErrUnavailable = errors.New("not available")

// Event is something that happened to a device at a moment, and which readings could miss.
type Event struct {
	Time int64 // Unix nanoseconds
	Kind EventKind
	UUID string // of the device; empty where it is not known
	Code uint64 // of an Xid
	// GPUInstance and ComputeInstance say which part of the device, where that is known: the ids of a MIG instance.
	GPUInstance, ComputeInstance uint32
	Instance                     bool // whether they are known
}

// EventKind is what happened.
type EventKind uint8

const (
	// Xid is an error that the driver reports.
	Xid EventKind = iota
)

// Unavailable is an error that matches ErrUnavailable, and says no more than it did.
func Unavailable(err error) error { return unavailable{err} }

type unavailable struct{ error }

func (u unavailable) Unwrap() []error { return []error{u.error, ErrUnavailable} }
