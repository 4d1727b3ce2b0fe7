// SPDX-License-Identifier: Apache-2.0

package window

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const (
	sec = int64(time.Second)
	t0  = 1_700_000_000 * sec
)

func newWatermark() *Watermark {
	return NewWatermark(WatermarkOptions{Lateness: 30 * time.Second, IdleTimeout: time.Minute, MaxAhead: time.Minute, MaxLag: time.Hour, MaxSources: 3})
}

func TestWatermarkIsUnsetBeforeInput(t *testing.T) {
	assert.Equal(t, Unset, newWatermark().Advance(t0, Unset))
}

func TestWatermarkFollowsTheSlowestLiveSource(t *testing.T) {
	w := newWatermark()
	w.Observe(1, t0, t0)
	w.Observe(2, t0-100*sec, t0)
	assert.Equal(t, t0-130*sec, w.Advance(t0, Unset))
	w.Observe(2, t0-10*sec, t0+sec)
	assert.Equal(t, t0-40*sec, w.Advance(t0+sec, Unset))
}

func TestAnIdleSourceDoesNotHoldTheOthersBack(t *testing.T) {
	w := newWatermark()
	w.Observe(1, t0-100*sec, t0)
	w.Observe(2, t0+61*sec, t0+61*sec)
	assert.Equal(t, t0+31*sec, w.Advance(t0+61*sec, Unset))
	waiting, others := w.Sources()
	assert.Equal(t, []int{1, 1}, []int{waiting, others})
}

func TestWatermarkNeverGoesBack(t *testing.T) {
	w := newWatermark()
	r := rand.New(rand.NewPCG(1, 2))
	last, now := Unset, t0
	for range 2000 {
		now += r.Int64N(40 * sec)
		if r.IntN(3) > 0 {
			w.Observe(r.Uint64N(5)+1, now-r.Int64N(200*sec), now)
		}
		at := w.Advance(now, now-r.Int64N(100*sec))
		assert.GreaterOrEqual(t, at, last)
		assert.LessOrEqual(t, at, now)
		last = at
	}
}

// Scenario: a day is replayed in a second, then nothing follows.
// Guarantees: its last window closes after the idle timeout, and the hours until now are not taken for an outage.
func TestAReplayClosesItsLastWindowAndIsNoOutage(t *testing.T) {
	w := newWatermark()
	now := t0 + 86400*sec
	w.Observe(1, t0, now)
	lastEnd := t0 + 200*sec
	assert.Equal(t, t0-30*sec, w.Advance(now+59*sec, lastEnd))
	assert.Equal(t, lastEnd, w.Advance(now+60*sec, lastEnd), "closed at once: the wall clock is long past its end")
	assert.Equal(t, t0+570*sec, w.Advance(now+600*sec, lastEnd))
}

// Scenario: a live source dies in the middle of a window.
// Guarantees: the window stays open until the wall clock has passed its end, so a source that comes back is not late.
func TestALiveWindowIsNotClosedBeforeItsEnd(t *testing.T) {
	w := newWatermark()
	w.Observe(1, t0, t0)
	end := t0 + 300*sec
	assert.Less(t, w.Advance(t0+90*sec, end), end)
	assert.Less(t, w.Advance(t0+329*sec, end), end, "lateness counts while idle, too")
	assert.Equal(t, end, w.Advance(t0+330*sec, end))
}

// Scenario: one replica repeats the same timestamp, another one's clock is hours behind.
// Guarantees: neither keeps the windows of the others open.
func TestAWrongClockDoesNotStopEverybody(t *testing.T) {
	w := newWatermark()
	w.opts.MaxSources = 10
	for i := range int64(300) {
		now := t0 + i*sec
		w.Observe(1, t0, now)                // frozen
		w.Observe(2, t0-7200*sec+i*sec, now) // behind
		w.Observe(3, now, now)
		w.Advance(now, Unset)
	}
	assert.Equal(t, t0+299*sec-30*sec, w.At())
	waiting, others := w.Sources()
	assert.Equal(t, []int{1, 2}, []int{waiting, others})
}

// Scenario: a replica whose clock is minutes behind comes in while others are being judged.
// Guarantees: nobody waits for it; when its clock is set right, it counts again.
func TestNobodyWaitsForWhoComesInBehind(t *testing.T) {
	w := newWatermark()
	for i := range int64(200) {
		now := t0 + i*sec
		w.Observe(1, now, now)
		if i >= 40 {
			w.Observe(2, now-300*sec, now)
		}
		w.Advance(now, Unset)
	}
	assert.Equal(t, t0+199*sec-30*sec, w.At())
	w.Observe(2, t0+200*sec, t0+200*sec)
	w.Observe(1, t0+240*sec, t0+240*sec)
	assert.Equal(t, t0+200*sec-30*sec, w.Advance(t0+240*sec, Unset), "it is waited for again")
}

func TestAClockThatIsALittleAheadDoesNotMoveTheWatermarkPastTheWall(t *testing.T) {
	w := newWatermark()
	w.Observe(1, t0+59*sec, t0)
	assert.Equal(t, t0-30*sec, w.Advance(t0, Unset))
}

func TestAWrongClockIsSeen(t *testing.T) {
	w := newWatermark()
	assert.False(t, w.Ahead(t0+60*sec, t0))
	assert.True(t, w.Ahead(t0+61*sec, t0))
}

func TestSourcesThatAreGoneMakeRoom(t *testing.T) {
	w := newWatermark()
	for id := range uint64(100) { // pods come and go, each for two minutes
		now := t0 + int64(id)*120*sec
		w.Observe(id+1, now, now)
		w.Advance(now, Unset)
	}
	assert.Zero(t, w.Overflowed())
}

func TestSourcesAreBounded(t *testing.T) {
	w := newWatermark()
	for id := range uint64(100) {
		w.Observe(id+1, t0+int64(id)*sec, t0)
	}
	waiting, others := w.Sources()
	assert.LessOrEqual(t, waiting+others, 4)
	assert.Positive(t, w.Overflowed())
}

func TestStartAlignsToTheEpoch(t *testing.T) {
	f := func(at int64, length time.Duration, want int64) {
		t.Helper()
		assert.Equal(t, want, Start(at, length))
	}
	f(0, time.Minute, 0)
	f(59*sec, time.Minute, 0)
	f(60*sec, time.Minute, 60*sec)
	f(-1, time.Minute, -60*sec)
	f(-60*sec, time.Minute, -60*sec)
}

func TestGCD(t *testing.T) {
	assert.Equal(t, 5*time.Minute, GCD(5*time.Minute, time.Hour))
	assert.Equal(t, time.Minute, GCD(5*time.Minute, 7*time.Minute))
	assert.Equal(t, 10*time.Second, GCD(10*time.Second))
	assert.Zero(t, GCD())
}

func TestPanesComeOutOldestFirstWhateverTheOrderIn(t *testing.T) {
	var p Panes[int]
	var pool Pool[int]
	for _, start := range rand.New(rand.NewPCG(3, 4)).Perm(50) {
		*p.At(int64(start), &pool)++
		*p.At(int64(start), &pool)++
	}
	youngest, _ := p.Youngest()
	assert.Equal(t, int64(49), youngest)
	for want := range int64(50) {
		start, ok := p.Oldest()
		assert.True(t, ok)
		assert.Equal(t, want, start)
		assert.Nil(t, p.Take(start+1))
		assert.Equal(t, 2, *p.Take(start))
	}
	assert.Zero(t, p.Len())
}

func TestPanesReuseTheirAccumulators(t *testing.T) {
	var p Panes[int]
	var pool Pool[int]
	start := int64(0)
	turn := func() {
		*p.At(start, &pool) = 1
		acc := p.Take(start)
		*acc = 0
		p.Release(acc, &pool)
		start++
	}
	turn()
	assert.Zero(t, testing.AllocsPerRun(100, turn))
}

func BenchmarkAdvance(b *testing.B) {
	for _, n := range []uint64{10, 1000, 100000} {
		b.Run(fmt.Sprintf("%d_sources", n), func(b *testing.B) {
			w := NewWatermark(WatermarkOptions{IdleTimeout: time.Minute, MaxLag: time.Hour, MaxSources: int(n)})
			for i := range n {
				w.Observe(i+1, t0+int64(i), t0)
			}
			now := t0
			b.ReportAllocs()
			for i := uint64(0); b.Loop(); i++ {
				now += sec / 1000 // a batch every millisecond
				w.Observe(i%n+1, now, now)
				w.Advance(now, Unset)
			}
		})
	}
}

func BenchmarkObserve(b *testing.B) {
	for _, n := range []uint64{10, 1000, 100000} {
		b.Run(fmt.Sprintf("%d_sources", n), func(b *testing.B) {
			w := NewWatermark(WatermarkOptions{IdleTimeout: time.Minute, MaxSources: int(n)})
			b.ReportAllocs()
			for i := uint64(0); b.Loop(); i++ {
				w.Observe(i%n+1, t0, t0)
			}
		})
	}
}

// Scenario: a replay opens far more panes at once than live input does.
// Guarantees: what is kept to be used again is bounded, and nobody is given an accumulator twice.
func TestAPoolIsBoundedAndGivesEachAccumulatorOnce(t *testing.T) {
	var pool Pool[int]
	var panes Panes[int]
	for start := range int64(maxFree + 10) {
		*panes.At(start, &pool) = 0
	}
	for start := range int64(maxFree + 10) {
		panes.Release(panes.Take(start), &pool)
	}
	assert.Len(t, pool.free, maxFree)
	var one, other Panes[int]
	assert.NotSame(t, one.At(1, &pool), other.At(1, &pool))
}

func TestThePanesThatAreOpenAreToldOldestFirst(t *testing.T) {
	var p Panes[int]
	var pool Pool[int]
	for _, start := range []int64{30, 10, 20} {
		*p.At(start, &pool) = int(start)
	}
	var starts []int64
	for _, pane := range p.All() {
		starts = append(starts, pane.Start)
		assert.Equal(t, int(pane.Start), *pane.Acc)
	}
	assert.Equal(t, []int64{10, 20, 30}, starts)
}
