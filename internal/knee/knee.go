// SPDX-License-Identifier: Apache-2.0

// Package knee finds where more batch stops paying: the point of a curve of throughput over batch size after which it
// flattens.
package knee

import (
	"cmp"
	"slices"
)

// Point is the throughput that was measured with a batch size. Points of the same size count as their mean.
type Point struct {
	Batch, Throughput float64
}

const (
	// minPoints is the fewest different batch sizes that show a bend.
	minPoints = 5
	// minBend is how far the curve must rise above the straight line between its ends, both ranges being 1. A straight
	// line with noise of some percent stays below that.
	minBend = 0.15
)

// Find returns the knee: the point that lies furthest above the line between the first and the last, as in Kneedle
// (V. Satopää, J. Albrecht, D. Irwin, B. Raghavan, Finding a "Kneedle" in a haystack, ICDCSW 2011). The curve is that of the
// best throughput with at most so much batch, so that one which falls again bends at its top. It reports false when
// nothing bends: where more batch still pays, or too little was seen.
func Find(points []Point) (Point, bool) {
	curve := means(points)
	if len(curve) < minPoints {
		return Point{}, false
	}
	for i := 1; i < len(curve); i++ {
		curve[i].Throughput = max(curve[i].Throughput, curve[i-1].Throughput)
	}
	first, last := curve[0], curve[len(curve)-1]
	rise := last.Throughput - first.Throughput
	if !(rise > 0) {
		return Point{}, false
	}
	var knee Point
	var most float64
	for _, p := range curve {
		bend := (p.Throughput-first.Throughput)/rise - (p.Batch-first.Batch)/(last.Batch-first.Batch)
		if bend > most {
			knee, most = p, bend
		}
	}
	return knee, most >= minBend
}

// means is a copy of the points in the order of batch sizes, one for each.
func means(points []Point) []Point {
	curve := slices.Clone(points)
	slices.SortFunc(curve, func(a, b Point) int { return cmp.Compare(a.Batch, b.Batch) })
	n := 0
	for i := 0; i < len(curve); {
		from, sum := i, 0.0
		for ; i < len(curve) && curve[i].Batch <= curve[from].Batch; i++ {
			sum += curve[i].Throughput
		}
		curve[n] = Point{curve[from].Batch, sum / float64(i-from)}
		n++
	}
	return curve[:n]
}
