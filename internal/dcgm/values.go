// SPDX-License-Identifier: Apache-2.0

package dcgm

import (
	"bytes"
	"encoding/binary"
	"math"
)

// Values are what Latest has read. They keep their memory.
type Values struct {
	raw []byte
}

// The places in dcgmFieldValue_v2.
const (
	valueBytes   = 4128
	valueVersion = valueBytes | 2<<24
	atKind       = 4
	atEntity     = 8
	atField      = 12
	atType       = 14
	atStatus     = 16
	atTime       = 24
	atValue      = 32
	textBytes    = 256
)

func (v *Values) reset(n int) {
	if size := n * valueBytes; cap(v.raw) < size {
		v.raw = make([]byte, size)
	} else {
		v.raw = v.raw[:size]
	}
	for i := range n {
		at := v.raw[i*valueBytes:]
		clear(at[:atValue+8])
		binary.NativeEndian.PutUint32(at, valueVersion)
		binary.NativeEndian.PutUint32(at[atStatus:], uint32(0xffffffff&int64(NoData)))
	}
}

// Len is how many there are.
func (v *Values) Len() int { return len(v.raw) / valueBytes }

// At is a value.
func (v *Values) At(i int) Value { return Value{v.raw[i*valueBytes : (i+1)*valueBytes]} }

// Value is a value of a field of an entity. It is the Values'.
type Value struct{ raw []byte }

// Entity is whose value it is.
func (v Value) Entity() Entity {
	return Entity{Kind(binary.NativeEndian.Uint32(v.raw[atKind:])), binary.NativeEndian.Uint32(v.raw[atEntity:])}
}

// Field is the identifier of the field.
func (v Value) Field() uint16 { return binary.NativeEndian.Uint16(v.raw[atField:]) }

// Status is nil for a value that is one, or why it is none.
func (v Value) Status() error {
	if code := int32(binary.NativeEndian.Uint32(v.raw[atStatus:])); code != 0 {
		return Error(code)
	}
	return nil
}

// Time is when it was read, in Unix nanoseconds.
func (v Value) Time() int64 { return int64(binary.NativeEndian.Uint64(v.raw[atTime:])) * 1000 }

// Presence says whether there is a value.
type Presence uint8

const (
	// Present is a value.
	Present Presence = iota
	// Absent is none, and none is to be had: not found, or not supported.
	Absent
	// Blank is none for another reason.
	Blank
)

// DCGM's values that stand for none: so much and up.
const (
	blankInt32 = 0x7ffffff0
	blankInt64 = 0x7ffffffffffffff0
	blankFloat = 140737488355328.0
)

// Int is the value of a field of integers. Values of 32 bits, which some fields are, have blanks of their own.
func (v Value) Int() (uint64, Presence) {
	n := int64(binary.NativeEndian.Uint64(v.raw[atValue:]))
	switch {
	case n >= blankInt64:
		return 0, presence(uint64(n - blankInt64))
	case n >= blankInt32 && n <= math.MaxInt32:
		return 0, presence(uint64(n - blankInt32))
	case n < 0:
		return 0, Blank
	}
	return uint64(n), Present
}

// Float is the value of a field of doubles.
func (v Value) Float() (float64, Presence) {
	f := math.Float64frombits(binary.NativeEndian.Uint64(v.raw[atValue:]))
	if math.IsNaN(f) {
		return 0, Blank
	}
	if f >= blankFloat {
		return 0, presence(uint64(min(f-blankFloat, 16)))
	}
	return f, Present
}

// presence tells by the distance from the blank why there is no value.
func presence(distance uint64) Presence {
	if distance == 1 || distance == 2 {
		return Absent
	}
	return Blank
}

// The types of values.
const (
	isFloat = 'd'
	isInt   = 'i'
	isText  = 's'
)

// Number is the value of a field of integers or doubles, whichever it is.
func (v Value) Number() (float64, uint64, Presence) {
	switch binary.NativeEndian.Uint16(v.raw[atType:]) {
	case isFloat:
		f, p := v.Float()
		return f, uint64(max(f, 0)), p
	case isInt:
		n, p := v.Int()
		return float64(n), n, p
	}
	return 0, 0, Absent
}

// Text is the value of a field of texts; empty where there is none.
func (v Value) Text() string {
	if binary.NativeEndian.Uint16(v.raw[atType:]) != isText || v.Status() != nil {
		return ""
	}
	s := v.raw[atValue : atValue+textBytes]
	if bytes.HasPrefix(s, []byte("<<<")) {
		return ""
	}
	return text(s)
}
