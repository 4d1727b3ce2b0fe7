// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"maps"
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/probe"
)

// book holds what the last reading has said of each process. In the steady state a reading allocates nothing.
type book struct {
	most    int                  // processes that are told one by one
	take    func(*probe.Process) // hear, made once
	of      map[uint64]*record   // by the ID of probe.Process
	records []*record            // as they came
	ended   []*record            // with the last reading
	turn    uint64
	read    int64 // when the last reading was, in Unix nanoseconds

	beyond int    // processes of the last reading for which there was no room
	rest   uint64 // what these hold

	waiting  map[uint64]waiter // those for which there was none, by ID: no more than the kernel remembers, which is max_entries
	admitted int               // how many of them there is room for from the next reading on
	fresh    int               // where in records those of this reading begin
}

// waiter is a process for which there is no room yet.
type waiter struct {
	since    int64 // as of a record
	turn     uint64
	admitted bool
}

// record is what is known of a process.
type record struct {
	values probe.Process // of the last reading in which it was
	since  int64         // when counting began, in Unix nanoseconds
	turn   uint64
	who    identity
	told   identity // as its series were written last; zero where none was
}

// identity is who a process is in what is told of it.
type identity struct {
	workload.Process
	device string // hw.id; empty where it is not certain
}

// process is the record's, for those who do not know of the program that it executes.
func (r *record) process() gpuwatch.Process {
	return gpuwatch.Process{PID: r.values.PID, StartTime: r.values.StartTime}
}

// newBook returns a book of what is counted from now on.
func newBook(most int, now int64) *book {
	b := &book{most: most, of: map[uint64]*record{}, waiting: map[uint64]waiter{}, read: now}
	b.take = b.hear
	return b
}

// begin begins a reading.
func (b *book) begin() {
	b.turn++
	b.beyond, b.rest, b.fresh = 0, 0, len(b.records)
}

// hear takes what a reading says of a process, which the reader may use again. The first that come stay, which IDs tell of those of one
// reading: a process that is told one by one is until it ends.
func (b *book) hear(p *probe.Process) {
	r := b.of[p.ID]
	if r == nil {
		if r = b.admit(p); r == nil {
			return
		}
		b.of[p.ID] = r
	}
	r.values, r.turn = *p, b.turn
}

// admit makes a record of a process that has none, where there is room for one.
func (b *book) admit(p *probe.Process) *record {
	w, waits := b.waiting[p.ID]
	if !waits {
		w.since = b.read // it was not there at the last reading, so what it has done was since then
	}
	w.turn = b.turn
	if w.admitted {
		b.admitted--
	} else if waits || len(b.of)+b.admitted >= b.most {
		if r := b.displace(p.ID); r != nil {
			delete(b.waiting, p.ID)
			r.since = w.since
			return r
		}
		b.wait(p, w)
		return nil
	}
	delete(b.waiting, p.ID)
	r := &record{since: w.since}
	b.records = append(b.records, r)
	return r
}

// displace lets the one of this reading that came last wait, if it came after a process.
func (b *book) displace(id uint64) *record {
	var last *record
	for _, r := range b.records[b.fresh:] {
		if last == nil || r.values.ID > last.values.ID {
			last = r
		}
	}
	if last == nil || last.values.ID <= id {
		return nil
	}
	b.wait(&last.values, waiter{since: last.since, turn: b.turn})
	delete(b.of, last.values.ID)
	return last
}

// wait counts a process for which there is no room.
func (b *book) wait(p *probe.Process, w waiter) {
	b.beyond++
	b.rest += p.Live
	if p.Ended {
		delete(b.waiting, p.ID)
		return
	}
	b.waiting[p.ID] = w
}

// end ends a reading at now. Processes that have ended leave, and so do those of which it did not tell.
func (b *book) end(now int64) {
	b.read = now
	b.ended = b.ended[:0]
	for _, r := range b.records {
		if b.gone(r) {
			b.ended = append(b.ended, r)
			delete(b.of, r.values.ID)
		}
	}
	if len(b.ended) > 0 {
		b.records = slices.DeleteFunc(b.records, b.gone)
	}
	b.call()
}

// call admits those that wait, the first that came first, to what room there is.
func (b *book) call() {
	for id, w := range b.waiting {
		if w.turn != b.turn { // it has ended
			delete(b.waiting, id)
		}
	}
	b.admitted = min(b.most-len(b.of), len(b.waiting))
	if b.admitted == 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(b.waiting))[:b.admitted] {
		w := b.waiting[id]
		w.admitted = true
		b.waiting[id] = w
	}
}

func (b *book) gone(r *record) bool { return r.values.Ended || r.turn != b.turn }
