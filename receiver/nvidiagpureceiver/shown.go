// SPDX-License-Identifier: Apache-2.0

package nvidiagpureceiver

import (
	"cmp"
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
	unified   gpu.Set  // of these: marked as memory of the host
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

// identityOf is what the device is called now. What a driver cannot tell for once is as it was.
func (sh *shown) identityOf(d, parent *gpu.Device, driver string) identity {
	id := identity{
		uuid: d.UUID, parent: d.Parent, model: d.Model, serial: d.Serial, firmware: d.Firmware, pci: d.PCI, profile: d.Profile,
		driver: driver, index: d.Index, minor: d.Minor, gi: d.GPUInstance, ci: d.ComputeInstance, parentIndex: -1, parentMinor: -1,
	}
	if parent != nil {
		id.parentIndex, id.parentMinor = parent.Index, parent.Minor
		id.serial = cmp.Or(id.serial, parent.Serial)
	}
	id.model, id.serial = cmp.Or(id.model, sh.model), cmp.Or(id.serial, sh.serial)
	id.firmware, id.pci, id.driver = cmp.Or(id.firmware, sh.firmware), cmp.Or(id.pci, sh.pci), cmp.Or(id.driver, sh.driver)
	return id
}

// forget says that nothing is written of the device: all of it has ended.
func (sh *shown) forget() {
	sh.points, sh.unified, sh.overflow = gpu.Set{}, gpu.Set{}, false
	sh.codes, sh.processes = sh.codes[:0], sh.processes[:0]
}

// identify makes of an identity what is written of it.
func (sh *shown) identify(id identity) {
	sh.identity = id
	sh.device = workload.Device{UUID: id.uuid}
	switch {
	case id.parentIndex >= 0:
		sh.name = fmt.Sprintf("GPU %d MIG %d", id.parentIndex, id.index)
		if id.parentMinor >= 0 {
			sh.device.Aliases = []string{fmt.Sprintf("nvidia%d/gi%d", id.parentMinor, id.gi)}
		}
	case id.parent != "":
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

// sameSeries says whether label writes the same: a PID that is given anew to a process of the same name goes on with its series.
func (p *process) sameSeries(as *process) bool {
	was := p.Process
	was.Start = as.Start
	return was == as.Process
}

// attributes is how many label writes.
func (p *process) attributes() int {
	return 1 + set(p.Executable) + set(p.ContainerID) + set(p.Namespace) + set(p.Pod) + set(p.PodUID) + set(p.Container)
}
