// SPDX-License-Identifier: Apache-2.0

package openslo

// BaseUnit tells what a unit, written as in UCUM or in words, is in an OpenMetrics base unit: a number in it times
// scale is a number of base. BaseUnit("ms") is "seconds", 0.001.
func BaseUnit(unit string) (base string, scale float64, ok bool) {
	u, ok := lookupUnit(unit)
	return u.base, u.scale, ok
}

// UnitOfName tells the base unit that a metric's name speaks of, by the rules of the package comment; "" when it does
// not. UnitOfName("http.server.request.duration") is "seconds".
func UnitOfName(name string) string { return unitOfName(name).base }

// UnitOfSuffix tells what the unit that a metric's name ends in is in a base unit. UnitOfSuffix("ttft_milliseconds") is
// "seconds", 0.001.
func UnitOfSuffix(name string) (base string, scale float64, ok bool) {
	u, ok := unitOfSuffix(name)
	return u.base, u.scale, ok
}
