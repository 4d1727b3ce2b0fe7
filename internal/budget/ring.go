// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"time"
)

// Ring holds Counts by time, in slots that grow coarser with age. The zero value is empty and ready. Every call on a
// ring, and all rings that are merged, take the same layout.
type Ring struct {
	head slot   // the newest; empty only in an empty ring
	tail []byte // the others, as encoding.go has it
}

// maxMinute is the last minute that Unix nanoseconds can name.
const maxMinute = math.MaxInt64 / uint64(time.Minute)

// minute is the minute that holds t. There is nothing before the epoch.
func minute(t int64) uint32 { return uint32(max(t, 0) / int64(time.Minute)) }

// minuteAfter is the first minute that begins at t or later.
func minuteAfter(t int64) uint32 {
	m := minute(t)
	if t > int64(m)*int64(time.Minute) {
		m++
	}
	return m
}

// Add puts counts at event time t. Times mostly rise, but older ones may come too. What is older than the longest window
// before the newest time is forgotten, whenever it comes; so is what cannot be a count (negative, NaN, infinite).
// Nothing changes nothing, the newest time neither. Observed is rounded to whole seconds.
func (r *Ring) Add(l *Layout, t int64, c Counts) {
	n, ok := c.clean()
	if !ok {
		return
	}
	m := minute(t)
	if l.newest(m) == r.head.start && !r.head.empty() {
		r.head.add(n)
		return
	}
	r.weave(l, r.reader(), reader{slot: slot{start: m, counted: n}, ok: true})
}

// Merge adds what o holds. o stays as it is.
func (r *Ring) Merge(l *Layout, o *Ring) { r.weave(l, r.reader(), o.reader()) }

// reader begins at the newest slot.
func (r *Ring) reader() reader { return reader{slot: r.head, ok: !r.head.empty(), rest: r.tail} }

// weave fills r with the slots of a and b, each where the layout has it now.
func (r *Ring) weave(l *Layout, a, b reader) {
	if !a.ok && !b.ok {
		return
	}
	// The tail cannot be written where it is still read. On the stack there is room for any ring but one of fractions and
	// years.
	var buf [2048]byte
	out := buf[:0]
	var w writer
	p := l.places(l.newest(max(a.slot.start, b.slot.start)))
	for a.ok || b.ok {
		from := &a
		if !a.ok || b.ok && b.slot.start > a.slot.start {
			from = &b
		}
		if p.forgotten(from.slot.start) {
			break // and so is all that comes after it
		}
		out = w.put(out, slot{start: p.slot(from.slot.start), counted: from.slot.counted})
		from.next()
	}
	out = w.flush(out)
	r.head = w.head
	if len(out) > cap(r.tail) {
		r.tail = append([]byte(nil), out...) // by what is needed, not to the double
		return
	}
	r.tail = append(r.tail[:0], out...)
}

// Sum is what lies in [from, to), as finely as the ring still knows: each slot that begins before to counts, down to the
// one that holds from.
func (r *Ring) Sum(l *Layout, from, to int64) Counts {
	p := l.places(r.head.start)
	first, end := p.slot(minute(from)), minuteAfter(to)
	var sum Counts
	for i := r.reader(); i.ok && i.slot.start >= first; i.next() {
		if i.slot.start < end {
			sum = sum.Add(i.slot.counts())
		}
	}
	return sum
}

// Sums is Sum for rolling windows, shortest first, that all end at to, in one pass. dst is overwritten and returned; it
// is only allocated when it is too short.
func (r *Ring) Sums(l *Layout, to int64, windows []time.Duration, dst []Counts) []Counts {
	dst = dst[:0]
	p := l.places(r.head.start)
	end := minuteAfter(to)
	i := r.reader()
	var sum Counts
	for _, w := range windows {
		for first := p.slot(minute(to - int64(w))); i.ok && i.slot.start >= first; i.next() {
			if i.slot.start < end {
				sum = sum.Add(i.slot.counts())
			}
		}
		dst = append(dst, sum)
	}
	return dst
}

// Len is how many slots the ring holds.
func (r *Ring) Len() int {
	n := 0
	for i := r.reader(); i.ok; i.next() {
		n++
	}
	return n
}

// writer lays down slots from the newest to the oldest. The bytes pass through it by value, or they could not stay on the
// caller's stack.
type writer struct {
	head   slot   // the first one
	last   slot   // still being filled
	before uint32 // where the one before last begins
}

// put adds s, which may belong into the slot put last.
func (w *writer) put(b []byte, s slot) []byte {
	if s.start == w.last.start && !w.last.empty() {
		w.last.add(s.counted)
		return b
	}
	b = w.flush(b)
	w.last = s
	return b
}

// flush ends the last slot.
func (w *writer) flush(b []byte) []byte {
	switch {
	case w.last.empty():
	case w.head.empty():
		w.head = w.last
	default:
		b = appendSlot(b, w.before, w.last)
	}
	w.before = w.last.start
	return b
}
