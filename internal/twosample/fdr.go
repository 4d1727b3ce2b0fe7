// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"cmp"
	"slices"
)

// BenjaminiHochberg adjusts the p-values of many comparisons: those at or below a level are, of all that are, wrong in no
// more than that share, and when nothing has changed anywhere, none is with a probability of no less than one minus the
// level (Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, JRSS B 57, 1995).
func BenjaminiHochberg(p []float64) (adjusted []float64) {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p[b], p[a]) })
	adjusted = make([]float64, len(p))
	least := 1.0
	for i, at := range order {
		least = min(least, p[at]*float64(len(p))/float64(len(p)-i))
		adjusted[at] = least
	}
	return adjusted
}
