// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
	"github.com/otelcol-llm/otelcol-llm/internal/health"
	"github.com/otelcol-llm/otelcol-llm/internal/outbox"
	"github.com/otelcol-llm/otelcol-llm/internal/shared"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/dcgmnames"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/ledger"
)

const (
	// lastWords is how long the consumer of events may take for what is left at a shutdown.
	lastWords = 5 * time.Second
	// patience is how long a shutdown waits for the driver, which can block for ever: no library can be called off, and the
	// Collector gives a shutdown no deadline.
	patience = 5 * time.Second
	// overdue is how long a call may take before that is a failure. To open many GPUs that nobody else holds takes seconds.
	overdue = 15 * time.Second
)

// engine reads the GPUs for all instances of a receiver: they share the driver, and what is known.
type engine struct {
	cfg     *Config
	set     receiver.Settings
	log     *zap.Logger
	metrics consumer.Metrics // nil where no pipeline takes them
	logs    consumer.Logs
	source  gpu.Source
	own     *telemetry
	report  *receiverhelper.ObsReport
	now     func() time.Time
	health  health.Health
	asking  atomic.Int64 // since when the source is asked, in Unix nanoseconds; 0 while it is not
	overdue time.Duration

	// What follows belongs to the one goroutine that reads.
	open     bool
	opened   int       // sessions so far
	away     time.Time // until when the handles are given back
	schedule schedule
	plans    [1 << gpu.Groups]plan
	snapshot gpu.Snapshot
	who      owners
	guard    gpuwatch.Watcher // nil: nobody is told
	resolver *workload.Resolver
	pods     *workload.Pods
	handoff  handoff

	// mu guards what the source's events meet the readings in. It is not held while something is sent or read.
	mu       sync.Mutex
	book     ledger.Ledger
	writer   *writer
	exporter dcgmnames.Writer
	outbox   *outbox.Box[event]

	signals chan os.Signal
	stop    context.CancelFunc // nil before Start
	reader  sync.WaitGroup     // run
	others  sync.WaitGroup     // telling, handing on, watch
}

// instance is what the Collector sees: one for each signal.
type instance struct{ *shared.Member[*engine] }

// Start starts the engine with the first instance. The status of each is the engine's.
func (i instance) Start(ctx context.Context, host component.Host) error {
	i.Engine().health.Join(host)
	return i.Member.Start(ctx, host)
}

func newEngine(set receiver.Settings, cfg *Config) (*engine, error) {
	e := &engine{
		cfg: cfg, set: set, log: set.Logger, now: time.Now, overdue: overdue, signals: make(chan os.Signal, 1),
		handoff: newHandoff(),
	}
	e.source = newSource(cfg, set.Logger)
	var errs [2]error
	e.own, errs[0] = newTelemetry(set.TelemetrySettings, set.ID)
	e.report, errs[1] = receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, ReceiverCreateSettings: set})
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	e.outbox = outbox.New(maxPendingEvents, set.Logger, e.deliver, e.own.eventsLost)
	return e, nil
}

// Start begins to look for GPUs. That there are none, or no driver, is not an error: they may come.
func (e *engine) Start(_ context.Context, host component.Host) error {
	var err error
	if e.guard, err = gpuwatch.Find(host, e.cfg.Guard); err != nil {
		return err
	}
	e.prepare()
	e.findOwners()
	running, stop := context.WithCancel(context.Background())
	e.stop = stop
	if e.cfg.ReleaseWindow > 0 {
		e.keepAsked()
		signal.Notify(e.signals, syscall.SIGUSR1)
	}
	e.reader.Go(func() { e.run(running) })
	e.others.Go(func() { e.outbox.Run(running) })
	e.others.Go(func() { e.handOn(running) })
	e.others.Go(func() { e.watch(running) })
	return nil
}

// prepare makes the plans, by who listens.
func (e *engine) prepare() {
	var all []column
	var also gpu.Set
	if e.metrics != nil {
		all = columns(e.cfg.Metrics.Enabled(table))
		if e.cfg.DCGMExporterNames {
			also = dcgmnames.Points()
		}
	}
	if e.guard != nil {
		also.Add(forGuard...)
	}
	e.writer = newWriter(all, e.set.BuildInfo.Version)
	e.plans = plans(all, also)
	e.schedule = newSchedule(e.cfg, &e.plans)
}

// findOwners makes ready what names processes.
func (e *engine) findOwners() {
	if socket := e.cfg.KubeletSocket; socket != "" {
		e.pods = workload.NewPods(workload.PodsOptions{Socket: socket, OnChange: func(err error) {
			switch {
			case err == nil:
				e.log.Info("the kubelet tells which pods hold which devices", zap.String("kubelet_socket", socket))
			case errors.Is(err, os.ErrNotExist) && socket == defaultKubeletSocket:
				e.log.Debug("there is no kubelet here", zap.String("kubelet_socket", socket))
			default:
				e.log.Warn("the kubelet does not tell which pods hold which devices", zap.String("kubelet_socket", socket), zap.Error(err))
			}
		}})
	}
	e.doubtPaths()
	e.resolver = workload.NewResolver(workload.Options{
		ProcRoot: e.cfg.ProcRoot, KubeletLogs: e.cfg.KubeletLogs, Pods: e.pods, MaxProcesses: e.cfg.MaxProcesses,
	})
	if !e.resolver.SeesHost() {
		e.log.Warn("processes have no names: the Collector has PIDs of its own; give it the host's (hostPID: true), or mount the host's /proc and name it in proc_root")
	}
	e.who = e.resolver
}

// doubtPaths tells of paths that were set and have nothing. They may come later, so they are no error.
func (e *engine) doubtPaths() {
	for _, of := range []struct{ key, value, usual, has string }{
		{"proc_root", e.cfg.ProcRoot, "", "stat"},
		{"kubelet_logs", e.cfg.KubeletLogs, defaultKubeletLogs, "."},
	} {
		if of.value == of.usual || of.value == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(of.value, of.has)); err != nil {
			e.log.Warn("processes have fewer names: a path that is set has nothing", zap.String("key", of.key), zap.Error(err))
		}
	}
}

// run does what is due until the context ends.
func (e *engine) run(ctx context.Context) {
	defer e.resolver.Close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			_ = e.close()
			return
		case <-e.signals:
			e.release()
		case <-timer.C:
		}
		timer.Reset(e.step(ctx))
	}
}

// Shutdown gives the handles back and tells what is left to tell. A driver that blocks is left alone, with its handles.
func (e *engine) Shutdown(ctx context.Context) error {
	if e.stop == nil {
		return e.own.shutdown() // never started
	}
	signal.Stop(e.signals)
	e.stop()
	err := e.leave(ctx)
	e.others.Wait()
	last, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	e.outbox.Flush(last)
	if e.pods != nil {
		e.pods.Close()
	}
	return errors.Join(err, e.own.shutdown())
}

// leave waits until nothing is read any more, or the driver has been waited for long enough.
func (e *engine) leave(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		e.reader.Wait()
		close(ended)
	}()
	enough := time.NewTicker(patience)
	defer enough.Stop()
	for {
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-enough.C:
			if e.asking.Load() != 0 {
				// Not an error: the Collector would not begin anew after one, when its configuration is read again.
				e.log.Warn("the driver does not answer; it is left alone, and its handles stay open", zap.Duration("after", patience))
				return nil
			}
		}
	}
}
