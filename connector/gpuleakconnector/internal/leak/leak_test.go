// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/cause"
	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
	"github.com/otelcol-llm/otelcol-llm/internal/cputest"
	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

const (
	gib  = 1 << 30
	mib  = 1 << 20
	step = int64(30 * time.Second)
)

var t0 = time.Date(2026, 3, 2, 8, 17, 23, 0, time.UTC).UnixNano()

// told is one verdict, as far as tests look at it.
type told struct {
	at     int64
	id     ID
	device string
	state  trend.State
	cause  string
}

type rig struct {
	*Fleet
	t      testing.TB
	told   []told
	gone   []told
	events []Event
}

func newRig(t testing.TB, change func(*Options)) *rig {
	r := &rig{t: t}
	entry := func(p *Place, at int64) told {
		name := ""
		if p.Cause != nil {
			name = p.Cause.Cause
		}
		return told{at, p.Of.ID, p.Device, p.Result.State, name}
	}
	o := Options{
		Trend: trend.DefaultOptions(), Rules: cause.Builtin(), MaxProcesses: 100, TTL: 10 * time.Minute,
		Judged: func(p *Place, at int64) { r.told = append(r.told, entry(p, at)) },
		Gone:   func(p *Place, at int64) { r.gone = append(r.gone, entry(p, at)) },
	}
	if change != nil {
		change(&o)
	}
	r.Fleet = New(o)
	return r
}

// hear takes a point that counts.
func (r *rig) hear(at int64, kind Kind, w Where, v float64) {
	r.t.Helper()
	require.Equal(r.t, None, r.Hear(at, kind, &w, v))
}

func (r *rig) advance(to int64) {
	r.Advance(to)
	r.events = append(r.events, r.TakeEvents()...)
}

// last is what was said last of a process on a device.
func (r *rig) last(pid, device string) told {
	for i := len(r.told) - 1; i >= 0; i-- {
		if r.told[i].id.PID == pid && r.told[i].device == device {
			return r.told[i]
		}
	}
	return told{}
}

// run scrapes for some hours.
func (r *rig) run(hours float64, scrape func(at int64, h float64)) {
	for at := t0; at < t0+int64(hours*float64(time.Hour)); at += step {
		scrape(at, float64(at-t0)/float64(time.Hour))
		r.advance(at - int64(30*time.Second))
	}
}

var (
	gpu     = Where{Host: "a", Device: "GPU-0"}
	server  = Where{Host: "a", Device: "GPU-0", PID: "71", Executable: "python3", Labels: []Label{{Key: "host.name", Value: "a"}}}
	other   = Where{Host: "a", Device: "GPU-0", PID: "72", Executable: "triton"}
	serving = Where{Host: "a", PID: "71"}
)

func noise(r *rand.Rand) float64 { return r.NormFloat64() * 50 * mib }

// Scenario: two processes on a GPU of 80 GiB, of which one leaks 1 % an hour. Guarantees: it is told once, of that one, with the
// rate, the time that is left, the cause and how to see it; and that it is over when it ends.
func TestTheProcessThatLeaksIsTold(t *testing.T) {
	r, random := newRig(t, nil), rand.New(rand.NewPCG(1, 1))
	r.run(5, func(at int64, h float64) {
		mine, its := 40*gib*(1+0.01*h)+noise(random), 8*gib+noise(random)
		r.hear(at, Limit, gpu, 80*gib)
		r.hear(at, DeviceUsed, gpu, mine+its+gib)
		r.hear(at, Used, server, mine)
		r.hear(at, Used, other, its)
	})
	require.Len(t, r.events, 1)
	ev := r.events[0]
	assert.True(t, ev.Opened)
	assert.Equal(t, ID{Host: "a", PID: "71"}, ev.Process)
	assert.Equal(t, "GPU-0", ev.Device)
	assert.InDelta(t, 3.2, float64(ev.Time-t0)/float64(time.Hour), 0.2)
	assert.InEpsilon(t, 0.4*gib/3600, ev.Rate, 0.1)
	assert.InEpsilon(t, 30.0/0.4, ev.Exhaustion/3600, 0.15)
	assert.Equal(t, "not_returned", ev.Cause)
	assert.Equal(t, "nvidia-smi --id=GPU-0 --query-compute-apps=pid,used_memory --format=csv -l 60, while traffic is held back", ev.Verify)
	assert.Regexp(t, `^process 71 \(python3\) on a leaks 4\d\d MiB an hour, between .* and .*, as seen over 3h\S+; it holds 41\.\d GiB; nothing is left in \d\d\S* hours \(.*\)\. What the driver holds for process 71 grows`, ev.Text)
	assert.Equal(t, trend.Leaking, r.last("71", "GPU-0").state)
	assert.Equal(t, trend.OK, r.last("72", "GPU-0").state)

	for at := t0 + int64(5*time.Hour); at < t0+int64(6*time.Hour); at += step {
		r.hear(at, Used, other, 8*gib)
		r.advance(at)
	}
	require.Len(t, r.events, 2)
	assert.False(t, r.events[1].Opened)
	assert.Equal(t, ev.ID, r.events[1].ID)
	assert.Equal(t, "the process has ended", r.events[1].Text)
	assert.Len(t, r.gone, 2, "the process, and the device that nobody scrapes any more")
}

// Scenario: a process leaks; then nothing at all is heard of its host for three hours. Guarantees: the leak stays open, and is known
// at once when the host is back.
func TestAHostThatIsSilentIsWaitedFor(t *testing.T) {
	r, said := newRig(t, nil), 0
	r.run(9, func(at int64, h float64) {
		if h < 5 || h > 8 {
			r.hear(at, Used, server, 40*gib*(1+0.01*h))
		} else if h > 6 && said == 0 {
			said = len(r.told)
		}
		if h > 7.9 && h < 8 {
			assert.Len(t, r.told, said, "nothing is said of what is not heard")
		}
	})
	require.Len(t, r.events, 1)
	assert.Empty(t, r.gone)
	assert.Equal(t, trend.Leaking, r.last("71", "GPU-0").state)
}

// Scenario: a process leaks on two devices at once.
func TestAProcessOnTwoDevicesIsToldOnce(t *testing.T) {
	r, random := newRig(t, nil), rand.New(rand.NewPCG(2, 1))
	r.run(5, func(at int64, h float64) {
		for i, share := range []float64{0.01, 0.02} {
			w := server
			w.Device = fmt.Sprintf("GPU-%d", i)
			r.hear(at, Used, w, 40*gib*(1+share*h)+noise(random))
		}
	})
	require.Len(t, r.events, 1)
	assert.Equal(t, trend.Leaking, r.last("71", "GPU-0").state)
	assert.Equal(t, trend.Leaking, r.last("71", "GPU-1").state)
	assert.Less(t, r.events[0].Left, 0.0, "nobody knows how much there is")
	assert.NotContains(t, r.events[0].Text, "nothing is left")
}

// Scenario: what has been allocated stays as it is, and what the driver holds grows.
func TestFragmentationIsToldFromAllocationsThatAreNotFreed(t *testing.T) {
	f := func(live func(h float64) float64, want string) {
		t.Helper()
		r, random := newRig(t, nil), rand.New(rand.NewPCG(3, 1))
		r.run(5, func(at int64, h float64) {
			r.hear(at, Used, server, 40*gib*(1+0.01*h)+noise(random))
			r.hear(at, Live, server, live(h)+noise(random))
		})
		assert.Equal(t, trend.Leaking, r.last("71", "GPU-0").state)
		assert.Equal(t, want, r.last("71", "GPU-0").cause)
	}
	f(func(float64) float64 { return 20 * gib }, "fragmentation")
	f(func(h float64) float64 { return 20*gib + 0.4*gib*h }, "allocation_not_freed")
}

// Scenario: the same, where what is allocated is not told by device.
func TestAllocationsOfAProcessAsAWholeSayWhyAndAreNotJudgedBesides(t *testing.T) {
	r, random := newRig(t, nil), rand.New(rand.NewPCG(3, 1))
	r.run(5, func(at int64, h float64) {
		r.hear(at, Used, server, 40*gib*(1+0.01*h)+noise(random))
		r.hear(at, Live, serving, 20*gib+noise(random))
	})
	assert.Equal(t, "fragmentation", r.last("71", "GPU-0").cause)
	assert.Equal(t, told{}, r.last("71", ""))
}

// Guarantees: a host that is silent for months is passed over at once, and is forgotten after a day.
func TestALongSilenceCostsNothing(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxProcesses = 5000 })
	for pid := range 5000 {
		w := server
		w.PID = fmt.Sprint(pid)
		r.hear(t0, Used, w, gib)
	}
	assert.Less(t, cputest.Time(t, func() { r.advance(t0 + int64(300*24*time.Hour)) }), 20*time.Second)
	assert.Zero(t, r.Len())
	require.Len(t, r.gone, 5000)
	assert.InDelta(t, 24, float64(r.gone[0].at-t0)/float64(time.Hour), 0.1)
}

func TestMemoryOfNobodyIsTheDevices(t *testing.T) {
	r, random := newRig(t, nil), rand.New(rand.NewPCG(4, 1))
	r.run(5, func(at int64, h float64) {
		r.hear(at, Limit, gpu, 80*gib)
		r.hear(at, DeviceUsed, gpu, 50*gib+h*gib)
		r.hear(at, Unattributed, gpu, 10*gib+h*gib+noise(random))
		r.hear(at, Used, server, 40*gib+noise(random))
	})
	require.Len(t, r.events, 1)
	assert.Equal(t, ID{Host: "a", Device: "GPU-0"}, r.events[0].Process)
	assert.Equal(t, "orphaned_process", r.events[0].Cause)
	assert.Equal(t, trend.OK, r.last("71", "GPU-0").state)
}

// Scenario: memory follows the requests that run, all morning. Guarantees: traffic that is told by the process, or by the device where it is
// not, is no leak; without it, it looks like one.
func TestTrafficIsJoinedByProcessAndElseByDevice(t *testing.T) {
	f := func(w *Where, want int) {
		t.Helper()
		r, random := newRig(t, nil), rand.New(rand.NewPCG(5, 1))
		r.run(5, func(at int64, h float64) {
			n := math.Round(10 + 8*h + 3*random.NormFloat64())
			r.hear(at, Used, server, 30*gib+n*gib/4+noise(random))
			if w == nil {
				return
			}
			for series := range uint64(2) { // of two models
				of := *w
				of.Series = series
				r.hear(at, Running, of, n/2)
			}
		})
		assert.Len(t, r.events, want)
	}
	f(nil, 1)
	f(&serving, 0)
	f(&gpu, 0)
	f(&Where{Host: "b", PID: "71"}, 1)
}

// Guarantees: what is said follows from what was heard of each time, however that was cut into batches, and goes on after a restart as if
// there had been none.
func TestAReplayAndARestartSayTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 1))
	type point struct {
		at   int64
		kind Kind
		w    Where
		v    float64
	}
	var all []point
	for at := t0; at < t0+int64(8*time.Hour); at += step {
		h := float64(at-t0) / float64(time.Hour)
		n := math.Round(20 + 10*math.Sin(h) + random.NormFloat64())
		all = append(all,
			point{at, Limit, gpu, 80 * gib}, point{at + 1, DeviceUsed, gpu, 50 * gib}, point{at + 5e9, Used, server, math.Round(30*gib*(1+0.01*h) + n*gib/4 + noise(random))},
			point{at + 9e9, Running, serving, n}, point{at + 9e9, Served, serving, n}, point{at + 2e9, Used, other, math.Round(8*gib + noise(random))})
	}
	run := func(batch int, restart func(*rig) *rig) *rig {
		r := newRig(t, nil)
		for i := 0; i < len(all); i += batch {
			for _, p := range all[i:min(i+batch, len(all))] {
				r.hear(p.at, p.kind, p.w, p.v)
			}
			newest := all[min(i+batch, len(all))-1].at
			r.advance(newest - int64(30*time.Second))
			if restart != nil && i/batch%97 == 0 {
				r = restart(r)
			}
		}
		r.advance(t0 + int64(8*time.Hour))
		return r
	}
	want := run(6, nil)
	require.NotEmpty(t, want.events)
	replayed := run(len(all), nil)
	assert.Equal(t, want.told, replayed.told)
	assert.Equal(t, want.events, replayed.events)
	restarted := run(6, func(r *rig) *rig {
		h, shards := r.State()
		next := newRig(t, nil)
		next.told, next.events, next.gone = r.told, r.events, r.gone
		var all []ProcessState
		for _, some := range shards {
			data, err := checkpoint.Encode(some)
			require.NoError(t, err)
			var back []ProcessState
			require.NoError(t, checkpoint.Decode(data, &back))
			all = append(all, back...)
		}
		data, err := checkpoint.Encode(h)
		require.NoError(t, err)
		var back Head
		require.NoError(t, checkpoint.Decode(data, &back))
		left, err := next.Restore(back, all)
		require.NoError(t, err)
		assert.Zero(t, left)
		return next
	})
	assert.Equal(t, want.told, restarted.told)
	assert.Equal(t, want.events, restarted.events)
}

func TestLimitsRefuseAndLateIsLate(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxProcesses = 1 })
	r.hear(t0, Used, server, gib)
	assert.Equal(t, Nowhere, r.Hear(t0, Used, &gpu, gib))
	assert.Equal(t, Nowhere, r.Hear(t0, Running, &Where{Host: "a"}, 1))
	r.advance(t0 + int64(5*time.Minute))
	assert.Equal(t, Full, r.Hear(t0+int64(6*time.Minute), Used, &other, gib))
	assert.Equal(t, Late, r.Hear(t0, Used, &server, gib))
	r.hear(t0+int64(30*time.Minute), Limit, gpu, gib)
	r.advance(t0 + int64(time.Hour))
	assert.Equal(t, None, r.Hear(t0+int64(time.Hour), Used, &other, gib), "the one is forgotten")
	assert.Equal(t, uint64(1), r.Evicted())
}

func TestAnotherProgramOfTheSameProcessIDIsAnotherProcess(t *testing.T) {
	r := newRig(t, nil)
	r.run(5, func(at int64, h float64) {
		w, used := server, 40*gib*(1+0.01*h)
		if h >= 4 {
			w.Executable, used = "bash", gib
		}
		r.hear(at, Used, w, used)
	})
	require.Len(t, r.events, 2)
	assert.Equal(t, "another program has its process id now", r.events[1].Text)
	assert.Equal(t, trend.OK, r.last("71", "GPU-0").state)
}

// Scenario: a worker that leaks gives itself a new name after two hours, or another one with each request; its allocations and its device are told, or what the driver says. Guarantees: it is one
// process, which nobody contests, and is told as soon as any other; what was said under its former name ends.
func TestAProcessThatChangesItsNameIsTheSame(t *testing.T) {
	f := func(kind Kind, device string, name func(h float64) string, gone int) {
		t.Helper()
		r, random := newRig(t, func(o *Options) {
			o.Contested = func(*Process, *Where) { assert.Fail(t, "it is its own") }
		}), rand.New(rand.NewPCG(1, 1))
		r.run(4, func(at int64, h float64) {
			w := server
			w.Device, w.Executable = device, name(h)
			r.hear(at, Missed, w, 0)
			r.hear(at, kind, w, (20+h)*gib+noise(random))
		})
		require.Len(t, r.events, 1)
		assert.InDelta(t, 3.4, float64(r.events[0].Time-t0)/3.6e12, 0.2)
		assert.Zero(t, r.Evicted())
		assert.GreaterOrEqual(t, len(r.gone), gone)
	}
	later := func(h float64) string {
		if h < 2 {
			return "python3"
		}
		return "VLLM::EngineCor"
	}
	busy := func(h float64) string { return []string{"ray::IDLE", "ray::step"}[int(h*60)%3/2] }
	f(Used, "GPU-0", later, 1)
	f(Live, "", later, 1)
	f(Live, "GPU-0", busy, 100)
}

func TestAStateOfOtherSettingsIsNotTakenUp(t *testing.T) {
	r := newRig(t, nil)
	h, _ := r.State()
	other := newRig(t, func(o *Options) { o.Trend = trend.OptionsFor(time.Hour) })
	_, err := other.Restore(h, nil)
	assert.ErrorContains(t, err, "min_duration was")
}

// Scenario: an application makes a context every five minutes and releases a tenth of them. Guarantees: that is the cause.
func TestWhatTheApplicationDoesNotReleaseIsTheCause(t *testing.T) {
	f := func(every, release int, want string) {
		t.Helper()
		r, tick := newRig(t, nil), 0
		r.run(5, func(at int64, h float64) {
			r.hear(at, Used, server, 40*gib*(1+0.01*h))
			if tick++; tick%every == 0 {
				r.hear(at, Contexts, serving, 1)
			}
			if release > 0 && tick%release == 0 {
				r.hear(at+1, Contexts, serving, -1)
			}
		})
		assert.Equal(t, want, r.last("71", "GPU-0").cause)
	}
	f(10, 100, "context_not_released")
	f(10, 10, "unknown")
	f(1000, 0, "unknown")
}
