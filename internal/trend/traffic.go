// SPDX-License-Identifier: Apache-2.0

package trend

// What is known of the traffic.
const (
	byRunning = iota // requests that are worked on
	byPeak           // the most there ever were: what an allocator that keeps its blocks follows
	byCache          // how full the KV cache is
	explanations
)

// inseparable is the share of time's variance that traffic may leave: below it, the two are the same, and nothing is told from it.
const inseparable = 0.05

// traffic takes out of y what traffic explains, beside a trend: both are fitted together, by least squares, so a leak is not
// taken for traffic that rises too (R. Frisch and F. V. Waugh, Partial time regressions as compared with individual
// trends, Econometrica 1, 1933). More traffic takes more memory: what seems to be the other way round is no explanation.
//
// left is how much of time's variance traffic does not explain: 1 where they have nothing to do with each other. What a
// trend is known by varies 1/left as much. y is changed in place.
func (sc *scratch) traffic(x, y []float64, explains *[explanations][]float64) (left float64, used bool) {
	var in [explanations]bool
	sc.takes = [explanations]float64{}
	for k, e := range explains {
		in[k] = len(e) > 0 && spread(e) > 0
	}
	for {
		// Gram and Schmidt: what each explanation has that those before it have not, and then time, and then y.
		var basis [explanations][]float64
		var norm, onY [explanations]float64
		var mix [explanations][explanations]float64
		for k := range explains {
			if !in[k] {
				continue
			}
			basis[k] = sc.centred(k, explains[k])
			of := dot(basis[k], basis[k])
			for b := range k {
				if in[b] {
					mix[k][b] = dot(basis[k], basis[b]) / norm[b]
					subtract(basis[k], basis[b], mix[k][b])
				}
			}
			if norm[k] = dot(basis[k], basis[k]); norm[k] < 1e-9*of {
				in[k] = false // says what the others say
			}
		}
		time, memory := sc.centred(explanations, x), sc.centred(explanations+1, y)
		whole := dot(time, time)
		for k := range explains {
			if in[k] {
				onY[k] = dot(memory, basis[k]) / norm[k]
				subtract(time, basis[k], dot(time, basis[k])/norm[k])
				subtract(memory, basis[k], onY[k])
			}
		}
		rest := dot(time, time)
		slope := 0.0
		if rest > exact*whole {
			slope = dot(time, memory) / rest
		}
		// The share of each, once the trend has its own.
		raw := sc.centred(explanations, x)
		var of [explanations]float64
		worst, least := -1, 0.0
		for k := explanations - 1; k >= 0; k-- {
			if !in[k] {
				continue
			}
			of[k] += onY[k] - slope*dot(raw, basis[k])/norm[k]
			for b := range k {
				of[b] -= of[k] * mix[k][b]
			}
			if of[k] < least {
				worst, least = k, of[k]
			}
		}
		if worst >= 0 {
			in[worst] = false
			continue
		}
		for k, e := range explains {
			if !in[k] || of[k] == 0 {
				continue
			}
			used, sc.takes[k] = true, of[k]
			m := mean(e)
			for i := range y {
				y[i] -= of[k] * (e[i] - m)
			}
		}
		return rest / whole, used
	}
}

// centred is a copy of v around its mean, in a slot of its own.
func (sc *scratch) centred(slot int, v []float64) []float64 {
	m := mean(v)
	into := sc.columns[slot][:0]
	for _, x := range v {
		into = append(into, x-m)
	}
	sc.columns[slot] = into
	return into
}

func dot(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}

func subtract(from, what []float64, times float64) {
	for i := range from {
		from[i] -= times * what[i]
	}
}
