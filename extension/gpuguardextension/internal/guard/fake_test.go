// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/budget"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/policy"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/watch"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

const (
	second = int64(time.Second)
	gib    = uint64(1 << 30)
	gpu    = "GPU-a"
	t0     = 1_700_000_000 * second
	self   = 99
)

// person is a process of the fake. Facts are the truth; hidden is what Look does not find out.
type person struct {
	policy.Facts
	hideNames   bool
	stubborn    bool // ignores being asked to end
	stuck       bool // does not end when it is killed, either
	untouchable bool // signals are not permitted
	group       string
	becomes     string // executable that it becomes when it is asked to end
	dead        bool
}

// touch is a signal that a process got.
type touch struct {
	person
	at             int64
	killed, paused bool
}

// world is a table of fake processes, with a clock.
type world struct {
	now     int64
	people  map[int]*person
	touched []touch
	onOpen  func() // what happens when somebody is about to be touched
	onWait  func() // what happens while somebody waits
	paused  func() bool
	unseen  []int // members of every control group of whom Look says that they have ended
	failing bool  // nothing can be written
	lost    bool  // something could not be
	kept    Kept
	told    []gpuaction.Action
	state   *watch.State
}

func newWorld() *world {
	return &world{now: t0, people: map[int]*person{}, paused: func() bool { return false }}
}

func (w *world) add(pid int, start uint64, change func(*person)) *person {
	p := &person{Facts: policy.Facts{
		PID: pid, Start: start, Path: "/usr/bin/python3", Comm: "python3", Command: "python3 train.py", UID: 1000,
		Cgroup: "/pods/" + strconv.Itoa(pid), PodUID: "u", Namespace: "batch", Pod: "p", Container: "c",
	}, group: strconv.Itoa(pid)}
	if change != nil {
		change(p)
	}
	w.people[pid] = p
	return p
}

func (w *world) Look(pid int, _ string) (policy.Facts, error) {
	p := w.people[pid]
	if p == nil {
		return policy.Facts{}, ErrEnded
	}
	f := p.Facts
	f.Ended = p.dead
	if p.hideNames {
		f.Namespace, f.Pod, f.Container = "", "", ""
	}
	return f, nil
}

func (w *world) Open(pid int) (Handle, error) {
	if w.people[pid] == nil {
		return nil, ErrEnded
	}
	if w.onOpen != nil {
		w.onOpen()
	}
	return &grip{w, w.people[pid]}, nil
}

func (w *world) Group(pid int) (string, error) {
	p := w.people[pid]
	if p == nil {
		return "", ErrEnded
	}
	if p.group == "" {
		return "", errors.New("the process is in the root of all control groups")
	}
	return p.group, nil
}

func (w *world) Members(group string) (all []int, err error) {
	for pid, p := range w.people {
		if p.group == group {
			all = append(all, pid)
		}
	}
	all = append(all, w.unseen...)
	slices.Sort(all)
	return all, nil
}

func (w *world) KillGroup(group string) error {
	for _, p := range w.people {
		if p.group == group && !p.dead { // of who has ended, nothing is left to be killed
			w.touched = append(w.touched, touch{*p, w.now, true, w.paused()})
			w.die(p)
		}
	}
	return nil
}

func (w *world) die(p *person) {
	if !p.stuck {
		p.dead = true
	}
}

// grip is a handle.
type grip struct {
	w *world
	p *person
}

func (g *grip) Terminate() error {
	err := g.signal(false)
	if err == nil && !g.p.stubborn {
		g.w.die(g.p)
	}
	if g.p.becomes != "" {
		g.p.Path, g.p.Comm = "/usr/bin/"+g.p.becomes, g.p.becomes
	}
	return err
}

func (g *grip) Kill() error {
	err := g.signal(true)
	if err == nil {
		g.w.die(g.p)
	}
	return err
}

func (g *grip) signal(kill bool) error {
	switch {
	case g.p.dead || g.w.people[g.p.PID] != g.p:
		return ErrEnded
	case g.p.untouchable:
		return errors.New("operation not permitted")
	}
	g.w.touched = append(g.w.touched, touch{*g.p, g.w.now, kill, g.w.paused()})
	return nil
}

func (g *grip) Wait(most time.Duration, stop func() bool) bool {
	if g.w.onWait != nil {
		g.w.onWait()
	}
	if g.p.dead || g.w.people[g.p.PID] != g.p {
		g.w.now += second / 10
		return true
	}
	if !stop() {
		g.w.now += int64(most)
	}
	return g.p.dead
}

func (*grip) Close() {}

// rig is a Guard in a world.
type rig struct {
	*Guard
	*world
	t testing.TB
}

// settings are those of a rig.
type settings struct {
	watch              watch.Options
	guard              Options
	budget             budget.Options
	victims, protected []policy.Rule
}

func defaults() settings {
	return settings{
		watch: watch.Options{
			Threshold: 0.85, For: 3 * time.Second, StaleAfter: 15 * time.Second, GrowthWindow: 10 * time.Minute, OnLeak: true, MaxDevices: 8, MaxProcesses: 100,
			DeviceMemory: 100 * gib, MinShare: 0.05, Mine: func(string) bool { return true }, Started: func(ticks uint64) int64 { return int64(ticks) },
		},
		guard:     Options{Method: MethodKill, Grace: 10 * time.Second, Order: []string{ByLeak, ByGrowth, ByLive, ByNewest}, Threshold: 0.85},
		budget:    budget.Options{MaxPerHour: 3, Cooldown: time.Minute},
		victims:   []policy.Rule{{Name: "batch", Namespace: []string{"batch"}}},
		protected: []policy.Rule{{Name: "prod", Namespace: []string{"prod"}}, {Name: "db", Executable: []string{"db"}}},
	}
}

func newRig(t testing.TB, change func(*settings)) *rig {
	t.Helper()
	return newRigIn(t, newWorld(), change)
}

// newRigIn is a Guard that takes up what was kept in the world.
func newRigIn(t testing.TB, w *world, change func(*settings)) *rig {
	t.Helper()
	s := defaults()
	if change != nil {
		change(&s)
	}
	s.guard.Now = func() int64 { return w.now }
	s.guard.Record = func(a gpuaction.Action) { w.told = append(w.told, a) }
	s.guard.Keep = func(k Kept) error {
		if w.failing {
			w.lost = true
			return errors.New("no space left on device")
		}
		w.kept = k
		return nil
	}
	p, err := policy.New(s.victims, s.protected, self)
	require.NoError(t, err)
	w.state = watch.New(s.watch)
	r := &rig{New(s.guard, p, w, w.state, budget.New(s.budget)), w, t}
	r.Restore(w.kept)
	return r
}

// lives tells the live bytes of a process on a device of 100 GiB, of which there is no reading.
func (r *rig) lives(pid int, start uint64, bytes uint64) {
	r.Tell(func(s *watch.State, now int64) {
		s.Live(gpuwatch.Live{Process: gpuwatch.Process{PID: pid, StartTime: start}, Device: gpu, Bytes: bytes * gib, At: now}, now)
	})
}

func (r *rig) leaks(id string, pid int) {
	r.Tell(func(s *watch.State, now int64) {
		s.Leak(gpuwatch.Leak{ID: id, Open: true, Host: "here", PID: pid, Device: gpu, Cause: "not_returned", At: now}, now)
	})
}

func (r *rig) after(seconds int64) int64 {
	r.now += seconds * second
	return r.Step(r.t.Context())
}

// outcomes are those told since the last call, refusals with their reasons.
func (r *rig) outcomes() (all []string) {
	for _, a := range r.told {
		text := string(a.Outcome)
		if a.Outcome == gpuaction.Refused {
			text += ": " + a.Reason
		}
		all = append(all, text)
	}
	r.told = nil
	return all
}
