// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"time"
)

// ErrNoRoom says that the disk is too full for the database to be opened. Nothing is damaged: it can be tried again.
var ErrNoRoom = errors.New("no room on the disk")

const (
	// spare is what has to be free of the disk besides what is known to be written: the first page of a log, a file of chunks
	// that is begun, directories.
	spare = 1 << 20
	// chunkBytes is what a chunk has at most, with what stands around it: the TSDB begins a new one at 1 KiB.
	chunkBytes = 1100
	// lateChunkBytes is what the newest chunk of late samples of a series has at most, which is 32 samples.
	lateChunkBytes = 500
)

// Room says by an error that the disk is so full that nothing may be written. It looks ten times a second, in which not more than
// some MiB are written.
//
// It stands before every write because the TSDB panics when it cannot write a chunk, in a goroutine of its own or with locks held. So
// there is always room for the chunks that are in memory, those that are not full included, even when min_free_bytes does not ask
// for any.
func (s *Store) Room(now time.Time) error {
	const every = 100 * time.Millisecond
	s.mu.Lock()
	defer s.mu.Unlock()
	if since := now.Sub(s.looked); since < 0 || since >= every {
		s.looked = now
		s.free, s.unknown = free(s.opts.Directory)
		s.keepPending()
	}
	switch need := s.needed(); {
	case s.unknown != nil:
		return fmt.Errorf("look how much of the disk is free: %w", s.unknown)
	case s.free < uint64(s.opts.MinFreeBytes):
		return noRoom(s.opts.Directory, s.free, s.opts.MinFreeBytes, "min_free_bytes is %d")
	case s.free < uint64(need):
		return noRoom(s.opts.Directory, s.free, need, forMemory)
	}
	return nil
}

// forMemory says what bytes are for.
const forMemory = "%d may be needed to write what is in memory"

// pending is how many bytes the chunks have at most that are full and not yet written.
func (s *Store) pending() int64 { return (s.made() - s.written.Load()) * chunkBytes }

// needed is how many bytes have to be free for samples to be taken, each of which may make a chunk full.
func (s *Store) needed() int64 { return s.pending() + int64(s.Head().NumSeries())*chunkBytes + spare }

// roomFor says by an error that so many bytes cannot be written.
func (s *Store) roomFor(bytes int64) error { return room(s.opts.Directory, bytes+spare, forMemory) }

// free is a variable for tests, which have no disk of their own.
var free = freeBytes

func room(dir string, need int64, what string) error {
	have, err := free(dir)
	switch {
	case err != nil:
		return fmt.Errorf("look how much of the disk is free: %w", err)
	case have < uint64(need):
		return noRoom(dir, have, need, what)
	}
	return nil
}

func noRoom(dir string, have uint64, need int64, what string) error {
	return fmt.Errorf("%w: %d bytes of the disk of %s are free, and "+what, ErrNoRoom, have, dir, need)
}
