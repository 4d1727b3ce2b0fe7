// SPDX-License-Identifier: Apache-2.0

// Package trace knows when requests arrive and how long they are: replayed from
// the Azure LLM inference trace (CSV) or a Mooncake trace (JSONL), or drawn from
// a Poisson process.
package trace

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"time"
)

// Row is one arrival.
type Row struct {
	// At counts from the first row of the trace.
	At time.Duration
	// PromptTokens and OutputTokens are the lengths.
	PromptTokens, OutputTokens int
	// Prefix names the content of the prompt by blocks of PrefixTokens tokens, each
	// with all that is before it. Nil where the trace does not say.
	Prefix       []uint64
	PrefixTokens int
}

// Source yields arrivals in order of time, until ok is false.
type Source interface {
	Next() (row Row, ok bool)
}

// Load reads a trace file; the format is told by its first byte.
func Load(path string) ([]Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	rows, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("trace: %s: %w", path, err)
	}
	return rows, nil
}

// Read reads a trace: JSON lines as Mooncake publishes them if it begins with a
// brace, Azure's CSV otherwise.
func Read(r io.Reader) ([]Row, error) {
	br := bufio.NewReaderSize(r, 1<<16)
	first, err := br.Peek(1)
	if err != nil {
		return nil, fmt.Errorf("empty: want Azure CSV (TIMESTAMP,ContextTokens,GeneratedTokens) or Mooncake JSON lines")
	}
	if first[0] == '{' {
		return readMooncake(br)
	}
	return readAzure(br)
}

// replay yields the rows of a trace, once or for ever.
type replay struct {
	rows   []Row
	i      int
	loop   bool
	offset time.Duration
	period time.Duration
}

// Replay yields rows once or, with loop, again and again: the next round begins
// one mean gap after the last arrival, so that the seam shows in no rate.
func Replay(rows []Row, loop bool) Source {
	r := &replay{rows: rows, loop: loop}
	if n := len(rows); n > 0 {
		last := rows[n-1].At
		r.period = last + max(last/time.Duration(max(n-1, 1)), time.Millisecond)
	}
	return r
}

func (r *replay) Next() (Row, bool) {
	if r.i == len(r.rows) {
		if !r.loop || len(r.rows) == 0 {
			return Row{}, false
		}
		r.i, r.offset = 0, r.offset+r.period
	}
	row := r.rows[r.i]
	row.At += r.offset
	r.i++
	return row, true
}
