// SPDX-License-Identifier: Apache-2.0

package store

import (
	"math"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/storage"
)

// given is what a transaction has been given: the TSDB compares a sample with what was there before the transaction only.
type given struct {
	floats     map[sampleKey]uint64 // bits
	histograms map[sampleKey]*histogram.Histogram
}

type sampleKey struct {
	ref storage.SeriesRef
	t   int64
}

// keepGiven is how many samples a transaction may have for its map to be the next one's, too: 4 MiB.
const keepGiven = 100_000

// reset forgets all for the next transaction.
func (g *given) reset() {
	if g.floats == nil || len(g.floats) > keepGiven {
		g.floats = map[sampleKey]uint64{}
	}
	clear(g.floats)
	clear(g.histograms)
}

// agrees remembers a sample, and says whether none of another value was given for its series and time.
func (g *given) agrees(ref storage.SeriesRef, t int64, v float64, h *histogram.Histogram) bool {
	key := sampleKey{ref, t}
	if h == nil {
		bits, known := g.floats[key]
		if known {
			return bits == math.Float64bits(v)
		}
		g.floats[key] = math.Float64bits(v)
		return g.histograms[key] == nil
	}
	if other := g.histograms[key]; other != nil {
		return h.Equals(other)
	}
	if g.histograms == nil {
		g.histograms = map[sampleKey]*histogram.Histogram{}
	}
	g.histograms[key] = h
	_, known := g.floats[key]
	return !known
}
