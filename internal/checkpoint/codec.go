// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

const (
	// maxElements bounds arrays and maps that are decoded, far above what one part of a state holds. A length that is
	// only claimed costs nothing: the decoder looks whether the elements are there first.
	maxElements = 1 << 20
	// maxNesting bounds how deep arrays and maps lie in each other.
	maxNesting = 16
)

// encoding is deterministic: equal values become equal bytes, whatever the order of a map.
var encoding = func() cbor.EncMode {
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		panic(err) // the options are constants; every test would fail
	}
	return mode
}()

var decoding = func() cbor.DecMode {
	mode, err := cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		MaxArrayElements:  maxElements,
		MaxMapPairs:       maxElements,
		MaxNestedLevels:   maxNesting,
		ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
	}.DecMode()
	if err != nil {
		panic(err)
	}
	return mode
}()

// Encode writes a value as CBOR (RFC 8949, core deterministic encoding). Structs that begin with
//
//	_ struct{} `cbor:",toarray"`
//
// are arrays without field names: small, and as stable as the order of their fields.
func Encode(v any) ([]byte, error) {
	data, err := encoding.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return data, nil
}

// Decode reads what Encode wrote into v. It trusts nothing: limits hold for lengths and nesting, and data of another
// shape, or more data than one value, is an error.
func Decode(data []byte, v any) error {
	if err := decoding.Unmarshal(data, v); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	return nil
}
