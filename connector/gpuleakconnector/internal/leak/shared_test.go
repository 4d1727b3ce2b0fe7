// SPDX-License-Identifier: Apache-2.0

package leak

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/connector/gpuleakconnector/internal/cause"
	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// lastOf notes the last result of each process and device, "" for what is of no process.
func lastOf(last map[string]trend.Result) func(*Options) {
	return func(o *Options) {
		o.Judged = func(p *Place, _ int64) { last[p.Of.PID] = p.Result }
	}
}

// Scenario: eight workers grow on a GPU, by 0.1 GiB an hour each, or two processes, or one and memory of no visible process. Guarantees: what is left is gone when all of them
// together have taken it, in each of their results and in what the events say.
func TestWhatIsLeftIsSharedByAllThatGrow(t *testing.T) {
	f := func(workers int, unattributed bool, perHour float64) {
		t.Helper()
		last := map[string]trend.Result{}
		r, random := newRig(t, lastOf(last)), rand.New(rand.NewPCG(1, 1))
		sum, all := 0.0, float64(workers)
		if unattributed {
			all++
		}
		r.run(6, func(at int64, h float64) {
			sum = 0
			for i := range workers {
				w := server
				w.PID = fmt.Sprint(100 + i)
				mine := 3*gib + perHour*h + noise(random)/20
				r.hear(at, Used, w, mine)
				sum += mine
			}
			if unattributed {
				mine := 3*gib + perHour*h + noise(random)/20
				r.hear(at, Unattributed, gpu, mine)
				sum += mine
			}
			r.hear(at, Limit, gpu, 80*gib)
			r.hear(at, DeviceUsed, gpu, sum)
		})
		want := (80*gib - sum) / (all * perHour) * 3600
		for i := range workers {
			got := last[fmt.Sprint(100+i)]
			require.Equal(t, trend.Leaking, got.State)
			assert.InEpsilon(t, perHour/3600, got.Rate.Value, 0.05)
			assert.InEpsilon(t, want, got.Exhaustion.Value, 0.05)
			assert.Less(t, got.Exhaustion.Low, 1.01*want, "it was judged half a minute before")
			assert.Greater(t, got.Exhaustion.High, 0.99*want)
		}
		require.Len(t, r.events, int(all))
		for _, ev := range r.events[1:] {
			assert.Contains(t, ev.Text, "), with all else that grows on the device. ")
			assert.InEpsilon(t, want, ev.Exhaustion, 0.2)
		}
	}
	f(8, false, 0.1*gib)
	f(2, false, gib)
	f(1, true, 0.5*gib)
}

// Scenario: eight workers fill a GPU within three hours, all together; a ninth process on it grows by next to nothing. Guarantees: that is told of the eight before half of what they
// had is gone, and not of the ninth, which has no part in it.
func TestWorkersThatFillAGPUTogetherAreToldInTime(t *testing.T) {
	r, random := newRig(t, nil), rand.New(rand.NewPCG(1, 1))
	r.run(1.5, func(at int64, h float64) {
		sum := 0.0
		for i := range 9 {
			w := server
			w.PID = fmt.Sprint(100 + i)
			mine := 3*gib + 50.0/8/3*gib*h + noise(random)/20
			if i == 8 {
				mine = 3*gib + 0.1*gib*h + noise(random)/20
			}
			r.hear(at, Used, w, mine)
			sum += mine
		}
		r.hear(at, Limit, gpu, 80*gib)
		r.hear(at, DeviceUsed, gpu, sum)
	})
	require.Len(t, r.events, 8)
	for _, ev := range r.events {
		assert.NotEqual(t, "108", ev.Process.PID)
		assert.Less(t, float64(ev.Time-t0)/3.6e12, 1.5)
		assert.Less(t, ev.Exhaustion, 2.5*3600)
	}
}

// Scenario: the driver keeps 2 GiB of a GPU for itself, which is not in what is in use. Guarantees: they are not left, also after a restart.
func TestWhatTheDriverReservesIsNotLeft(t *testing.T) {
	r, random := newRig(t, nil), rand.New(rand.NewPCG(1, 1))
	r.run(4, func(at int64, h float64) {
		used := (70+0.2*h)*gib + noise(random)/10
		r.hear(at, Limit, gpu, 80*gib)
		r.hear(at, Reserved, gpu, 2*gib)
		r.hear(at, DeviceUsed, gpu, used)
		r.hear(at, Used, server, used)
	})
	require.Len(t, r.events, 1)
	assert.InDelta(t, 7.3*gib, r.events[0].Left, 0.2*gib)
	assert.InEpsilon(t, 7.3/0.2*3600, r.events[0].Exhaustion, 0.1)
	d := r.devices[ID{Host: "a", Device: "GPU-0"}]
	back, err := r.restore(ptr(d.state()))
	require.NoError(t, err)
	assert.InDelta(t, d.left(), back.left(), 1)
}

func ptr[V any](v V) *V { return &v }

// Scenario: only what a process allocates is known; a call is missed every hour; another process is as the first, and none of its is missed. Guarantees: neither is said to be ok before it is
// judged, the first is never, and that is told to the operator once.
func TestWhatIsNotJudgedIsNotOK(t *testing.T) {
	missed := 0
	standings := map[string]map[Standing]bool{"71": {}, "72": {}}
	r := newRig(t, func(o *Options) {
		o.Missed = func(p *Process) {
			missed++
			assert.Equal(t, "71", p.PID)
		}
		o.Judged = func(p *Place, at int64) {
			if !p.Judged() {
				return
			}
			standings[p.Of.PID][p.Standing] = true
			if h := float64(at-t0) / 3.6e12; h < 1 || p.Of.PID == "71" {
				assert.Greater(t, p.Standing, Given, "after %v h", h)
			} else if h > 2 {
				assert.Equal(t, Given, p.Standing, "after %v h", h)
			}
		}
	})
	second := serving
	second.PID = "72"
	r.run(8, func(at int64, h float64) {
		r.hear(at, Live, serving, (20+h)*gib)
		r.hear(at, Missed, serving, math.Floor(h)+1)
		r.hear(at, Live, second, 20*gib)
		r.hear(at, Missed, second, 0)
	})
	assert.Equal(t, map[Standing]bool{CallsMissed: true}, standings["71"])
	assert.Equal(t, map[Standing]bool{Young: true, Given: true}, standings["72"])
	assert.Equal(t, 1, missed)
}

// Scenario: a process fills the GPU within two hours and a half and is begun anew, under another id, again and again. Guarantees: each is told with the same cause and how to see it.
func TestTheCauseIsTheSameInACrashLoop(t *testing.T) {
	r, random := newRig(t, nil), rand.New(rand.NewPCG(1, 1))
	r.run(20, func(at int64, h float64) {
		n := math.Floor(h / 2.5)
		w := server
		w.PID = fmt.Sprint(100 + n)
		used := 20*gib + 24*gib*(h-2.5*n) + noise(random)/3
		r.hear(at, Limit, gpu, 80*gib)
		r.hear(at, DeviceUsed, gpu, used)
		r.hear(at, Used, w, used)
	})
	opened := 0
	for _, ev := range r.events {
		if ev.Opened {
			opened++
			assert.Equal(t, "not_returned", ev.Cause, ev.Process.PID)
			assert.Contains(t, ev.Verify, "--id=GPU-0 ")
		}
	}
	assert.Equal(t, 8, opened)
}

// Guarantees: a command says of which device, where that is known.
func TestWhereTheDeviceIsNotKnownACommandNamesNone(t *testing.T) {
	rule := cause.Builtin().Of(cause.Facts{Process: cause.Rising})
	assert.Equal(t, "unknown", rule.Cause)
	assert.Equal(t, "nvidia-smi --id=GPU-0 --query-compute-apps=pid,used_memory --format=csv -l 60", cause.Explain(rule.Verify, "71", "GPU-0"))
	assert.Equal(t, "nvidia-smi --query-compute-apps=pid,used_memory --format=csv -l 60", cause.Explain(rule.Verify, "71", ""))
}
