// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"time"
)

// Session is a connection to a host engine. It is for one goroutine at a time.
type Session struct {
	library *Library
	handle  uintptr
	stop    func(uintptr) int32
	closed  bool
	fields  map[string]uintptr // the field groups of the session, by their fields
	found   hierarchy          // scratch: 73 kB
}

// Kind is what an entity is.
type Kind uint32

// The kinds of entities.
const (
	GPU             Kind = 1
	GPUInstance     Kind = 4
	ComputeInstance Kind = 5
)

// Entity is a GPU or a part of one, by DCGM's own number.
type Entity struct {
	Kind Kind
	ID   uint32
}

// Group is a set of entities.
type Group uintptr

// The groups that are always there.
const (
	AllGPUs      Group = 0x7fffffff
	AllInstances Group = 0x7ffffffd
)

// MaxGPUs is how many GPUs DCGM knows at most.
const MaxGPUs = 32

// Close ends the session. Closing it twice does nothing.
func (s *Session) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return s.library.end(s)
}

// GPUs appends the GPUs, those that DCGM does not support included.
func (s *Session) GPUs(to []Entity) ([]Entity, error) {
	var ids [MaxGPUs]uint32
	count := int32(len(ids))
	if err := check("dcgmGetEntityGroupEntities", s.library.getEntityGroupEntities(s.handle, uint32(GPU), &ids[0], &count, 0)); err != nil {
		return to, err
	}
	for _, id := range ids[:count] {
		to = append(to, Entity{GPU, id})
	}
	return to, nil
}

// Part is a GPU instance or a compute instance.
type Part struct {
	Entity Entity
	Parent Entity // of a compute instance: its GPU instance
	GPU    string // UUID
	// GPUInstance and ComputeInstance are NVML's numbers; NoInstance for a part that is none.
	GPUInstance, ComputeInstance uint32
}

// NoInstance is the number of a compute instance of what is none.
const NoInstance = 0xffffffff

const (
	maxParts  = MaxGPUs * 14
	uuidBytes = 128
)

// hierarchy is dcgmMigHierarchy_v2.
type hierarchy struct {
	version uint32
	count   uint32
	list    [maxParts]struct {
		entity, parent  Entity
		uuid            [uuidBytes]byte
		gpuIndex        uint32
		gpuInstance     uint32
		computeInstance uint32
		profile         uint32
		slices          uint32
	}
}

const hierarchyVersion = (8 + maxParts*(16+uuidBytes+20)) | 2<<24

// Parts appends the parts of all GPUs. Where nothing is divided there is none.
func (s *Session) Parts(to []Part) ([]Part, error) {
	h := &s.found
	h.version, h.count = hierarchyVersion, 0
	if err := check("dcgmGetGpuInstanceHierarchy", s.library.getGPUInstanceHierarchy(s.handle, h)); err != nil {
		return to, err
	}
	for i := range min(int(h.count), maxParts) {
		at := &h.list[i]
		to = append(to, Part{
			Entity: at.entity, Parent: at.parent, GPU: text(at.uuid[:]), GPUInstance: at.gpuInstance, ComputeInstance: at.computeInstance,
		})
	}
	return to, nil
}

// groups tells field groups apart, whose names must be unique in a host engine.
var groups atomic.Uint64

// MaxFields is how many fields can be watched at once.
const MaxFields = 128

// Watch lets the host engine read fields of a group every so often, and keep the last values. What is watched already can be
// watched again, which takes in entities that are new in the group.
func (s *Session) Watch(group Group, fields []uint16, every time.Duration) error {
	id, err := s.fieldGroup(fields)
	if err != nil {
		return err
	}
	keep := max(10*every, time.Minute)
	return check("dcgmWatchFields", s.library.watchFields(s.handle, uintptr(group), id, every.Microseconds(), keep.Seconds(), 2))
}

// fieldGroup is the host engine's group of fields. It is made once a session, with which it ends: an engine has room for few.
func (s *Session) fieldGroup(fields []uint16) (uintptr, error) {
	of := fmt.Sprint(fields)
	if id, made := s.fields[of]; made {
		return id, nil
	}
	name := fmt.Sprintf("otelcol-llm-%d-%d", time.Now().UnixNano(), groups.Add(1))
	var id uintptr
	if err := check("dcgmFieldGroupCreate", s.library.fieldGroupCreate(s.handle, int32(len(fields)), &fields[0], name, &id)); err != nil {
		return 0, err
	}
	if s.fields == nil {
		s.fields = map[string]uintptr{}
	}
	s.fields[of] = id
	return id, nil
}

// Update lets the host engine read now what is watched, and waits for that.
func (s *Session) Update() error {
	return check("dcgmUpdateAllFields", s.library.updateAllFields(s.handle, 1))
}

// live asks the driver for the values, and not for those that were watched.
const live = 1

// Latest reads the latest values of fields, as they were watched; fresh asks the driver instead, which is slow and for what is
// not watched.
func (s *Session) Latest(entities []Entity, fields []uint16, fresh bool, to *Values) error {
	to.reset(len(entities) * len(fields))
	if to.Len() == 0 {
		return nil
	}
	flags := uint32(0)
	if fresh {
		flags = live
	}
	return check("dcgmEntitiesGetLatestValues", s.library.entitiesGetLatestValues(
		s.handle, &entities[0], uint32(len(entities)), &fields[0], uint32(len(fields)), flags, &to.raw[0]))
}

// text is a C string in a buffer.
func text(b []byte) string {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return string(b)
}
