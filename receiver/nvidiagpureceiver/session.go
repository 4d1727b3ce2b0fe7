// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// step does what is due and returns how long nothing is.
func (e *engine) step(ctx context.Context) time.Duration {
	if wait := e.away.Sub(e.now()); wait > 0 {
		return wait
	}
	if !e.open && !e.begin(ctx) {
		return e.cfg.RetryInterval
	}
	now := e.now()
	due := e.schedule.due(now)
	if due == 0 {
		return e.schedule.wait(now)
	}
	err := e.scrape(ctx, due)
	if err != nil && ctx.Err() == nil {
		// The session is over: the driver was restarted or changed, a host engine went away. Another one may be possible at once.
		e.log.Warn("the session with the driver is over; a new one begins", zap.Error(err))
		_ = e.close()
		if e.begin(ctx) {
			err = e.scrape(ctx, due)
		} else {
			err = nil // that was told
		}
	}
	if err != nil && ctx.Err() == nil {
		_ = e.close()
		e.failed(err)
	}
	if !e.open {
		return e.cfg.RetryInterval
	}
	return e.schedule.wait(e.now())
}

// begin opens the source. It is false where that is not possible now.
func (e *engine) begin(ctx context.Context) bool {
	e.asking.Store(e.now().UnixNano())
	err := e.source.Open(ctx, e.happened)
	e.asking.Store(0)
	if err != nil {
		if ctx.Err() == nil {
			e.failed(err)
		}
		return false
	}
	e.open = true
	e.own.connected.Store(1)
	if e.opened++; e.opened > 1 {
		e.own.sessions.Add(ctx, 1, e.own.only)
	}
	return true
}

// failed says why nothing is read, once for each reason, and ends the series.
func (e *engine) failed(err error) {
	e.endSeries()
	if !e.health.Failed(err) {
		return
	}
	const text = "no GPU is read; it is tried again"
	fields := []zap.Field{zap.Duration("every", e.cfg.RetryInterval), zap.Error(err)}
	if errors.Is(err, gpu.ErrUnavailable) {
		e.log.Info(text, fields...)
	} else {
		e.log.Warn(text, fields...)
	}
}

// recovered says that GPUs are read, after a time in which none was.
func (e *engine) recovered() {
	if !e.health.Recovered() {
		return
	}
	gpus := 0
	for _, d := range e.snapshot.Devices {
		if !d.MIG() {
			gpus++
		}
	}
	e.log.Info("GPUs are read", zap.Int("gpus", gpus), zap.Int("mig_instances", len(e.snapshot.Devices)-gpus), zap.String("driver_version", e.snapshot.Driver))
}

// close gives the handles back. After an error, some may be held yet.
func (e *engine) close() error {
	e.asking.Store(e.now().UnixNano())
	err := e.source.Close()
	e.asking.Store(0)
	if err != nil {
		e.log.Debug("the source did not close as it should", zap.Error(err))
	}
	e.open = false
	e.own.closed()
	return err
}

// endSeries tells backends that nothing more comes for now.
func (e *engine) endSeries() {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now().UnixNano()
	e.put(e.writer.stop(now))
	e.put(e.endDCGMExporter(now))
}
