// SPDX-License-Identifier: Apache-2.0

package openslo

// AtMost reports whether the comparison bounds values from above.
func (op Op) AtMost() bool { return op == OpLTE || op == OpLT }

// Holds reports whether (v Op Value): whether an event with the value v, in the base unit, is good.
func (o *Objective) Holds(v float64) bool {
	switch o.Op {
	case OpLT:
		return v < o.Value
	case OpGTE:
		return v >= o.Value
	case OpGT:
		return v > o.Value
	default:
		return v <= o.Value
	}
}

// MaxBurnRate is the burn rate when every event is bad: none can be higher.
func (o *Objective) MaxBurnRate() float64 { return 1 / (1 - o.Target) }
