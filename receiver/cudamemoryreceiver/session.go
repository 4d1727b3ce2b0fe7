// SPDX-License-Identifier: Apache-2.0

package cudamemoryreceiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/workload"
	"github.com/otelcol-llm/otelcol-llm/receiver/cudamemoryreceiver/internal/probe"
)

// Why nothing is told where the probes are in the kernel.
var (
	errIdle   = errors.New("no process has loaded CUDA: neither libcudart nor libcuda is mapped")
	errHidden = errors.New("no process that may be looked at has loaded CUDA; those of other users may not be: CAP_SYS_PTRACE is missing")
)

// mayLook is probe.MayLook, but in tests.
var mayLook = probe.MayLook

// step does what is due and returns how long nothing is.
func (e *engine) step(ctx context.Context) time.Duration {
	if e.probe == nil && !e.begin(ctx) {
		return e.cfg.RetryInterval
	}
	var err error
	if due(&e.scanAt, e.cfg.ScanInterval, e.now()) {
		err = e.scan(ctx)
	}
	if err == nil && due(&e.collectAt, e.cfg.CollectionInterval, e.now()) {
		err = e.collect(ctx)
	}
	if err != nil {
		e.lose(ctx, err)
		return e.cfg.RetryInterval
	}
	return max(min(e.scanAt.Sub(e.now()), e.collectAt.Sub(e.now())), 0)
}

// due says whether something is due, and moves it on. What is late is done once and not in turn for every time that was missed.
func due(at *time.Time, interval time.Duration, now time.Time) bool {
	if now.Before(*at) {
		return false
	}
	if *at = at.Add(interval); !at.After(now) {
		*at = now.Add(interval)
	}
	return true
}

// begin loads the probes. It is false where the kernel does not take them.
func (e *engine) begin(ctx context.Context) bool {
	now := e.now()
	opts := probe.Options{
		MaxEntries: e.cfg.MaxEntries, Libraries: e.cfg.Libraries, ProcRoot: e.cfg.ProcRoot, Launches: e.launches(), Gone: e.gone,
		UnsafeKernel: e.cfg.AllowUnsafeKernel,
		Log:          e.log.Sugar().Warnf,
	}
	if e.guard != nil {
		opts.Changed = e.changed
	}
	loaded, err := e.load(opts)
	if err != nil {
		if errors.Is(err, probe.ErrMemory) {
			err = fmt.Errorf("max_entries: %d: %w", e.cfg.MaxEntries, err)
		}
		if errors.Is(err, probe.ErrUnsafe) {
			err = fmt.Errorf("allow_unsafe_kernel: false: %w", err)
		}
		e.failed(err)
		return false
	}
	e.probe, e.seen, e.hidden = loaded, false, nil
	e.shortage.dropped, e.shortage.most, e.shortage.at = 0, 0, time.Time{}
	e.book = newBook(e.cfg.MaxProcesses, now.UnixNano())
	e.scanAt, e.collectAt = now, now.Add(e.cfg.CollectionInterval)
	e.own.opened()
	if e.opened++; e.opened > 1 {
		e.own.sessions.Add(ctx, 1, e.own.only)
	}
	return true
}

// launches says whether anything that is written needs the probes of launches.
func (e *engine) launches() bool {
	for _, c := range e.writer.columns {
		if c.launches {
			return true
		}
	}
	return false
}

// scan looks for processes that have loaded CUDA since. An error means that the session is over.
func (e *engine) scan(ctx context.Context) error {
	begin := e.now()
	result, err := e.probe.Scan()
	if err != nil {
		return fmt.Errorf("look for processes that use CUDA: %w", err)
	}
	e.own.scanned(ctx, &result, e.now().Sub(begin))
	if e.hidden == nil {
		e.hidden = result.Hidden
	}
	e.seen = e.seen || result.Files > 0
	switch {
	case e.seen && e.shortage.lasts(begin):
		e.short()
	case e.seen:
		e.recovered(&result)
	case result.Failed > 0:
		e.failed(fmt.Errorf("no probe is attached: %w", result.Err))
	default:
		e.idle()
	}
	return nil
}

// collect tells what was counted. An error means that the session is over.
func (e *engine) collect(ctx context.Context) error {
	begin := e.now()
	now := begin.UnixNano()
	if err := e.read(now); err != nil {
		return err
	}
	for _, r := range e.book.ended {
		e.identify(r, now)
	}
	for _, r := range e.book.records {
		e.identify(r, now)
	}
	pages := e.writer.write(e.book, now)
	for _, r := range e.book.ended {
		e.devices.forget(r.process())
	}
	drops := e.probe.Drops()
	e.shortage.heard(&drops, begin)
	e.own.collected(ctx, e.book, drops, e.now().Sub(begin))
	e.send(ctx, pages)
	return nil
}

// read reads what was counted into the book.
func (e *engine) read(now int64) error {
	e.book.begin()
	if err := e.probe.Read(e.book.take); err != nil {
		return fmt.Errorf("read what was counted: %w", err)
	}
	e.book.end(now)
	return nil
}

// identify finds out who a process is. One that is gone from /proc is who it was.
func (e *engine) identify(r *record, now int64) {
	known := r.who.PID != 0
	if r.values.Ended && known {
		return
	}
	of := r.process()
	device := e.devices.find(of)
	who := e.who.Resolve(uint32(of.PID), workload.Device{UUID: device}, now)
	switch {
	case who.Start == of.StartTime:
	case known:
		return
	default: // hidden; or another one has its number by now
		who = workload.Process{PID: uint32(of.PID)}
	}
	if device == "" {
		if given := e.who.Device(who); given != "" {
			device = e.devices.given(of, given)
		}
	}
	r.who = identity{who, device}
}

// lose ends a session that has failed.
func (e *engine) lose(ctx context.Context, err error) {
	e.close()
	e.send(ctx, e.writer.write(e.book, e.now().UnixNano()))
	if ctx.Err() == nil {
		e.failed(err)
	}
}

// recovered says that something is watched, after a time in which nothing was. That it ends again is nothing that anybody need be told.
func (e *engine) recovered(result *probe.ScanResult) {
	if !e.health.Recovered() || e.watched {
		return
	}
	e.watched = true
	e.log.Info("CUDA memory is watched", zap.Int("processes", result.Processes), zap.Int("libraries", result.Files), zap.Int("functions", result.Functions))
	switch {
	case e.hidden == nil:
	case mayLook():
		e.log.Info("some processes may not be looked at: whether they use CUDA is not known", zap.Int("processes", result.Unreadable), zap.Error(e.hidden))
	default:
		e.log.Warn("processes of other users are not seen: CAP_SYS_PTRACE is missing", zap.Int("processes", result.Unreadable), zap.Error(e.hidden))
	}
}

// idle says that there is nothing to watch.
func (e *engine) idle() {
	why, say := errIdle, e.log.Info
	fields := []zap.Field{zap.Duration("every", e.cfg.ScanInterval)}
	if e.hidden != nil {
		fields = append(fields, zap.NamedError("hidden", e.hidden))
		if !mayLook() {
			why, say = errHidden, e.log.Warn
		}
	}
	if e.health.Failed(why) {
		e.watched = false
		say("no process uses CUDA yet; it is looked for", append(fields, zap.Error(why))...)
	}
}

// failed says why nothing is watched, once for each reason.
func (e *engine) failed(err error) {
	if !e.health.Failed(err) {
		return
	}
	e.watched = false
	e.log.Warn("nothing is seen of CUDA memory; it is tried again", zap.Duration("every", e.cfg.RetryInterval), zap.Error(err))
}

// close takes the probes out. All that the book has has ended.
func (e *engine) close() {
	if e.probe == nil {
		return
	}
	if err := e.probe.Close(); err != nil {
		e.log.Debug("the probes did not close as they should", zap.Error(err))
	}
	e.probe = nil
	e.book.begin()
	e.book.end(e.now().UnixNano())
	e.own.closed()
}
