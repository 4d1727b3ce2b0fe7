// SPDX-License-Identifier: Apache-2.0

package baseline

// State is what there is to say about a cell.
type State uint8

const (
	// InsufficientData: the last window has no answer, or one that leaves open whether the promise is kept. What was known before is
	// held, not forgotten.
	InsufficientData State = iota
	// OK: as promised and as it was.
	OK
	// Drifting: the promise bends: it is missed by a little, or still kept and clearly worse than what was normal.
	Drifting
	// Degraded: the promise is broken by more than a little.
	Degraded
)

func (s State) String() string {
	return [...]string{"insufficient_data", "ok", "drifting", "degraded"}[s]
}

// Thresholds say when a cell changes its state. Each needs the size and the certainty: that so many values lie beyond the
// reference is less probable than Chance, if nothing had changed.
type Thresholds struct {
	// Degraded is by how much, as a share, the objective is missed: 0.1 is 220 ms instead of 200 ms. Any certain miss is
	// drifting, be it only by the values of many windows.
	Degraded float64
	// Drifting is by how much, as a share, a window is worse than the dynamic or the frozen baseline; and, once there is a frozen
	// one, worse than any two windows of it in a row, so that a rhythm is no drift.
	Drifting float64
	// Chance is the level of the tests.
	Chance float64
	// Enter is how many windows in a row must say so before the state becomes worse, Leave before it becomes better.
	// It becomes better only below half the threshold: a cell that hovers at one does not flap.
	Enter, Leave uint8
}

// DefaultThresholds are 10 % beyond the objective and 20 % beyond what was normal, at 0.1 %, for 2 windows; back after 3.
func DefaultThresholds() Thresholds {
	return Thresholds{Degraded: 0.1, Drifting: 0.2, Chance: 0.001, Enter: 2, Leave: 3}
}

// finding is a window against one reference: how much worse, and how probable that is by chance. The zero value stands
// for a reference that is not known.
type finding struct {
	effect, chance float64
}

// beyond reports whether a window is worse by a threshold at least, and by more than chance at a level. A finding that there is
// none of is not.
func (f finding) beyond(threshold, level float64) bool {
	return f.effect > 0 && f.effect >= threshold && f.chance < level
}

// findings are a window against all references.
type findings struct {
	known                   bool
	open                    bool // it cannot be told whether the promise is kept
	unseen                  bool // worse than at any time of the reference, if there is one: a rhythm is no drift
	static, dynamic, frozen finding
	lasting                 finding // the dynamic baseline against the objective: many windows may know what one does not
}

// verdict is a state and how many windows in a row contradict it.
type verdict struct {
	state         State // never InsufficientData, but at the beginning
	worse, better uint8
}

// next takes one window's findings in. Where it cannot be told whether the promise is kept, that is no ok.
func (v *verdict) next(t *Thresholds, f findings) State {
	if !f.known {
		return InsufficientData
	}
	now, still := f.state(t, 1, t.Chance), f.state(t, 0.5, 2)
	if v.state == InsufficientData {
		v.state = OK
	}
	switch {
	case now > v.state:
		v.better = 0
		if v.worse++; v.worse >= t.Enter {
			v.state, v.worse = now, 0
		}
	case still < v.state:
		v.worse = 0
		if v.better++; v.better >= t.Leave {
			v.state, v.better = still, 0
		}
	default:
		v.worse, v.better = 0, 0
	}
	if f.open && v.state == OK {
		return InsufficientData
	}
	return v.state
}

// state is what the findings say for thresholds times scale and a level of chance.
func (f *findings) state(t *Thresholds, scale, chance float64) State {
	switch {
	case f.static.beyond(scale*t.Degraded, chance):
		return Degraded
	case f.static.beyond(0, chance), f.static.effect > 0 && f.lasting.beyond(0, chance), f.unseen && (f.dynamic.beyond(scale*t.Drifting, chance) || f.frozen.beyond(scale*t.Drifting, chance)):
		return Drifting
	}
	return OK
}
