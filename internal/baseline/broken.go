// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"math"

	"github.com/otelcol-llm/otelcol-llm/internal/sketch"
)

// Span is (Lo, Hi], of which is not known where in it values lie. The zero value is none.
type Span struct{ Lo, Hi float64 }

// broken is how many values of a window break a promise: bad do for certain, and open more may. Those lie in wide buckets that the
// objective cuts; interpolation has a number for them, but none to accuse or to acquit by.
type broken struct {
	bad, open uint64
	span      Span // of the open ones; the objective alone where there are none
}

// brokenIn counts the values of a window that break a promise. A narrow bucket that the objective cuts keeps it: that is a miss by
// less than what matters, at most.
func brokenIn(w *sketch.Distribution, p Promise) broken {
	b := broken{span: Span{p.Objective, p.Objective}}
	w.Explicit(func(bounds []float64, counts []uint64) {
		var n uint64
		for _, c := range counts {
			n += c
		}
		b.add(sketch.ExplicitAtMost(bounds, counts, p.Objective), n, p, around(bounds, p.Objective))
	})
	w.Exponential(func(e *sketch.Exponential) {
		if math.Exp2(math.Ldexp(1, -int(e.Scale))) <= narrow {
			b.bad += beyond(e, p.Objective, p.HigherIsBetter)
		} else {
			b.add(e.AtMost(p.Objective), e.Count(), p, bucketAt(e, p.Objective))
		}
	})
	return b
}

// add adds n values, of which some are at or below the objective, which lies in a bucket.
func (b *broken) add(atMost sketch.Split, n uint64, p Promise, at Span) {
	if p.HigherIsBetter {
		b.bad += atMost.Certain
	} else {
		b.bad += n - atMost.Possible
	}
	if open := atMost.Possible - atMost.Certain; open > 0 && !at.narrow() {
		b.open += open
		b.span = Span{min(b.span.Lo, at.Lo), max(b.span.Hi, at.Hi)}
	}
}

func (s Span) narrow() bool {
	return s.Lo > 0 && s.Hi <= narrow*s.Lo || s.Hi < 0 && s.Lo >= narrow*s.Hi
}

// around is the explicit bucket that holds x.
func around(bounds []float64, x float64) Span {
	s := Span{math.Inf(-1), math.Inf(1)}
	if len(bounds) > 0 && bounds[0] > 0 {
		s.Lo = 0
	}
	for _, b := range bounds {
		if b >= x {
			s.Hi = b
			break
		}
		s.Lo = b
	}
	return s
}

// bucketAt is the bucket of an exponential histogram that holds x.
func bucketAt(e *sketch.Exponential, x float64) Span {
	switch {
	case x < 0:
		s := bucketAt(e, -x)
		return Span{-s.Hi, -s.Lo}
	case x <= factor(e)*e.ZeroThreshold:
		return Span{-factor(e) * e.ZeroThreshold, factor(e) * e.ZeroThreshold}
	}
	at := indexOf(e, x)
	return Span{factor(e) * math.Exp2(math.Ldexp(at, -int(e.Scale))), factor(e) * math.Exp2(math.Ldexp(at+1, -int(e.Scale)))}
}

// beyond is how many values lie in buckets beyond that of x, on the wrong side. It takes no boundary of each of them, as AtMost does.
func beyond(e *sketch.Exponential, x float64, higherIsBetter bool) (n uint64) {
	positive, negative := &e.Positive, &e.Negative
	if x < 0 {
		x, positive, negative, higherIsBetter = -x, negative, positive, !higherIsBetter
	}
	at := math.Inf(-1)
	if x > 0 {
		at = indexOf(e, x) - float64(positive.Offset)
	}
	if !higherIsBetter {
		return sum(positive.Counts[int(min(max(at+1, 0), float64(len(positive.Counts)))):])
	}
	if n = sum(negative.Counts); x > 0 {
		n += e.ZeroCount + sum(positive.Counts[:int(min(max(at, 0), float64(len(positive.Counts))))])
	}
	return n
}

// indexOf is the index of the bucket that holds x > 0. A boundary that was rounded elsewhere is still that boundary.
func indexOf(e *sketch.Exponential, x float64) float64 {
	at := math.Ldexp(math.Log2(x/factor(e)), int(e.Scale))
	if whole := math.Round(at); math.Abs(at-whole) < max(1e-6, math.Ldexp(1e-9, int(e.Scale))) {
		at = whole
	}
	return math.Ceil(at) - 1
}

func factor(e *sketch.Exponential) float64 {
	if e.Factor == 0 {
		return 1
	}
	return e.Factor
}

func sum(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}
