// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"math"
	"slices"
	"time"
)

const (
	// viewCells is how many cells a view has.
	viewCells = 64
	// mainLevel is the first level whose view is longer than MinDuration.
	mainLevel = 4
	// topLevel is the last: for 3 hours its view is ten days.
	topLevel = 10
	// asleepShare of what there was is near zero: a process that sleeps, or has begun anew.
	asleepShare = 0.2
	// firstHour is what later memory per request is held against.
	firstHour = int64(time.Hour)
)

// Series is the memory of one process over time, and what it did meanwhile. The zero value is empty.
//
// It is a list of cells, in order of time, whose width doubles with their age: those of level k are 2^k widths wide, aligned to the
// epoch, and stand for as long as they are among the last viewCells of level k. So a view of any level can be made of them,
// and there are never more than about viewCells + topLevel*viewCells/2. What is in which cell follows from the times alone:
// points may come in any order, and the union of two series is the series of all their points. Not safe for concurrent use.
type Series struct {
	cells   []cell
	newest  int64 // index of the newest, in widths of level 0
	since   int64 // the first point since it began; 0 for none
	anew    int64 // when it last began anew; 0 for never
	last    point // the newest of memory
	low     point // the newest near zero, while it may only sleep
	first   perRequest
	verdict verdict
	found   [topLevel + 1]finding // by level; what is known is kept until its next cell is complete
}

type point struct {
	_     struct{} `cbor:",toarray"`
	At    int64
	Value float64
}

// cell is what came in a span of time.
type cell struct {
	at               int64 // index of its begin, in widths of level 0
	level            uint8
	n, loads, caches uint32
	bytes            float64 // sum of n
	load             float64 // sum of loads
	peak             float64 // greatest load
	cache            float64 // sum of caches
	served           float64
}

func (c *cell) end() int64 { return c.at + 1<<c.level }

func (c *cell) add(d *cell) {
	c.n, c.loads, c.caches = c.n+d.n, c.loads+d.loads, c.caches+d.caches
	c.bytes, c.load, c.cache, c.served = c.bytes+d.bytes, c.load+d.load, c.cache+d.cache, c.served+d.served
	c.peak = max(c.peak, d.peak)
}

// Outcome is what became of a point.
type Outcome uint8

const (
	// Taken: it is in.
	Taken Outcome = iota
	// Withheld: memory is near zero, or was so lately: the process sleeps, unless it turns out that it has begun anew.
	Withheld
	// Late: it is older than what is remembered, or than the last restart.
	Late
	// Invalid: it is no number, or negative.
	Invalid
)

// Add takes in how many bytes were in use.
func (j *Judge) Add(s *Series, at int64, bytes float64) Outcome {
	if !valid(bytes) {
		return Invalid
	}
	if at > s.last.At && s.since != 0 && j.sleeps(s, at, bytes) {
		return Withheld
	}
	if out := j.put(s, at, cell{n: 1, bytes: bytes}); out != Taken {
		return out
	}
	if s.since == 0 || at < s.since {
		s.since = at
	}
	if at >= s.last.At {
		s.last = point{At: at, Value: bytes}
	}
	if at < s.since+firstHour {
		s.first.add(&cell{n: 1, bytes: bytes})
	}
	return Taken
}

// sleeps reports whether memory is withheld, since it fell to near zero and nobody knows yet what that is. An engine that sleeps gives nearly all of its memory
// back, and takes as much when it wakes: then it goes on as it was, and its sleep is left out, as is one wrong reading. What wakes with less has begun anew, and so has
// what has slept for longer than a verdict takes, or than it was awake.
func (j *Judge) sleeps(s *Series, at int64, bytes float64) bool {
	switch asleep := s.low.At != 0; {
	case bytes < asleepShare*s.last.Value:
		if at > s.low.At {
			s.low = point{At: at, Value: bytes}
		}
		if at-s.last.At <= min(int64(j.options.MinDuration), s.last.At-s.since) {
			return true
		}
	case !asleep:
		return false
	case bytes >= (1-j.options.MinRise)*s.last.Value:
		s.low = point{}
		return false
	case at-s.low.At <= int64(j.options.Settle):
		return true
	}
	began := s.low
	s.restart(began.At, j.width)
	j.Add(s, began.At, began.Value)
	return false
}

// asleep reports whether a process has slept for so long that nothing can be said of it as it was.
func (s *Series) asleep(now int64, o *Options) bool {
	return s.low.At != 0 && now-s.last.At > int64(o.Leave)
}

// Running takes in how many requests were worked on.
func (j *Judge) Running(s *Series, at int64, requests float64) Outcome {
	if !valid(requests) {
		return Invalid
	}
	if s.since != 0 && at < s.since+firstHour {
		s.first.add(&cell{loads: 1, load: requests})
	}
	return j.put(s, at, cell{loads: 1, load: requests, peak: requests})
}

// Cache takes in how full the KV cache was, as a share.
func (j *Judge) Cache(s *Series, at int64, share float64) Outcome {
	if !valid(share) {
		return Invalid
	}
	return j.put(s, at, cell{caches: 1, cache: share})
}

// Served takes in how many requests were finished.
func (j *Judge) Served(s *Series, at int64, requests float64) Outcome {
	if !valid(requests) {
		return Invalid
	}
	return j.put(s, at, cell{served: requests})
}

func valid(v float64) bool { return v >= 0 && !math.IsInf(v, 1) }

func (j *Judge) put(s *Series, at int64, c cell) Outcome {
	if at < s.anew {
		return Late
	}
	c.at = floorDiv(at, j.width)
	switch {
	case len(s.cells) == 0:
		s.newest = c.at
	case c.at == s.newest:
		s.cells[len(s.cells)-1].add(&c)
		return Taken
	case c.end() <= start(s.newest, topLevel):
		return Late
	}
	for level := range s.found {
		if c.at>>level < s.newest>>level {
			s.found[level] = finding{} // late: it may be part of what was found
		}
	}
	s.insert(c)
	s.advance(max(s.newest, c.at))
	return Taken
}

// Merge adds what another series has heard. The verdict stays that of s.
func (j *Judge) Merge(s, other *Series) {
	if len(other.cells) == 0 {
		return
	}
	s.found = [topLevel + 1]finding{}
	if len(s.cells) == 0 {
		s.newest = other.newest
	}
	anew := max(s.anew, other.anew)
	s.forget(floorDiv(anew, j.width))
	for _, c := range other.cells {
		if c.at >= floorDiv(anew, j.width) {
			s.insert(c)
		}
	}
	s.advance(max(s.newest, other.newest))
	switch {
	case other.anew > s.anew:
		s.since, s.first = max(s.since, anew), perRequest{}
		fallthrough
	case other.anew == s.anew:
		if s.since == 0 || (other.since != 0 && other.since < s.since) {
			s.since = other.since
		}
		s.first.merge(&other.first)
	}
	s.anew = anew
	if other.last.At > s.last.At {
		s.last, s.low = other.last, other.low
	}
}

// restart begins anew.
func (s *Series) restart(at, width int64) {
	first := floorDiv(at, width)
	s.forget(first)
	for i := range s.cells {
		s.cells[i].n, s.cells[i].bytes = 0, 0 // what is left is load that came ahead of the memory
	}
	s.anew, s.since, s.last, s.low, s.first = at, 0, point{}, point{}, perRequest{}
	s.verdict, s.found = verdict{}, [topLevel + 1]finding{}
}

// forget drops the cells that begin before an index.
func (s *Series) forget(first int64) {
	s.cells = slices.DeleteFunc(s.cells, func(c cell) bool { return c.at < first })
}

// insert adds a cell to the one that covers it, or as one more. What it covers becomes part of it.
func (s *Series) insert(c cell) {
	i := len(s.cells)
	for i > 0 && s.cells[i-1].at > c.at {
		i--
	}
	if i > 0 && s.cells[i-1].end() > c.at { // begins with or before c
		if s.cells[i-1].level >= c.level {
			s.cells[i-1].add(&c)
			return
		}
		i--
	}
	upTo := i
	for upTo < len(s.cells) && s.cells[upTo].at < c.end() {
		c.add(&s.cells[upTo])
		upTo++
	}
	s.cells = slices.Replace(s.cells, i, upTo, c)
}

// start is the index at which the view of a level begins.
func start(newest int64, level uint8) int64 { return (newest>>level - viewCells + 1) << level }

// advance moves the newest on: cells that have left the view of their level become part of wider ones, or go.
func (s *Series) advance(to int64) {
	s.newest = to
	kept := s.cells[:0]
	for _, c := range s.cells {
		if c.end() <= start(to, topLevel) {
			continue
		}
		for c.level < topLevel {
			wider := c.level + 1
			if end := (c.at>>wider + 1) << wider; end > start(to, c.level) {
				break
			}
			c.level, c.at = wider, c.at>>wider<<wider
		}
		if last := len(kept) - 1; last >= 0 && kept[last].end() > c.at {
			kept[last].add(&c) // both are as wide as their age wants: the same
			continue
		}
		kept = append(kept, c)
	}
	s.cells = kept
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Rose is by how much memory has risen since a time, or since it was first heard of.
func (j *Judge) Rose(s *Series, since int64) float64 {
	for i := range s.cells {
		if c := &s.cells[i]; c.n > 0 && c.end()*j.width > since {
			return s.last.Value - c.bytes/float64(c.n)
		}
	}
	return 0
}

// Since is when the process was first seen, or first after it began anew; 0 if it was not.
func (s *Series) Since() int64 { return s.since }

// Last is the newest value of memory, and when it was.
func (s *Series) Last() (at int64, bytes float64) {
	if s.low.At > s.last.At {
		return s.low.At, s.low.Value
	}
	return s.last.At, s.last.Value
}

// Cells is how many there are: the size of a series.
func (s *Series) Cells() int { return len(s.cells) }
