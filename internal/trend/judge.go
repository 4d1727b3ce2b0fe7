// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"
)

// Why says why a rise is no leak yet.
type Why uint8

const (
	// Nothing: there is no rise, or it is a leak.
	Nothing Why = iota
	// Short: it has not been seen for long enough.
	Short
	// Traffic: it cannot be told from traffic that rises too.
	Traffic
	// Returning: there was as much before, and it was given back.
	Returning
	// Slowing: over a longer time it flattens.
	Slowing
)

func (w Why) String() string {
	return [...]string{"", "short", "traffic", "returning", "slowing"}[w]
}

// Result is what there is to say of a series.
type Result struct {
	State State
	// Why a rise that was found now is no leak.
	Why Why
	// Rate is in bytes a second, over the span that the state rests on, or since the rise last changed within it; NaN before there is one.
	Rate Estimate
	// Exhaustion is in how many seconds nothing is left, at that rate, or at that of all that grows where this is more; +Inf where it never is.
	Exhaustion Estimate
	// Span is how long that is.
	Span time.Duration
	// Adjusted: the rate is that at equal traffic.
	Adjusted bool
	// PerServed is the rate by the requests that were finished: what each leaves behind. NaN where that is not known.
	PerServed float64
	// PerRequest is memory by running requests within the last hour, PerRequestFirst that within the first. NaN where not known.
	PerRequest, PerRequestFirst float64
}

// Judge judges series, one after another. It holds what calculations need of memory, so that nothing is allocated for each. Not safe for
// concurrent use.
type Judge struct {
	options Options
	width   int64
	of      view
	sc      scratch
}

// Headroom is what is left of a device to a series, and to others.
type Headroom struct {
	// Bytes are left; NaN where that is not known.
	Bytes float64
	// Taken is how fast all that grows takes of it, in bytes a second, of which the series is one; 0 where that is not known.
	Taken Estimate
}

// Alone is what is left to a series beside which nothing grows.
func Alone(bytes float64) Headroom { return Headroom{Bytes: bytes} }

// share is how much of what is taken at a rate and by all is taken at that rate.
func (h *Headroom) share(rate float64) float64 {
	if h.Taken.Low > rate {
		return max(rate, 0) / h.Taken.Low
	}
	return 1
}

// Exhaustion is in how many seconds nothing is left, where one of those that take of it does so at a rate.
func (h *Headroom) Exhaustion(rate Estimate) Estimate {
	if math.IsNaN(h.Bytes) {
		return unknown
	}
	after := func(bytes float64) float64 {
		if bytes <= 0 {
			return math.Inf(1)
		}
		return max(h.Bytes, 0) / bytes
	}
	return Estimate{Value: after(max(rate.Value, h.Taken.Value)), Low: after(max(rate.High, h.Taken.High)), High: after(max(rate.Low, h.Taken.Low))}
}

// NewJudge returns one for valid options.
func NewJudge(o Options) *Judge { return &Judge{options: o, width: o.width()} }

// minCells is how many cells a trend is told from.
const minCells = 24

// finding is what a view says.
type finding struct {
	complete            int64 // cells of its level, since the epoch
	cells               int
	known, rising, long bool
	rate                Estimate
	rise, span, served  float64
	lately              lately
	shape               Shape
	why                 Why     // besides shape
	kept                float64 // of its slope, after a bend
	adjusted            bool
	stair               stair
	takes               [explanations]float64 // of memory, that traffic explains: bytes by request, or by the whole KV cache
}

// Judge says what there is to say at a time, in event time, of a series and of what is left to it. It is asked at rising times.
func (j *Judge) Judge(s *Series, now int64, left Headroom) Result {
	last := j.look(s, left)
	raw, on, why := conclude(s.found[:last+1], &j.options, left)
	r := Result{Why: why, Rate: unknown, Exhaustion: unknown, PerServed: math.NaN()}
	if s.asleep(now, &j.options) {
		s.verdict, raw = verdict{}, OK
	}
	before := s.verdict.state
	if before == Leaking && raw < Leaking && !s.verdict.over(s.found[:last+1], raw, why, now) {
		raw = Leaking
	}
	r.State = s.verdict.next(&j.options, raw, now, j.rests(s, now))
	if r.State == Leaking && before != Leaking && on != nil {
		s.verdict.proof = proof{
			Rate: max(on.rate.Value, 0), Rise: max(on.rise, 0), Work: j.work(s, now-int64(on.span*1e9)), Bytes: s.last.Value, PerRunning: on.takes[byRunning], PerKV: on.takes[byCache],
		}
		s.verdict.proof.Running, s.verdict.proof.Cache = s.traffic()
	}
	if r.State == Leaking {
		s.verdict.proof.climbs(s.found[:last+1], j.options.MinDuration.Seconds(), now)
	}
	if on != nil {
		l := &on.lately
		r.Rate, r.Adjusted, r.Span = l.rate, on.adjusted, time.Duration(l.span*1e9)
		r.Exhaustion = left.Exhaustion(l.rate)
		if l.served > 0 {
			r.PerServed = l.rate.Value / (l.served / l.span)
		}
	}
	r.PerRequestFirst = s.first.value()
	r.PerRequest = j.perRequest(s)
	return r
}

// look brings the findings of a series up to date: those of a level are good until its next cell is complete. It returns the highest
// that has anything to say.
func (j *Judge) look(s *Series, left Headroom) (last int) {
	from, cells := s.since+int64(j.options.Settle), 0
	if s.since == 0 {
		s.found[0] = finding{}
		return 0 // only traffic is known
	}
	matters := urgent * left.Bytes
	if left.Taken.Low > 0 {
		matters *= urgent // one that takes as much of what all take
	}
	for level := range uint8(topLevel + 1) {
		f := &s.found[level]
		if complete := s.newest >> level; !f.known || f.complete != complete {
			j.view(s, level, from, &j.of)
			n := len(j.of.x)
			*f = finding{cells: n, complete: complete}
			if n >= minCells && (level >= mainLevel || slices.Max(j.of.y)-slices.Min(j.of.y) > matters) {
				*f = j.find(s, &j.of)
				f.known, f.cells, f.complete = true, n, complete
			}
		}
		if level > mainLevel && f.cells <= cells/2+1 {
			break // it says nothing that the one before has not said
		}
		last, cells = int(level), f.cells
	}
	return last
}

// lately is a rise since it last changed: that of a leak that began within a view is not that of the view.
type lately struct {
	rate         Estimate
	span, served float64
}

// since is the rise of a view that bends at a cell, from there on; separate is the share of time's variance that traffic leaves.
func (j *Judge) since(v *view, bent int, separate float64) lately {
	x, y := v.x[bent:], v.y[bent:]
	line := j.sc.theilSen(x, y)
	l := lately{rate: Estimate{Value: line.slope}, span: v.span - x[0], served: v.served}
	l.rate.Low, l.rate.High = j.sc.interval(line, j.sc.inflation(x, y, line)/separate)
	for _, served := range v.serves[:bent] {
		l.served -= served
	}
	return l
}

// find looks for a rise in a view.
func (j *Judge) find(s *Series, v *view) finding {
	f := finding{span: v.span, served: v.served, long: v.span >= j.options.MinDuration.Seconds()}
	base := slices.Min(v.y) // what is counted from the lowest keeps its digits
	for i := range v.y {
		v.y[i] -= base
	}
	separate, adjusted := j.sc.traffic(v.x, v.y, &v.explains)
	f.takes = j.sc.takes
	line := j.sc.theilSen(v.x, v.y)
	inflation := j.sc.inflation(v.x, v.y, line) / max(separate, inseparable)
	f.adjusted, f.rate.Value = adjusted, line.slope
	f.rate.Low, f.rate.High = j.sc.interval(line, inflation)
	f.rise = line.slope * v.span
	f.lately = lately{f.rate, f.span, f.served}
	matters := f.rise > j.options.MinRise*(base+j.sc.median(v.y))
	bent := 0
	if f.kept = 1; matters {
		f.shape, f.kept, bent = j.sc.shape(v.x, v.y)
		f.stair = j.sc.stairs(v.x, j.sc.smooth(v.y), v.width)
	}
	isStair := f.stair.goesOn(j.options.MinDuration.Seconds())
	if separate < inseparable {
		f.why = Traffic
		return f
	}
	f.rising = matters && f.rate.Low > 0 && line.kendall.p(inflation) < j.options.Alpha/2
	if !f.rising {
		if rate, p := drift(v.x, v.y); matters && rate.Low > 0 && p < j.options.Alpha/2 {
			f.rising, f.rate = true, rate
		}
	}
	bends := f.rising && bent > 0
	if !f.rising && isStair {
		f.rising, f.rate = true, f.stair.rate()
	}
	if f.rising && j.returns(s, v, base, f.rise) {
		f.why = Returning
	}
	if f.lately.rate = f.rate; bends {
		if l := j.since(v, bent, max(separate, inseparable)); l.rate.Low > 0 && !math.IsInf(l.rate.High, 1) {
			f.lately = l // there is enough of it to tell
		}
	}
	return f
}

// returns reports whether there was as much memory before, and less in between: what a collector of garbage does. What was
// before the view is of no use where traffic has been taken out of it.
func (j *Judge) returns(s *Series, v *view, base, rise float64) bool {
	for i, r := range j.sc.residuals {
		j.sc.residuals[i] = math.Abs(r)
	}
	noise := j.sc.median(j.sc.residuals) / distuv.UnitNormal.Quantile(0.75)
	fall := max(rise/2, 4*noise)
	highest, fallen := math.Inf(-1), math.Inf(-1)
	see := func(bytes float64) {
		highest = max(highest, bytes)
		if bytes < highest-fall {
			fallen = max(fallen, highest)
		}
	}
	from := s.since + int64(j.options.Settle)
	for i := range s.cells {
		c := &s.cells[i]
		if c.end() > v.at || v.adjusts() {
			break
		}
		if c.n > 0 && c.at*j.width >= from {
			see(c.bytes / float64(c.n))
		}
	}
	smooth := j.sc.smooth(v.y)
	for _, bytes := range smooth {
		see(base + bytes)
	}
	return fallen+fall/2 >= base+smooth[len(smooth)-1]
}

// urgent is the share of what is left that a rise must have taken before it is trusted to take the rest.
const urgent = 0.1

// haste is how many times longer than a rise was seen it may take until nothing is left, for it not to be waited for: a quarter is gone by then.
const haste = 3

// exhausts reports whether nothing would be left before the rise has been seen for long enough, or so soon that it is better told now, at the
// least rate that it may have. Where others take of what is left, its part of that is what it takes of all; one that takes next to nothing is not in haste.
func (f *finding) exhausts(o *Options, left Headroom) bool {
	share := left.share(f.rate.Low)
	mine := share * left.Bytes
	return share >= urgent && f.rise >= urgent*(mine+f.rise) && mine/f.rate.Low < max(o.MinDuration.Seconds()-f.span, haste*f.span)
}

// conclude is what the findings of all levels say together: the state, that which it rests on, if any, and why it is no leak. It
// rests on the shortest of those that are long, where there is a choice: that says how it goes now.
func conclude(found []finding, o *Options, left Headroom) (state State, on *finding, why Why) {
	for level := range found {
		f := &found[level]
		if !f.known {
			continue
		}
		fine := level < mainLevel
		now, because := f.state(o, found[level+1:], &found[min(level, mainLevel)])
		switch {
		case now == Leaking && fine && !f.exhausts(o, left), now != Leaking && fine:
			continue // too short to say anything
		case now == Leaking && !fine && !f.long && !f.exhausts(o, left):
			now, because = Suspect, Short
		}
		if on == nil || now > state || now == state && level <= mainLevel {
			state, on, why = now, f, because
		}
	}
	return state, on, why
}

// state is what one finding says beside those of longer views, and the one of the shortest that is long enough.
func (f *finding) state(o *Options, longer []finding, recent *finding) (State, Why) {
	switch {
	case !f.rising:
		return OK, f.why
	case f.why != Nothing:
		return Suspect, f.why
	case f.stair.goesOn(o.MinDuration.Seconds()):
		return Leaking, Nothing
	case f.shape != Steady, recent.known && recent.rate.High < f.rate.Value/2:
		return Plateau, Nothing
	case f.kept < slowed, len(longer) > 0 && longer[0].known && longer[0].kept < slowed:
		return Suspect, Slowing
	}
	return Leaking, Nothing
}
