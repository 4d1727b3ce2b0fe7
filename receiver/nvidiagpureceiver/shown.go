// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/workload"
)

// shown is what the last batches said of a device, so that a series that has no more values is ended at once: otherwise
// backends would repeat the memory of a process that is gone for minutes.
type shown struct {
	identity
	name   string          // hw.name
	device workload.Device // as the kubelet may call it

	points    gpu.Set
	codes     []uint64 // of Xids, sorted
	overflow  bool     // Xids of too many codes
	processes []process
	previous  []process // scratch
	turn      uint64
}

// process is a process as it is written: who it is, and which of its points were. The one that stands for all that are too
// many has the PID 0, which no process on a GPU has.
type process struct {
	workload.Process
	points gpu.Set
}

// identity is what a device's resource is made of.
type identity struct {
	uuid, parent, model, serial, firmware, pci, profile, driver string
	index, minor                                                int
	gi, ci                                                      uint32
	parentIndex, parentMinor                                    int
}

// identify keeps what is written about a device itself. It costs nothing while that stays the same.
func (sh *shown) identify(d, parent *gpu.Device, driver string) {
	id := identity{
		uuid: d.UUID, parent: d.Parent, model: d.Model, serial: d.Serial, firmware: d.Firmware, pci: d.PCI, profile: d.Profile,
		driver: driver, index: d.Index, minor: d.Minor, gi: d.GPUInstance, ci: d.ComputeInstance, parentIndex: -1, parentMinor: -1,
	}
	if parent != nil {
		id.parentIndex, id.parentMinor = parent.Index, parent.Minor
		if id.serial == "" {
			id.serial = parent.Serial
		}
	}
	if sh.identity == id {
		return
	}
	sh.identity = id
	sh.device = workload.Device{UUID: d.UUID}
	switch {
	case parent != nil:
		sh.name = fmt.Sprintf("GPU %d MIG %d", id.parentIndex, id.index)
		if id.parentMinor >= 0 {
			sh.device.Aliases = []string{fmt.Sprintf("nvidia%d/gi%d", id.parentMinor, id.gi)}
		}
	case d.MIG():
		sh.name = fmt.Sprintf("MIG %d", id.index)
	default:
		sh.name = fmt.Sprintf("GPU %d", id.index)
		if id.minor >= 0 {
			sh.device.Aliases = []string{fmt.Sprintf("nvidia%d", id.minor), fmt.Sprintf("gpu-%d", id.minor)}
		}
	}
}

// describe writes the resource: what the conventions know of a GPU, and what else tells it apart.
func (sh *shown) describe(m pcommon.Map) {
	m.EnsureCapacity(10)
	m.PutStr("hw.id", sh.uuid)
	m.PutStr("hw.name", sh.name)
	m.PutStr("hw.vendor", "NVIDIA")
	for _, of := range [...]struct{ key, value string }{
		{"hw.parent", sh.parent}, {"hw.model", sh.model}, {"hw.serial_number", sh.serial}, {"hw.driver_version", sh.driver},
		{"hw.firmware_version", sh.firmware}, {"nvidia.pci.bus_id", sh.pci}, {"nvidia.mig.profile", sh.profile},
	} {
		if of.value != "" {
			m.PutStr(of.key, of.value)
		}
	}
}

// label writes what every point carries, so that a backend that does not look at resources tells the devices apart.
func (sh *shown) label(m pcommon.Map) {
	m.PutStr("hw.id", sh.uuid)
	m.PutStr("hw.name", sh.name)
	if sh.parent != "" {
		m.PutStr("hw.parent", sh.parent)
	}
}

// label writes who a process is.
func (p *process) label(m pcommon.Map) {
	if p.PID == 0 {
		m.PutBool("otel.metric.overflow", true)
		return
	}
	m.PutInt("process.pid", int64(p.PID))
	for _, of := range [...]struct{ key, value string }{
		{"process.executable.name", p.Executable}, {"container.id", p.ContainerID}, {"k8s.namespace.name", p.Namespace},
		{"k8s.pod.name", p.Pod}, {"k8s.pod.uid", p.PodUID}, {"k8s.container.name", p.Container},
	} {
		if of.value != "" {
			m.PutStr(of.key, of.value)
		}
	}
}

// attributes is how many label writes.
func (p *process) attributes() int {
	return 1 + set(p.Executable) + set(p.ContainerID) + set(p.Namespace) + set(p.Pod) + set(p.PodUID) + set(p.Container)
}
