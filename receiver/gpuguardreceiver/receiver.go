// SPDX-License-Identifier: Apache-2.0

package gpuguardreceiver

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-llm/otelcol-llm/internal/gpuaction"
	"github.com/otelcol-llm/otelcol-llm/internal/outbox"
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
	events *outbox.Box[gpuaction.Action]
	cancel func() // of the subscription; nil before Start
	stop   context.CancelFunc
	done   sync.WaitGroup
}

func newReceiver(set receiver.Settings, cfg *Config, next consumer.Logs) (*guardReceiver, error) {
	r := &guardReceiver{cfg: cfg, set: set, next: next}
	var err error
	if r.report, err = receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{ReceiverID: set.ID, ReceiverCreateSettings: set}); err != nil {
		return nil, err
	}
	if r.own, err = newTelemetry(set.TelemetrySettings, set.ID); err != nil {
		return nil, err
	}
	r.events = outbox.New(cfg.MaxPending, set.Logger, r.deliver, r.own.lost)
	return r, nil
}

// Start subscribes to the guard.
func (r *guardReceiver) Start(_ context.Context, host component.Host) error {
	source, err := gpuaction.Find(host, r.cfg.Guard)
	if err != nil {
		return err
	}
	r.cancel = source.Subscribe(r.events.Add)
	running, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.done.Go(func() { r.events.Run(running) })
	return nil
}

// deliver hands actions to the consumer.
func (r *guardReceiver) deliver(ctx context.Context, actions []gpuaction.Action) error {
	of := r.report.StartLogsOp(ctx)
	err := r.next.ConsumeLogs(of, r.records(actions))
	r.report.EndLogsOp(of, metadata.Type.String(), len(actions), err)
	return err
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
	r.events.Flush(last)
	return nil
}
