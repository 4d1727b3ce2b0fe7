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
	// proof is what a leak was found by.
	proof proof
}

// proof is how much work a process did while it was found to leak, in requests that ran times seconds, and what memory it had then.
type proof struct {
	_           struct{} `cbor:",toarray"`
	Work, Bytes float64
}

// idle is how many times the work that a leak was found by has to be done without one before it is over: one that follows requests rests
// at night, and is not over.
const idle = 2

// rests reports whether a process that was found to leak has not worked enough since to be found not to, and has given nothing back.
func (j *Judge) rests(s *Series, now int64) bool {
	v := &s.verdict
	since := v.better
	if since == 0 {
		since = now
	}
	return v.state == Leaking && v.proof.Work > 0 && s.last.Value >= v.proof.Bytes && j.work(s, since) < idle*v.proof.Work
}

// work is how much a process has done since a time.
func (j *Judge) work(s *Series, since int64) (sum float64) {
	running := 0.0
	for i := range s.cells {
		c := &s.cells[i]
		if c.loads > 0 {
			running = c.load / float64(c.loads)
		}
		from, to := max(c.at*j.width, since), c.end()*j.width
		if to > from {
			sum += running * float64(to-from) * 1e-9
		}
	}
	return sum
}

// next takes in what was found at a time. Of a process that rests, nothing better is concluded.
func (v *verdict) next(o *Options, found State, now int64, rests bool) State {
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
		if now-v.better >= int64(o.Leave) && !rests {
			v.state, v.better = v.most, 0
		}
	default:
		v.worse, v.better = 0, 0
	}
	return v.state
}
