// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// slot is what happened from its start on, for as long as the layout says.
type slot struct {
	start uint32 // minutes since the epoch
	counted
}

// Slots are kept as bytes, newest first, because most numbers in them are small: a slot takes 4 to 8 bytes instead of
// 24, and short windows are read first. Each is
//
//	uvarint  twice the minutes by which it begins earlier than the slot before it; 1 more if just these were observed
//	uvarint  the seconds observed, if not
//	uvarint  twice the total, uvarint the bad ones    if both are whole numbers
//	or the byte 1, the total and the good ones as little-endian float64
//
// where a fraction, as summed ratios have it, makes only its own slot wider.
const (
	observed = 1
	fraction = 1
)

// maxSlot is the most bytes that a slot takes.
const maxSlot = 5 + 5 + 1 + 16

// maxWhole is where float64 stops telling whole numbers apart.
const maxWhole = 1 << 53

// appendSlot appends s to b; before is the start of the slot before it.
func appendSlot(b []byte, before uint32, s slot) []byte {
	if gap := uint64(before - s.start); uint64(s.seconds) == 60*gap {
		b = binary.AppendUvarint(b, gap<<1|observed)
	} else {
		b = binary.AppendUvarint(b, gap<<1)
		b = binary.AppendUvarint(b, uint64(s.seconds))
	}
	if s.total > maxWhole || s.total != math.Trunc(s.total) || s.good != math.Trunc(s.good) {
		b = append(b, fraction)
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.total))
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(s.good))
	}
	b = binary.AppendUvarint(b, uint64(s.total)<<1)
	return binary.AppendUvarint(b, uint64(s.total-s.good))
}

// reader goes through slots from the newest to the oldest.
type reader struct {
	slot slot // the current one, while ok
	ok   bool
	rest []byte
}

// next goes to the next older slot. The bytes are a ring's own, so they are good.
func (r *reader) next() {
	if r.ok = len(r.rest) > 0; !r.ok {
		return
	}
	s := &r.slot
	gap := r.uvarint()
	s.start -= uint32(gap >> 1)
	if gap&observed != 0 {
		s.seconds = uint32(gap>>1) * 60
	} else {
		s.seconds = uint32(r.uvarint())
	}
	if total := r.uvarint(); total == fraction {
		s.total = math.Float64frombits(binary.LittleEndian.Uint64(r.rest))
		s.good = math.Float64frombits(binary.LittleEndian.Uint64(r.rest[8:]))
		r.rest = r.rest[16:]
	} else {
		s.total = float64(total >> 1)
		s.good = float64(total>>1 - r.uvarint())
	}
}

func (r *reader) uvarint() uint64 {
	if v := r.rest[0]; v < 0x80 {
		r.rest = r.rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.rest)
	r.rest = r.rest[n:]
	return v
}

var errCut = errors.New("ends within a slot")

// check says what is wrong with bytes that came from elsewhere, so that a reader can go through them. newest is where the
// first slot begins.
func check(newest uint32, b []byte) error {
	if uint64(newest) > maxMinute {
		return fmt.Errorf("minute %d is later than nanoseconds can say, which is %d", newest, maxMinute)
	}
	start := uint64(newest)
	for i := 0; len(b) > 0; i++ {
		var err error
		uvarint := func() uint64 {
			v, n := binary.Uvarint(b)
			if n <= 0 {
				err, n = errCut, len(b)
			}
			b = b[n:]
			return v
		}
		gap := uvarint()
		seconds := gap >> 1 * 60
		if gap&observed == 0 {
			seconds = uvarint()
		}
		gap >>= 1
		total, good := 0.0, 0.0
		if v := uvarint(); v != fraction {
			total = float64(v >> 1)
			good = total - float64(uvarint())
			if v&1 != 0 || v>>1 > maxWhole {
				return fmt.Errorf("slot %d: %d is not twice a total", i, v)
			}
		} else if len(b) < 16 {
			err = errCut
		} else {
			total = math.Float64frombits(binary.LittleEndian.Uint64(b))
			good = math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))
			b = b[16:]
		}
		switch {
		case err != nil:
			return fmt.Errorf("slot %d: %w", i, err)
		case (gap == 0) != (i == 0) || gap > start:
			return fmt.Errorf("slot %d begins %d minutes earlier than the one before it, which begins at %d: want the newest first", i, gap, start)
		case seconds > math.MaxUint32:
			return fmt.Errorf("slot %d: %d seconds observed: want at most %d", i, seconds, uint32(math.MaxUint32))
		case !(good >= 0 && good <= total && total <= maxCount):
			return fmt.Errorf("slot %d: %v of %v are good: want a share of a count", i, good, total)
		case seconds == 0 && total == 0:
			return fmt.Errorf("slot %d is empty", i)
		}
		start -= gap
	}
	return nil
}
