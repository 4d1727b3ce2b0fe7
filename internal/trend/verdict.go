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

// proof is what a leak was found by: how fast it grew and by how much, how much work was done meanwhile, in requests that ran times
// seconds, and what memory and traffic there were then.
type proof struct {
	_                 struct{} `cbor:",toarray"`
	Rate, Rise, Work  float64
	Bytes             float64
	Running, Cache    float64 // of traffic
	PerRunning, PerKV float64 // bytes that traffic was found to take
	Every             float64 // seconds from one step of a stair to the next; 0 where it is none
	Step              int64   // when the last one was
}

// climbs notes how far a stair has come.
func (p *proof) climbs(found []finding, minDuration float64, now int64) {
	for level := range found {
		if f := &found[level]; f.known && f.why == Nothing && f.stair.goesOn(minDuration) {
			p.Every, p.Step = f.stair.every, max(p.Step, now-int64(f.stair.since*1e9))
			return // of the finest cells
		}
	}
}

// idle is how many times the work that a leak was found by has to be done without one before it is over: one that follows requests rests
// at night, and is not over.
const idle = 2

// over reports whether there is evidence that a leak has ended: that memory grows no more, or not half as fast. That no growth can be proved now is none:
// where traffic rises or falls as steadily as time goes by, nothing can be told for hours. Nor is it any that a stair is level between two steps.
func (v *verdict) over(found []finding, now State, why Why, at int64) bool {
	if p := &v.proof; why != Returning && float64(at-p.Step)*1e-9 < overdue*p.Every {
		return false
	}
	if now == Plateau || why == Returning {
		return true
	}
	for level := mainLevel; level < len(found); level++ {
		if f := &found[level]; f.known && f.rate.High < v.proof.Rate/2 {
			return true
		}
	}
	return false
}

// rests reports whether a process that was found to leak has not worked enough since to be found not to, and has given nothing back that traffic
// would not.
func (j *Judge) rests(s *Series, now int64) bool {
	v := &s.verdict
	since := v.better
	if since == 0 {
		since = now
	}
	p := &v.proof
	if v.state != Leaking || p.Work == 0 || j.work(s, since) >= idle*p.Work {
		return false
	}
	running, cache := s.traffic()
	fallen := p.PerRunning*max(p.Running-running, 0) + p.PerKV*max(p.Cache-cache, 0)
	return s.last.Value+fallen >= p.Bytes-p.Rise/2
}

// traffic is what was known of it last.
func (s *Series) traffic() (running, cache float64) {
	var hasRunning, hasCache bool
	for i := len(s.cells) - 1; i >= 0 && (!hasRunning || !hasCache); i-- {
		c := &s.cells[i]
		if c.loads > 0 && !hasRunning {
			running, hasRunning = c.load/float64(c.loads), true
		}
		if c.caches > 0 && !hasCache {
			cache, hasCache = c.cache/float64(c.caches), true
		}
	}
	return running, cache
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
