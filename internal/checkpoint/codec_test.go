// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type sample struct {
	_      struct{} `cbor:",toarray"`
	Floats []float64
	Counts []uint64
	Names  map[string]int64
}

func TestWhatIsEncodedIsDecodedToTheBit(t *testing.T) {
	in := sample{
		Floats: []float64{0, math.Copysign(0, -1), 0.1, math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64, math.MaxFloat64},
		Counts: []uint64{0, 1, math.MaxUint64},
		Names:  map[string]int64{"a": math.MinInt64, "b": math.MaxInt64, "": 0},
	}
	data, err := Encode(in)
	require.NoError(t, err)
	var out sample
	require.NoError(t, Decode(data, &out))
	assert.Equal(t, in, out)
	for i := range in.Floats {
		assert.Equal(t, math.Float64bits(in.Floats[i]), math.Float64bits(out.Floats[i]))
	}
	for range 10 {
		again, err := Encode(in)
		require.NoError(t, err)
		assert.Equal(t, data, again, "equal values become equal bytes")
	}
	assert.Less(t, len(data), 80, "15 numbers of up to 8 bytes, without names of fields")
}

func TestWhatIsNotOursIsAnError(t *testing.T) {
	f := func(data []byte) {
		t.Helper()
		assert.Error(t, Decode(data, &sample{}))
	}
	good, err := Encode(sample{})
	require.NoError(t, err)
	require.NoError(t, Decode(good, &sample{}))
	f(nil)
	f(append(good, 0))                                            // more than one value
	f(good[:len(good)-1])                                         // less
	f([]byte{0x82, 0xf6, 0xf6})                                   // of another version: two fields
	f([]byte{0x84, 0xf6, 0xf6, 0xf6, 0xf6})                       // four
	f([]byte{0x83, 0x9b, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})     // claims four billion elements
	f([]byte{0x83, 0xf6, 0xf6, 0xa2, 0x61, 'a', 1, 0x61, 'a', 2}) // a key twice
	f(append(bytes.Repeat([]byte{0x81}, maxNesting+1), 0))        // too deep
	f([]byte{0x83, 0xf6, 0xf6, 0xc0, 0xa0})                       // a tag
	f([]byte{0x83, 0x9f, 0xff, 0xf6, 0xf6})                       // of unknown length
}

func TestTheChecksumIsCRC32C(t *testing.T) {
	assert.Equal(t, uint32(0xe3069283), checksum([]byte("123456789"))) // RFC 3720's check value
}

// Guarantees: bytes from anywhere are decoded or refused, and what is decoded can be encoded.
func FuzzDecode(f *testing.F) {
	m := manifest{Format: format, Sequence: 3, Parts: map[string]entry{"x": entryOf(true, []byte("one"))}}
	value, err := m.marshal()
	require.NoError(f, err)
	f.Add(value[checksumSize:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var m manifest
		if Decode(data, &m) == nil {
			_, err := Encode(m)
			require.NoError(t, err)
		}
		require.Error(t, new(manifest).unmarshal(append([]byte{1, 2, 3, 4}, data...)), "without its checksum it is nothing")
	})
}
