// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// format is the version of the layout of manifest and keys. Another one is not guessed at.
const format = 1

// slot is one of two places for a value. The other one holds what came before.
type slot bool

func (s slot) String() string {
	if s {
		return "b"
	}
	return "a"
}

// manifest says which values make up a generation.
type manifest struct {
	_        struct{} `cbor:",toarray"`
	Format   uint32
	Sequence uint64
	Parts    map[string]entry
}

// entry says where the value of a part stands and how it can be known to be sound.
type entry struct {
	_        struct{} `cbor:",toarray"`
	Slot     slot
	Length   uint64
	Checksum uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

func entryOf(at slot, value []byte) entry {
	return entry{Slot: at, Length: uint64(len(value)), Checksum: checksum(value)}
}

// check reports how a value differs from the one that was written.
func (e entry) check(value []byte) error {
	switch got := checksum(value); {
	case value == nil && e.Length > 0:
		return errors.New("is missing")
	case uint64(len(value)) != e.Length:
		return fmt.Errorf("is %d bytes long, want %d", len(value), e.Length)
	case got != e.Checksum:
		return fmt.Errorf("has checksum %08x, want %08x", got, e.Checksum)
	}
	return nil
}

// checksumSize is what stands before the CBOR of a manifest.
const checksumSize = 4

func (m *manifest) marshal() ([]byte, error) {
	body, err := Encode(m)
	if err != nil {
		return nil, err
	}
	return append(binary.BigEndian.AppendUint32(nil, checksum(body)), body...), nil
}

func (m *manifest) unmarshal(value []byte) error {
	if len(value) < checksumSize {
		return fmt.Errorf("is %d bytes long, which is no manifest", len(value))
	}
	body := value[checksumSize:]
	if got, want := checksum(body), binary.BigEndian.Uint32(value); got != want {
		return fmt.Errorf("has checksum %08x, want %08x", got, want)
	}
	if err := Decode(body, m); err != nil {
		return fmt.Errorf("is no manifest of this version: %w", err)
	}
	if m.Format != format {
		return fmt.Errorf("has format %d, and only %d is known here", m.Format, format)
	}
	return nil
}
