// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// Scenario: a receiver of CUDA calls begins anew beside a process that holds 40 GiB and replaces its blocks one after another, within seven hours: the free of each is
// of an unknown block, and the new one counts. Guarantees: memory that is always the same is no leak.
func TestBlocksOfBeforeTheProbesAreNoLeak(t *testing.T) {
	f := func(missed func(h float64) float64, want int) {
		t.Helper()
		r, random := newRig(t, nil), rand.New(rand.NewPCG(1, 1))
		r.run(16, func(at int64, h float64) {
			live := 40 * gib
			if h >= 4 {
				live = min(int(40*gib), int((h-4)*6*gib))
			}
			r.hear(at, Live, serving, float64(live)+math.Abs(noise(random))/50)
			if missed != nil {
				r.hear(at, Missed, serving, missed(h))
			}
		})
		assert.Len(t, r.events, want)
	}
	f(nil, 2) // and back to flat
	f(func(h float64) float64 { return math.Floor(10 * min(max(h-4, 0), 20.0/3)) }, 0)
	f(func(float64) float64 { return 0 }, 2)
}

// Scenario: a process leaks, and after two hours there is no more room for what it allocates: what is live seems to be flat. Guarantees: that is not believed, where
// the driver tells of the process; and where only the device is known, it is the device that leaks.
func TestWhatIsLiveIsNotBelievedWhereCallsAreMissed(t *testing.T) {
	f := func(driver bool) Event {
		t.Helper()
		r, random := newRig(t, nil), rand.New(rand.NewPCG(2, 1))
		r.run(8, func(at int64, h float64) {
			used := (20+h)*gib + noise(random)
			r.hear(at, Limit, gpu, 80*gib)
			r.hear(at, DeviceUsed, gpu, used+gib)
			r.hear(at, Live, serving, min(20+h, 22)*gib)
			r.hear(at, Missed, serving, math.Floor(100*max(h-2, 0)))
			if driver {
				r.hear(at, Used, server, used)
			}
		})
		require.Len(t, r.events, 1)
		return r.events[0]
	}
	assert.Equal(t, "not_returned", f(true).Cause)
	of := f(false)
	assert.Equal(t, "device_grows", of.Cause)
	assert.Equal(t, ID{Host: "a", Device: "GPU-0"}, of.Process)
}

// Scenario: a leak is found in what a process has allocated; then calls are missed. Guarantees: it stays open while nobody can tell, also over a restart,
// and is over with the process.
func TestALeakStaysOpenWhileCallsAreMissed(t *testing.T) {
	r := newRig(t, nil)
	r.run(9, func(at int64, h float64) {
		r.hear(at, Live, serving, (20+h)*gib)
		r.hear(at, Missed, serving, math.Floor(100*max(h-5, 0)))
		if h > 6 && h < 6.01 {
			head, shards := r.State()
			next := newRig(t, nil)
			next.events = r.events
			var all []ProcessState
			for _, some := range shards {
				all = append(all, some...)
			}
			_, err := next.Restore(head, all)
			require.NoError(t, err)
			*r = *next
		}
	})
	require.Len(t, r.events, 1)
	assert.True(t, r.events[0].Opened)
}

// Scenario: only the memory in use of a device is known, as by DCGM, and grows. Guarantees: the device leaks, and says that more is not known. Once its
// processes are told, it is theirs.
func TestADeviceOfWhichNoProcessIsToldIsJudgedAsAWhole(t *testing.T) {
	r, random := newRig(t, nil), rand.New(rand.NewPCG(3, 1))
	r.run(6, func(at int64, h float64) {
		used := 2*gib + 3*gib*h + noise(random)
		r.hear(at, Limit, gpu, 80*gib)
		r.hear(at, DeviceUsed, gpu, used)
		if h > 5 {
			r.hear(at, Used, server, used)
		}
	})
	require.Len(t, r.events, 2)
	ev := r.events[0]
	assert.Equal(t, ID{Host: "a", Device: "GPU-0"}, ev.Process)
	assert.Equal(t, "device_grows", ev.Cause)
	assert.Regexp(t, `^memory of device GPU-0, of whose processes nothing is told, on a leaks \d\S* GiB an hour`, ev.Text)
	assert.InEpsilon(t, 3.0*gib/3600, ev.Rate, 0.1)
	assert.InEpsilon(t, 12*gib, ev.Memory, 0.3)
	assert.Equal(t, ev.ID, r.events[1].ID)
	assert.Equal(t, "its processes are told now", r.events[1].Text)
	assert.Len(t, r.gone, 1)
}

// Scenario: a process that tells no device leaks, and so the device grows. Guarantees: that is told once, of the process.
func TestWhatAProcessSaysWithoutADeviceIsNotToldOfTheDeviceBesides(t *testing.T) {
	r, random := newRig(t, nil), rand.New(rand.NewPCG(4, 1))
	r.run(8, func(at int64, h float64) {
		r.hear(at, Limit, gpu, 80*gib)
		r.hear(at, DeviceUsed, gpu, (22+h)*gib+noise(random))
		r.hear(at, Live, serving, (20+h)*gib)
	})
	require.Len(t, r.events, 1)
	assert.Equal(t, "71", r.events[0].Process.PID)
}

// Scenario: two hosts without names have the same process id and other programs; one of them leaks. Guarantees: the first is judged, the points of the other are counted
// and it is told once.
func TestTwoProcessesOfOneIDDoNotEndEachOther(t *testing.T) {
	said := 0
	r := newRig(t, func(o *Options) {
		o.Contested = func(p *Process, by *Where) {
			said++
			assert.Equal(t, []string{"python3", "triton"}, []string{p.Executable, by.Executable})
		}
	})
	second := server
	second.Device, second.Executable = "GPU-1", "triton"
	r.run(5, func(at int64, h float64) {
		r.hear(at, Used, server, (20+h)*gib)
		r.hear(at+1, Used, second, 20*gib)
	})
	require.Len(t, r.events, 1)
	assert.Equal(t, "python3", r.events[0].Executable)
	assert.Equal(t, trend.Leaking, r.last("71", "GPU-0").state)
	assert.Equal(t, 1, said)
	assert.Zero(t, r.Evicted())
	counted := map[Unjoined]uint64{}
	r.Unjoined(func(why Unjoined, n uint64) { counted[why] = n })
	assert.InDelta(t, 600, counted[Contested], 3)
}

func TestAmountsAreWrittenInTheUnitThatFits(t *testing.T) {
	f := func(bytes float64, want string) {
		t.Helper()
		assert.Equal(t, want, amount(bytes))
	}
	f(0, "0 B")
	f(999, "999 B")
	f(1023, "0.999 KiB")
	f(1023.9*mib, "1 GiB")
	f(1020*mib, "0.996 GiB")
	f(999*mib, "999 MiB")
	f(0.4*gib, "410 MiB")
	f(52.7*gib, "52.7 GiB")
	f(2048*gib, "2 TiB")
	f(1500*1024*gib, "1500 TiB")
	assert.Equal(t, "44 minutes", hours(44*60))
	assert.Equal(t, "2 minutes", hours(119.6))
	assert.Equal(t, "90 seconds", hours(90.2))
	assert.Equal(t, "0 seconds", hours(0))
	assert.Equal(t, "75 hours", hours(75*3600))
	assert.Equal(t, "1000 days", hours(1000*86400))
}
