// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/policy"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/watch"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

func TestAProcessThatFillsADeviceIsAskedToEnd(t *testing.T) {
	r := newRig(t, nil)
	r.add(7, 70, nil)
	r.lives(7, 70, 90)
	assert.Equal(t, t0+3*second, r.after(0), "that is when to look again")
	assert.Empty(t, r.touched)
	r.after(3)
	require.Len(t, r.touched, 1)
	require.Len(t, r.told, 2)
	got := r.told[1]
	assert.Equal(t, r.told[0].ID, got.ID)
	assert.Equal(t, gpuaction.Action{
		ID: got.ID, At: t0 + 3*second + second/10, Outcome: gpuaction.Exited, Method: MethodKill, Rule: "batch", Trigger: gpuaction.Threshold, Threshold: 0.85,
		AboveFor: 3, Device: gpu, Used: 90 * gib, Total: 100 * gib, Candidates: 1, Held: 90 * gib, Duration: 0.1,
		Process: gpuaction.Process{
			PID: 7, Start: 70, UID: 1000, Executable: "python3", Path: "/usr/bin/python3", Cgroup: "/pods/7", PodUID: "u", Namespace: "batch", Pod: "p", Container: "c",
		},
	}, got)
	assert.Equal(t, []string{"termed", "exited"}, r.outcomes())
	assert.Nil(t, r.kept.Pending)
	assert.Equal(t, []int64{t0 + 3*second}, r.kept.Spent)
	assert.Equal(t, 2, r.View().BudgetLeft)
	r.after(3600)
	assert.Len(t, r.touched, 1, "it has ended; nobody else is ended for it")
}

func TestWhoDoesNotEndIsKilled(t *testing.T) {
	r := newRig(t, nil)
	r.add(7, 70, func(p *person) { p.stubborn = true })
	r.lives(7, 70, 90)
	r.after(3)
	require.Len(t, r.touched, 2)
	assert.False(t, r.touched[0].killed)
	assert.True(t, r.touched[1].killed)
	assert.Equal(t, 10*second, r.touched[1].at-r.touched[0].at, "the grace")
	assert.Equal(t, []string{"termed", "killed"}, r.outcomes())
}

func TestWhoCannotBeKilledIsToldAndNotTriedAgainSoon(t *testing.T) {
	r := newRig(t, nil)
	r.add(7, 70, func(p *person) { p.stubborn, p.stuck = true, true })
	r.lives(7, 70, 90)
	r.after(3)
	assert.Equal(t, []string{"termed", "stuck"}, r.outcomes())
	r.after(30)
	assert.Len(t, r.touched, 2)
}

func TestADryRunTouchesNobodyAndHasABudget(t *testing.T) {
	r := newRig(t, func(s *settings) { s.guard.DryRun = true })
	r.kept = Kept{Spent: []int64{1}, Ended: 2} // of a time when it was in earnest
	r.Restore(r.kept)
	r.add(7, 70, nil)
	r.lives(7, 70, 90)
	for range 100 {
		r.after(30)
	}
	assert.Empty(t, r.touched)
	assert.Equal(t, []string{"would_term", "would_term", "would_term", "refused: budget"}, r.outcomes()[:4])
	assert.Equal(t, Kept{Spent: []int64{1}, Ended: 2}, r.kept)
	require.NoError(t, r.Pause(true))
	assert.Equal(t, Kept{Spent: []int64{1}, Ended: 2, Paused: true}, r.kept, "what was done in earnest is not forgotten")
}

func TestNobodyIsEndedWhom(t *testing.T) {
	f := func(want string, change func(*person)) {
		t.Helper()
		r := newRig(t, nil)
		r.add(7, 70, change)
		r.lives(7, 70, 90)
		for range 20 {
			r.after(3)
		}
		assert.Empty(t, r.touched)
		assert.Equal(t, []string{"refused: " + want}, r.outcomes(), "it is told once")
	}
	f("no_rule", func(p *person) { p.Namespace = "other" })
	f("protected", func(p *person) { p.Namespace = "prod" })
	f("protected", func(p *person) { p.Path = "/usr/bin/db" })
	f("not_known", func(p *person) { p.hideNames = true })
	f("critical", func(p *person) { p.Critical = true })
	f("critical", func(p *person) { p.Path = "/usr/sbin/sshd" })
	f("kernel_thread", func(p *person) { p.Kernel = true })
	f("no_candidate", func(p *person) { p.Start = 71 }) // another one with this PID: whoever was meant has ended
	f("no_candidate", func(p *person) { p.dead = true })
	f("not_permitted: operation not permitted", func(p *person) { p.untouchable = true })
}

func TestOfAProcessWithoutAStartNobodyKnowsWhoItIs(t *testing.T) {
	r := newRig(t, nil)
	r.add(7, 70, nil)
	r.lives(7, 0, 90)
	r.after(3)
	assert.Empty(t, r.touched)
	assert.Equal(t, []string{"refused: start_not_known"}, r.outcomes())
}

func TestTheOrderSaysWho(t *testing.T) {
	f := func(want int, order ...string) {
		t.Helper()
		r := newRig(t, func(s *settings) { s.guard.Order, s.watch.OnLeak = order, false })
		for pid, start := range map[int]uint64{7: 30, 8: 20, 9: 10} {
			r.add(pid, start, nil)
		}
		r.lives(7, 30, 20)
		r.lives(8, 20, 30)
		r.lives(9, 10, 20)
		r.lives(9, 10, 36) // has grown most
		r.leaks("x", 8)
		r.after(3)
		require.NotEmpty(t, r.touched)
		assert.Equal(t, want, r.touched[0].PID)
	}
	f(9, ByGrowth)
	f(9, ByLive)
	f(7, ByNewest)
	f(8, ByLeak, ByGrowth)
}

func TestWhoIsProtectedIsPassedOver(t *testing.T) {
	r := newRig(t, nil)
	r.add(7, 70, func(p *person) { p.Namespace = "prod" })
	r.add(8, 80, nil)
	r.lives(7, 70, 80)
	r.lives(8, 80, 10)
	r.after(3)
	require.Len(t, r.touched, 1)
	assert.Equal(t, 8, r.touched[0].PID)
	assert.Equal(t, 2, r.told[0].Candidates)
}

func TestALeakIsAReason(t *testing.T) {
	r := newRig(t, nil)
	r.add(7, 70, nil)
	r.add(8, 80, nil)
	r.lives(7, 70, 5)
	r.lives(8, 80, 50)
	r.leaks("x", 7)
	r.after(0)
	require.Len(t, r.touched, 1)
	assert.Equal(t, 7, r.touched[0].PID)
	assert.Equal(t, "leak", r.told[0].Trigger)
	assert.Equal(t, "x", r.told[0].LeakID)
	assert.Equal(t, "not_returned", r.told[0].Cause)
	r.outcomes()
	r.after(3600)
	assert.Empty(t, r.outcomes(), "it is acted on once")
}

func TestABudgetAndACooldownHold(t *testing.T) {
	r := newRig(t, nil)
	for i := range 8 {
		r.add(10+i, 70, nil)
		r.lives(10+i, 70, 90)
	}
	begin := r.now
	for range 3000 {
		r.after(1)
	}
	require.Len(t, r.touched, 3)
	assert.GreaterOrEqual(t, r.touched[1].at-r.touched[0].at, int64(time.Minute))
	assert.GreaterOrEqual(t, r.touched[2].at-r.touched[1].at, int64(time.Minute))
	assert.Contains(t, r.outcomes(), "refused: budget")
	for range 700 {
		r.after(1)
	}
	assert.Greater(t, len(r.touched), 3, "an hour later there is a new one")
	assert.Greater(t, r.touched[3].at-begin, int64(time.Hour))
}

// Scenario: the Collector is killed in the midst of an action, and started again and again.
// Guarantees: the budget is that of before, and what was under way is told to be interrupted, once.
func TestACrashGivesNoNewBudget(t *testing.T) {
	w := newWorld()
	r := newRigIn(t, w, nil)
	r.add(7, 70, nil)
	r.lives(7, 70, 90)
	w.onWait = func() { panic("crash") }
	assert.Panics(t, func() { r.after(3) })
	w.onWait = nil
	require.NotNil(t, w.kept.Pending)
	assert.Equal(t, []string{"termed"}, r.outcomes())
	for i := range 10 {
		r = newRigIn(t, w, nil)
		require.NoError(t, r.Keep())
		if i == 0 {
			assert.Equal(t, []string{"interrupted"}, r.outcomes())
		}
		r.add(8, 80, nil)
		r.lives(8, 80, 90)
		r.after(3)
		assert.Len(t, r.touched, 1, "it cools down")
		assert.Empty(t, r.outcomes())
	}
	r.after(60)
	r.after(3)
	assert.Len(t, r.touched, 2)
}

func TestWhoeverStopsTheGuardIsObeyedAtOnce(t *testing.T) {
	r := newRig(t, nil)
	require.NoError(t, r.Pause(true))
	r.add(7, 70, func(p *person) { p.stubborn = true })
	r.lives(7, 70, 90)
	r.after(3)
	assert.Empty(t, r.touched)
	assert.Equal(t, []string{"refused: paused"}, r.outcomes())
	assert.True(t, r.kept.Paused, "a restart does not undo it")
	require.NoError(t, r.Pause(false))
	r.onWait = func() { require.NoError(t, r.Pause(true)) }
	r.after(3)
	require.Len(t, r.touched, 1)
	assert.False(t, r.touched[0].killed)
	assert.Equal(t, []string{"termed", "stopped"}, r.outcomes())
}

func TestACollectorThatEndsKillsNobody(t *testing.T) {
	r := newRig(t, nil)
	r.add(7, 70, func(p *person) { p.stubborn = true })
	r.lives(7, 70, 90)
	ctx, cancel := context.WithCancel(t.Context())
	r.onWait = cancel
	r.now += 3 * second
	r.Step(ctx)
	assert.Equal(t, []string{"termed", "stopped"}, r.outcomes())
	require.Len(t, r.touched, 1)
	r.lives(7, 70, 95)
	r.now += 300 * second
	r.Step(ctx)
	assert.Len(t, r.touched, 1)
}

func TestWithoutARecordNothingIsDone(t *testing.T) {
	r := newRig(t, nil)
	r.failing = true
	r.add(7, 70, nil)
	r.lives(7, 70, 90)
	r.after(3)
	assert.Empty(t, r.touched)
	assert.Equal(t, []string{"refused: state_not_written: no space left on device"}, r.outcomes())
	for range 100 {
		r.after(1)
	}
	assert.Empty(t, r.outcomes(), "it is told once")
	assert.Equal(t, 3, r.View().BudgetLeft, "nothing was done")
	r.failing = false
	r.after(1)
	assert.Equal(t, []string{"termed", "exited"}, r.outcomes())
	assert.Equal(t, 2, r.View().BudgetLeft)
}

func TestWhatIsStoppedAtTheLastMomentIsNotSpent(t *testing.T) {
	r := newRig(t, nil)
	r.add(7, 70, nil)
	r.lives(7, 70, 90)
	r.onOpen = func() { require.NoError(t, r.Pause(true)) }
	r.after(3)
	assert.Empty(t, r.touched)
	assert.Equal(t, []string{"refused: paused"}, r.outcomes())
	assert.Equal(t, 3, r.View().BudgetLeft)
	assert.Zero(t, r.View().Cool)
}

// Scenario: the reading of a device is far below what live bytes say. Guarantees: nobody is ended, and that is told once.
func TestWhatIsInDoubtEndsNobody(t *testing.T) {
	r := newRig(t, nil)
	r.add(7, 70, nil)
	r.lives(7, 70, 90)
	for range 20 {
		r.Tell(func(s *watch.State, now int64) {
			s.Device(gpuwatch.Device{ID: gpu, Total: 100 * gib, Used: 10 * gib, At: now}, now)
		})
		r.after(1)
	}
	assert.Empty(t, r.touched)
	assert.Equal(t, []string{"refused: disagrees"}, r.outcomes())
}

func TestWhoGivesBackWhatItHeldIsNotKilled(t *testing.T) {
	r := newRig(t, nil)
	r.add(7, 70, func(p *person) { p.stubborn = true })
	r.lives(7, 70, 90)
	r.onWait = func() { r.now += second; r.lives(7, 70, 1) }
	r.after(3)
	require.Len(t, r.touched, 1)
	assert.False(t, r.touched[0].killed)
	assert.Equal(t, []string{"termed", "refused: relieved"}, r.outcomes())
}

// Scenario: the Collector is killed while a process that ignores being asked to end has its grace.
// Guarantees: if that is a reason still when it has cooled down, it goes through all again, and is killed.
func TestWhoWasLeftInItsGraceIsTriedAgain(t *testing.T) {
	w := newWorld()
	r := newRigIn(t, w, nil)
	r.add(7, 70, func(p *person) { p.stubborn = true })
	r.lives(7, 70, 90)
	w.onWait = func() { panic("crash") }
	assert.Panics(t, func() { r.after(3) })
	w.onWait = nil
	r = newRigIn(t, w, nil)
	r.lives(7, 70, 90)
	r.after(3)
	require.Len(t, r.touched, 1)
	r.after(60)
	assert.Equal(t, []string{"termed", "interrupted", "termed", "killed"}, r.outcomes())
	assert.Len(t, r.touched, 3)
}

// Scenario: a verdict names no host, and so may be about a process of another machine with the same PID.
func TestAVerdictWithoutAHostIsAboutTheSameExecutable(t *testing.T) {
	f := func(executable string, want ...string) {
		t.Helper()
		r := newRig(t, nil)
		r.add(7, 70, nil)
		r.lives(7, 70, 10)
		r.Tell(func(s *watch.State, now int64) {
			s.Leak(gpuwatch.Leak{ID: "x", Open: true, PID: 7, Executable: executable, At: now}, now)
		})
		r.after(1)
		r.after(1)
		assert.Equal(t, want, r.outcomes())
	}
	f("python3", "termed", "exited")
	f("", "termed", "exited")
	f("vllm", "refused: other_executable")
}

// Scenario: a process becomes another program when it is asked to end, one that is protected.
// Guarantees: that is not killed.
func TestWhatAProcessHasBecomeIsLookedAtAgain(t *testing.T) {
	r := newRig(t, nil)
	r.add(7, 70, func(p *person) { p.stubborn, p.becomes = true, "db" })
	r.lives(7, 70, 90)
	r.after(3)
	require.Len(t, r.touched, 1)
	assert.Equal(t, []string{"termed", "refused: protected"}, r.outcomes())
}

func TestAControlGroupIsKilledWhole(t *testing.T) {
	r := newRig(t, func(s *settings) { s.guard.Method = MethodCgroupKill })
	for _, pid := range []int{7, 8, 9} {
		r.add(pid, 70, func(p *person) { p.stubborn, p.group = true, "g" })
	}
	r.add(10, 70, nil)
	r.lives(7, 70, 90)
	r.after(3)
	assert.Len(t, r.touched, 4)
	assert.Equal(t, []string{"termed", "killed"}, r.outcomes())
	assert.False(t, r.people[10].dead)
}

func TestAControlGroupWithSomebodyProtectedIsNotTouched(t *testing.T) {
	f := func(want string, change func(*person)) {
		t.Helper()
		r := newRig(t, func(s *settings) { s.guard.Method = MethodCgroupKill })
		r.add(7, 70, func(p *person) { p.group = "g" })
		r.add(8, 80, func(p *person) {
			p.group = "g"
			change(p)
		})
		r.lives(7, 70, 90)
		r.after(3)
		assert.Empty(t, r.touched)
		assert.Equal(t, []string{"refused: " + want}, r.outcomes())
	}
	f("in_cgroup: protected", func(p *person) { p.Namespace = "prod" })
	f("in_cgroup: not_known", func(p *person) { p.hideNames = true })
	f("in_cgroup: critical", func(p *person) { p.Path = "/usr/bin/containerd-shim-runc-v2" })
	f("in_cgroup: self", func(p *person) { p.PID = self })

	for _, unseen := range []int{0, 8} { // of another PID namespace, or hidden from the Collector
		for _, dry := range []bool{false, true} {
			r := newRig(t, func(s *settings) { s.guard.Method, s.guard.DryRun = MethodCgroupKill, dry })
			r.unseen = []int{unseen}
			r.add(7, 70, nil)
			r.lives(7, 70, 90)
			r.after(3)
			assert.Empty(t, r.touched)
			assert.Equal(t, []string{"refused: in_cgroup: not_known"}, r.outcomes())
		}
	}

	r := newRig(t, func(s *settings) { s.guard.Method = MethodCgroupKill })
	r.add(7, 70, func(p *person) { p.group = "" })
	r.lives(7, 70, 90)
	r.after(3)
	assert.Empty(t, r.touched)
	assert.Equal(t, []string{"refused: no_cgroup: the process is in the root of all control groups"}, r.outcomes())

	// Scenario: somebody comes into the group after its process was asked to end.
	r = newRig(t, func(s *settings) { s.guard.Method = MethodCgroupKill })
	r.add(7, 70, func(p *person) { p.stubborn, p.group = true, "g" })
	r.onWait = func() { r.add(8, 80, func(p *person) { p.group, p.Namespace = "g", "prod" }) }
	r.lives(7, 70, 90)
	r.after(3)
	require.Len(t, r.touched, 1)
	assert.Equal(t, []string{"termed", "refused: in_cgroup: protected"}, r.outcomes())
}

func TestADecisionIsMeasuredFromWhenItWasDue(t *testing.T) {
	r := newRig(t, nil)
	r.add(7, 70, nil)
	r.lives(7, 70, 90)
	r.now += second / 50 // 20 ms late
	r.after(3)
	assert.InDelta(t, 0.02, r.told[0].Decision, 1e-9)
	assert.Zero(t, r.told[1].Decision, "once")
}

func TestNobodyIsEndedWithoutAPolicy(t *testing.T) {
	r := newRig(t, func(s *settings) { s.victims, s.protected = nil, []policy.Rule{} })
	r.add(7, 70, nil)
	r.lives(7, 70, 100)
	r.after(3)
	assert.Empty(t, r.touched)
	assert.Equal(t, []string{"refused: no_rule"}, r.outcomes())
}
