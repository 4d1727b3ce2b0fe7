// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/budget"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/policy"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/watch"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
)

// ErrEnded says that a process is not there any more.
var ErrEnded = errors.New("the process has ended")

// Table is the processes of the machine.
type Table interface {
	// Look says what is known of a process that holds memory of a device; ErrEnded if it is not there.
	Look(pid int, device string) (policy.Facts, error)
	// Open returns a handle of it, which is never another one's.
	Open(pid int) (Handle, error)
	// Group is its control group, Members are the processes of one and of all below it, and KillGroup ends them.
	Group(pid int) (string, error)
	Members(group string) ([]int, error)
	KillGroup(group string) error
}

// Handle is that of one process. Its errors are ErrEnded where the process is not there any more.
type Handle interface {
	Terminate() error
	Kill() error
	// Wait waits until it has ended, for at most so long or until stop says so. It says whether it has.
	Wait(most time.Duration, stop func() bool) bool
	Close()
}

// The methods: what follows when a process has not ended within the grace.
const (
	MethodKill       = "kill"
	MethodCgroupKill = "cgroup_kill"
)

// The keys by which one of several victims is chosen.
const (
	ByLeak   = "leak"
	ByGrowth = "growth"
	ByLive   = "live"
	ByNewest = "newest"
)

// Reasons for which nobody is touched, besides those of the policy.
const (
	Paused      = "paused"
	NoBudget    = "budget"
	NoCandidate = "no_candidate" // nobody is known to hold enough of the device
	NotTheSame  = "pid_reused"
	NoPID       = "start_not_known"
	NotRecorded = "state_not_written"
	NoCgroup    = "no_cgroup"
	InCgroup    = "in_cgroup: " // and why one of its processes must not be touched
	Forbidden   = "not_permitted"
	Relieved    = "relieved"  // there was no reason any more when it came to it
	Disagrees   = "disagrees" // live bytes say that the device is too full, and what is read of it says that it is far from that
	OtherName   = "other_executable"
)

// Options are the settings of a Guard.
type Options struct {
	DryRun    bool
	Method    string
	Grace     time.Duration
	Order     []string
	Threshold float64 // for records
	// Now is the time in Unix nanoseconds.
	Now func() int64
	// Record takes what is done, one after the other.
	Record func(gpuaction.Action)
	// Keep writes what outlives a restart, and returns when it is on disk. Nil keeps nothing.
	Keep func(Kept) error
}

// Kept is what outlives a restart.
type Kept struct {
	Spent  []int64 `json:"spent"`
	Ended  int64   `json:"ended"`
	Paused bool    `json:"paused"`
	// Pending is the action of which the end is not known yet.
	Pending *Pending `json:"pending,omitempty"`
}

// Pending is an action that is under way.
type Pending struct {
	ID         string `json:"id"`
	PID        int    `json:"pid"`
	Start      uint64 `json:"start"`
	Executable string `json:"executable"`
	Device     string `json:"device"`
}

// Guard is the one who acts.
type Guard struct {
	opts   Options
	policy *policy.Policy
	table  Table

	// mu guards what follows. It is not held while a process is looked at, or anything is written.
	mu      sync.Mutex
	state   *watch.State
	budget  *budget.Budget
	paused  bool
	pending *Pending
	real    Kept // of a dry run: what was spent in earnest before

	serial  uint64     // of the one goroutine that acts: how much
	keeping sync.Mutex // so that what is kept is the newest; before mu
}

// New returns a Guard.
func New(o Options, p *policy.Policy, t Table, s *watch.State, b *budget.Budget) *Guard {
	return &Guard{opts: o, policy: p, table: t, state: s, budget: b}
}

// Restore takes up what was kept. What was under way is told to be interrupted. A dry run has a budget of its own.
func (g *Guard) Restore(k Kept) {
	g.mu.Lock()
	if g.opts.DryRun {
		g.real = k
	} else {
		g.budget.Restore(k.Spent, k.Ended)
		if k.Pending != nil { // it may have been killed a moment ago
			g.budget.Ended(g.opts.Now())
		}
	}
	g.paused = k.Paused
	g.mu.Unlock()
	if p := k.Pending; p != nil {
		g.opts.Record(gpuaction.Action{
			ID: p.ID, At: g.opts.Now(), Outcome: gpuaction.Interrupted, Device: p.Device, Method: g.opts.Method,
			Process: gpuaction.Process{PID: p.PID, Start: p.Start, Executable: p.Executable, UID: -1},
		})
	}
}

// Exhaust spends the budget: what was spent before is not known.
func (g *Guard) Exhaust() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.budget.Exhaust(g.opts.Now())
}

// Tell lets f tell something to the state, and says whether there may be something to decide.
func (g *Guard) Tell(f func(s *watch.State, now int64)) (look bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(g.state, g.opts.Now())
	return g.state.Look()
}

// Pause stops the guard, also in the midst of an action: who was asked to end is not killed. It goes on with false.
func (g *Guard) Pause(paused bool) error {
	g.mu.Lock()
	g.paused = paused
	g.mu.Unlock()
	return g.Keep()
}

// Keep writes what outlives a restart.
func (g *Guard) Keep() error {
	if g.opts.Keep == nil {
		return nil
	}
	g.keeping.Lock()
	defer g.keeping.Unlock()
	g.mu.Lock()
	k := Kept{Paused: g.paused, Pending: g.pending}
	if k.Spent, k.Ended = g.budget.State(); g.opts.DryRun {
		k.Spent, k.Ended = g.real.Spent, g.real.Ended
	}
	g.mu.Unlock()
	return g.opts.Keep(k)
}

// View is what is known and what may be done, for people.
type View struct {
	Paused     bool
	BudgetLeft int
	Cool       int64 // until when nothing is done; 0: something may be
	Pending    *Pending
	Devices    []watch.View
	Leaks      []gpuwatch.Leak
}

// Left is how many actions are left within the hour, and whether the guard is stopped.
func (g *Guard) Left() (left int, paused bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.budget.Left(g.opts.Now()), g.paused
}

// View is that of now.
func (g *Guard) View() View {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.opts.Now()
	v := View{Paused: g.paused, BudgetLeft: g.budget.Left(now), Pending: g.pending, Devices: g.state.Views(now), Leaks: g.state.Leaks()}
	if cool := g.budget.Cool(now); cool > now {
		v.Cool = cool
	}
	return v
}

// Step does what is to be done now. It returns when it is to be called again although nothing was told: 0 is never.
func (g *Guard) Step(ctx context.Context) (next int64) {
	for g.round(ctx) {
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state.Next(g.opts.Now())
}

// round acts once at most, since all may be otherwise after that. It says whether it did.
func (g *Guard) round(ctx context.Context) bool {
	g.mu.Lock()
	due := g.state.Due(g.opts.Now())
	g.mu.Unlock()
	for i := range due {
		if ctx.Err() == nil && g.try(ctx, &due[i]) {
			return true
		}
	}
	return false
}

// again is when what did not work is tried again.
const again = int64(time.Second)

// try acts on one trigger, if that may be. It says whether it did.
func (g *Guard) try(ctx context.Context, t *watch.Trigger) bool {
	now := g.opts.Now()
	g.mu.Lock()
	paused, cool, left, next := g.paused, g.budget.Cool(now), g.budget.Left(now), g.budget.Next(now)
	if now < cool {
		t.NotBefore = cool
	}
	g.mu.Unlock()
	switch {
	case paused:
		g.refuse(t, choice{}, Paused, now+again)
	case t.Disagrees:
		g.refuse(t, choice{}, Disagrees, now+again)
	case now < cool: // that is not worth a word
	case left == 0:
		g.refuse(t, choice{}, NoBudget, next)
	default:
		c := g.choose(t)
		if c.why != "" {
			g.refuse(t, c, c.why, now+again)
			return false
		}
		if c.rule != "" {
			g.act(ctx, t, c)
			return true
		}
	}
	return false
}

// choice is a process, and why it, or why not.
type choice struct {
	watch.Candidate
	facts      policy.Facts
	rule       string
	why        string
	candidates int
	now        int64
}

// choose looks for a victim. Without one, why says why not; without both, there is no reason any more.
func (g *Guard) choose(t *watch.Trigger) choice {
	g.mu.Lock()
	candidates := g.state.Candidates(t, g.opts.Now())
	g.mu.Unlock()
	g.sort(candidates)
	found, refused := choice{}, choice{why: NoCandidate}
	for _, candidate := range candidates {
		c := choice{Candidate: candidate}
		c.facts, c.rule, c.why = g.judge(candidate.Process, t)
		if c.why == string(policy.Ended) || c.why == NotTheSame {
			g.Tell(func(s *watch.State, now int64) { s.Gone(candidate.Process, now) })
			continue
		}
		if c.why == "" {
			found = c
			break
		}
		if refused.why == NoCandidate {
			refused = c
		}
	}
	now := g.opts.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if found.rule != "" {
		if !g.state.Holds(t, found.Process, now) {
			return choice{}
		}
		refused = found
	}
	refused.candidates, refused.now = len(candidates), now
	return refused
}

// judge looks at a process, and says by which rule it may be ended, or why not.
func (g *Guard) judge(id gpuwatch.Process, t *watch.Trigger) (facts policy.Facts, rule, why string) {
	if id.StartTime == 0 {
		return facts, "", NoPID
	}
	facts, err := g.table.Look(id.PID, t.Device)
	switch {
	case errors.Is(err, ErrEnded):
		return facts, "", string(policy.Ended)
	case err != nil:
		return facts, "", string(policy.MaybeOne)
	case facts.Start != id.StartTime || facts.PID != id.PID:
		return facts, "", NotTheSame
	}
	if rule, reason := g.policy.Judge(&facts); reason != "" || !another(t.Leak, &facts) {
		return facts, rule, string(reason)
	}
	return facts, "", OtherName
}

// another says whether a verdict that names no host, and so may be about another machine, is about another executable.
func another(leak *gpuwatch.Leak, f *policy.Facts) bool {
	return leak != nil && leak.Host == "" && leak.Executable != "" && leak.Executable != f.Name() && leak.Executable != f.Comm
}

// sort puts first who is ended first.
func (g *Guard) sort(all []watch.Candidate) {
	slices.SortStableFunc(all, func(a, b watch.Candidate) int {
		for _, key := range g.opts.Order {
			if by := compare(key, &a, &b); by != 0 {
				return -by
			}
		}
		return 0
	})
}

func compare(key string, a, b *watch.Candidate) int {
	switch key {
	case ByLeak:
		leaks := func(c *watch.Candidate) int {
			if c.Leak != nil {
				return 1
			}
			return 0
		}
		return leaks(a) - leaks(b)
	case ByGrowth:
		return cmp.Compare(a.Growth, b.Growth)
	case ByLive:
		return cmp.Compare(a.Held, b.Held)
	default:
		return cmp.Compare(a.StartTime, b.StartTime)
	}
}

// record is what is told of a choice.
func (g *Guard) record(t *watch.Trigger, c *choice, outcome gpuaction.Outcome) gpuaction.Action {
	now := g.opts.Now()
	a := gpuaction.Action{
		At: now, Outcome: outcome, DryRun: g.opts.DryRun, Method: g.opts.Method, Rule: c.rule, Trigger: gpuaction.Threshold, Threshold: g.opts.Threshold,
		AboveFor: t.Above.Seconds(), Device: t.Device, Used: t.Used, Total: t.Total, Candidates: c.candidates, Held: c.Held, Growth: c.Growth,
		Detection: t.Detection.Seconds(),
	}
	g.serial++
	a.ID = fmt.Sprintf("%x-%d", now, g.serial)
	leak := t.Leak
	if leak == nil {
		leak = c.Leak
	} else {
		a.Trigger = gpuaction.Leak
	}
	if leak != nil {
		a.LeakID, a.Cause = leak.ID, leak.Cause
	}
	if c.now != 0 {
		a.Decision = max(time.Duration(c.now-t.Since), time.Nanosecond).Seconds()
	}
	a.Process = described(c)
	return a
}

func described(c *choice) gpuaction.Process {
	f := &c.facts
	return gpuaction.Process{
		PID: c.PID, Start: c.StartTime, Started: f.Started, UID: f.UID, Executable: f.Name(), Path: f.Path, Cgroup: f.Cgroup,
		ContainerID: f.ContainerID, PodUID: f.PodUID, Namespace: f.Namespace, Pod: f.Pod, Container: f.Container,
	}
}

// toldAgain is how long the same refusal of the same trigger is not told again.
const toldAgain = int64(10 * time.Minute)

// maxTold bounds the refusals of a trigger that are told within that time.
const maxTold = 256

// refuse tells that nobody is touched, and why, and leaves the trigger alone for a while.
func (g *Guard) refuse(t *watch.Trigger, c choice, why string, notBefore int64) {
	now := g.opts.Now()
	reason, _, _ := strings.Cut(why, ":") // what follows tells of one case
	key := fmt.Sprintf("%s %d", reason, c.PID)
	g.mu.Lock()
	t.NotBefore = notBefore
	maps.DeleteFunc(t.Told, func(_ string, at int64) bool { return now-at >= toldAgain })
	_, told := t.Told[key]
	told = told || len(t.Told) >= maxTold
	if !told {
		if t.Told == nil {
			t.Told = map[string]int64{}
		}
		t.Told[key] = now
	}
	g.mu.Unlock()
	if told {
		return
	}
	a := g.record(t, &c, gpuaction.Refused)
	a.Reason = why
	g.opts.Record(a)
}
