// SPDX-License-Identifier: Apache-2.0

package fakegpu

import (
	"fmt"
	"time"
)

const mebi = 1 << 20

// H100 is an NVIDIA H100 80GB HBM3 under load, with driver 590.48.01: what testdata/gpu has captured. What the capture does
// not tell is made up, and is told as such in the code.
func H100() *Scenario {
	return &Scenario{Driver: "590.48.01", NVML: "13.590.48.01", CUDA: 13010, GPUs: []GPU{h100(0)}}
}

func h100(index int) GPU {
	d := Device{
		UUID:   fmt.Sprintf("GPU-%08x-0000-0000-0000-000000000000", index),
		Name:   "NVIDIA H100 80GB HBM3",
		Serial: fmt.Sprintf("%013d", index),
		VBIOS:  "96.00.A5.00.01",
		BusID:  fmt.Sprintf("00000000:%02X:09.0", index),
		Values: map[string]float64{
			"minor": float64(index), "architecture": 9, "compute_mode": 0, "pci.device_id": 0x233010DE, "pci.subsystem_id": 0x16C110DE,
			"memory.total": 85520809984, "memory.used": 20780679168, "memory.reserved": 502267904,
			"bar1.total": 131072 * mebi, "bar1.used": 19819 * mebi,
			"utilization.gpu": 100, "utilization.memory": 11, "utilization.encoder": 0, "utilization.decoder": 0, "utilization.jpeg": 0, "utilization.ofa": 0,
			"power": 631950, "power.average": 631950, "power.instant": 625680,
			"power.limit": 700000, "power.limit.enforced": 700000, "power.limit.default": 700000, "power.limit.min": 200000, "power.limit.max": 700000,
			"temperature": 59, "temperature.memory": 54, "temperature.margin": 26,
			"performance_state": 0, "event_reasons": 0, "event_reasons.supported": 511,
			"clock.graphics": 1980, "clock.sm": 1980, "clock.memory": 2619, "clock.video": 1545,
			"clock.graphics.max": 1980, "clock.sm.max": 1980, "clock.memory.max": 2619,
			"pcie.tx": 3092, "pcie.rx": 6346, "pcie.replay": 9, "pcie.generation": 5, "pcie.generation.max": 5, "pcie.width": 16, "pcie.width.max": 16,
			"ecc.mode": 1, "ecc.corrected.volatile": 0, "ecc.corrected.aggregate": 0, "ecc.uncorrected.volatile": 0, "ecc.uncorrected.aggregate": 0,
			"remapped.correctable": 0, "remapped.uncorrectable": 0, "remapped.pending": 0, "remapped.failure": 0,
			"mig.current": 0, "mig.pending": 0, "mig.max": 7,
			"field.74": 0, "field.76": 0, "field.269": 0, "field.270": 0, "field.271": 0, // throttling so far, ns
			// Made up: nvidia-smi does not tell them, or the capture has none.
			"energy": 123456789, "pcie.tx.bytes": 1 << 40, "pcie.rx.bytes": 3 << 40,
			"nvlink.links": 18, "nvlink.data.tx": 5 << 30, "nvlink.data.rx": 6 << 30,
			"gpm.1": 99.5, "gpm.2": 97.25, "gpm.3": 48.5, "gpm.5": 71.75, "gpm.10": 22.5, "gpm.11": 0, "gpm.12": 12.5, "gpm.13": 3.5,
			"gpm.20": 3, "gpm.21": 6.25, "gpm.60": 1024, "gpm.61": 2048,
		},
	}
	return GPU{Device: d, Processes: []Process{
		// Their load is made up.
		compute(11327, 2690646016, 10), compute(11328, 1616904192, 5), compute(11345, 16452157440, 85),
	}}
}

func compute(pid uint32, memory uint64, sm int) Process {
	return Process{Kind: Compute, PID: pid, Memory: memory, GPUInstance: NoInstance, ComputeInstance: NoInstance, SM: sm}
}

// H100MIG is the H100 divided into 3g.40gb, 2g.20gb and two of 1g.10gb, under load on the first.
func H100MIG() *Scenario {
	s := H100()
	g := &s.GPUs[0]
	for key, value := range map[string]float64{
		"memory.used": 11665408000, "bar1.used": 81081 * mebi,
		"power": 433780, "power.average": 433780, "power.instant": 447350,
		"temperature": 53, "temperature.memory": 59, "temperature.margin": 24,
		"mig.current": 1, "mig.pending": 1,
	} {
		g.Set(key, value)
	}
	g.Remove("utilization.gpu", "utilization.memory", "utilization.encoder", "utilization.decoder", "utilization.jpeg", "utilization.ofa",
		"remapped.correctable", "remapped.uncorrectable", "remapped.pending", "remapped.failure",
		"nvlink.links", "nvlink.data.tx", "nvlink.data.rx", "gpm.60", "gpm.61") // "Nvlink queries are not supported for Devices in MIG mode"
	g.Instances = []Device{
		instance(0, "3g.40gb", 2, 60, 3, 40448, 11091),
		instance(1, "2g.20gb", 3, 32, 2, 20096, 17),
		instance(2, "1g.10gb", 9, 16, 1, 9984, 9),
		instance(3, "1g.10gb", 10, 16, 1, 9984, 9),
	}
	// Made up: what GPM tells of the busy instance, and that the others are idle.
	g.Instances[0].Set("gpm.1", 98.5)
	g.Instances[0].Set("gpm.2", 95.5)
	g.Instances[0].Set("gpm.5", 64.25)
	g.Instances[0].Set("gpm.10", 30)
	for i := 1; i < len(g.Instances); i++ {
		g.Instances[i].Set("gpm.1", 0)
	}
	g.Processes = nil
	for _, p := range []struct {
		pid    uint32
		memory uint64
	}{{21180, 2407530496}, {21181, 1333788672}, {21198, 7847542784}} {
		g.Processes = append(g.Processes, Process{Kind: Compute, PID: p.pid, Memory: p.memory, GPUInstance: 2, SM: Idle})
	}
	return s
}

// instance is a MIG device; memory is in MiB.
func instance(index int, profile string, gi, multiprocessors, slices int, total, used float64) Device {
	return Device{
		UUID: fmt.Sprintf("MIG-%08d-0000-0000-0000-%012d", index, index),
		Name: "NVIDIA H100 80GB HBM3 MIG " + profile,
		Values: map[string]float64{
			"gi": float64(gi), "ci": 0, "multiprocessors": float64(multiprocessors), "slices.gi": float64(slices), "slices.ci": float64(slices),
			"memory.total": total * mebi, "memory.used": used * mebi, "memory.reserved": 0, "ecc.uncorrected.volatile": 0,
		},
	}
}

// L40S is an NVIDIA L40S that transcodes video, with driver 595.80. It has neither MIG, NVLink, GPM nor HBM.
func L40S() *Scenario {
	d := Device{
		UUID: "GPU-00000000-0000-0000-0000-000000000000", Name: "NVIDIA L40S", Serial: "0000000000000", VBIOS: "95.02.66.00.02", BusID: "00000000:01:00.0",
		Values: map[string]float64{
			"minor": 0, "architecture": 8, "compute_mode": 0, "pci.device_id": 0x26B910DE, "pci.subsystem_id": 0x185110DE,
			"memory.total": 48305799168, "memory.used": 1294991360, "memory.reserved": 638582784,
			"utilization.gpu": 9, "utilization.memory": 2, "utilization.encoder": 60, "utilization.decoder": 0, "utilization.jpeg": 0, "utilization.ofa": 0,
			"power": 110230, "power.average": 110230, "power.instant": 112380,
			"power.limit": 350000, "power.limit.enforced": 350000, "power.limit.default": 350000, "power.limit.min": 100000, "power.limit.max": 350000,
			"temperature": 54, "temperature.margin": 34,
			"performance_state": 0, "event_reasons": 0, "event_reasons.supported": 511,
			"clock.graphics": 2520, "clock.sm": 2520, "clock.memory": 9001, "clock.video": 1965,
			"clock.graphics.max": 2520, "clock.sm.max": 2520, "clock.memory.max": 9001,
			"pcie.generation": 4, "pcie.generation.max": 4, "pcie.width": 16, "pcie.width.max": 16,
			"ecc.mode": 1, "ecc.corrected.volatile": 0, "ecc.corrected.aggregate": 0, "ecc.uncorrected.volatile": 0, "ecc.uncorrected.aggregate": 0,
			"remapped.correctable": 0, "remapped.uncorrectable": 0, "remapped.pending": 0, "remapped.failure": 0,
			"field.74": 204642816000, "field.76": 0, "field.269": 0, "field.270": 0, "field.271": 0, // throttling so far, ns
			// Made up: nvidia-smi does not tell them, or the capture has none.
			"energy": 98765432, "pcie.tx": 15000, "pcie.rx": 30000, "pcie.replay": 0,
		},
	}
	encoding := func(pid uint32, memory uint64) Process {
		p := compute(pid, memory, 4) // the load is made up
		p.Encoder = 30
		return p
	}
	return &Scenario{Driver: "595.80", NVML: "13.595.80", CUDA: 13020, GPUs: []GPU{{Device: d, Processes: []Process{encoding(20037, 564133888), encoding(20038, 714080256)}}}}
}

// GB10 is a part whose GPU uses the host's memory: NVML has no numbers for it. All of it is made up, after nvtop#466.
func GB10() *Scenario {
	s := H100()
	d := &s.GPUs[0].Device
	d.Name = "NVIDIA GB10"
	d.Remove("memory.total", "memory.used", "memory.reserved", "bar1.total", "bar1.used", "temperature.memory", "power.limit", "power.limit.enforced",
		"nvlink.links", "nvlink.data.tx", "nvlink.data.rx", "pcie.tx", "pcie.rx", "pcie.tx.bytes", "pcie.rx.bytes",
		"remapped.correctable", "remapped.uncorrectable", "remapped.pending", "remapped.failure", "mig.current", "mig.pending", "mig.max")
	return s
}

// Server is a machine with GPUs like H100, and as many processes on each; their PIDs are all different and start at first.
func Server(gpus, processes int, first uint32) *Scenario {
	s := H100()
	s.GPUs = nil
	for i := range gpus {
		g := h100(i)
		g.Processes = nil
		for j := range processes {
			g.Processes = append(g.Processes, compute(first+uint32(i*processes+j), 512*mebi, 100/max(processes, 1)))
		}
		s.GPUs = append(s.GPUs, g)
	}
	return s
}

// Old makes the driver one of the R450 branch, the oldest that is supported: without what came later.
func (s *Scenario) Old() *Scenario {
	s.Driver, s.NVML, s.CUDA = "450.80.02", "11.450.80.02", 11000
	s.Missing = []string{
		"nvmlDeviceGetMemoryInfo_v2",                                                         // R510
		"nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v3", // R460, R510
		"nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses_v3",
		"nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses_v2", "nvmlDeviceGetMPSComputeRunningProcesses_v3",
		"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetSupportedClocksEventReasons", // R535
		"nvmlGpmMetricsGet", "nvmlGpmSampleFree", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMigSampleGet", "nvmlGpmQueryDeviceSupport", // R520
		"nvmlDeviceGetTemperatureV", "nvmlDeviceGetMarginTemperature", "nvmlDeviceGetJpgUtilization", "nvmlDeviceGetOfaUtilization",
		"nvmlDeviceGetArchitecture", "nvmlDeviceGetNumGpuCores",
	}
	s.Fields = 147 // the remapped rows are the last that R450 has
	return s
}

// Slow makes the functions take the time that was seen on a real machine (MangoHud#2104).
func (s *Scenario) Slow() *Scenario {
	for function, delay := range map[string]time.Duration{
		"nvmlDeviceGetGraphicsRunningProcesses_v3": 4500 * time.Microsecond,
		"nvmlDeviceGetFanSpeed":                    137 * time.Microsecond,
		"nvmlDeviceGetMemoryInfo_v2":               12 * time.Microsecond,
	} {
		s.Rules = append(s.Rules, Rule{Function: function, GPU: All, Instance: All, Delay: delay})
	}
	return s
}
