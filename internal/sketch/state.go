// SPDX-License-Identifier: Apache-2.0

package sketch

import (
	"errors"
	"fmt"
	"math"
)

// DistributionState is a Distribution as plain values, for a checkpoint. It is written as an array, so the order of the
// fields is part of the format.
type DistributionState struct {
	_           struct{} `cbor:",toarray"`
	Explicit    []ExplicitState
	Exponential []ExponentialState
}

// ExplicitState is one layout of explicit buckets.
type ExplicitState struct {
	_      struct{} `cbor:",toarray"`
	Bounds []float64
	Counts []uint64
}

// ExponentialState is an Exponential.
type ExponentialState struct {
	_                  struct{} `cbor:",toarray"`
	Scale              int32
	Factor             float64
	ZeroThreshold      float64
	ZeroCount          uint64
	Positive, Negative BucketsState
}

// BucketsState is one side of an Exponential.
type BucketsState struct {
	_      struct{} `cbor:",toarray"`
	Offset int32
	Counts []uint64
}

// State returns the distribution as plain values, nil when it is empty. The slices of exponential histograms are the
// distribution's own, so they are good until the next change. Layouts without a value are left out.
func (d *Distribution) State() *DistributionState {
	if d.Count() == 0 {
		return nil
	}
	s := &DistributionState{}
	for p := range d.explicit {
		if !p.empty() {
			s.Explicit = append(s.Explicit, ExplicitState{Bounds: p.bounds, Counts: p.wide(make([]uint64, 0, p.len()))})
		}
	}
	d.Exponential(func(e *Exponential) { s.Exponential = append(s.Exponential, e.State()) })
	return s
}

// Restore makes d what State was taken of. Slices of s become d's. intern, which may be nil, returns the one slice
// that stands for all equal boundaries, so that a thousand series do not hold a thousand copies. After an error d is
// empty.
func (d *Distribution) Restore(s *DistributionState, intern func([]float64) []float64) error {
	*d = Distribution{}
	if s == nil {
		return nil
	}
	if n := len(s.Explicit) + len(s.Exponential); n > MaxLayouts {
		return fmt.Errorf("%d bucket layouts, more than %d", n, MaxLayouts)
	}
	var restored Distribution
	var count uint64
	for _, p := range s.Explicit {
		if !Valid(p.Bounds, p.Counts) {
			return fmt.Errorf("%d counts and boundaries %v are no histogram", len(p.Counts), p.Bounds)
		}
		var ok bool
		if count, ok = addUp(count, p.Counts); !ok {
			return errTooMany
		}
		if intern != nil {
			p.Bounds = intern(p.Bounds)
		}
		restored.AddExplicit(p.Bounds, p.Counts)
	}
	for _, p := range s.Exponential {
		var e Exponential
		if err := e.Restore(p); err != nil {
			return err
		}
		if n := max(len(e.Positive.Counts), len(e.Negative.Counts)); int64(n) > most(e.Scale) {
			return fmt.Errorf("%d exponential buckets at scale %d, more than %d", n, e.Scale, most(e.Scale))
		}
		var ok bool
		if count, ok = addUp(count, []uint64{e.Count()}); !ok {
			return errTooMany
		}
		m := restored.others()
		m.exponential = append(m.exponential, e)
	}
	*d = restored
	return nil
}

// State returns the histogram as plain values. Its slices are the histogram's own, so they are good until the next
// change.
func (e *Exponential) State() ExponentialState {
	return ExponentialState{
		Scale: e.Scale, Factor: e.Factor, ZeroThreshold: e.ZeroThreshold, ZeroCount: e.ZeroCount,
		Positive: BucketsState{Offset: e.Positive.Offset, Counts: e.Positive.Counts},
		Negative: BucketsState{Offset: e.Negative.Offset, Counts: e.Negative.Counts},
	}
}

// Restore makes e what State was taken of. The slices of s become e's. After an error e is empty.
func (e *Exponential) Restore(s ExponentialState) error {
	*e = Exponential{}
	if s.Scale < MinScale || s.Scale > MaxScale {
		return fmt.Errorf("scale %d is not in [%d, %d]", s.Scale, MinScale, MaxScale)
	}
	for _, v := range [...]float64{s.Factor, s.ZeroThreshold} {
		if !(v >= 0) || math.IsInf(v, 1) {
			return fmt.Errorf("factor %v or zero threshold %v is not finite and positive", s.Factor, s.ZeroThreshold)
		}
	}
	lowest, highest := indexes(s.Scale)
	total := s.ZeroCount
	for _, p := range [...]BucketsState{s.Positive, s.Negative} {
		if len(p.Counts) > MaxInputBuckets || int64(p.Offset)+int64(len(p.Counts)) > math.MaxInt32 {
			return fmt.Errorf("%d exponential buckets from %d on are too many", len(p.Counts), p.Offset)
		}
		b := Buckets{Offset: p.Offset, Counts: p.Counts}
		if first, last, ok := b.span(); ok && (int64(first) < lowest || int64(last) > highest) {
			return fmt.Errorf("exponential buckets %d to %d are beyond what a float of scale %d maps to", first, last, s.Scale)
		}
		var ok bool
		if total, ok = addUp(total, p.Counts); !ok {
			return errTooMany
		}
	}
	*e = Exponential{
		Scale: s.Scale, Factor: s.Factor, ZeroThreshold: s.ZeroThreshold, ZeroCount: s.ZeroCount,
		Positive: Buckets{Offset: s.Positive.Offset, Counts: s.Positive.Counts},
		Negative: Buckets{Offset: s.Negative.Offset, Counts: s.Negative.Counts},
	}
	return nil
}

var errTooMany = errors.New("the counts are more than can be counted")

// addUp adds counts to sum. It reports false when they do not fit.
func addUp(sum uint64, counts []uint64) (uint64, bool) {
	for _, n := range counts {
		if sum+n < sum {
			return 0, false
		}
		sum += n
	}
	return sum, true
}
