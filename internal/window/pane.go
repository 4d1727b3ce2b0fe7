// SPDX-License-Identifier: Apache-2.0

package window

import (
	"slices"
	"time"
)

// Start is the start of the window of the given length that holds the event time t.
func Start(t int64, length time.Duration) int64 {
	l := int64(length)
	start := t - t%l
	if t < start { // Go's % keeps the sign; event times before 1970 are somebody's mistake, not a crash
		start -= l
	}
	return start
}

// GCD is the longest pane of which every given length is a multiple; 0 for none.
func GCD(lengths ...time.Duration) time.Duration {
	var g time.Duration
	for _, l := range lengths {
		for l != 0 {
			g, l = l, g%l
		}
	}
	return g
}

// Panes holds the open panes of one series, oldest first. A pane is the shortest span that all windows over the
// series are made of, so a point is added once, however many windows look at it. A is the accumulator; those that are
// closed go back to a Pool, so steady state allocates nothing.
type Panes[A any] struct {
	open []Pane[A]
}

// Pane is an accumulator and the start of the span it is for.
type Pane[A any] struct {
	Start int64
	Acc   *A
}

// Pool holds emptied accumulators to be used again, by series that are alike. The zero value is ready.
type Pool[A any] struct {
	free []*A
}

// maxFree bounds the accumulators of a Pool: a replay opens a great many panes at once, live input two a series.
const maxFree = 100_000

// few panes are moved when the oldest is taken, so that the room before them is used again.
const few = 64

// At returns the accumulator of the pane that begins at start, opening it with one of the pool if there is none.
func (p *Panes[A]) At(start int64, pool *Pool[A]) *A {
	i := len(p.open)
	for i > 0 && p.open[i-1].Start > start {
		i--
	}
	if i > 0 && p.open[i-1].Start == start {
		return p.open[i-1].Acc
	}
	var acc *A
	if n := len(pool.free); n > 0 {
		acc, pool.free[n-1], pool.free = pool.free[n-1], nil, pool.free[:n-1]
	} else {
		acc = new(A)
	}
	p.open = slices.Insert(p.open, i, Pane[A]{start, acc})
	return acc
}

// Take removes the pane that begins at start and returns its accumulator, or nil. The caller gives it back with
// Release once it is empty again.
func (p *Panes[A]) Take(start int64) *A {
	if len(p.open) == 0 || p.open[0].Start != start {
		return nil
	}
	acc := p.open[0].Acc
	if len(p.open) > few {
		p.open[0] = Pane[A]{}
		p.open = p.open[1:] // moving them all for each would take a replay of months for ever
	} else {
		p.open = slices.Delete(p.open, 0, 1)
	}
	return acc
}

// Release hands an emptied accumulator back for reuse.
func (p *Panes[A]) Release(acc *A, pool *Pool[A]) {
	if len(pool.free) < maxFree {
		pool.free = append(pool.free, acc)
	}
}

// Oldest is the start of the oldest open pane.
func (p *Panes[A]) Oldest() (start int64, ok bool) {
	if len(p.open) == 0 {
		return 0, false
	}
	return p.open[0].Start, true
}

// Youngest is the start of the youngest open pane.
func (p *Panes[A]) Youngest() (start int64, ok bool) {
	if len(p.open) == 0 {
		return 0, false
	}
	return p.open[len(p.open)-1].Start, true
}

// All are the open panes, oldest first. The result is not to be changed.
func (p *Panes[A]) All() []Pane[A] { return p.open }

// Len is the number of open panes.
func (p *Panes[A]) Len() int { return len(p.open) }
