// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"encoding/binary"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Fields are numbers that are asked for together, in one call and into the same memory each time.
type Fields struct {
	values  []nvml.FieldValue
	outcome Outcome
}

// AllLinks is the scope of NVLink's fields that adds all links of a device up.
const AllLinks = math.MaxUint32

// Add adds a field to those that are asked for and returns its place. The scope is 0, or AllLinks, or a link.
func (f *Fields) Add(id, scope uint32) (place int) {
	f.values = append(f.values, nvml.FieldValue{FieldId: id, ScopeId: scope})
	return len(f.values) - 1
}

// Len is how many fields are asked for.
func (f *Fields) Len() int { return len(f.values) }

// Reset empties the list of what is asked for.
func (f *Fields) Reset() { f.values = f.values[:0] }

// Read asks for all fields of a device. The outcome is that of the call; each field has its own.
func (d Device) Read(f *Fields) Outcome {
	f.outcome = Absent
	if d.lib.has[fnFields] && len(f.values) > 0 {
		f.outcome = outcome(d.dev.GetFieldValues(f.values))
	}
	return f.outcome
}

// Uint is the field at a place as an integer, as long as the driver has it.
func (f *Fields) Uint(place int) (uint64, Outcome) {
	v := &f.values[place]
	if f.outcome != OK {
		return 0, f.outcome
	}
	ret := nvml.Return(v.NvmlReturn)
	if ret == nvml.ERROR_INVALID_ARGUMENT {
		return 0, Absent // the field is newer than the driver
	}
	switch nvml.ValueType(v.ValueType) {
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		u, o := of32(binary.NativeEndian.Uint32(v.Value[:]), ret)
		return uint64(u), o
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return of64(binary.NativeEndian.Uint64(v.Value[:]), ret)
	case nvml.VALUE_TYPE_SIGNED_INT:
		if s := int32(binary.NativeEndian.Uint32(v.Value[:])); s < 0 {
			return 0, Blank
		}
		u, o := of32(binary.NativeEndian.Uint32(v.Value[:]), ret)
		return uint64(u), o
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return of64(binary.NativeEndian.Uint64(v.Value[:]), ret) // a negative one is above all blanks
	default:
		if o := outcome(ret); o != OK {
			return 0, o
		}
		return 0, Failed
	}
}

// Counter is Uint for a counter of bytes: one of 32 bits, which a fast link fills several times between two readings, is
// Absent.
func (f *Fields) Counter(place int) (uint64, Outcome) {
	if f.outcome == OK && f.values[place].NvmlReturn == uint32(nvml.SUCCESS) &&
		nvml.ValueType(f.values[place].ValueType) == nvml.VALUE_TYPE_UNSIGNED_INT {
		return 0, Absent
	}
	return f.Uint(place)
}
