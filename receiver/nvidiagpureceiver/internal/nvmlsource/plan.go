// SPDX-License-Identifier: Apache-2.0

package nvmlsource

import (
	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
	"github.com/otelcol-llm/otelcol-llm/internal/nvml"
)

// field is a point that NVML tells as a field value.
type field struct {
	point   gpu.Point
	id      uint32
	scope   uint32
	scale   float64
	counter bool // of bytes
}

// A point that stands twice has its value from the first field that the device has.
var fields = [...]field{
	{gpu.PCIeTransmitted, 197, 0, 1, true},
	{gpu.PCIeReceived, 198, 0, 1, true},
	{gpu.NVLinkTransmitted, 138, nvml.AllLinks, 1 << 10, true},
	{gpu.NVLinkReceived, 139, nvml.AllLinks, 1 << 10, true},
	{gpu.NVLinkTransmitted, 202, nvml.AllLinks, 1, true}, // Blackwell
	{gpu.NVLinkReceived, 204, nvml.AllLinks, 1, true},
	{gpu.PCIeReplays, 94, 0, 1, false},
	{gpu.MemoryTemperature, 82, 0, 1, false},
	{gpu.PowerViolation, 74, 0, 1e-9, false},
	{gpu.ThermalViolation, 75, 0, 1e-9, false},
	{gpu.SyncBoostViolation, 76, 0, 1e-9, false},
	{gpu.BoardLimitViolation, 77, 0, 1e-9, false},
	{gpu.LowUtilizationViolation, 78, 0, 1e-9, false},
	{gpu.ReliabilityViolation, 79, 0, 1e-9, false},
	{gpu.ApplicationClocksViolation, 80, 0, 1e-9, false},
	{gpu.BaseClocksViolation, 81, 0, 1e-9, false},
	{gpu.SoftwareThermalViolation, 269, 0, 1e-9, false},
	{gpu.HardwareThermalViolation, 270, 0, 1e-9, false},
	{gpu.PowerBrakeViolation, 271, 0, 1e-9, false},
}

// plan is what a reading asks for, made of what is wanted, and made anew only when that has changed.
type plan struct {
	want   gpu.Set
	made   bool
	fields nvml.Fields // one call for all of them
	of     []*field    // what each of them is

	gpm         nvml.Performance
	gpmOf       []gpu.Point
	processes   bool
	utilization bool // of processes
	rates       bool // over PCIe
	rows        bool
	retired     bool
}

func (p *plan) make(want *gpu.Set) {
	if p.made && p.want == *want {
		return
	}
	p.made, p.want = true, *want
	p.fields.Reset()
	p.of = p.of[:0]
	for i := range fields {
		if f := &fields[i]; want.Has(f.point) {
			p.fields.Add(f.id, f.scope)
			p.of = append(p.of, f)
		}
	}
	var ids []uint32
	p.gpmOf = p.gpmOf[:0]
	for point := range gpu.DevicePoints {
		if id := gpu.Rows[point].GPM.ID; id != 0 && want.Has(point) {
			ids = append(ids, uint32(id))
			p.gpmOf = append(p.gpmOf, point)
		}
	}
	p.gpm.Ask(ids)
	p.utilization = want.Any(gpu.ProcessUtilization, gpu.ProcessEncoderUtilization, gpu.ProcessDecoderUtilization)
	p.processes = p.utilization || want.Any(gpu.ProcessMemory, gpu.MemoryUnattributed)
	p.rates = want.Any(gpu.PCIeReceiveRate, gpu.PCIeTransmitRate)
	p.rows = want.Any(gpu.RemappedCorrectable, gpu.RemappedUncorrectable, gpu.RemapPending, gpu.RemapFailure)
	p.retired = want.Any(gpu.RetiredSingleBit, gpu.RetiredDoubleBit)
}
