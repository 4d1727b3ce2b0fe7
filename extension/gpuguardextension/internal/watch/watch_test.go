// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

const (
	second = int64(time.Second)
	gib    = uint64(1 << 30)
	gpu    = "GPU-a"
	other  = "GPU-b"
	t0     = 1_700_000_000 * second
)

// rig is a State with a clock.
type rig struct {
	*State
	t   *testing.T
	now int64
}

// options are those of the tests. Processes start at their number of seconds after t0; below 1000, long before.
func options() Options {
	return Options{
		Threshold: 0.85, For: 3 * time.Second, StaleAfter: 15 * time.Second, GrowthWindow: 10 * time.Minute, OnLeak: true,
		MaxDevices: 8, MaxProcesses: 100, MinShare: 0.05, Mine: func(host string) bool { return host == "here" },
		Started: func(ticks uint64) int64 {
			if ticks == 0 {
				return 0
			}
			if ticks < 1000 {
				return t0 - 86400*second
			}
			return t0 + int64(ticks-1000)*second
		},
	}
}

func newRig(t *testing.T, change func(*Options)) *rig {
	o := options()
	if change != nil {
		change(&o)
	}
	return &rig{State: New(o), t: t, now: t0}
}

func pid(n int) gpuwatch.Process { return gpuwatch.Process{PID: n, StartTime: uint64(n)} }

func (r *rig) wait(seconds float64) { r.now += int64(seconds * float64(second)) }

// reads is a reading of a device of 100 GiB.
func (r *rig) reads(id string, used uint64, held ...gpuwatch.Held) {
	r.Device(gpuwatch.Device{ID: id, Total: 100 * gib, Used: used * gib, At: r.now, Processes: append([]gpuwatch.Held{}, held...)}, r.now)
}

func holds(n int, bytes uint64) gpuwatch.Held {
	return gpuwatch.Held{Process: pid(n), Bytes: bytes * gib}
}

func (r *rig) lives(n int, device string, bytes uint64) {
	r.Live(gpuwatch.Live{Process: pid(n), Device: device, Bytes: bytes * gib, At: r.now}, r.now)
}

// due are the devices and leaks on which there is something to decide.
func (r *rig) due() (all []string) {
	for _, t := range r.Due(r.now) {
		if t.Leak != nil {
			all = append(all, t.Leak.ID)
		} else {
			all = append(all, t.Device)
		}
	}
	return all
}

func (r *rig) used(id string) uint64 {
	r.t.Helper()
	for _, v := range r.Views(r.now) {
		if v.Device == id {
			return v.Used / gib
		}
	}
	r.t.Fatalf("no device %q", id)
	return 0
}

func (r *rig) candidates(id string) (pids []int) {
	for _, c := range r.Candidates(&Trigger{Device: id}, r.now) {
		pids = append(pids, c.PID)
	}
	return pids
}

// configured is for devices of which nothing is read.
func configured(o *Options) { o.DeviceMemory = 100 * gib }

func TestLiveBytesBecomeAReasonAlthoughNothingMoreIsTold(t *testing.T) {
	r := newRig(t, configured)
	r.lives(1, gpu, 84)
	assert.Empty(t, r.due())
	r.lives(1, gpu, 85)
	assert.True(t, r.Look(), "whoever waits must look when it is due")
	assert.Empty(t, r.due())
	assert.Equal(t, r.now+3*second, r.Next(r.now))
	r.wait(2.9)
	assert.Empty(t, r.due())
	r.wait(0.1)
	assert.Equal(t, []string{gpu}, r.due())
	got := r.Due(r.now)[0]
	assert.Equal(t, r.now, got.Since, "from here on the decision is measured")
	assert.Equal(t, 3*time.Second, got.Above)
	assert.Equal(t, 85*gib, got.Used)
	r.wait(60)
	assert.Equal(t, []string{gpu}, r.due(), "what is told on change stays true while nothing is told")
	assert.Equal(t, got.Since, r.Due(r.now)[0].Since)
}

func TestLessForAMomentBeginsAnew(t *testing.T) {
	r := newRig(t, configured)
	r.lives(1, gpu, 90)
	r.wait(2)
	r.lives(1, gpu, 80)
	r.lives(1, gpu, 90)
	r.wait(2)
	assert.Empty(t, r.due())
	r.wait(1)
	assert.Equal(t, []string{gpu}, r.due())
	r.lives(1, gpu, 80)
	assert.Empty(t, r.due())
}

func TestASpikeInOneReadingIsNoReason(t *testing.T) {
	r := newRig(t, nil)
	r.reads(gpu, 90)
	r.wait(5)
	assert.Empty(t, r.due(), "nobody knows whether it is so still")
	r.reads(gpu, 50)
	assert.Empty(t, r.due())
	r.wait(1)
	r.reads(gpu, 90)
	r.wait(3)
	r.reads(gpu, 90)
	assert.True(t, r.Look())
	assert.Equal(t, []string{gpu}, r.due(), "two readings, 3 s apart")
	assert.Equal(t, r.now, r.Due(r.now)[0].Since)
	r.wait(16)
	assert.Empty(t, r.due(), "it is stale")
}

func TestReadingsThatAreFarApartAreNotInARow(t *testing.T) {
	r := newRig(t, nil)
	r.reads(gpu, 90)
	r.wait(20)
	r.reads(gpu, 90)
	assert.Empty(t, r.due())
	r.wait(3)
	r.reads(gpu, 90)
	assert.Equal(t, []string{gpu}, r.due())
}

func TestWithoutAWaitTheFirstSightIsEnough(t *testing.T) {
	f := func(see func(*rig)) {
		t.Helper()
		r := newRig(t, func(o *Options) { o.For = 0 })
		r.reads(gpu, 80)
		assert.Empty(t, r.due())
		r.wait(1)
		see(r)
		assert.Equal(t, []string{gpu}, r.due())
		assert.Equal(t, r.now, r.Due(r.now)[0].Since)
	}
	f(func(r *rig) { r.reads(gpu, 86) })
	f(func(r *rig) { r.lives(2000, gpu, 0); r.lives(2000, gpu, 6) }) // 80 by the reading, and 6 more since
}

func TestADeviceThatLiveBytesLeaveIsNotTooFullAnyMore(t *testing.T) {
	r := newRig(t, func(o *Options) { o.For, o.DeviceMemory, o.OneDevice = 0, 100*gib, true })
	r.lives(1, "", 90)
	require.Equal(t, []string{""}, r.due())
	r.wait(1)
	r.lives(1, gpu, 90)
	assert.Equal(t, []string{gpu}, r.due())
	r.lives(1, other, 90)
	assert.Equal(t, []string{other}, r.due())
}

// Scenario: a process has more than the device: managed memory, or that of a context that it has destroyed; live bytes have it all.
// Guarantees: a reading that is fresh is believed, nobody is ended for what it does not say, also when it has become stale, and that is
// a reason to tell; from a reading on that has it, it is a reason to act.
func TestAReadingIsBelievedAndNotLiveBytes(t *testing.T) {
	r := newRig(t, func(o *Options) { o.For = 0 })
	r.lives(1, gpu, 5)
	r.reads(gpu, 10, holds(1, 8))
	r.wait(1)
	r.lives(1, gpu, 80)
	assert.Equal(t, []string{gpu}, r.due(), "as far as is known")
	r.wait(1)
	r.lives(1, gpu, 90)
	f := func(used uint64) {
		t.Helper()
		due := r.Due(r.now)
		require.Len(t, due, 1)
		assert.True(t, due[0].Disagrees)
		assert.Equal(t, used*gib, due[0].Used)
		assert.False(t, r.Holds(&due[0], pid(1), r.now))
	}
	r.wait(1)
	r.reads(gpu, 10, holds(1, 8))
	f(10)
	got := r.Candidates(&Trigger{Device: gpu}, r.now)
	require.Len(t, got, 1)
	assert.Equal(t, 8*gib, got[0].Held, "that is what is read of it")
	r.wait(1)
	r.lives(1, gpu, 91)
	f(11)
	r.wait(20)
	f(91)
	r.lives(1, gpu, 60)
	assert.Empty(t, r.Due(r.now))
	r.lives(1, gpu, 90)
	r.reads(gpu, 92, holds(1, 91))
	require.Len(t, r.Due(r.now), 1)
	assert.False(t, r.Due(r.now)[0].Disagrees)
}

func TestWithAReadingThatIsStaleLiveBytesDecide(t *testing.T) {
	r := newRig(t, nil)
	r.lives(1, gpu, 90)
	r.reads(gpu, 92)
	r.wait(2)
	assert.Equal(t, t0+15*second+1, r.Next(r.now), "then nobody tells that it is stale")
	r.now = t0 + 15*second + 1
	assert.Empty(t, r.due())
	r.wait(3)
	assert.Equal(t, []string{gpu}, r.due())
}

// Scenario: another process fills the device; what of one is left in live bytes has been given back with its context.
func TestOfWhatIsNotReadNobodyHoldsMoreThanIsLeft(t *testing.T) {
	r := newRig(t, nil)
	r.lives(1, gpu, 60)
	r.reads(gpu, 90, holds(2, 88))
	assert.Equal(t, []int{2}, r.candidates(gpu))
	r.wait(1)
	r.lives(1, gpu, 70)
	assert.Equal(t, []int{1, 2}, r.candidates(gpu), "10 more since")
	r.wait(1)
	r.reads(gpu, 90)
	assert.Equal(t, []int{1}, r.candidates(gpu), "nobody is named: it may be that one")
}

// Guarantees: what is on devices that are not known is not added up, unless there is one for certain.
func TestWhatIsOnAnyDeviceIsOnNone(t *testing.T) {
	f := func(one bool, want ...string) {
		t.Helper()
		r := newRig(t, func(o *Options) { o.DeviceMemory, o.OneDevice = 100*gib, one })
		for n := range 3 {
			r.lives(n+1, "", 30)
		}
		r.wait(3)
		assert.Equal(t, want, r.due())
		if !one {
			assert.Equal(t, 3, r.Unplaced())
			r.lives(4, gpu, 90) // the only one that is known, and not for that the only one that there is
			r.wait(3)
			assert.Equal(t, []string{gpu}, r.due())
			assert.Equal(t, []int{4}, r.candidates(gpu))
		}
	}
	f(true, "")
	f(false)

	r := newRig(t, func(o *Options) { o.MaxDevices = 1 })
	r.reads(gpu, 10)
	r.lives(1, "", 30)
	assert.Zero(t, r.Unplaced())
	r.reads(other, 10)
	assert.Equal(t, 1, r.Unplaced(), "there is another one, for which there is no room")
}

func TestTheFullestDeviceComesFirst(t *testing.T) {
	r := newRig(t, func(o *Options) { o.For = 0 })
	r.reads(gpu, 90)
	r.reads(other, 95)
	assert.Equal(t, []string{other, gpu}, r.due())
}

func TestWhatChangedSinceAReadingCountsOnce(t *testing.T) {
	r := newRig(t, nil)
	r.lives(1, gpu, 20)
	r.reads(gpu, 50)
	assert.Equal(t, uint64(50), r.used(gpu))
	r.wait(1)
	r.lives(1, gpu, 30)
	assert.Equal(t, uint64(60), r.used(gpu))
	r.lives(1, gpu, 5)
	assert.Equal(t, uint64(35), r.used(gpu))
	r.reads(gpu, 35)
	assert.Equal(t, uint64(35), r.used(gpu))
	// Scenario: an allocation that the reading has is told a moment after it.
	at := r.now
	r.wait(1)
	r.Live(gpuwatch.Live{Process: pid(1), Device: gpu, Bytes: 15 * gib, At: at}, r.now)
	assert.Equal(t, uint64(35), r.used(gpu))
	r.lives(1, gpu, 16)
	assert.Equal(t, uint64(36), r.used(gpu))
}

// Scenario: a source of live bytes is started while processes hold memory already.
// Guarantees: what a reading has is not counted again, and what comes after it is.
func TestAProcessThatIsToldOfForTheFirstTimeIsNotCountedTwice(t *testing.T) {
	r := newRig(t, nil)
	r.reads(gpu, 80, holds(1, 60))
	r.wait(1)
	r.lives(1, gpu, 60)
	assert.Equal(t, uint64(80), r.used(gpu))
	r.lives(1, gpu, 62)
	assert.Equal(t, uint64(82), r.used(gpu))
	r.lives(1001, gpu, 3) // started after the reading
	r.lives(1000, gpu, 3) // and not after it
	assert.Equal(t, uint64(85), r.used(gpu))
}

func TestLiveBytesFindTheirDevice(t *testing.T) {
	r := newRig(t, nil)
	r.lives(1, "", 10)
	assert.Empty(t, r.Views(r.now))
	r.reads(gpu, 0)
	on := func(id string) uint64 { return r.devices[id].live / gib }
	assert.Equal(t, uint64(10), on(gpu), "there is only one")
	r.reads(other, 0, holds(2, 1))
	assert.Zero(t, on(gpu), "nobody knows on which")
	assert.Zero(t, on(other))
	r.lives(2, "", 20)
	assert.Equal(t, uint64(20), on(other), "it holds memory there only")
	r.wait(1)
	r.reads(gpu, 0, holds(2, 1))
	assert.Zero(t, on(other), "it holds memory on both")
	r.lives(2, gpu, 7)
	assert.Equal(t, uint64(7), on(gpu), "that was told")
	r.lives(2, other, 8)
	assert.Zero(t, on(gpu), "what is told of a process is all that it has")
	assert.Equal(t, uint64(8), on(other))
	r.lives(2, "", 9)
	assert.Zero(t, on(other), "nobody knows on which, again")
}

func TestWithoutReadingsTheMemoryThatIsConfiguredCounts(t *testing.T) {
	r := newRig(t, func(o *Options) { o.DeviceMemory, o.OneDevice = 100*gib, true })
	r.lives(1, "", 90)
	r.wait(3)
	assert.Equal(t, []string{""}, r.due())
	assert.Equal(t, []int{1}, r.candidates(""))
	r.lives(1, gpu, 90)
	r.wait(3)
	assert.Equal(t, []string{gpu}, r.due(), "it has a name now")

	r = newRig(t, nil)
	r.lives(1, gpu, 1000)
	r.wait(3)
	assert.Empty(t, r.due(), "of nothing nobody can say whether it is too full")
}

func TestAProcessThatEndsGivesBackWhatItHeld(t *testing.T) {
	r := newRig(t, nil)
	r.lives(1, gpu, 30)
	r.reads(gpu, 90, holds(1, 32), holds(2, 50))
	r.wait(1)
	r.lives(1, gpu, 40)
	assert.Equal(t, uint64(100), r.used(gpu))
	r.Gone(pid(1), r.now)
	assert.Equal(t, uint64(58), r.used(gpu))
	assert.Equal(t, []int{2}, r.candidates(gpu))
	r.Gone(gpuwatch.Process{PID: 2}, r.now)
	assert.Equal(t, uint64(8), r.used(gpu), "whoever has the PID")
	r.wait(1)
	r.reads(gpu, 8)
	assert.Equal(t, uint64(8), r.used(gpu))
	_, processes, _ := r.Sizes()
	assert.Zero(t, processes)
}

func TestAfterAnActionWhatWasReadBeforeCountsForNothing(t *testing.T) {
	r := newRig(t, func(o *Options) { o.For = 0 })
	r.reads(gpu, 95, holds(1, 5))
	assert.Equal(t, []string{gpu}, r.due())
	r.wait(1)
	r.Acted(r.now)
	assert.Empty(t, r.due())
	r.wait(1)
	r.reads(gpu, 95)
	assert.Equal(t, []string{gpu}, r.due())
}

func TestCandidatesHoldMemoryOfTheDevice(t *testing.T) {
	r := newRig(t, nil)
	r.reads(gpu, 90, holds(1, 50), holds(2, 4), holds(3, 0), holds(0, 50), gpuwatch.Held{Process: gpuwatch.Process{PID: -1}, Bytes: 50 * gib})
	r.reads(other, 90, holds(4, 50))
	r.lives(5, gpu, 6)
	r.lives(6, other, 6)
	assert.Equal(t, []int{1, 5}, r.candidates(gpu), "5 % of it at least")
	r.wait(16)
	assert.Equal(t, []int{5}, r.candidates(gpu), "a reading that is stale is not believed")
}

func TestGrowthIsThatOfTheLastMinutes(t *testing.T) {
	r := newRig(t, nil)
	growth := func(n int) uint64 {
		for _, c := range r.Candidates(&Trigger{Device: gpu}, r.now) {
			if c.PID == n {
				return c.Growth / gib
			}
		}
		return 0
	}
	r.reads(gpu, 50, holds(1, 20), holds(1000, 20))
	assert.Equal(t, uint64(0), growth(1), "it held that before")
	assert.Equal(t, uint64(20), growth(1000), "it was started just now")
	for range 20 { // minutes
		r.wait(60)
		r.reads(gpu, 50, holds(1, 20+uint64(r.now-t0)/uint64(60*second)), holds(1000, 20))
	}
	assert.InDelta(t, 8, growth(1), 2, "1 GiB a minute, over five to ten of them")
	assert.Zero(t, growth(1000))
}

func TestVerdictsOfOtherMachinesAreIgnored(t *testing.T) {
	r := newRig(t, nil)
	r.reads(gpu, 50, holds(1, 20))
	f := func(host, device string, process int, want bool) {
		t.Helper()
		got := r.Leak(gpuwatch.Leak{ID: "x", Open: true, Host: host, PID: process, Device: device, At: r.now}, r.now)
		assert.Equal(t, want, got)
		if want {
			assert.Equal(t, []string{"x"}, r.due())
		} else {
			assert.Empty(t, r.due())
		}
		r.Leak(gpuwatch.Leak{ID: "x"}, r.now)
	}
	f("here", gpu, 1, true)
	f("here", "", 1, true)
	f("there", gpu, 1, false)
	f("there", "", 1, false)
	f("", gpu, 1, true) // a device's id is that of one machine only
	f("", "", 1, true)  // who tells it is in the same Collector, and the process is known
	f("", "", 2, false) // nothing is known of this one
	f("", other, 1, false)
	f("here", gpu, 0, false) // a device's, for which nobody is responsible
	assert.Equal(t, Beyond{Elsewhere: 4, Nobody: 1}, r.Beyond())
	assert.Empty(t, r.Leaks())
}

func TestAVerdictIsAboutTheProcessThatWasThereThen(t *testing.T) {
	r := newRig(t, nil)
	leak := gpuwatch.Leak{ID: "x", Open: true, Host: "here", PID: 1, Device: gpu, At: t0 - 60*second}
	r.Leak(leak, r.now)
	assert.Empty(t, r.due(), "it holds nothing, as far as is known")
	r.reads(gpu, 50, gpuwatch.Held{Process: gpuwatch.Process{PID: 1, StartTime: 1000}, Bytes: 20 * gib})
	assert.Empty(t, r.due(), "this one was started after the verdict")
	r.reads(gpu, 50, gpuwatch.Held{Process: gpuwatch.Process{PID: 1}, Bytes: 20 * gib})
	assert.Empty(t, r.due(), "of this one nobody knows when it was started")
	r.reads(gpu, 50, holds(1, 4))
	assert.Empty(t, r.due(), "it holds too little to be ended")
	r.reads(gpu, 50, holds(1, 5))
	r.reads(other, 50, holds(1, 30))
	require.Equal(t, []string{"x"}, r.due())
	due := r.Due(r.now)[0]
	assert.Equal(t, gpu, due.Device)
	got := r.Candidates(&due, r.now)
	require.Len(t, got, 1, "only who leaks")
	assert.Equal(t, pid(1), got[0].Process)
	assert.Equal(t, "x", got[0].Leak.ID)
	assert.True(t, r.Holds(&due, pid(1), r.now))
	leak.Open = false
	r.Leak(leak, r.now)
	assert.Empty(t, r.due())
	assert.False(t, r.Holds(&due, pid(1), r.now))
}

// Scenario: a verdict names no host. Guarantees: it waits until something is told of its process, which was started before it.
func TestAVerdictWithoutAHostWaitsForItsProcess(t *testing.T) {
	r := newRig(t, nil)
	assert.False(t, r.Leak(gpuwatch.Leak{ID: "x", Open: true, PID: 1, At: t0 + 5*second}, r.now))
	assert.Empty(t, r.due())
	r.reads(gpu, 50)
	r.lives(1010, gpu, 20) // another PID
	r.Live(gpuwatch.Live{Process: gpuwatch.Process{PID: 1, StartTime: 1010}, Device: gpu, Bytes: gib, At: r.now}, r.now)
	assert.Empty(t, r.due(), "this one was started after the verdict")
	r.lives(1, gpu, 20)
	assert.Equal(t, []string{"x"}, r.due())
}

// Scenario: live bytes alone are told, and of no device. Guarantees: a leak is a reason all the same, and nothing else is.
func TestALeakOfADeviceThatIsNotKnownIsAReason(t *testing.T) {
	r := newRig(t, nil)
	r.lives(1, "", 20)
	r.lives(2, "", 90)
	r.wait(10)
	assert.Empty(t, r.due())
	require.True(t, r.Leak(gpuwatch.Leak{ID: "x", Open: true, PID: 1, At: r.now}, r.now))
	due := r.Due(r.now)
	require.Len(t, due, 1)
	assert.Empty(t, due[0].Device)
	assert.Zero(t, due[0].Total)
	got := r.Candidates(&due[0], r.now)
	require.Len(t, got, 1)
	assert.Equal(t, pid(1), got[0].Process)
	assert.Equal(t, 20*gib, got[0].Held)
	assert.True(t, r.Holds(&due[0], pid(1), r.now))
	r.lives(1, "", 0)
	assert.False(t, r.Holds(&due[0], pid(1), r.now))
	assert.Empty(t, r.due())
}

// Guarantees: a leak is a reason from when on little enough time is left, without another word; where nobody knows how much, at once.
func TestALeakThatHasTimeIsNoReasonYet(t *testing.T) {
	f := func(within, exhaustion time.Duration, want time.Duration) {
		t.Helper()
		r := newRig(t, func(o *Options) { o.LeakWithin = within })
		r.lives(1, "", 20)
		require.True(t, r.Leak(gpuwatch.Leak{ID: "x", Open: true, PID: 1, At: r.now, Exhaustion: exhaustion}, r.now))
		for _, after := range []time.Duration{0, max(want-time.Second, 0), want} {
			r.now = t0 + int64(after)
			if after < want {
				assert.Empty(t, r.due())
				assert.Equal(t, t0+int64(want), r.Next(r.now))
			} else {
				assert.Equal(t, []string{"x"}, r.due())
			}
		}
	}
	f(24*time.Hour, 343*time.Hour, 319*time.Hour)
	f(24*time.Hour, 24*time.Hour, 0)
	f(24*time.Hour, time.Minute, 0)
	f(24*time.Hour, 0, 0)
	f(0, 343*time.Hour, 0)

	r := newRig(t, func(o *Options) { o.LeakWithin = time.Hour })
	r.lives(1, "", 20)
	r.Leak(gpuwatch.Leak{ID: "x", Open: true, PID: 1, At: r.now, Exhaustion: math.MaxInt64}, r.now)
	assert.Empty(t, r.due())
}

func TestALeakIsNoReasonUnlessItIsToBe(t *testing.T) {
	r := newRig(t, func(o *Options) { o.OnLeak = false })
	r.reads(gpu, 50, holds(1, 20))
	r.Leak(gpuwatch.Leak{ID: "x", Open: true, Host: "here", PID: 1, Device: gpu, At: r.now}, r.now)
	assert.Empty(t, r.due())
	got := r.Candidates(&Trigger{Device: gpu}, r.now)
	require.Len(t, got, 1)
	assert.NotNil(t, got[0].Leak, "it is known all the same, for when the device is too full")
}

func TestNothingGrowsForEver(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxDevices, o.MaxProcesses = 2, 3 })
	for i := range 100 {
		r.lives(i+1, string(rune('a'+i%26)), 1)
		r.reads(string(rune('a'+i%26)), 1, holds(1000+i, 1))
		r.Leak(gpuwatch.Leak{ID: string(rune('a' + i)), Open: true, Host: "here", PID: i + 1, At: r.now}, r.now)
	}
	devices, processes, leaks := r.Sizes()
	assert.Equal(t, []int{2, 3, 3}, []int{devices, processes, leaks})
	beyond := r.Beyond()
	assert.Positive(t, beyond.Devices)
	assert.Positive(t, beyond.Processes)
	assert.Equal(t, uint64(97), beyond.Leaks)
}

func TestWhatIsNotHeardOfIsForgotten(t *testing.T) {
	r := newRig(t, nil)
	r.reads(gpu, 50, holds(1, 20))
	r.reads(other, 50)
	r.Leak(gpuwatch.Leak{ID: "x", Open: true, Host: "here", PID: 1, Device: gpu, At: r.now}, r.now)
	r.Leak(gpuwatch.Leak{ID: "y", Open: true, Host: "here", PID: 2, Device: gpu, At: r.now}, r.now)
	r.wait(601)
	r.reads(gpu, 50, holds(1, 20))
	r.Expire(r.now)
	devices, _, leaks := r.Sizes()
	assert.Equal(t, []int{1, 2}, []int{devices, leaks})
	r.wait(3600)
	r.reads(gpu, 50, holds(1, 20))
	r.Expire(r.now)
	require.Len(t, r.Leaks(), 1)
	assert.Equal(t, "x", r.Leaks()[0].ID, "its process is there")
}

func TestAnOldTaleIsNotBelieved(t *testing.T) {
	r := newRig(t, nil)
	r.reads(gpu, 50)
	r.lives(1, gpu, 50)
	r.wait(1)
	r.lives(1, gpu, 60)
	r.Device(gpuwatch.Device{ID: gpu, Total: 100 * gib, Used: 99 * gib, At: t0 - 1}, r.now)
	r.Live(gpuwatch.Live{Process: pid(1), Device: gpu, Bytes: 99 * gib, At: r.now - 1}, r.now)
	assert.Equal(t, uint64(60), r.used(gpu))
}

func TestAReadingWithoutProcessesKeepsThoseOfTheLast(t *testing.T) {
	r := newRig(t, nil)
	r.reads(gpu, 50, holds(1, 20))
	r.wait(1)
	r.Device(gpuwatch.Device{ID: gpu, Total: 100 * gib, Used: 50 * gib, At: r.now}, r.now)
	assert.Equal(t, []int{1}, r.candidates(gpu))
	r.reads(gpu, 50)
	assert.Empty(t, r.candidates(gpu))
	assert.False(t, slices.Contains(r.Processes(), pid(1)))
}
