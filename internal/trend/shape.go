// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"math"
	"slices"
)

// Shape is how a rise goes.
type Shape uint8

const (
	// Steady: it goes on.
	Steady Shape = iota
	// Steps: a few, and level between them: a cache that takes a new block for a new maximum.
	Steps
	// Flattening: it rose faster than it does.
	Flattening
)

func (s Shape) String() string { return [...]string{"steady", "steps", "flattening"}[s] }

const (
	// maxSteps is how many steps are no leak yet.
	maxSteps = 3
	// leastBend is how many cells there are at least before and after a bend, and after a step.
	leastBend, leastStep = 6, 3
	// flattened is the share of its former slope below which a rise flattens.
	flattened = 0.6
	// slowed is the share below which it may yet flatten.
	slowed = 0.85
	// smoothing is how many cells say as much as one would, had the median of five not made neighbours alike.
	smoothing = 2.5
	// exact is the share of the variance below which there is nothing left to explain.
	exact = 1e-9
)

// shape compares three explanations of y: a line, a line that bends, and levels with a few steps between them. Schwarz's criterion
// decides (G. Schwarz, Estimating the dimension of a model, Ann. Stat. 6, 1978). kept is how much of its slope is left after a
// bend that is better than a line, wherever that is worth asking, and 1 where there is none; bent is where that bend is, and 0 where there is none.
func (sc *scratch) shape(x, y []float64) (shape Shape, kept float64, bent int) {
	y = sc.smooth(y)
	n := float64(len(y))
	total := spread(y)
	score := func(left float64, parameters int) float64 {
		return n/smoothing*math.Log(max(left, exact*total)) + float64(parameters)*math.Log(n)
	}
	line, slope := lineThrough(x, y)
	best, kept := score(line, 2), 1.0
	if left, before, after, at := bend(x, y, line, slope); score(left, 4) < best {
		best, bent = score(left, 4), at
		if before > 0 {
			kept = after / before
		}
		if kept < flattened {
			shape = Flattening
		}
	}
	for steps, left := range sc.levels(y) {
		if score(left, 2*(steps+1)) < best {
			best, shape = score(left, 2*(steps+1)), Steps
		}
	}
	return shape, kept, bent
}

// smooth takes what stands out for one or two cells away, and leaves steps as they are: the median of five.
func (sc *scratch) smooth(y []float64) []float64 {
	sc.sorted = slices.Grow(sc.sorted[:0], len(y))[:len(y)]
	for i := range y {
		var five [5]float64
		lo := min(max(i-2, 0), len(y)-5)
		copy(five[:], y[lo:lo+5])
		slices.Sort(five[:])
		sc.sorted[i] = five[2]
	}
	return sc.sorted
}

func mean(y []float64) float64 {
	sum := 0.0
	for _, v := range y {
		sum += v
	}
	return sum / float64(len(y))
}

// spread is the sum of squares around the mean.
func spread(y []float64) float64 {
	m, sum := mean(y), 0.0
	for _, v := range y {
		sum += (v - m) * (v - m)
	}
	return sum
}

// lineThrough is what a line of least squares leaves, and its slope.
func lineThrough(x, y []float64) (left, slope float64) {
	mx, my := mean(x), mean(y)
	var xx, xy, yy float64
	for i := range y {
		dx, dy := x[i]-mx, y[i]-my
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	return max(yy-xy*xy/xx, 0), xy / xx
}

// bend is what two lines that meet leave, at the place where that is least, and their slopes. line and slope are those of one line.
func bend(x, y []float64, line, slope float64) (left, before, after float64, place int) {
	left, before, after = line, slope, slope
	mx, my := mean(x), mean(y)
	for at := leastBend; at < len(y)-leastBend; at++ {
		// The part of the second line that the first does not explain: Frisch, Waugh and Lovell.
		var mh, xh, xx float64
		for i := at; i < len(x); i++ {
			mh += x[i] - x[at]
		}
		mh /= float64(len(x))
		hinge := func(i int) float64 { return max(x[i]-x[at], 0) - mh }
		for i := range x {
			xh, xx = xh+(x[i]-mx)*hinge(i), xx+(x[i]-mx)*(x[i]-mx)
		}
		var hh, hy float64
		for i := range x {
			h := hinge(i) - xh/xx*(x[i]-mx)
			hh, hy = hh+h*h, hy+h*(y[i]-my)
		}
		if now := line - hy*hy/hh; now < left {
			left, before = max(now, 0), slope-hy/hh*xh/xx
			after, place = before+hy/hh, at
		}
	}
	return left, before, after, place
}

// levels is what constant levels leave, by the number of steps between them: the least there can be, by dynamic programming (I. E.
// Auger and C. E. Lawrence, Algorithms for the optimal identification of segment neighborhoods, Bull. Math. Biol. 51,
// 1989).
func (sc *scratch) levels(y []float64) (left [maxSteps + 1]float64) {
	n := len(y)
	sc.sums = append(sc.sums[:0], 0)
	sc.squares = append(sc.squares[:0], 0)
	m := mean(y)
	for i, v := range y {
		sc.sums = append(sc.sums, sc.sums[i]+v-m)
		sc.squares = append(sc.squares, sc.squares[i]+(v-m)*(v-m))
	}
	one := func(from, to int) float64 {
		sum := sc.sums[to] - sc.sums[from]
		return max(sc.squares[to]-sc.squares[from]-sum*sum/float64(to-from), 0)
	}
	sc.costs = slices.Grow(sc.costs[:0], 2*(n+1))[:2*(n+1)]
	before, now := sc.costs[:n+1], sc.costs[n+1:]
	for to := range before {
		before[to] = math.Inf(1)
		if to >= leastStep {
			before[to] = one(0, to)
		}
	}
	left[0] = before[n]
	for steps := 1; steps <= maxSteps; steps++ {
		for to := range now {
			now[to] = math.Inf(1)
			for from := leastStep; from <= to-leastStep; from++ {
				now[to] = min(now[to], before[from]+one(from, to))
			}
		}
		left[steps] = now[n]
		before, now = now, before
	}
	return left
}
