// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/policy"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/watch"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
)

// last is how long a process that was killed may take to end: one that waits for a driver can take for ever.
const last = 10 * time.Second

// action is one that is under way.
type action struct {
	*Guard
	t      *watch.Trigger
	c      choice
	told   gpuaction.Action
	handle Handle
	group  string // of cgroup_kill
	begun  int64  // when the first signal was sent
}

// act ends a process, or, in a dry run, says that it would be, after all that can be looked at without touching anybody.
func (g *Guard) act(ctx context.Context, t *watch.Trigger, c choice) {
	handle, err := g.table.Open(c.PID)
	if err != nil {
		g.refuse(t, c, reasonOf(err), g.opts.Now()+again)
		return
	}
	defer handle.Close()
	a := &action{Guard: g, t: t, c: c, handle: handle}
	if why := a.check(); why != "" {
		g.refuse(t, a.c, why, g.opts.Now()+again)
		return
	}
	if g.opts.DryRun {
		if why := g.spend(t, nil); why != "" {
			g.refuse(t, a.c, why, g.opts.Now()+again)
			return
		}
		g.done(t)
		g.opts.Record(g.record(t, &a.c, gpuaction.WouldTerm))
		return
	}
	a.told = g.record(t, &a.c, gpuaction.Termed)
	if why := g.spend(t, &Pending{ID: a.told.ID, PID: c.PID, Start: c.StartTime, Executable: a.told.Process.Executable, Device: t.Device}); why != "" {
		g.refuse(t, a.c, why, g.opts.Now()+again)
		return
	}
	outcome, reason := a.end(ctx)
	a.tell(outcome, reason)
	now := g.opts.Now()
	g.mu.Lock()
	g.pending = nil
	g.budget.Ended(now)
	if outcome == gpuaction.Exited || outcome == gpuaction.Killed {
		g.state.Gone(c.Process, now)
	}
	g.state.Acted(now)
	g.mu.Unlock()
	g.done(t)
	// It is on disk that something is under way; if this is not written, that is told to be interrupted after a restart, and the
	// cool-down begins with that.
	_ = g.Keep()
}

// spend takes one action of the budget, and says why not, if not. It is on disk when this returns.
func (g *Guard) spend(t *watch.Trigger, p *Pending) (why string) {
	now := g.opts.Now()
	g.mu.Lock()
	switch {
	case g.paused:
		why = Paused
	case !g.budget.Spend(now):
		why = NoBudget
	default:
		g.pending = p
	}
	t.NotBefore = g.budget.Cool(now)
	g.mu.Unlock()
	if why != "" || p == nil { // a dry run
		return why
	}
	if err := g.Keep(); err != nil {
		g.mu.Lock()
		g.pending = nil
		g.budget.Return()
		g.mu.Unlock()
		return NotRecorded + ": " + err.Error()
	}
	return ""
}

// done makes that a leak is acted on once.
func (g *Guard) done(t *watch.Trigger) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t.Done = t.Leak != nil
}

// check looks at all again that was decided on, now that there is a handle.
func (a *action) check() (why string) {
	facts, rule, why := a.judge(a.c.Process, a.t)
	if why != "" {
		a.c.rule = rule
		return why
	}
	a.c.facts, a.c.rule = facts, rule
	if a.opts.Method == MethodCgroupKill {
		group, err := a.table.Group(a.c.PID)
		if err != nil {
			return NoCgroup + ": " + err.Error()
		}
		a.group = group
		if why := a.checkGroup(); why != "" {
			return why
		}
	}
	return a.relieved()
}

// relieved says whether there is no reason any more.
func (a *action) relieved() (why string) {
	now := a.opts.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.state.Holds(a.t, a.c.Process, now) {
		return Relieved
	}
	return ""
}

// checkGroup says why a control group must not be killed.
func (a *action) checkGroup() (why string) {
	members, err := a.table.Members(a.group)
	if err != nil {
		return NoCgroup + ": " + err.Error()
	}
	if !slices.Contains(members, a.c.PID) {
		return NoCgroup + ": the process is not in it any more"
	}
	var ended []int
	for _, pid := range members {
		facts, err := a.table.Look(pid, a.t.Device)
		if pid > 0 && errors.Is(err, ErrEnded) {
			ended = append(ended, pid)
			continue
		}
		if err != nil { // also one of another PID namespace, which is shown as 0
			return InCgroup + string(policy.MaybeOne)
		}
		if rule, why := a.policy.Spared(&facts); why != "" && why != policy.Ended {
			a.c.rule = rule
			return InCgroup + string(why)
		}
	}
	return a.checkEnded(ended)
}

// checkEnded makes sure that those who are not to be seen have ended, and are not hidden from the Collector.
func (a *action) checkEnded(pids []int) (why string) {
	if len(pids) == 0 {
		return ""
	}
	members, err := a.table.Members(a.group)
	if err != nil {
		return NoCgroup + ": " + err.Error()
	}
	for _, pid := range pids {
		if slices.Contains(members, pid) {
			return InCgroup + string(policy.MaybeOne)
		}
	}
	return ""
}

// end asks the process to end, and ends it if it does not. It returns what came of that.
func (a *action) end(ctx context.Context) (gpuaction.Outcome, string) {
	a.begun = a.opts.Now()
	if err := a.handle.Terminate(); err != nil {
		return failed(err)
	}
	a.opts.Record(a.told)
	stop := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.paused || ctx.Err() != nil
	}
	if a.handle.Wait(a.opts.Grace, stop) {
		return gpuaction.Exited, ""
	}
	if stop() {
		return gpuaction.Stopped, ""
	}
	// It may have become another program meanwhile.
	if _, _, why := a.judge(a.c.Process, a.t); why == string(policy.Ended) {
		return gpuaction.Exited, ""
	} else if why != "" {
		return gpuaction.Refused, why
	}
	// It may have given back what it held meanwhile.
	if why := a.relieved(); why != "" {
		return gpuaction.Refused, why
	}
	if err := a.kill(); err != nil {
		return failed(err)
	}
	if a.handle.Wait(last, func() bool { return ctx.Err() != nil }) {
		return gpuaction.Killed, ""
	}
	return gpuaction.Stuck, ""
}

// refusal is a reason not to kill that came up late.
type refusal string

func (r refusal) Error() string { return string(r) }

func (a *action) kill() error {
	if a.opts.Method != MethodCgroupKill {
		return a.handle.Kill()
	}
	if group, err := a.table.Group(a.c.PID); err != nil || group != a.group {
		return refusal(NoCgroup + ": the process is not in it any more")
	}
	if why := a.checkGroup(); why != "" {
		return refusal(why)
	}
	if err := a.table.KillGroup(a.group); err != nil {
		return refusal(NoCgroup + ": " + err.Error())
	}
	return nil
}

func failed(err error) (gpuaction.Outcome, string) {
	if why := (refusal)(""); errors.As(err, &why) {
		return gpuaction.Refused, string(why)
	}
	if errors.Is(err, ErrEnded) {
		return gpuaction.Exited, ""
	}
	return gpuaction.Refused, reasonOf(err)
}

func reasonOf(err error) string {
	if errors.Is(err, ErrEnded) {
		return string(policy.Ended)
	}
	return Forbidden + ": " + err.Error()
}

// tell tells what came of it.
func (a *action) tell(outcome gpuaction.Outcome, reason string) {
	told := a.told
	told.Outcome, told.Reason, told.At, told.Decision = outcome, reason, a.opts.Now(), 0
	told.Duration = max(time.Duration(told.At-a.begun), time.Nanosecond).Seconds()
	a.opts.Record(told)
}
