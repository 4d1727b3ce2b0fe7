// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
)

// law is the distribution of a count whose probabilities rise up to about the mean and fall from there on.
type law interface {
	binomial | hypergeometric
	mean() float64
	variance() float64
	highest() float64
	// log is ln of the probability of x. Between whole numbers it is as smooth as at them.
	log(x float64) float64
	// next is the probability of x+1 by that of x.
	next(x float64) float64
}

// upper is the probability of at least at, which is above the mean and at most highest.
//
// Terms are summed as long as they count. Where those would be very many, the sum is the integral from half a step earlier on,
// with the first term of Euler and Maclaurin's formula, whose next one is of the order of variance^−2: at the 5,000 terms from
// which on it is used, 1e-10 of the whole.
func upper[L law](l L, at float64) float64 {
	first := l.log(at)
	deviation := math.Sqrt(l.variance())
	z := (at - l.mean()) / deviation
	reach := deviation * (math.Sqrt(z*z-2*math.Log(negligible)) - z)
	if reach > maxTerms {
		return min(math.Exp(first)*(integral(l, at-0.5, min(1.2*reach, l.highest()-at), first)+(1-1/l.next(at-1))/24), 1)
	}
	sum, term := 1.0, 1.0
	for x := at; x < l.highest() && term > sum*negligible; x++ {
		term *= l.next(x)
		sum += term
	}
	return min(math.Exp(first)*sum, 1)
}

const (
	// negligible is what a term must be, of the sum of those before it, to count no more.
	negligible = 1e-17
	maxTerms   = 5000
)

// integral is that of the probabilities from an argument on over a length, by e^first.
func integral[L law](l L, from, length, first float64) (sum float64) {
	for i, x := range nodes {
		sum += weights[i] * math.Exp(l.log(from+length*x)-first)
	}
	return length * sum
}

// nodes and weights of Gauss and Legendre's rule on [0, 1].
var nodes, weights = func() (x, w [64]float64) {
	quad.Legendre{}.FixedLocations(x[:], w[:], 0, 1)
	return x, w
}()

// binomial is how many of n are bad, when each is with the probability p; q is 1−p.
type binomial struct{ n, p, q float64 }

func (b binomial) mean() float64          { return b.n * b.p }
func (b binomial) variance() float64      { return b.n * b.p * b.q }
func (b binomial) highest() float64       { return b.n }
func (b binomial) next(x float64) float64 { return (b.n - x) / (x + 1) * (b.p / b.q) }

// log is that of C. Loader, Fast and accurate computation of binomial probabilities, 2000: what cancels between the factorials
// of large numbers is never computed.
func (b binomial) log(x float64) float64 {
	switch {
	case x <= 0:
		return b.n * math.Log1p(-b.p)
	case x >= b.n:
		return b.n * math.Log1p(-b.q)
	}
	rest := b.n - x
	return stirling(b.n) - stirling(x) - stirling(rest) - deviance(x, b.n*b.p) - deviance(rest, b.n*b.q) +
		math.Log(b.n/(2*math.Pi*x*rest))/2
}

// hypergeometric is how many of drawn are bad, when bad of all are.
type hypergeometric struct{ drawn, bad, all float64 }

func (h hypergeometric) mean() float64 { return h.drawn * (h.bad / h.all) }
func (h hypergeometric) variance() float64 {
	return h.mean() * (1 - h.bad/h.all) * ((h.all - h.drawn) / max(h.all-1, 1))
}
func (h hypergeometric) highest() float64 { return min(h.drawn, h.bad) }
func (h hypergeometric) next(x float64) float64 {
	return (h.bad - x) / (x + 1) * ((h.drawn - x) / (h.all - h.bad - h.drawn + x + 1))
}

// log is by three binomial ones, likewise.
func (h hypergeometric) log(x float64) float64 {
	p, q := h.drawn/h.all, (h.all-h.drawn)/h.all
	return binomial{h.bad, p, q}.log(x) + binomial{h.all - h.bad, p, q}.log(h.drawn-x) - binomial{h.all, p, q}.log(h.drawn)
}

// stirling is ln x! less Stirling's formula for it.
func stirling(x float64) float64 {
	if x < 16 {
		v, _ := math.Lgamma(x + 1)
		return v - (x+0.5)*math.Log(x) + x - math.Log(2*math.Pi)/2
	}
	s := 1 / (x * x)
	return (1./12 - (1./360-(1./1260-s/1680)*s)*s) / x
}

// deviance is x·ln(x/m) + m − x, of which little is left where x is near m.
func deviance(x, m float64) float64 {
	if m <= 0 {
		return math.Inf(1)
	}
	if math.Abs(x-m) >= 0.1*(x+m) {
		return x*math.Log(x/m) + m - x
	}
	v := (x - m) / (x + m)
	sum, term := (x-m)*v, 2*x*v
	for i := 3.0; ; i += 2 {
		term *= v * v
		next := sum + term/i
		if next == sum {
			return sum
		}
		sum = next
	}
}
