// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/gpuwatch"
	"github.com/otelcol-llm/otelcol-llm/internal/health"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/metadata"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/probe"
)

// prober is a probe.Probe, or what takes its place in a test.
type prober interface {
	Scan() (probe.ScanResult, error)
	Read(func(*probe.Process)) error
	Drops() probe.Drops
	Close() error
}

// owners says whose a process is, and which device was given to its container.
type owners interface {
	Resolve(pid uint32, device workload.Device, now int64) workload.Process
	Device(process workload.Process) string
}

// engine keeps the probes in the kernel, and tells what they have counted.
type engine struct {
	cfg    *Config
	set    receiver.Settings
	log    *zap.Logger
	next   consumer.Metrics
	load   func(probe.Options) (prober, error)
	own    *telemetry
	report *receiverhelper.ObsReport
	now    func() time.Time

	// Set by Start, before anything runs.
	guard   gpuwatch.Watcher // nil where there is none
	devices *devices
	writer  *writer
	who     owners

	// What follows belongs to the one goroutine that scans and collects.
	health            health.Health
	probe             prober // nil while there is none
	opened            int    // sessions so far
	seen              bool   // something that uses CUDA, in this session
	hidden            error  // why a process may not be looked at, in this session
	watched           bool   // somebody was told that all is well, since it last was not
	shortage          shortage
	scanAt, collectAt time.Time
	book              *book
	resolver          *workload.Resolver
	pods              *workload.Pods
	stop              context.CancelFunc // nil before Start
	running           sync.WaitGroup
	shutdown          sync.Once
}

func newEngine(set receiver.Settings, cfg *Config, next consumer.Metrics) (*engine, error) {
	e := &engine{cfg: cfg, set: set, log: set.Logger, next: next, now: time.Now}
	e.load = func(opts probe.Options) (prober, error) { return probe.Start(opts) }
	var errs [2]error
	e.own, errs[0] = newTelemetry(set.TelemetrySettings, set.ID)
	e.report, errs[1] = receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, ReceiverCreateSettings: set})
	return e, errors.Join(errs[:]...)
}

// Start begins to look for processes. That the kernel takes no probes is not an error: it may, when the privileges are there.
func (e *engine) Start(_ context.Context, host component.Host) error {
	var err error
	if e.guard, err = gpuwatch.Find(host, e.cfg.Guard); err != nil {
		return err
	}
	e.prepare(host)
	e.findOwners()
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.running.Go(func() { e.run(ctx) })
	return nil
}

// prepare makes ready what writes, for a test too.
func (e *engine) prepare(host component.Host) {
	e.health.Join(host)
	e.writer = newWriter(written(e.cfg), e.set.BuildInfo.Version)
	e.devices = newDevices(e.cfg.ProcRoot, e.cfg.MaxProcesses)
}

// findOwners makes ready what names processes.
func (e *engine) findOwners() {
	if socket := e.cfg.KubeletSocket; socket != "" {
		e.pods = workload.NewPods(workload.PodsOptions{Socket: socket, OnChange: e.kubeletChanged})
	}
	e.resolver = workload.NewResolver(workload.Options{
		ProcRoot: e.cfg.ProcRoot, KubeletLogs: e.cfg.KubeletLogs, Pods: e.pods, MaxProcesses: e.cfg.MaxProcesses,
	})
	e.who = e.resolver
	if e.cfg.ProcRoot == "" && e.resolver.SeesHost() { // in a container of its own the same number is another process
		e.devices.proc = "/proc"
	}
}

func (e *engine) kubeletChanged(err error) {
	socket := zap.String("kubelet_socket", e.cfg.KubeletSocket)
	switch {
	case err == nil:
		e.log.Info("the kubelet tells which pods hold which devices", socket)
	case errors.Is(err, os.ErrNotExist) && e.cfg.KubeletSocket == defaultKubeletSocket:
		e.log.Debug("there is no kubelet here", socket)
	default:
		e.log.Warn("the kubelet does not tell which pods hold which devices", socket, zap.Error(err))
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
			e.close()
			return
		case <-timer.C:
		}
		timer.Reset(e.step(ctx))
	}
}

// Shutdown takes the probes out of the kernel. The processes go on.
func (e *engine) Shutdown(context.Context) (err error) {
	e.shutdown.Do(func() {
		if e.stop != nil {
			e.stop()
			e.running.Wait()
			if e.pods != nil {
				e.pods.Close()
			}
		}
		err = e.own.shutdown()
	})
	return err
}

// changed tells the guard what a process certainly holds on devices now: managed memory may be on the host. It is called by the
// probe.
func (e *engine) changed(c probe.Change) {
	of := gpuwatch.Process{PID: c.PID, StartTime: c.StartTime}
	bytes := c.Live - min(c.Managed, c.Live) // the two are not read in one instant
	e.guard.Live(gpuwatch.Live{Process: of, Device: e.devices.find(of), Bytes: bytes, At: c.At})
}

// gone tells the guard that a process has ended. It is called by the probe.
func (e *engine) gone(pid int, startTime uint64) {
	of := gpuwatch.Process{PID: pid, StartTime: startTime}
	if e.guard != nil {
		e.guard.Gone(of)
	}
	e.devices.forget(of)
}

// send hands metrics on. What is not taken is lost: the next collection says it anew.
func (e *engine) send(ctx context.Context, pages []pmetric.Metrics) {
	for _, page := range pages {
		points := page.DataPointCount()
		of := e.report.StartMetricsOp(ctx)
		err := e.next.ConsumeMetrics(of, page)
		e.report.EndMetricsOp(of, metadata.Type.String(), points, err)
		if err != nil && ctx.Err() == nil {
			e.log.Warn("a collection was not taken", zap.Int("points", points), zap.Error(err))
		}
	}
}
