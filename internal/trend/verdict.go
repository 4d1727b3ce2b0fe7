// SPDX-License-Identifier: Apache-2.0

package trend

// State is what there is to say of a process, from good to bad.
type State uint8

const (
	// OK: memory does not grow, or there is no telling yet.
	OK State = iota
	// Plateau: it has grown and grows no more, or less and less: what is kept, not lost.
	Plateau
	// Suspect: it grows, and it may be a leak.
	Suspect
	// Leaking: it grows, has done so for long enough, and nothing else explains it.
	Leaking
)

func (s State) String() string { return [...]string{"ok", "plateau", "suspect", "leaking"}[s] }

// verdict is a state, and since when, in event time, all that was found is worse or all is better: 0 where it is not.
type verdict struct {
	state         State
	worse, better int64
	// The least of what is worse and the worst of what is better: that which is certain.
	least, most State
}

// next takes in what was found at a time.
func (v *verdict) next(o *Options, found State, now int64) State {
	switch {
	case found > v.state:
		if v.worse == 0 {
			v.worse, v.least = now, found
		}
		v.better, v.least = 0, min(v.least, found)
		if now-v.worse >= int64(o.Enter) {
			v.state, v.worse = v.least, 0
		}
	case found < v.state:
		if v.better == 0 {
			v.better, v.most = now, found
		}
		v.worse, v.most = 0, max(v.most, found)
		if now-v.better >= int64(o.Leave) {
			v.state, v.better = v.most, 0
		}
	default:
		v.worse, v.better = 0, 0
	}
	return v.state
}
