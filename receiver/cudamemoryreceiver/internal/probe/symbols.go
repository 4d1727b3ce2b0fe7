// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// function is one that a file has, at an offset in it.
type function struct {
	offset uint64
	kind   kind
}

// functionsIn finds what is to be probed in an executable or a library, once for each address. Large files are read in pieces:
// of a binary with a million symbols no more is kept than what is looked for.
func functionsIn(file io.ReaderAt) (found []function, err error) {
	defer func() {
		// The file is anybody's, and debug/elf does not promise to withstand anything.
		if r := recover(); r != nil {
			found, err = nil, fmt.Errorf("not a sound ELF file: %v", r)
		}
	}()
	f, err := elf.NewFile(file)
	if err != nil {
		return nil, err
	}
	if f.Class != elf.ELFCLASS64 || f.ByteOrder != binary.LittleEndian {
		return nil, nil // of another architecture: nobody calls it
	}
	for _, section := range f.Sections {
		if section.Type != elf.SHT_SYMTAB && section.Type != elf.SHT_DYNSYM || int(section.Link) >= len(f.Sections) {
			continue
		}
		names, err := namesIn(f.Sections[section.Link])
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			continue
		}
		err = symbolsIn(section, func(name uint32, info byte, defined bool, address uint64) {
			k, wanted := names[name]
			if !wanted || !defined || elf.ST_TYPE(info) != elf.STT_FUNC {
				return
			}
			if offset, ok := offsetOf(f, address); ok && len(found) < maxFunctions && !slices.ContainsFunc(found, func(x function) bool { return x.offset == offset }) {
				found = append(found, function{offset, k})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

const (
	pieceSize = 1 << 16
	// maxFunctions is more than a file has, unless somebody made it to be a nuisance.
	maxFunctions = 1024
)

// namesIn are the offsets in a string table at which a function's name begins. A linker lets a name begin within a longer one.
func namesIn(table *elf.Section) (map[uint32]kind, error) {
	found := map[uint32]kind{}
	piece := make([]byte, pieceSize)
	err := pieces(table, piece, func(at uint64, piece []byte) int {
		rest := piece
		for {
			i := bytes.Index(rest, []byte("cu"))
			if i < 0 {
				return len(piece) - min(len(piece), 1)
			}
			rest = rest[i:]
			end := bytes.IndexByte(rest, 0)
			if end < 0 && len(rest) < 64 {
				return len(piece) - len(rest) // goes on in the next piece
			}
			if end > 0 {
				if k, ok := functions[string(rest[:end])]; ok && len(found) < maxFunctions {
					found[uint32(at)+uint32(len(piece)-len(rest))] = k
				}
			}
			rest = rest[2:]
		}
	})
	return found, err
}

// symbolsIn calls fn with each symbol of a table.
func symbolsIn(table *elf.Section, fn func(name uint32, info byte, defined bool, address uint64)) error {
	return pieces(table, make([]byte, pieceSize/elf.Sym64Size*elf.Sym64Size), func(_ uint64, piece []byte) int {
		used := 0
		for ; len(piece)-used >= elf.Sym64Size; used += elf.Sym64Size {
			s := piece[used:]
			section := binary.LittleEndian.Uint16(s[6:])
			fn(binary.LittleEndian.Uint32(s), s[4], section != uint16(elf.SHN_UNDEF), binary.LittleEndian.Uint64(s[8:]))
		}
		return used
	})
}

// pieces reads a section through a buffer. fn is given what is there and where it is in the section, and says how much of it
// is done with; it gets the rest again, with more.
func pieces(section *elf.Section, buffer []byte, fn func(at uint64, piece []byte) int) error {
	var at uint64
	held := 0
	for at+uint64(held) < section.Size {
		n, err := section.ReadAt(buffer[held:], int64(at)+int64(held))
		if n == 0 {
			return fmt.Errorf("section %s ends early: %w", section.Name, err)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		held += n
		used := fn(at, buffer[:held])
		held = copy(buffer, buffer[used:held])
		at += uint64(used)
		if used == 0 && held == len(buffer) {
			return fmt.Errorf("section %s cannot be read in pieces", section.Name)
		}
	}
	return nil
}

// offsetOf is where in the file an address is.
func offsetOf(f *elf.File, address uint64) (uint64, bool) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Vaddr <= address && address < p.Vaddr+p.Filesz {
			return address - p.Vaddr + p.Off, true
		}
	}
	return 0, false
}
