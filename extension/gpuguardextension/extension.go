// SPDX-License-Identifier: Apache-2.0

package gpuguardextension

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/budget"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/guard"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/process"
	"github.com/otelcol-llm/otelcol-llm/extension/gpuguardextension/internal/watch"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
)

// sweep is how often it is looked whether processes are still there of which nobody has told that they have ended.
const sweep = 30 * time.Second

// gpuGuard hears of memory and lets a guard act.
type gpuGuard struct {
	cfg   *Config
	set   extension.Settings
	log   *zap.Logger
	own   *telemetry
	host  component.Host
	guard *guard.Guard // nil before Start
	book  book
	admin admin

	hearing  hearing
	resolver *workload.Resolver
	pods     *workload.Pods
	wake     chan struct{} // has an element when there may be something to decide
	stop     context.CancelFunc
	acting   sync.WaitGroup
	failing  error // of the one goroutine that acts: why the audit cannot be written; nil: it can
}

var (
	_ gpuwatch.Watcher = (*gpuGuard)(nil)
	_ gpuaction.Source = (*gpuGuard)(nil)
)

func newExtension(set extension.Settings, cfg *Config) *gpuGuard {
	return &gpuGuard{cfg: cfg, set: set, log: set.Logger, wake: make(chan struct{}, 1)}
}

func now() int64 { return time.Now().UnixNano() }

// Start begins to watch. What could let the guard act on the wrong process, or unseen, keeps the Collector from starting.
func (e *gpuGuard) Start(ctx context.Context, host component.Host) error {
	e.host, e.hearing.since = host, time.Now()
	e.findPods()
	if !e.resolver.SeesHost() {
		const text = "the Collector has PIDs of its own, by which nobody can be ended: give it the host's (hostPID: true)"
		if !e.cfg.DryRun {
			return errors.Join(errors.New(text+", or leave dry_run on"), e.Shutdown(ctx))
		}
		e.log.Warn(text)
	}
	if err := e.begin(); err != nil {
		return errors.Join(err, e.Shutdown(ctx))
	}
	if err := e.startAdmin(ctx, host); err != nil {
		return errors.Join(fmt.Errorf("admin: %w", err), e.Shutdown(ctx))
	}
	e.announce()
	running, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.acting.Go(func() { e.run(running) })
	return nil
}

// findPods makes ready what says in which pod a process runs.
func (e *gpuGuard) findPods() {
	if socket := e.cfg.KubeletSocket; socket != "" {
		e.pods = workload.NewPods(workload.PodsOptions{Socket: socket, OnChange: func(err error) {
			if err != nil && (!errors.Is(err, os.ErrNotExist) || socket != defaultKubeletSocket) {
				e.log.Warn("the kubelet does not tell which pods hold which devices", zap.String("kubelet_socket", socket), zap.Error(err))
			}
		}})
	}
	e.resolver = workload.NewResolver(workload.Options{KubeletLogs: e.cfg.KubeletLogs, Pods: e.pods, MaxProcesses: e.cfg.MaxProcesses})
}

// begin puts the guard together and takes up what was before.
func (e *gpuGuard) begin() error {
	table, err := process.NewTable(process.Options{CgroupRoot: e.cfg.CgroupRoot, Resolver: e.resolver})
	if err != nil {
		return err
	}
	if e.cfg.Method == guard.MethodCgroupKill {
		if err := process.CheckCgroups(e.cfg.CgroupRoot); err != nil {
			err = fmt.Errorf("cgroup_root: %w", err)
			if !e.cfg.DryRun {
				return err
			}
			e.log.Warn("no control group could be killed", zap.Error(err))
		}
	}
	policy, err := e.cfg.policy(process.Ancestors(os.Getpid())...)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	if err := e.book.open(&e.cfg.Audit); err != nil {
		return fmt.Errorf("audit::file: %w", err)
	}
	state := watch.New(watch.Options{
		Threshold: e.cfg.Threshold, For: e.cfg.For, StaleAfter: e.cfg.StaleAfter, GrowthWindow: e.cfg.GrowthWindow, DeviceMemory: uint64(e.cfg.DeviceMemory),
		OneDevice: e.cfg.oneDevice(driver),
		OnLeak:    e.cfg.OnLeak, LeakWithin: e.cfg.LeakWithin, MaxDevices: e.cfg.MaxDevices, MaxProcesses: e.cfg.MaxProcesses, MinShare: e.cfg.MinShare,
		Mine: e.mine(), Started: table.Started,
	})
	o := guard.Options{
		DryRun: e.cfg.DryRun, Method: e.cfg.Method, Grace: e.cfg.Grace, Order: e.cfg.Order, Threshold: e.cfg.Threshold, Now: now, Record: e.record,
	}
	if e.cfg.Audit.File != "" {
		o.Keep = e.keep
	}
	e.guard = guard.New(o, policy, table, state, budget.New(budget.Options{MaxPerHour: e.cfg.MaxActionsPerHour, Cooldown: e.cfg.Cooldown}))
	e.own, err = newTelemetry(e.set.TelemetrySettings, e.set.ID, func() (beyond watch.Beyond, sizes [4]int) {
		e.guard.Tell(func(s *watch.State, _ int64) {
			beyond = s.Beyond()
			sizes[0], sizes[1], sizes[2] = s.Sizes()
			sizes[3] = s.Unplaced()
		})
		return beyond, sizes
	}, e.guard.Left)
	if err != nil {
		return err
	}
	return e.restore()
}

// mine says whether a verdict's host is this machine.
func (e *gpuGuard) mine() func(string) bool {
	names := slices.Clone(e.cfg.HostNames)
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	if id, err := os.ReadFile("/etc/machine-id"); err == nil { // host.id, as resourcedetection has it
		names = append(names, strings.TrimSpace(string(id)))
	}
	names = append(names, os.Getenv("K8S_NODE_NAME"))
	return func(host string) bool { return host != "" && slices.Contains(names, host) }
}

// announce says what this guard can do.
func (e *gpuGuard) announce() {
	fields := []zap.Field{
		zap.Float64("threshold", e.cfg.Threshold), zap.Duration("for", e.cfg.For), zap.Bool("on_leak", e.cfg.OnLeak), zap.Duration("leak_within", e.cfg.LeakWithin),
		zap.Int("victims", len(e.cfg.Policy.Victims)), zap.Int("protected", len(e.cfg.Policy.Protected)), zap.Int("max_actions_per_hour", e.cfg.MaxActionsPerHour),
	}
	if e.cfg.DryRun {
		e.log.Info("the GPU guard watches and touches nobody: dry_run is on", fields...)
	} else {
		e.log.Warn("the GPU guard is armed: it ends processes that its policy names", fields...)
	}
	if e.cfg.DeviceMemory > 0 {
		e.hearing.partial = true
		e.log.Warn(partly)
	}
}

// run lets the guard act when there is something to decide, until the context ends.
func (e *gpuGuard) run(ctx context.Context) {
	sweeping := time.NewTicker(sweep)
	defer sweeping.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.wake:
		case <-timer.C:
		case <-sweeping.C:
			e.sweep()
			e.listen(time.Now())
		}
		wait := time.Hour
		if next := e.guard.Step(ctx); next != 0 {
			wait = time.Until(time.Unix(0, next))
		}
		timer.Reset(max(wait, 0))
	}
}

// sweep forgets processes that have ended, of which nobody has told.
func (e *gpuGuard) sweep() {
	var all []gpuwatch.Process
	e.guard.Tell(func(s *watch.State, now int64) {
		s.Expire(now)
		all = s.Processes()
	})
	for _, p := range all {
		if process.Ended(p.PID, p.StartTime) {
			e.tell(func(s *watch.State, now int64) { s.Gone(p, now) })
		}
	}
}

// tell tells the guard something, and wakes who acts, if need be.
func (e *gpuGuard) tell(f func(s *watch.State, now int64)) {
	if e.guard == nil || !e.guard.Tell(f) {
		return
	}
	select {
	case e.wake <- struct{}{}:
	default: // it is about to look
	}
}

// Device takes a reading of a device.
func (e *gpuGuard) Device(d gpuwatch.Device) {
	for i := range d.Processes {
		if p := &d.Processes[i].Process; p.StartTime == 0 {
			d.Processes = slices.Clone(d.Processes) // it belongs to the caller
			break
		}
	}
	for i := range d.Processes {
		started(&d.Processes[i].Process)
	}
	e.hearing.told.Store(true)
	e.tell(func(s *watch.State, now int64) {
		s.Device(d, now)
		e.own.detected(e.own.readings, time.Duration(now-d.At))
	})
}

// Live takes the live bytes of a process.
func (e *gpuGuard) Live(l gpuwatch.Live) {
	started(&l.Process)
	e.hearing.told.Store(true)
	e.hearing.live.Store(true)
	e.tell(func(s *watch.State, now int64) {
		s.Live(l, now)
		e.own.detected(e.own.live, time.Duration(now-l.At))
	})
}

// started finds out when a process was started, where that was not told.
func started(p *gpuwatch.Process) {
	if p.StartTime == 0 {
		p.StartTime = process.Start(p.PID)
	}
}

// Gone takes that a process has ended.
func (e *gpuGuard) Gone(p gpuwatch.Process) {
	e.tell(func(s *watch.State, now int64) { s.Gone(p, now) })
}

// Leak takes a verdict.
func (e *gpuGuard) Leak(l gpuwatch.Leak) {
	local := true
	e.tell(func(s *watch.State, now int64) { local = s.Leak(l, now) })
	if !local {
		e.ignored(&l)
	}
}

// Subscribe lets a receiver hear of actions.
func (e *gpuGuard) Subscribe(take func(gpuaction.Action)) (cancel func()) {
	return e.book.Subscribe(take)
}

// pause stops the guard, or lets it go on.
func (e *gpuGuard) pause(paused bool) error {
	e.log.Warn("the GPU guard was stopped or let go on", zap.Bool("paused", paused))
	err := e.guard.Pause(paused)
	select {
	case e.wake <- struct{}{}:
	default:
	}
	return err
}

// record records an action.
func (e *gpuGuard) record(a gpuaction.Action) {
	lost, err := e.book.add(a)
	write := e.log.Info
	if !a.DryRun && a.Outcome != gpuaction.Refused {
		write = e.log.Warn
	}
	write(a.Text(), zap.String("event", gpuaction.EventName), zap.String("outcome", string(a.Outcome)), zap.String("id", a.ID), zap.Bool("dry_run", a.DryRun))
	e.own.recorded(&a, lost)
	if was := e.failing != nil; was != (err != nil) {
		e.failing = nil
		if err != nil {
			e.log.Error("the audit cannot be written; it is tried again with the next line", zap.Error(err))
			e.failing = fmt.Errorf("audit::file: %w", err)
		}
		e.report()
	}
}

// Shutdown ends the watch. Who was asked to end is not killed any more. It is safe before Start and twice.
func (e *gpuGuard) Shutdown(ctx context.Context) error {
	err := e.admin.shutdown(ctx)
	if e.stop != nil {
		e.stop()
		e.acting.Wait()
		e.stop = nil
	}
	if e.pods != nil {
		e.pods.Close()
	}
	if e.resolver != nil {
		e.resolver.Close()
	}
	return errors.Join(err, e.book.close(), e.own.shutdown())
}
