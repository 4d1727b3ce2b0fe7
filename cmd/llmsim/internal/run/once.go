// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/clock"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/engine"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/exposition"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/fleet"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/scenario"
	"github.com/otelcol-llm/otelcol-llm/cmd/llmsim/internal/spans"
)

// Epoch is when a simulation that knows no wall clock began: a constant, so that
// equal runs print equal bytes.
var Epoch = time.Unix(1_700_000_000, 0).UTC()

// Once runs the traffic as fast as it can, to its end or, with until above 0, to
// that simulated time, and writes the final /metrics of a replica. Addresses and
// speed are not used.
func Once(ctx context.Context, o Options, until time.Duration, replica string, w io.Writer) error {
	c := clock.Clock{Start: Epoch, Speed: 1}
	var exporter *spans.Exporter
	var onFinish func(*fleet.Replica, engine.Record)
	if o.OTLPEndpoint != "" {
		var err error
		if exporter, err = spans.NewExporter(o.OTLPEndpoint, c, o.Seed); err != nil {
			return err
		}
		onFinish = func(rep *fleet.Replica, r engine.Record) {
			if f, tell := finished(rep, r); tell {
				exporter.AddWait(f)
			}
		}
	}
	f := fleet.New(o.Scenario, o.Source, o.Seed, onFinish)
	rep, err := find(f, replica)
	if err == nil {
		err = runOut(ctx, f, until)
	}
	if exporter != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
		defer cancel()
		if closeErr := exporter.Close(closing); err == nil {
			err = closeErr
		}
		if n := exporter.Counts(); err == nil && n.DroppedSendFailed > 0 {
			err = fmt.Errorf("otlp: %d spans were lost: %s", n.DroppedSendFailed, n.LastError)
		}
	}
	if err != nil {
		return err
	}
	return exposition.Write(w, exposition.Identity{Model: rep.Model, Start: Epoch}, rep.Engine.Stats())
}

// runOut goes in strides, so that a signal is heard.
func runOut(ctx context.Context, f *fleet.Fleet, until time.Duration) error {
	for !f.Done() && (until == 0 || f.Now() < until) {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := f.Now() + time.Minute
		if until > 0 {
			to = min(to, until)
		}
		f.AdvanceTo(to)
	}
	return nil
}

func find(f *fleet.Fleet, id string) (*fleet.Replica, error) {
	var ids []string
	for _, r := range f.Replicas {
		if id == "" || r.Labels[scenario.InstanceLabel] == id {
			return r, nil
		}
		ids = append(ids, r.Labels[scenario.InstanceLabel])
	}
	return nil, fmt.Errorf("replica: %q is not one of %s", id, strings.Join(ids, ", "))
}
