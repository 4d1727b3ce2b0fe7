// SPDX-License-Identifier: Apache-2.0

// Package attrs finds, sets and hashes attributes.
//
// A client can write a key more than once, though OTLP forbids it. The first copy counts, everywhere: Lookup finds it, as
// pcommon.Map.Get does, and who sets or removes a key by which something is decided leaves no other copy for the next one to find.
//
// Keys are looked up where the most specific knowledge stands: in the point, then the scope, then the resource.
// Hashes identify series; they do not depend on the order of attributes, allocate nothing for scalar values, and
// stay the same across restarts.
package attrs

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Lookup returns the value of key in the first of the maps that has it.
func Lookup(key string, point, scope, resource pcommon.Map) (pcommon.Value, bool) {
	if v, ok := point.Get(key); ok {
		return v, true
	}
	if v, ok := scope.Get(key); ok {
		return v, true
	}
	return resource.Get(key)
}

// Set writes a text under a key, and leaves no other copy of it.
func Set(m pcommon.Map, key, value string) {
	v, ok := m.Get(key)
	if !ok {
		m.PutStr(key, value)
		return
	}
	if v.Type() != pcommon.ValueTypeStr || v.Str() != value {
		v.SetStr(value)
	}
	seen := false
	m.RemoveIf(func(k string, _ pcommon.Value) bool {
		further := k == key && seen
		seen = seen || k == key
		return further
	})
}

// Remove removes a key, every copy of it.
func Remove(m pcommon.Map, key string) {
	if _, ok := m.Get(key); ok {
		m.RemoveIf(func(k string, _ pcommon.Value) bool { return k == key })
	}
}

// Hash identifies a set of attributes. It is a sum over the pairs, so their order has no say.
func Hash(m pcommon.Map) uint64 {
	var sum uint64
	for k, v := range m.All() {
		sum += pair(xxhash.Sum64String(k), value(v))
	}
	return sum
}

// HashWithout is the Hash of what is left of m without some keys.
func HashWithout(m pcommon.Map, keys []string) uint64 {
	var sum uint64
	for k, v := range m.All() {
		if !slices.Contains(keys, k) {
			sum += pair(xxhash.Sum64String(k), value(v))
		}
	}
	return sum
}

// Combine joins hashes whose order matters, such as resource, scope, metric and point.
func Combine(hashes ...uint64) uint64 {
	var h uint64 = 14695981039346656037 // the offset basis of FNV-1a, so that a zero hash is not nothing
	for _, x := range hashes {
		h = mix(h ^ x)
	}
	return h
}

// String is the hash of a string.
func String(s string) uint64 { return xxhash.Sum64String(s) }

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

func pair(key, value uint64) uint64 { return mix(key ^ mix(value)) }

// value hashes a value together with its type: "1" is not 1.
func value(v pcommon.Value) uint64 {
	kind := uint64(v.Type()) << 56
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return kind ^ xxhash.Sum64String(v.Str())
	case pcommon.ValueTypeBool:
		if v.Bool() {
			return kind ^ 1
		}
		return kind
	case pcommon.ValueTypeInt:
		return kind ^ number(uint64(v.Int()))
	case pcommon.ValueTypeDouble:
		return kind ^ number(math.Float64bits(v.Double()))
	case pcommon.ValueTypeMap:
		return kind ^ Hash(v.Map())
	case pcommon.ValueTypeSlice:
		h := kind
		for i := range v.Slice().Len() {
			h = mix(h ^ value(v.Slice().At(i)))
		}
		return h
	case pcommon.ValueTypeBytes:
		return kind ^ xxhash.Sum64(v.Bytes().AsRaw())
	default:
		return kind
	}
}

func number(n uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	return xxhash.Sum64(b[:])
}
