// SPDX-License-Identifier: Apache-2.0

package trend

import (
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkAdd is one point of a series that is as long as one becomes.
func BenchmarkAdd(b *testing.B) {
	j, s := NewJudge(DefaultOptions()), new(Series)
	at := t0
	for ; at < t0+int64(12*24*time.Hour); at += int64(10 * time.Second) {
		j.Add(s, at, 1e9)
	}
	b.ReportAllocs()
	for b.Loop() {
		at += int64(10 * time.Second)
		j.Add(s, at, 1e9)
	}
}

// BenchmarkJudge is a process of ten days that leaks under daily traffic, judged as often as is worth it, and all its points between.
func BenchmarkJudge(b *testing.B) {
	of := noisy(small, 0.5, follows(20*gib, 0.2*gib, 6, 0.001))(rand.New(rand.NewPCG(1, 1)))
	j, s := NewJudge(DefaultOptions()), new(Series)
	o := DefaultOptions()
	tick := 0
	more := func(n int) int64 {
		for range n {
			at, m := t0+int64(tick)*int64(10*time.Second), of(float64(tick)/360)
			j.Add(s, at, m.bytes)
			j.Running(s, at, m.running)
			tick++
		}
		return t0 + int64(tick)*int64(10*time.Second)
	}
	more(10 * 24 * 360)
	each := int(o.Every() / (10 * time.Second))
	b.ReportAllocs()
	for b.Loop() {
		j.Judge(s, more(each), Alone(50*gib))
	}
}
