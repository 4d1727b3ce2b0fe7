// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
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
	b := &book{most: most, of: map[uint64]*record{}, read: now}
	b.take = b.hear
	return b
}

// begin begins a reading.
func (b *book) begin() {
	b.turn++
	b.beyond, b.rest = 0, 0
}

// hear takes what a reading says of a process, which the reader may use again. The first that come stay: a process that is told
// one by one is until it ends.
func (b *book) hear(p *probe.Process) {
	r := b.of[p.ID]
	if r == nil {
		if len(b.of) >= b.most {
			b.beyond++
			b.rest += p.Live
			return
		}
		// It was not there at the last reading, so what it has done was since then.
		r = &record{since: b.read}
		b.of[p.ID] = r
		b.records = append(b.records, r)
	}
	r.values, r.turn = *p, b.turn
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
}

func (b *book) gone(r *record) bool { return r.values.Ended || r.turn != b.turn }
