// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"math"
	"math/rand/v2"
	"time"
)

const (
	gib = 1 << 30
	mib = 1 << 20
)

// t0 is aligned to nothing.
var t0 = time.Date(2026, 3, 2, 8, 17, 23, 0, time.UTC).UnixNano()

// moment is what is seen of a process at one scrape.
type moment struct {
	bytes   float64
	running float64 // NaN where it is not known
	served  float64
}

// process makes the memory of one: hours since it began → moment.
type process func(r *rand.Rand) func(h float64) moment

var untold = math.NaN()

// noisy adds noise of a standard deviation, whose neighbours, 10 s apart, hang together by rho.
func noisy(sigma, rho float64, p process) process {
	return func(r *rand.Rand) func(h float64) moment {
		of, e := p(r), 0.0
		return func(h float64) moment {
			m := of(h)
			e = rho*e + math.Sqrt(1-rho*rho)*r.NormFloat64()*sigma
			m.bytes = max(m.bytes+e, 0)
			return m
		}
	}
}

func flat(bytes float64) process {
	return func(*rand.Rand) func(float64) moment {
		return func(float64) moment { return moment{bytes, untold, 0} }
	}
}

// leak grows by a share an hour.
func leak(bytes, share float64) process {
	return func(*rand.Rand) func(float64) moment {
		return func(h float64) moment { return moment{bytes * (1 + share*h), untold, 0} }
	}
}

// blocks leaks in blocks, at random times, as many a hour.
func blocks(bytes, block, perHour float64) process {
	return func(r *rand.Rand) func(float64) moment {
		next, now := r.ExpFloat64()/perHour, bytes
		return func(h float64) moment {
			for h > next {
				now += block
				next += r.ExpFloat64() / perHour
			}
			return moment{now, untold, 0}
		}
	}
}

// records takes more memory whenever a request is larger than all before: a caching allocator, whose steps become rare.
func records(bytes, spread float64) process {
	return func(r *rand.Rand) func(float64) moment {
		highest := 0.0
		return func(float64) moment {
			highest = max(highest, r.ExpFloat64())
			return moment{bytes + spread*highest, untold, 0}
		}
	}
}

// one grows once.
func one(bytes, step, at float64) process {
	return func(*rand.Rand) func(float64) moment {
		return func(h float64) moment {
			if h >= at {
				return moment{bytes + step, untold, 0}
			}
			return moment{bytes, untold, 0}
		}
	}
}

// stairs grows by a step every so many hours, a tenth of that early or late, for ever.
func stairs(bytes, step, hours float64) process { return steps(bytes, step, hours, math.Inf(1)) }

// steps grows by so many of them, the first of which comes at any time within as many hours.
func steps(bytes, step, hours, most float64) process {
	return func(r *rand.Rand) func(float64) moment {
		next, now, taken := hours*r.Float64(), bytes, 0.0
		return func(h float64) moment {
			for ; h > next && taken < most; taken++ {
				now += step
				next += hours * (0.9 + 0.2*r.Float64())
			}
			return moment{now, untold, 0}
		}
	}
}

// fills rises towards a level that it never passes, by 63 % in so many hours.
func fills(bytes, more, hours float64) process {
	return func(*rand.Rand) func(float64) moment {
		return func(h float64) moment { return moment{bytes + more*(1-math.Exp(-h/hours)), untold, 0} }
	}
}

// sawtooth rises and is swept.
func sawtooth(bytes, tooth, hours float64) process {
	return func(*rand.Rand) func(float64) moment {
		return func(h float64) moment { return moment{bytes + tooth*math.Mod(h/hours, 1), untold, 0} }
	}
}

// day is traffic that comes and goes, lowest at 4 in the night, with noise of its own.
func day(r *rand.Rand, h, begin float64) float64 {
	mean := 20 * (1 - 0.8*math.Cos(2*math.Pi*(h+begin-4)/24))
	return max(mean*(1+0.15*r.NormFloat64()), 0)
}

// follows takes memory for each request that runs, begins at an hour of the day, and leaks besides by a share an hour.
func follows(bytes, perRequest, begin, share float64) process {
	return func(r *rand.Rand) func(float64) moment {
		return func(h float64) moment {
			n := math.Round(day(r, h, begin))
			return moment{bytes*(1+share*h) + perRequest*n, n, n * 5}
		}
	}
}

// keeps takes memory for as many requests as there ever were.
func keeps(bytes, perRequest, begin, share float64) process {
	return func(r *rand.Rand) func(float64) moment {
		most := 0.0
		return func(h float64) moment {
			n := math.Round(day(r, h, begin))
			most = max(most, n)
			return moment{bytes*(1+share*h) + perRequest*most, n, n * 5}
		}
	}
}

// restarts leaks, and begins anew every so many hours.
func restarts(bytes, share, hours float64) process {
	return func(*rand.Rand) func(float64) moment {
		return func(h float64) moment {
			in := math.Mod(h, hours)
			if in < 30.0/3600 {
				return moment{0.01 * bytes, untold, 0}
			}
			return moment{bytes * (1 + share*in), untold, 0}
		}
	}
}

// sleeps gives all but so much of its memory back for so long, at the end of every so many hours.
func sleeps(p process, to, hours, every float64) process {
	return func(r *rand.Rand) func(float64) moment {
		of, begin := p(r), 0.0
		return func(h float64) moment {
			m := of(h)
			if begin == 0 {
				begin = m.bytes
			}
			if math.Mod(h, every) > every-hours {
				m.bytes += to - begin
			}
			return m
		}
	}
}

// both is the sum of two.
func both(a, b process) process {
	return func(r *rand.Rand) func(float64) moment {
		of, and := a(r), b(r)
		return func(h float64) moment {
			m := of(h)
			m.bytes += and(h).bytes
			return m
		}
	}
}

// watched is what came of a process: the first hour of each state, +Inf for never, and the last result.
type watched struct {
	first [Leaking + 1]float64
	last  Result
	gone  float64 // the share of what was left at the beginning that was gone when it was first found to leak
}

// watch scrapes a process every 10 s for some hours, and judges whenever that is worth it.
func watch(o Options, p process, seed uint64, hours, limit float64) watched {
	r := rand.New(rand.NewPCG(seed, 7))
	of, j, s := p(r), NewJudge(o), new(Series)
	w := watched{}
	for k := range w.first {
		w.first[k] = math.Inf(1)
	}
	next, begin := t0, 0.0
	for tick := 0; float64(tick)*10/3600 < hours; tick++ {
		at, h := t0+int64(tick)*int64(10*time.Second), float64(tick)*10/3600
		m := of(h)
		if tick == 60 {
			begin = m.bytes // it has settled
		}
		j.Add(s, at, m.bytes)
		if !math.IsNaN(m.running) {
			j.Running(s, at, m.running)
			j.Served(s, at, m.served)
		}
		if at < next {
			continue
		}
		next = at + int64(o.Every())
		w.last = j.Judge(s, at, Alone(limit-m.bytes))
		if math.IsInf(w.first[w.last.State], 1) {
			w.first[w.last.State] = h
			if w.last.State == Leaking {
				w.gone = (m.bytes - begin) / (limit - begin)
			}
		}
	}
	return w
}
