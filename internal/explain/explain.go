// SPDX-License-Identifier: Apache-2.0

// Package explain ranks what a deviation can be laid to: which value of which dimension the bad events have in common.
//
// The share that a value explains is its attributable fraction: the bad events that would not have been if its events were
// bad as rarely as all others are, of all bad events (M. L. Levin, The occurrence of lung cancer in man, Acta Unio Int.
// Contra Cancrum 9, 1953). A value that is merely frequent explains nothing, however many bad events it has. Between values
// that explain as much, the more surprising dimension comes first, which is the one along which the violating and the
// remaining events are distributed most differently (R. Bhagwan et al., Adtributor: Revenue debugging in advertising systems,
// NSDI 2014).
package explain

import (
	"cmp"
	"math"
	"slices"

	"github.com/otelcol-llm/otelcol-llm/internal/twosample"
)

// Dimension is how the events are distributed along one attribute.
type Dimension struct {
	Name   string
	Values []Value
}

// Value is the events that have one value of it.
type Value struct {
	Name       string
	Bad, Total uint64
}

// Explanation is a value that explains a share of the bad events.
type Explanation struct {
	Dimension, Value string
	Bad, Total       uint64
	// Share of all bad events that is explained, above 0 and at most 1. Shares of different dimensions overlap and do not
	// add up: the same events have a region and a device.
	Share float64
	// Surprise is the Jensen–Shannon divergence of the dimension between the violating and the remaining events, in bits: 0
	// when they are distributed alike, 1 when they have no value in common.
	Surprise float64
	// P is the probability of so many bad events if the value was like the others (Fisher's exact test).
	P float64
}

// Options bound what is called an explanation.
type Options struct {
	Alpha    float64 // the level, over all values of all dimensions together
	MinShare float64 // the least share
	Max      int     // how many at most
}

// DefaultOptions are α = 1 %, a tenth of the bad events, and five explanations.
func DefaultOptions() Options { return Options{Alpha: 0.01, MinShare: 0.1, Max: 5} }

// Rank appends the explanations to dst, that of the largest share first.
func Rank(dst []Explanation, dimensions []Dimension, o Options) []Explanation {
	from, values := len(dst), 0
	for _, d := range dimensions {
		values += len(d.Values)
	}
	for _, d := range dimensions {
		var bad, total uint64
		for _, v := range d.Values {
			bad += v.Bad
			total += v.Total
		}
		if bad == 0 {
			continue
		}
		surprise := d.surprise(bad, total)
		for _, v := range d.Values {
			e := Explanation{Dimension: d.Name, Value: v.Name, Bad: v.Bad, Total: v.Total, Surprise: surprise}
			rest := total - v.Total
			if v.Bad == 0 || rest == 0 {
				continue // a value that all events have tells nothing
			}
			expected := float64(v.Total) * float64(bad-v.Bad) / float64(rest)
			e.Share = (float64(v.Bad) - expected) / float64(bad)
			e.P = twosample.Fisher(v.Bad, v.Total, bad-v.Bad, rest)
			if e.Share >= o.MinShare && e.Share > 0 && e.P*float64(values) <= o.Alpha {
				dst = append(dst, e)
			}
		}
	}
	slices.SortStableFunc(dst[from:], func(a, b Explanation) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(b.Surprise, a.Surprise), cmp.Compare(a.Dimension, b.Dimension), cmp.Compare(a.Value, b.Value))
	})
	return dst[:min(len(dst), from+o.Max)]
}

// surprise is the Jensen–Shannon divergence between the bad and the good events' values.
func (d Dimension) surprise(bad, total uint64) float64 {
	good := total - bad
	if good == 0 {
		return 0
	}
	var sum float64
	for _, v := range d.Values {
		p, q := float64(v.Bad)/float64(bad), float64(v.Total-v.Bad)/float64(good)
		m := (p + q) / 2
		sum += part(p, m)/2 + part(q, m)/2
	}
	return min(max(sum, 0), 1)
}

func part(p, m float64) float64 {
	if p == 0 {
		return 0
	}
	return p * math.Log2(p/m)
}
