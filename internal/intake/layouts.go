// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// layout is a list of bucket boundaries. It never changes: a Sink may keep it, and a great many series share it.
type layout struct {
	bounds []float64 // as they came
	rising bool      // they are boundaries
	scaled []scaledBounds
}

// scaledBounds are boundaries in the base unit.
type scaledBounds struct {
	scale float64
	base  []float64
}

// inBase returns the boundaries times scale.
func (l *layout) inBase(scale float64) []float64 {
	if scale == 1 || len(l.bounds) == 0 {
		return l.bounds
	}
	for i := range l.scaled {
		if l.scaled[i].scale == scale {
			return l.scaled[i].base
		}
	}
	base := make([]float64, len(l.bounds))
	for i, b := range l.bounds {
		base[i] = b * scale
	}
	l.scaled = append(l.scaled, scaledBounds{scale, base})
	return base
}

// fits reports whether boundaries and counts are a histogram. That of boundaries is known, since they never change.
func (l *layout) fits(counts []uint64) bool { return l.rising && len(counts) == len(l.bounds)+1 }

// is reports whether boundaries are those of the layout.
func (l *layout) is(bounds pcommon.Float64Slice) bool {
	if l == nil || bounds.Len() != len(l.bounds) {
		return false
	}
	for i, b := range l.bounds {
		if b != bounds.At(i) {
			return false
		}
	}
	return true
}

// layouts holds each list of boundaries once, by its hash.
type layouts map[uint64]*layout

// maxLayouts bounds those that are shared; a list beyond them is its series' own.
const maxLayouts = 10_000

// of returns the layout of boundaries, which is most likely the hint.
func (l layouts) of(bounds pcommon.Float64Slice, hint *layout) *layout {
	if hint.is(bounds) {
		return hint
	}
	return l.share(bounds.AsRaw()) // a copy
}

// share returns the layout of boundaries that nobody changes any more.
func (l layouts) share(raw []float64) *layout {
	h := xxhash.New()
	var b [8]byte
	for _, v := range raw {
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
		h.Write(b[:]) //nolint:errcheck // it never fails
	}
	id := h.Sum64()
	known := l[id]
	if known != nil && slices.Equal(known.bounds, raw) {
		return known
	}
	own := &layout{bounds: raw, rising: sketch.Valid(raw, make([]uint64, len(raw)+1))}
	if known == nil && len(l) < maxLayouts {
		l[id] = own
	}
	return own
}
