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

	"github.com/otelcol-llm/otelcol-llm/internal/checkpoint"
	"github.com/otelcol-llm/otelcol-llm/internal/trend"
)

// joining is a fleet in which it is seen which processes traffic is given to.
type joining struct {
	*rig
	at int64
}

func newJoining(t *testing.T, processes ...Where) *joining {
	j := &joining{newRig(t, nil), t0}
	for _, p := range processes {
		j.hear(t0, Used, p, gib)
	}
	j.advance(t0 + int64(2*time.Minute))
	j.at = t0 + int64(2*time.Minute)
	return j
}

// told gives the processes one point of running requests, and returns those that have it, by what, and why none has.
func (j *joining) told(w Where) (pids []string, why string) {
	j.t.Helper()
	before := j.unjoined
	j.at += step
	for _, p := range j.processes {
		if p.said != nil {
			j.hear(j.at, Used, *p.said, gib) // they go on
		}
	}
	j.hear(j.at, Running, w, 1)
	j.advance(j.at + int64(2*time.Minute))
	j.at += int64(2 * time.Minute)
	for _, p := range sorted(j.processes) {
		if l := p.load.running[w.Series]; l.Value > 0 && l.At > j.at-int64(3*time.Minute) {
			pids = append(pids, p.PID)
		}
	}
	for reason := NoProcess; reason < unjoinedReasons; reason++ {
		if j.unjoined[reason] > before[reason] {
			why = reason.String()
		}
	}
	return pids, why
}

func worker(host string, pid int, device string, n Names) Where {
	return Where{Host: host, PID: fmt.Sprint(pid), Device: device, Executable: "python3", Names: n}
}

// Scenario: an engine of four devices in a pod, another one in another pod of the same host, and a process of no container; each is told of
// traffic in all the ways that there are. Guarantees: traffic is that of all processes that hold memory in the container, or the pod, that it
// names; of one that it names; and of nobody where it may be of one or of another, or names contradict each other.
func TestTrafficIsThatOfTheProcessesThatItNames(t *testing.T) {
	chat := Names{Container: "c1", PodUID: "u1", Namespace: "llm", Pod: "chat-0"}
	var all []Where
	for i := range 4 {
		all = append(all, worker("a", 10+i, fmt.Sprintf("GPU-%d", i), chat))
	}
	batch := Names{Container: "c2", PodUID: "u2", Namespace: "llm", Pod: "batch-0"}
	all = append(all, worker("a", 20, "GPU-4", batch), worker("a", 30, "GPU-5", Names{}),
		worker("b", 20, "GPU-6", Names{Container: "c3", PodUID: "u3", Namespace: "llm", Pod: "twice", Cluster: "x"}),
		worker("c", 20, "GPU-7", Names{Container: "c4", PodUID: "u4", Namespace: "llm", Pod: "twice", Cluster: "y"}))
	f := func(w Where, why string, want ...string) {
		t.Helper()
		got, because := newJoining(t, all...).told(w)
		assert.Equal(t, want, got)
		assert.Equal(t, why, because)
	}
	four := []string{"10", "11", "12", "13"}
	f(Where{Names: Names{Container: "c1"}}, "", four...)
	f(Where{Names: Names{PodUID: "u1"}}, "", four...)
	f(Where{Names: Names{Namespace: "llm", Pod: "chat-0"}}, "", four...)
	f(Where{Host: "gateway", Names: Names{Container: "c1"}}, "", four...) // whose host it is does not matter
	f(Where{Host: "a", PID: "12"}, "", "12")
	f(Where{Host: "a", PID: "7", Names: Names{PodUID: "u1"}}, "", four...)     // the front end holds no memory
	f(Where{Host: "a", PID: "20", Names: Names{Container: "c1"}}, "", four...) // a process id of another namespace than the host's
	f(Where{Host: "a", Device: "GPU-3"}, "", "13")
	f(Where{Host: "a", Device: "GPU-4", Names: Names{PodUID: "u1"}}, "", four...)
	f(Where{Host: "a", Device: "GPU-4", Names: Names{PodUID: "other"}}, "no_process")
	f(Where{Names: Names{Container: "none"}}, "no_process")
	f(Where{Host: "a", PID: "99"}, "no_process")
	f(Where{Names: Names{Namespace: "other", Pod: "chat-0"}}, "no_process")
	f(Where{Names: Names{Namespace: "llm", Pod: "twice"}}, "ambiguous")
	f(Where{Names: Names{Namespace: "llm", Pod: "twice", Cluster: "y"}}, "", "20")
	f(Where{Names: Names{Namespace: "llm", Pod: "twice", PodUID: "u3"}}, "", "20")
}

// Scenario: a pod is made anew under the name that it had, on the same host. Guarantees: traffic that knows its name only is nobody's until the
// one before is forgotten, and then the new one's.
func TestAPodThatIsMadeAnewIsNotTheOneBefore(t *testing.T) {
	j := newJoining(t, worker("a", 1, "GPU-0", Names{PodUID: "u1", Namespace: "llm", Pod: "chat-0"}))
	fresh := worker("a", 2, "GPU-0", Names{PodUID: "u2", Namespace: "llm", Pod: "chat-0"})
	named := Where{Names: Names{Namespace: "llm", Pod: "chat-0"}}
	got, _ := j.told(named)
	assert.Equal(t, []string{"1"}, got)
	j.hear(j.at, Used, fresh, gib)
	j.advance(j.at + int64(2*time.Minute))
	j.at += int64(2 * time.Minute)
	_, why := j.told(named)
	assert.Equal(t, "ambiguous", why)
	for end := j.at + int64(15*time.Minute); j.at < end; j.at += step {
		j.hear(j.at, Used, fresh, gib)
		j.advance(j.at)
	}
	got, why = j.told(named)
	assert.Equal(t, []string{"2"}, got)
	assert.Empty(t, why)
}

// Scenario: a machine without containers, where traffic knows no more than the host. Guarantees: it is that of the only process, as long as only
// one engine tells any; with a second process or a second engine it is nobody's, and without them it is again.
func TestARelationIsOfOneProcessAndOneEngine(t *testing.T) {
	on := Names{Relation: "host.name=a"}
	traffic := Where{Instance: 1, Names: on}
	j := newJoining(t, worker("a", 1, "GPU-0", on), worker("b", 1, "GPU-1", Names{Relation: "host.name=b"}))
	f := func(w Where, why string, want ...string) {
		t.Helper()
		got, because := j.told(w)
		assert.Equal(t, want, got)
		assert.Equal(t, why, because)
	}
	f(traffic, "", "1")
	f(Where{Instance: 1, Names: Names{Relation: "host.name=c"}}, "no_process")
	f(Where{Instance: 2, Names: on}, "ambiguous")
	f(traffic, "ambiguous")
	for range 6 {
		j.told(traffic)
	}
	f(traffic, "", "1") // the other one has said nothing for long
	j.hear(j.at, Used, worker("a", 2, "GPU-2", on), gib)
	f(traffic, "ambiguous")
}

// Guarantees: what a process is told by its own name is not added to what its pod or its device is told, whichever comes first; when it is not
// told any more, the other counts.
func TestTrafficIsNotCountedTwice(t *testing.T) {
	j := newJoining(t, worker("a", 1, "GPU-0", Names{PodUID: "u1"}))
	by := func(how by, w Where) { // of one more series
		t.Helper()
		w.Series = uint64(how)
		_, _ = j.told(w)
	}
	p := func() *Process { return j.processes[ID{Host: "a", PID: "1"}] }
	by(byDevice, Where{Host: "a", Device: "GPU-0"})
	assert.InDelta(t, 1, total(p().load.running), 0)
	by(byPodUID, Where{Names: Names{PodUID: "u1"}})
	assert.InDelta(t, 1, total(p().load.running), 0)
	by(byPID, Where{Host: "a", PID: "1"})
	by(byDevice, Where{Host: "a", Device: "GPU-0"})
	by(byPodUID, Where{Names: Names{PodUID: "u1"}})
	assert.InDelta(t, 1, total(p().load.running), 0)
	assert.Equal(t, byPID, p().load.told[0].By)
	for range 5 {
		by(byPodUID, Where{Names: Names{PodUID: "u1"}})
	}
	assert.Equal(t, byPodUID, p().load.told[0].By)
	assert.InDelta(t, 1, total(p().load.running), 0)
}

// Scenario: an engine begins anew and tells its traffic in series of other names. Guarantees: the requests of those that have ended do not run
// for ever.
func TestSeriesThatHaveEndedAreNotAddedUp(t *testing.T) {
	j := newJoining(t, worker("a", 1, "GPU-0", Names{}))
	for series := range uint64(6) {
		for range 5 {
			_, _ = j.told(Where{Host: "a", PID: "1", Series: series})
		}
	}
	assert.LessOrEqual(t, total(j.processes[ID{Host: "a", PID: "1"}].load.running), 2.0)
}

// Scenario: memory follows requests all morning, and the engine is scraped by its pod only, of which four processes hold memory. Guarantees: that
// is no leak of any of them; what each request takes is told by process.
func TestTrafficOfAPodExplainsTheMemoryOfAllItsProcesses(t *testing.T) {
	f := func(w Where, want int) {
		t.Helper()
		r, random := newRig(t, nil), rand.New(rand.NewPCG(7, 1))
		r.run(5, func(at int64, h float64) {
			n := math.Round(10 + 8*h + 3*random.NormFloat64())
			for i := range 4 {
				r.hear(at, Used, worker("a", 10+i, fmt.Sprintf("GPU-%d", i), Names{Container: "c1", PodUID: "u1", Namespace: "llm", Pod: "chat-0"}), 30*gib+n*gib/4+noise(random))
			}
			r.hear(at, Running, w, n)
		})
		assert.Len(t, r.events, want)
		if want == 0 {
			p := r.processes[ID{Host: "a", PID: "12"}].places[0]
			assert.InEpsilon(t, (30+45.0/4)*gib/45, p.Result.PerRequest, 0.05)
		}
	}
	f(Where{Names: Names{Namespace: "llm", Pod: "chat-0"}}, 0)
	f(Where{Names: Names{Namespace: "llm", Pod: "chat-1"}}, 4)
}

// Scenario: the driver and the probes spell the name of a program, and of its pod, in their own ways. Guarantees: that is one process, as the
// driver says, and does not begin anew at every point.
func TestTwoWhoTellOfAProcessNeedNotSpellItAlike(t *testing.T) {
	r := newRig(t, nil)
	probe := worker("a", 71, "", Names{Container: "c1"})
	probe.Executable, probe.Labels = "python3.12", []Label{{Key: "host.name", Value: "b"}}
	r.run(5, func(at int64, h float64) {
		r.hear(at, Live, probe, 20*gib)
		r.hear(at, Used, server, 40*gib*(1+0.01*h))
	})
	require.Len(t, r.events, 1)
	assert.Equal(t, "python3", r.events[0].Executable)
	assert.Equal(t, "fragmentation", r.events[0].Cause)
	assert.Equal(t, server.Labels, r.events[0].Labels)
	assert.Empty(t, r.gone)
}

// Scenario: a container is restarted, and the kernel gives its process the number that the one before had; it fills as much memory at once.
func TestAnotherContainerOfTheSameProcessIDIsAnotherProcess(t *testing.T) {
	r := newRig(t, nil)
	r.run(4.5, func(at int64, h float64) {
		w := worker("a", 71, "GPU-0", Names{Container: "c1"})
		if h >= 4 {
			w.Names.Container = "c2"
		}
		r.hear(at, Used, w, 40*gib*(1+0.01*h))
	})
	require.Len(t, r.events, 2)
	assert.Equal(t, "another container has its process id now", r.events[1].Text)
	assert.Equal(t, trend.OK, r.last("71", "GPU-0").state)
}

// Guarantees: processes of the same number on two hosts are two.
func TestTheSameProcessIDOnTwoHostsIsTwoProcesses(t *testing.T) {
	r := newRig(t, nil)
	r.run(5, func(at int64, h float64) {
		r.hear(at, Used, worker("a", 71, "GPU-0", Names{}), 40*gib*(1+0.01*h))
		r.hear(at, Used, worker("b", 71, "GPU-1", Names{}), 40*gib)
	})
	require.Len(t, r.events, 1)
	assert.Equal(t, "a", r.events[0].Process.Host)
}

// Scenario: a crash after a leak was told, back to a checkpoint of before; what came meanwhile is lost. Guarantees: the leak is told once more, by
// the same id, though a little later, so that nobody counts two; and a second leak of the process has another one.
func TestALeakHasOneIDWhateverACrashLoses(t *testing.T) {
	before := newRig(t, nil)
	var state Head
	var processes []ProcessState
	scrape := func(r *rig) func(int64, float64) {
		return func(at int64, h float64) { r.hear(at, Used, server, 40*gib*(1+0.01*min(h, 6))) }
	}
	before.run(4, func(at int64, h float64) {
		scrape(before)(at, h)
		if h < 3 {
			h, shards := before.State()
			state, processes = h, nil
			for _, some := range shards {
				processes = append(processes, some...)
			}
		}
	})
	require.Len(t, before.events, 1)
	data, err := checkpoint.Encode(processes)
	require.NoError(t, err)
	var back []ProcessState
	require.NoError(t, checkpoint.Decode(data, &back))
	after := newRig(t, nil)
	_, err = after.Restore(state, back)
	require.NoError(t, err)
	for at := t0 + int64(3*time.Hour+10*time.Minute); at < t0+int64(14*time.Hour); at += step {
		h := float64(at-t0) / float64(time.Hour)
		if scrape(after)(at, h); h > 9 {
			after.hear(at, Used, server, 40*gib*(1+0.02*(h-6)))
		}
		after.advance(at - step)
	}
	require.Len(t, after.events, 3)
	assert.Equal(t, before.events[0].ID, after.events[0].ID)
	assert.NotEqual(t, before.events[0].Time, after.events[0].Time)
	assert.Equal(t, after.events[0].ID, after.events[1].ID)
	assert.NotEqual(t, after.events[0].ID, after.events[2].ID)
}
