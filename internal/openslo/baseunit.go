// SPDX-License-Identifier: Apache-2.0

package openslo

// BaseUnit tells what a unit, written as in UCUM or in words, is in an OpenMetrics base unit: a number in it times
// scale is a number of base. BaseUnit("ms") is "seconds", 0.001.
func BaseUnit(unit string) (base string, scale float64, ok bool) {
	u, ok := lookupUnit(unit)
	return u.base, u.scale, ok
}
