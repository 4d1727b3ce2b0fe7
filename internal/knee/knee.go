// SPDX-License-Identifier: Apache-2.0

// Package knee finds where more batch stops paying: the batch size beyond which each further request certainly adds much less to
// the throughput than those before did.
//
// Two straight lines that meet are fitted to the curve of throughput over batch size (a broken-stick regression). Where they meet
// is the knee, if the second rises less than Share of the first, by more than what the spread of the samples and the misfit of
// the lines explain. A curve that bends slowly has no knee before the load has gone far enough beyond the bend, and then it lies
// where the gain has fallen to between a half and a sixth of that of the first requests: further, the further the load goes.
package knee

import (
	"cmp"
	"math"
	"slices"
)

// Step is what was measured with about one batch size.
type Step struct {
	Batch, Throughput float64 // means
	Variance          float64 // of the throughput among the samples
	Samples           float64 // their number, or weight
}

const (
	// Share of what a request adds before the knee is the most that one beyond it adds.
	Share = 0.25
	// MinSamples is what a step must have to count: fewer are chance.
	MinSamples = 5
	// MinSteps are those that each of the two lines needs, the knee being of both.
	MinSteps = 4
	// MinBeyond is how far beyond the knee was measured, in knees: what is flat for less may be a dent.
	MinBeyond = 1.5
	// certain is the number of standard errors by which the gains must differ: more than for one test, since the place where the
	// lines fit best is searched for.
	certain = 4
	// least is the relative error of a mean, however many samples it has: engines are not all alike.
	least = 0.02
)

// Find returns the batch size of the knee. It reports false where more batch still pays, or it is not certain that it does not.
func Find(steps []Step) (batch float64, ok bool) {
	curve := slices.DeleteFunc(slices.Clone(steps), func(s Step) bool { return !(s.Samples >= MinSamples) || !(s.Throughput > 0) })
	slices.SortFunc(curve, func(a, b Step) int { return cmp.Compare(a.Batch, b.Batch) })
	if len(curve) < 2*MinSteps-1 {
		return 0, false
	}
	weights := weigh(curve)
	best := fit{misfit: math.Inf(1)}
	at := 0
	for i := MinSteps - 1; i <= len(curve)-MinSteps; i++ {
		if f := broken(curve, weights, curve[i].Batch); f.misfit < best.misfit {
			best, at = f, i
		}
	}
	batch = curve[at].Batch
	if math.IsInf(best.misfit, 1) || curve[len(curve)-1].Batch < MinBeyond*batch {
		return 0, false
	}
	if !best.surely(1, 0) || !best.surely(Share, -1) {
		return 0, false
	}
	return batch, stays(curve[at:], weights[at:], Share*best.before)
}

// stays reports whether a curve that begins at the knee is not steeper again than a gain in its upper half.
func stays(beyond []Step, weights []float64, gain float64) bool {
	middle := math.Sqrt(beyond[0].Batch * beyond[len(beyond)-1].Batch)
	half := slices.IndexFunc(beyond, func(s Step) bool { return s.Batch >= middle })
	if len(beyond)-half < MinSteps {
		return true
	}
	f := broken(beyond[half:], weights[half:], math.Inf(1))
	return !(f.before-certain*math.Sqrt(f.varBefore) > gain)
}

// weigh returns the inverse squared standard errors of the means. The relative spread is taken to be the same everywhere, since
// few samples do not tell their own.
func weigh(curve []Step) []float64 {
	var spread, n float64
	for _, s := range curve {
		spread += s.Samples * max(s.Variance, 0) / (s.Throughput * s.Throughput)
		n += s.Samples
	}
	spread /= n - float64(len(curve))
	weights := make([]float64, len(curve))
	for i, s := range curve {
		weights[i] = 1 / (s.Throughput * s.Throughput * (spread/s.Samples + least*least))
	}
	return weights
}

// fit is two lines that meet: what a request adds on each, and how sure that is.
type fit struct {
	before, beyond              float64
	varBefore, varBeyond, covar float64
	misfit                      float64 // sum of squares, in standard errors; infinite where there is no fit
}

// surely reports whether a times the first gain and b times the second are certainly above zero in sum.
func (f *fit) surely(a, b float64) bool {
	return a*f.before+b*f.beyond > certain*math.Sqrt(a*a*f.varBefore+b*b*f.varBeyond+2*a*b*f.covar)
}

// broken fits two lines that meet at a batch size, or one where that is beyond the curve. Where they fit worse than the errors
// explain, the errors are larger than was thought.
func broken(curve []Step, weights []float64, batch float64) fit {
	var normal [3][3]float64
	var right, beta [3]float64
	for i, s := range curve {
		x := [3]float64{1, min(s.Batch, batch), max(s.Batch-batch, 0)}
		for j, xj := range x {
			for k, xk := range x {
				normal[j][k] += weights[i] * xj * xk
			}
			right[j] += weights[i] * xj * s.Throughput
		}
	}
	params := 3
	if normal[2][2] <= 0 { // there is one line
		normal[2][2], params = 1, 2
	}
	covariance, ok := inverse(&normal)
	if !ok {
		return fit{misfit: math.Inf(1)}
	}
	for j := range beta {
		for k := range right {
			beta[j] += covariance[j][k] * right[k]
		}
	}
	f := fit{before: beta[1], beyond: beta[2]}
	for i, s := range curve {
		off := s.Throughput - beta[0] - beta[1]*min(s.Batch, batch) - beta[2]*max(s.Batch-batch, 0)
		f.misfit += weights[i] * off * off
	}
	scale := max(f.misfit/float64(len(curve)-params), 1)
	f.varBefore, f.varBeyond, f.covar = scale*covariance[1][1], scale*covariance[2][2], scale*covariance[1][2]
	return f
}

// inverse is that of a symmetric matrix, by its adjugate.
func inverse(m *[3][3]float64) (inv [3][3]float64, ok bool) {
	for i := range 3 {
		for j := range 3 {
			a, b, c, d := (i+1)%3, (i+2)%3, (j+1)%3, (j+2)%3
			inv[j][i] = m[a][c]*m[b][d] - m[a][d]*m[b][c]
		}
	}
	det := m[0][0]*inv[0][0] + m[0][1]*inv[1][0] + m[0][2]*inv[2][0]
	if !(det > 1e-12*m[0][0]*m[1][1]*m[2][2]) || math.IsInf(det, 1) {
		return inv, false
	}
	for i := range 3 {
		for j := range 3 {
			inv[i][j] /= det
		}
	}
	return inv, true
}
