// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"os"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/dcgmnames"
	"github.com/otelcol-llm/otelcol-llm/receiver/nvidiagpureceiver/internal/metadata"
)

// asDCGMExporter writes the snapshot as dcgm-exporter would. A device names its pod where the kubelet has given it to one. The
// caller holds the mutex, after the writer has seen the snapshot.
func (e *engine) asDCGMExporter(due int, now int64) []pmetric.Metrics {
	r := dcgmnames.Reading{Snapshot: &e.snapshot, Asked: e.plans[due].read, Now: now, Hostname: hostname()}
	if e.pods != nil {
		r.Pod = func(d *gpu.Device) workload.Names {
			sh := e.writer.shown[d.UUID]
			if sh == nil {
				return workload.Names{}
			}
			if owner, ok := e.pods.Owner(sh.device); ok && !owner.Shared {
				return owner.Names
			}
			return workload.Names{}
		}
	}
	if due&(1<<gpu.Cheap) != 0 {
		r.Xid = func(d *gpu.Device) uint64 {
			if m := e.book.Device(d.UUID); m != nil {
				return m.LastXid
			}
			return 0
		}
	}
	return e.named(r)
}

// endDCGMExporter ends what was written by these names. The caller holds the mutex.
func (e *engine) endDCGMExporter(now int64) []pmetric.Metrics {
	return e.named(dcgmnames.Reading{Snapshot: &gpu.Snapshot{}, Now: now})
}

// named writes a reading by the names of dcgm-exporter: one batch, or none where there is nothing to say.
func (e *engine) named(r dcgmnames.Reading) []pmetric.Metrics {
	md := pmetric.NewMetrics()
	scope := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	scope.Scope().SetName(metadata.ScopeName)
	scope.Scope().SetVersion(e.set.BuildInfo.Version)
	e.exporter.Write(scope.Metrics(), r)
	if scope.Metrics().Len() == 0 {
		return nil
	}
	return []pmetric.Metrics{md}
}

// hostname is what dcgm-exporter calls the machine: the node, where that is told, as its chart does.
func hostname() string {
	if node := os.Getenv("NODE_NAME"); node != "" {
		return node
	}
	host, err := os.Hostname()
	if err != nil {
		return ""
	}
	return host
}
