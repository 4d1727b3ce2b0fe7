// SPDX-License-Identifier: Apache-2.0

package engine

import "sort"

// Histogram has explicit buckets with inclusive upper bounds.
type Histogram struct {
	// Bounds are the finite upper bounds, ascending, shared and never written.
	Bounds []float64
	// Counts has one more entry than Bounds: the last is what lies above them all.
	// They are per bucket, not cumulative.
	Counts []uint64
	Sum    float64
	Count  uint64
}

func newHistogram(bounds []float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

func (h *Histogram) observe(v float64) {
	h.Counts[sort.SearchFloat64s(h.Bounds, v)]++
	h.Sum += v
	h.Count++
}
