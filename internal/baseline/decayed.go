// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"math"
	"time"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// Decayed is a set of values that is forgotten as time goes by: sums, from which a Gamma distribution can be fitted, and
// a histogram. A value weighs 1 in the window that it came in and Factor less with every window that passes, whether or
// not that brought anything: a baseline that nobody has fed for a day is none. The zero value is empty.
type Decayed struct {
	at     int64   // the time for which the weights hold
	n      float64 // Σw
	sum    float64 // Σw·x
	sumLog float64 // Σw·ln x, over the values above zero
	hist   histogram
}

// Decay says how fast is forgotten: a weight is multiplied by Factor for every Window of time. 0.98 has a half-life of 34
// windows and an effective memory of 1/(1−0.98) = 50.
type Decay struct {
	Factor float64
	Window time.Duration
}

// over is what a weight is multiplied by in a span of time.
func (d Decay) over(span int64) float64 {
	switch {
	case span <= 0 || d.Factor == 1:
		return 1
	case span == int64(d.Window):
		return d.Factor
	}
	return math.Pow(d.Factor, float64(span)/float64(d.Window))
}

// Samples is how many values of today the decayed ones are worth.
func (d *Decayed) Samples() float64 { return d.n }

// set makes d the window that ended at end, mirrored at zero where what matters lies below: what is not above zero is not told apart.
func (d *Decayed) set(end int64, w *sketch.Distribution, mirrored bool) {
	d.hist.reset()
	*d = Decayed{at: end, hist: d.hist}
	w.Explicit(func(bounds []float64, counts []uint64) {
		for i, n := range counts {
			if n == 0 {
				continue
			}
			lo, hi := math.Inf(-1), math.Inf(1)
			if i > 0 {
				lo = bounds[i-1]
			} else if len(bounds) > 0 && bounds[0] > 0 {
				lo = 0
			}
			if i < len(bounds) {
				hi = bounds[i]
			}
			if mirrored {
				lo, hi = -hi, -lo
			}
			d.add(lo, hi, float64(n))
		}
	})
	w.Exponential(func(e *sketch.Exponential) {
		factor := factor(e)
		if n := e.ZeroCount; n > 0 {
			d.add(0, 0, float64(n))
		}
		above, below := &e.Positive, &e.Negative
		if mirrored {
			above, below = below, above
		}
		for _, n := range below.Counts {
			d.add(0, 0, float64(n))
		}
		for i, n := range above.Counts {
			if n == 0 {
				continue
			}
			at := above.Offset + int32(i)
			if e.Scale >= maxScale && factor == 1 {
				d.addBucket(at, e.Scale, float64(n))
				continue
			}
			lo := factor * math.Exp2(math.Ldexp(float64(at), -int(e.Scale)))
			hi := factor * math.Exp2(math.Ldexp(float64(at)+1, -int(e.Scale)))
			d.add(lo, hi, float64(n))
		}
	})
}

// addBucket is add for a bucket so fine that its middle is as good as what it holds.
func (d *Decayed) addBucket(at, scale int32, n float64) {
	log2 := math.Ldexp(float64(at)+0.5, -int(scale))
	d.n += n
	d.sum = finite(d.sum + n*math.Exp2(log2))
	d.sumLog += n * log2 * math.Ln2
	d.hist.addBucket(at, scale, n)
}

// add adds values that lie in (lo, hi], spread evenly.
func (d *Decayed) add(lo, hi, weight float64) {
	d.n += weight
	d.hist.add(lo, hi, weight)
	switch {
	case !(hi > 0):
	case math.IsInf(hi, 1):
		if lo > 0 {
			d.sum = finite(d.sum + weight*lo)
			d.sumLog += weight * math.Log(lo)
		}
	default:
		lo = max(lo, 0)
		d.sum = finite(d.sum + weight*(lo/2+hi/2))
		d.sumLog += weight * meanLog(lo, hi)
	}
}

// meanLog is the mean of ln x for x even over (lo, hi].
func meanLog(lo, hi float64) float64 {
	switch {
	case lo <= 0:
		return math.Log(hi) - 1
	case hi-lo < 1e-3*hi: // where the difference below would be of rounding only; the error is under 1e-7
		return math.Log((lo + hi) / 2)
	}
	r := lo / hi
	return math.Log(hi) - r*math.Log(r)/(1-r) - 1
}

// finite keeps a sum of values that are near the end of floats a number: one that is not would make the state unreadable.
func finite(sum float64) float64 { return min(sum, math.MaxFloat64) }

// Merge adds what another has seen: a window, or the same cell's on another machine. What is older than what is there
// already counts as much less as if it had come in time, so the order does not matter.
func (d *Decayed) Merge(by Decay, o *Decayed) {
	if o.n == 0 {
		return
	}
	weight := d.advance(by, o.at)
	d.n += weight * o.n
	d.sum = finite(d.sum + weight*o.sum)
	d.sumLog += weight * o.sumLog
	d.hist.merge(&o.hist, weight)
}

// advance brings the weights to the time to, and returns what a value of then weighs.
func (d *Decayed) advance(by Decay, to int64) float64 {
	if d.n == 0 {
		d.at = to
		return 1
	}
	if to < d.at {
		return by.over(d.at - to)
	}
	if f := by.over(to - d.at); f < 1 {
		d.n *= f
		d.sum *= f
		d.sumLog *= f
		d.hist.multiply(f)
	}
	d.at = to
	return 1
}

// beyond is the weight of what lies on the wrong side of x.
func (d *Decayed) beyond(x float64, p Promise) float64 {
	above := d.hist.above(x)
	if p.HigherIsBetter {
		return d.n - above
	}
	return above
}
