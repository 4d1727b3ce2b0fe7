// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"math"
	"slices"
)

// stair is memory that rises by steps of one size at even distances: what a view ends with. A few of them are a cache that has grown
// to its size, and those that go on are a leak, although between them nothing rises for hours.
type stair struct {
	steps        int
	every, since float64 // seconds from one to the next, and since the last one
	size         float64 // of one
}

const (
	// endless is how many even steps are a leak: one more than a cache may have.
	endless = maxSteps + 1
	// overdue is how many distances nothing must have risen for before a stair has come to its end.
	overdue = 1.5
	// uneven is how many times the least distance, or size, the greatest may be.
	uneven = 1.5
	// manySteps is about how many there are at most in a view: more of them are told by a view that is shorter.
	manySteps = 10
	// even is the share of a step by which what is between two of them may vary.
	even = 1.0 / 6
	// stairTime is how many times MinDuration the steps must have taken.
	stairTime = 1.25
)

// goesOn reports whether there have been enough steps for long enough, and the next is not overdue.
func (s *stair) goesOn(minDuration float64) bool {
	return s.steps >= endless && float64(s.steps-1)*s.every >= stairTime*minDuration && s.since <= overdue*s.every
}

// rate is that of a stair of which one step more or less may have been seen.
func (s *stair) rate() Estimate {
	rate, part := s.size/s.every, 1/float64(s.steps)
	return Estimate{rate, rate * (1 - part), rate * (1 + part)}
}

// tread is what is between two steps.
type tread struct {
	from, n     int
	sum, square float64
}

func (t *tread) add(y float64) { t.n, t.sum, t.square = t.n+1, t.sum+y, t.square+y*y }

func (t *tread) mean() float64 { return t.sum / float64(t.n) }

// deviation is the standard deviation around the mean.
func (t *tread) deviation() float64 {
	return math.Sqrt(max(t.square/float64(t.n)-t.mean()*t.mean(), 0))
}

// stairs finds the even steps that smooth y ends with, none where it falls, or rises in between.
func (sc *scratch) stairs(x, y []float64, width float64) (s stair) {
	least := (slices.Max(y) - slices.Min(y)) / (2 * manySteps)
	sc.treads = append(sc.treads[:0], tread{})
	now := &sc.treads[0]
	for i := 0; i < len(y); i++ {
		switch {
		case now.n == 0 || math.Abs(y[i]-now.mean()) <= least:
			now.add(y[i])
			continue
		case y[i] < now.mean():
			return stair{}
		}
		if now.n < leastStep && len(sc.treads) > 1 {
			return stair{} // it rises on
		}
		next := tread{from: i}
		if i+1 < len(y) && y[i+1]-y[i] > least {
			i++ // within this cell it was taken
		}
		next.add(y[i])
		sc.treads = append(sc.treads, next)
		now = &sc.treads[len(sc.treads)-1]
	}
	last := len(sc.treads) - 1
	var shortest, longest, lowest, highest float64
	for i := last; i > 0; i-- {
		up := sc.treads[i].mean() - sc.treads[i-1].mean()
		if low, high := min(orFirst(lowest, up), up), max(highest, up); high <= uneven*low && sc.treads[i].deviation() <= even*low && sc.treads[i-1].deviation() <= even*low {
			lowest, highest = low, high
		} else {
			break
		}
		if i < last {
			apart := x[sc.treads[i+1].from] - x[sc.treads[i].from]
			if short, long := min(orFirst(shortest, apart), apart), max(longest, apart); long <= uneven*short+2*width {
				shortest, longest = short, long
			} else {
				break
			}
		}
		s.steps++
		if s.steps > 1 {
			s.every = (x[sc.treads[last].from] - x[sc.treads[i].from]) / float64(s.steps-1)
		}
		s.size = (sc.treads[last].mean() - sc.treads[i-1].mean()) / float64(s.steps)
	}
	s.since = x[len(x)-1] + width - x[sc.treads[last].from]
	return s
}

// orFirst is v, or the first of its kind where there is none yet.
func orFirst(v, first float64) float64 {
	if v == 0 {
		return first
	}
	return v
}
