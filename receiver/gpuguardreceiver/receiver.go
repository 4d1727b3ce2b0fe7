// SPDX-License-Identifier: Apache-2.0

package gpuguardreceiver

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.uber.org/zap"

	"github.com/otelcol-llm/otelcol-llm/internal/emit"
	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
	"github.com/otelcol-llm/otelcol-llm/receiver/gpuguardreceiver/internal/metadata"
)

// lastWords is how long the consumer may take for what is left at a shutdown.
const lastWords = 5 * time.Second

// guardReceiver takes actions as they happen, and keeps them until they are taken in turn.
type guardReceiver struct {
	cfg    *Config
	set    receiver.Settings
	next   consumer.Logs
	own    *telemetry
	report *receiverhelper.ObsReport
	now    func() time.Time

	mu      sync.Mutex
	pending []gpuaction.Action
	dropped int64 // since the last sending

	pause  emit.Pause    // of the one who sends
	ready  chan struct{} // has an element when there is something new
	cancel func()        // of the subscription; nil before Start
	stop   context.CancelFunc
	done   sync.WaitGroup
}

func newReceiver(set receiver.Settings, cfg *Config, next consumer.Logs) (*guardReceiver, error) {
	r := &guardReceiver{cfg: cfg, set: set, next: next, now: time.Now, ready: make(chan struct{}, 1)}
	var err error
	if r.report, err = receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, ReceiverCreateSettings: set}); err != nil {
		return nil, err
	}
	r.own, err = newTelemetry(set.TelemetrySettings, set.ID)
	return r, err
}

// Start subscribes to the guard.
func (r *guardReceiver) Start(_ context.Context, host component.Host) error {
	source, err := gpuaction.Find(host, r.cfg.Guard)
	if err != nil {
		return err
	}
	r.cancel = source.Subscribe(r.take)
	running, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.done.Go(func() { r.run(running) })
	return nil
}

// take takes an action; of what is too much, the oldest is dropped.
func (r *guardReceiver) take(a gpuaction.Action) {
	r.mu.Lock()
	if len(r.pending) >= r.cfg.MaxPending {
		r.pending = slices.Delete(r.pending, 0, 1)
		r.dropped++
	}
	r.pending = append(r.pending, a)
	r.mu.Unlock()
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// run sends events as they come, until the context ends.
func (r *guardReceiver) run(ctx context.Context) {
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.ready:
		case <-again.C:
		}
		r.send(ctx)
		again.Reset(max(r.pause.Wait(), time.Second))
	}
}

// send sends what waits, unless the consumer is left alone for now. What it will never take is dropped.
func (r *guardReceiver) send(ctx context.Context) {
	if r.pause.Paused(r.now()) {
		return
	}
	r.mu.Lock()
	actions, lost := slices.Clone(r.pending), r.dropped
	r.dropped = 0
	r.mu.Unlock()
	r.own.lost(ctx, lost)
	if len(actions) == 0 {
		return
	}
	of := r.report.StartLogsOp(ctx)
	err := r.next.ConsumeLogs(of, r.records(actions))
	r.report.EndLogsOp(of, metadata.Type.String(), len(actions), err)
	if err != nil && !consumererror.IsPermanent(err) {
		r.pause.Failed(r.now())
		if ctx.Err() == nil {
			r.set.Logger.Warn("events were not taken and are sent again", zap.Int("events", len(actions)), zap.Duration("after", r.pause.Wait()), zap.Error(err))
		}
		return
	}
	if err != nil {
		r.own.lost(ctx, int64(len(actions)))
		r.set.Logger.Error("events were refused for good", zap.Int("events", len(actions)), zap.Error(err))
	}
	r.pause.Resume()
	r.mu.Lock()
	defer r.mu.Unlock()
	// What came meanwhile stands behind; of what was sent, some may have been dropped meanwhile.
	sent := max(len(actions)-int(r.dropped), 0)
	r.pending = slices.Delete(r.pending, 0, sent)
	r.dropped -= int64(len(actions) - sent)
}

// Shutdown tells what is left to tell. It is safe before Start and twice.
func (r *guardReceiver) Shutdown(ctx context.Context) error {
	if r.cancel == nil {
		return nil
	}
	r.cancel()
	r.stop()
	r.done.Wait()
	r.cancel = nil
	last, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	r.pause.Resume()
	r.send(last)
	return nil
}
