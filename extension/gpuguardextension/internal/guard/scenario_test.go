// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/policy"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/watch"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

const scenarios = 1000

// Scenario: a thousand machines on which anything happens: processes of all kinds come, go, fill devices, leak, and give their numbers
// to others; what is known of them is hidden at times; signals fail; people stop the guard; the Collector is started again, or crashes.
// Guarantees: nobody who is protected, critical, the Collector itself or not named by the policy is ever touched, nor anybody in a dry
// run or while it is stopped; there are never more actions within an hour than allowed, nor two within the cool-down; each is on record.
func TestAThousandScenariosInWhichNothingProtectedIsTouched(t *testing.T) {
	touches, dry, groups := 0, 0, 0
	for seed := range uint64(scenarios) {
		s := newScenario(t, seed)
		s.run()
		touches += len(s.touched)
		if s.set.guard.DryRun {
			dry++
		} else if s.set.guard.Method == MethodCgroupKill {
			groups += len(s.touched)
		}
	}
	t.Logf("%d scenarios, %d of them dry: %d signals, %d of them with control groups", scenarios, dry, touches, groups)
	require.Greater(t, touches, scenarios, "the scenarios are about something")
	require.Greater(t, groups, scenarios/10)
}

type scenario struct {
	*rig
	*rand.Rand
	set     settings
	seed    uint64
	unread  bool   // there are live bytes only
	next    uint64 // start of the next process
	ids     map[string][]gpuaction.Outcome
	checked int
	waiting bool
	holders map[gpuwatch.Process]bool // those of whom it was ever told
	ended   int64                     // when the last action was over
	starts  []int64
}

func newScenario(t testing.TB, seed uint64) *scenario {
	s := &scenario{Rand: rand.New(rand.NewPCG(seed, 1)), seed: seed, next: 1000, set: defaults(), ids: map[string][]gpuaction.Outcome{}, holders: map[gpuwatch.Process]bool{}}
	g := &s.set.guard
	g.DryRun = s.IntN(5) == 0
	g.Grace = time.Duration(s.IntN(20)) * time.Second
	if s.IntN(2) == 0 {
		g.Method = MethodCgroupKill
	}
	s.set.watch.For = time.Duration(s.IntN(4)) * time.Second
	s.set.watch.OnLeak = s.IntN(2) == 0
	s.unread, s.set.watch.OneDevice = s.IntN(3) == 0, s.IntN(2) == 0
	s.set.budget.MaxPerHour = s.IntN(6)
	s.set.budget.Cooldown = time.Duration(1+s.IntN(300)) * time.Second
	s.set.victims = append(s.set.victims, policy.Rule{Executable: []string{"train*"}, UID: []int{1000}})
	s.rig = newRigIn(t, newWorld(), func(of *settings) { *of = s.set })
	s.onWait = s.meanwhile
	s.world.paused = func() bool { return s.View().Paused }
	return s
}

func (s *scenario) run() {
	for range 30 {
		s.change()
	}
	for range 200 {
		for range s.IntN(4) {
			s.change()
		}
		s.now += s.Int64N(8) * second
		if s.IntN(20) == 0 {
			s.now += s.Int64N(20) * 60 * second
		}
		s.step()
		s.check()
	}
	if s.set.guard.DryRun {
		require.Empty(s.t, s.touched, "seed %d", s.seed)
	}
}

// step lets the guard act, or crash in the midst of that.
func (s *scenario) step() {
	defer func() {
		if recover() != nil {
			s.again()
		}
	}()
	s.Step(s.t.Context())
}

// again starts the Collector again.
func (s *scenario) again() {
	s.failing = false // or it would not start
	s.rig = newRigIn(s.t, s.world, func(of *settings) { *of = s.set })
	require.NoError(s.t, s.Keep())
}

// meanwhile is what happens while a process has its grace.
func (s *scenario) meanwhile() {
	switch s.IntN(12) {
	case 0:
		_ = s.Pause(true) // the disk may be full
	case 1:
		panic("crash")
	case 2:
		s.replace()
	case 3:
		s.waiting = true
		defer func() { s.waiting = false }()
		s.change()
	}
}

// change is something that happens on the machine.
func (s *scenario) change() {
	switch s.IntN(14) {
	case 0, 1, 2:
		s.replace()
	case 3, 4, 5, 6, 7:
		p := s.somebody()
		s.Tell(func(st *watch.State, now int64) {
			st.Live(gpuwatch.Live{Process: s.known(p), Device: s.device(), Bytes: s.Uint64N(100) * gib, At: now - s.Int64N(second)}, now)
		})
	case 8, 9:
		if s.unread {
			return
		}
		d := gpuwatch.Device{ID: []string{gpu, "GPU-b"}[s.IntN(2)], Total: 100 * gib, Used: s.Uint64N(100) * gib, At: s.now}
		if s.IntN(2) == 0 {
			d.Used = (80 + s.Uint64N(20)) * gib // as it is where live bytes are many; else it contradicts them
		}
		for range s.IntN(5) {
			d.Processes = append(d.Processes, gpuwatch.Held{Process: s.known(s.somebody()), Bytes: s.Uint64N(60) * gib})
		}
		s.Tell(func(st *watch.State, now int64) { st.Device(d, now) })
	case 10:
		p := s.somebody()
		s.Tell(func(st *watch.State, now int64) {
			st.Leak(gpuwatch.Leak{ID: fmt.Sprint(s.IntN(20)), Open: s.IntN(4) > 0, Host: "here", PID: p, Device: s.device(), At: now}, now)
		})
	case 11:
		s.Tell(func(st *watch.State, now int64) { st.Gone(s.known(s.somebody()), now) })
	case 12:
		_ = s.Pause(s.IntN(3) == 0)
	case 13:
		if s.IntN(4) == 0 && !s.waiting {
			s.again()
		}
		s.failing = s.IntN(8) == 0
		if p := s.people[s.somebody()]; p != nil {
			p.hideNames = s.IntN(2) == 0
		}
	}
}

func (s *scenario) device() string { return []string{gpu, gpu, "GPU-b", ""}[s.IntN(4)] }

// somebody is a PID; PIDs are few, so that they are given anew.
func (s *scenario) somebody() int { return []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, self}[s.IntN(11)] }

// known is a process by what its source believes: seldom who has its number by now.
func (s *scenario) known(pid int) gpuwatch.Process {
	id := gpuwatch.Process{PID: pid}
	if p := s.people[pid]; p != nil {
		id.StartTime = p.Start
	}
	switch s.IntN(20) {
	case 0:
		id.StartTime = s.Uint64N(s.next)
	case 1:
		id.StartTime = 0
	}
	s.holders[id] = true
	return id
}

// replace gives a PID to another process, or to nobody.
func (s *scenario) replace() {
	pid := s.somebody()
	delete(s.people, pid)
	if s.IntN(8) == 0 {
		return
	}
	s.next++
	s.add(pid, s.next, func(p *person) {
		p.Namespace = []string{"batch", "batch", "prod", "other"}[s.IntN(4)]
		p.Path = "/usr/bin/" + []string{"python3", "python3", "train-1", "db", "sshd", "kubelet"}[s.IntN(6)]
		p.Comm, p.UID, p.group = "x", 1000*s.IntN(2), fmt.Sprint("g", s.IntN(8))
		p.hideNames, p.stubborn, p.stuck, p.untouchable = s.IntN(5) == 0, s.IntN(2) == 0, s.IntN(10) == 0, s.IntN(15) == 0
		p.Critical, p.Kernel = s.IntN(12) == 0, s.IntN(20) == 0
		if s.IntN(6) == 0 {
			p.becomes = "db"
		}
	})
}

// check holds what was done since the last call against the truth.
func (s *scenario) check() {
	for _, of := range s.touched[s.checked:] {
		why := fmt.Sprintf("seed %d: %+v", s.seed, of)
		require.False(s.t, s.set.guard.DryRun || of.paused, why)
		require.NotContains(s.t, []int{0, 1, self}, of.PID, why)
		require.False(s.t, of.Critical || of.Kernel, why)
		require.NotEqual(s.t, "prod", of.Namespace, why)
		require.NotContains(s.t, []string{"/usr/bin/db", "/usr/bin/sshd", "/usr/bin/kubelet"}, of.Path, why)
		if !of.killed || s.set.guard.Method == MethodKill {
			require.True(s.t, s.holders[gpuwatch.Process{PID: of.PID, StartTime: of.Start}], "it was told to hold memory: "+why)
			require.True(s.t, of.Namespace == "batch" || of.Path == "/usr/bin/train-1" && of.UID == 1000, "a rule names it: "+why)
		}
		if !of.killed { // each action begins with this
			require.GreaterOrEqual(s.t, of.at, s.ended, "the cool-down: "+why)
			s.starts = append(s.starts, of.at)
			if n := len(s.starts) - 1 - s.set.budget.MaxPerHour; n >= 0 {
				require.GreaterOrEqual(s.t, of.at-s.starts[n], int64(time.Hour), "the budget: "+why)
			}
		}
		s.ended = of.at + int64(s.set.budget.Cooldown)
	}
	s.checked = len(s.touched)
	termed := 0
	for _, a := range s.told {
		s.ids[a.ID] = append(s.ids[a.ID], a.Outcome)
	}
	for _, outcomes := range s.ids {
		if outcomes[0] == gpuaction.Termed {
			termed++
			if n := len(outcomes) - 1; s.lost && outcomes[n] == gpuaction.Interrupted && n == 2 {
				outcomes = outcomes[:n] // that it was over could not be written before a restart
			}
			require.Len(s.t, outcomes, 2, "seed %d: what came of it is told, once", s.seed)
		}
	}
	require.Equal(s.t, len(s.starts), termed, "seed %d: each is on record", s.seed)
	s.told = nil
}
