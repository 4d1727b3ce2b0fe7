// SPDX-License-Identifier: Apache-2.0

package dcgmnames

import (
	"math"

	"github.com/otelcol-llm/otelcol-llm/internal/gpu"
)

// Series is one of dcgm-exporter's.
type Series struct {
	Name, Help string
	// Counter says that it only grows.
	Counter bool
	// Points are those that it is made of. All of them have to be known, of bits any. It is empty for the last Xid, which is no value
	// of a device.
	Points []gpu.Point
	bits   bool
	memory bool // of the device: dcgm-exporter tells none of a GPU that shares the host's
	value  func(*gpu.Device) float64
}

// Value returns what the series says of a device. ok is false when that is not known.
func (s *Series) Value(d *gpu.Device) (v float64, ok bool) {
	known := 0
	for _, p := range s.Points {
		if d.Has(p) {
			known++
		}
	}
	if known == 0 || known < len(s.Points) && !s.bits || s.memory && d.Unified {
		return 0, false
	}
	return s.value(d), true
}

// Table has the series in the order in which dcgm-exporter's files of counters have them. Names, kinds and words are its
// own, of default-counters.csv and dcp-metrics-included.csv, whether they are commented out there or not.
var Table = []Series{
	scaled("DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", gpu.SMClock, 1e-6),
	scaled("DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", gpu.MemoryClock, 1e-6),
	scaled("DCGM_FI_DEV_MEMORY_TEMP", "Memory temperature (in C).", gpu.MemoryTemperature, 1),
	scaled("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", gpu.Temperature, 1),
	scaled("DCGM_FI_DEV_SLOWDOWN_TEMP", "Slowdown temperature for the device (in C).", gpu.SlowdownTemperature, 1),
	ratio("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", gpu.Power),
	ratio("DCGM_FI_DEV_POWER_MGMT_LIMIT", "Current power limit for the device (in W).", gpu.PowerLimit),
	counted(scaled("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Total energy consumption since boot (in mJ).", gpu.Energy, 1e3)),
	counted(scaled("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "Total number of PCIe retries.", gpu.PCIeReplays, 1)),
	scaled("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", gpu.Utilization, 100),
	scaled("DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", gpu.ControllerUtilization, 100),
	scaled("DCGM_FI_DEV_ENC_UTIL", "Encoder utilization (in %).", gpu.EncoderUtilization, 100),
	scaled("DCGM_FI_DEV_DEC_UTIL", "Decoder utilization (in %).", gpu.DecoderUtilization, 100),
	{Name: lastXid, Help: "Value of the last XID error encountered."},
	{Name: "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", Help: "Current clock throttle reasons (bitmask of DCGM_CLOCKS_THROTTLE_REASON_*)",
		Points: throttles, bits: true, value: throttleBits},
	{Name: "DCGM_FI_DEV_FB_FREE", Help: "Framebuffer memory free (in MiB).", Points: []gpu.Point{gpu.MemoryLimit, gpu.MemoryUsage}, memory: true, value: free},
	memory("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", gpu.MemoryUsage),
	memory("DCGM_FI_DEV_FB_TOTAL", "Total Frame Buffer of the GPU (in MiB).", gpu.MemoryLimit),
	memory("DCGM_FI_DEV_FB_RESERVED", "Framebuffer memory reserved (in MiB).", gpu.MemoryReserved),
	{Name: "DCGM_FI_DEV_FB_USED_PERCENT", Help: "Percentage used of Frame Buffer: Used/(Total - Reserved). Range 0.0-1.0",
		Points: []gpu.Point{gpu.MemoryLimit, gpu.MemoryUsage}, memory: true, value: usedShare},
	counted(scaled("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "Total number of single-bit persistent ECC errors.", gpu.ECCCorrected, 1)),
	counted(scaled("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "Total number of double-bit persistent ECC errors.", gpu.ECCUncorrected, 1)),
	counted(scaled("DCGM_FI_DEV_RETIRED_SBE", "Total number of retired pages due to single-bit errors.", gpu.RetiredSingleBit, 1)),
	counted(scaled("DCGM_FI_DEV_RETIRED_DBE", "Total number of retired pages due to double-bit errors.", gpu.RetiredDoubleBit, 1)),
	counted(scaled("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "Number of remapped rows for uncorrectable errors", gpu.RemappedUncorrectable, 1)),
	counted(scaled("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "Number of remapped rows for correctable errors", gpu.RemappedCorrectable, 1)),
	scaled("DCGM_FI_DEV_ROW_REMAP_FAILURE", "Whether remapping of rows has failed", gpu.RemapFailure, 1),
	ratio("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Ratio of time the graphics engine is active.", gpu.GraphicsActive),
	ratio("DCGM_FI_PROF_SM_ACTIVE", "The ratio of cycles an SM has at least 1 warp assigned.", gpu.SMActive),
	ratio("DCGM_FI_PROF_SM_OCCUPANCY", "The ratio of number of warps resident on an SM.", gpu.SMOccupancy),
	ratio("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Ratio of cycles the tensor (HMMA) pipe is active.", gpu.TensorActive),
	ratio("DCGM_FI_PROF_DRAM_ACTIVE", "Ratio of cycles the device memory interface is active sending or receiving data.", gpu.DRAMActive),
	ratio("DCGM_FI_PROF_PIPE_FP64_ACTIVE", "Ratio of cycles the fp64 pipes are active.", gpu.FP64Active),
	ratio("DCGM_FI_PROF_PIPE_FP32_ACTIVE", "Ratio of cycles the fp32 pipes are active.", gpu.FP32Active),
	ratio("DCGM_FI_PROF_PIPE_FP16_ACTIVE", "Ratio of cycles the fp16 pipes are active.", gpu.FP16Active),
	ratio("DCGM_FI_PROF_PCIE_TX_BYTES", pcieRate("transmitted"), gpu.PCIeTransmitRate),
	ratio("DCGM_FI_PROF_PCIE_RX_BYTES", pcieRate("received"), gpu.PCIeReceiveRate),
	ratio("DCGM_FI_PROF_NVLINK_TX_BYTES", nvlinkRate("transmitted"), gpu.NVLinkTransmitRate),
	ratio("DCGM_FI_PROF_NVLINK_RX_BYTES", nvlinkRate("received"), gpu.NVLinkReceiveRate),
}

// lastXid is the code of the Xid that was heard last, 0 when there was none: a code that comes twice cannot be seen in it. A GPU of
// which none can be heard has none.
const lastXid = "DCGM_FI_DEV_XID_ERRORS"

// Points are all that the series are made of: what has to be read for them.
func Points() (all gpu.Set) {
	for _, s := range Table {
		all.Add(s.Points...)
	}
	return all
}

// scaled is a series that DCGM has as an integer.
func scaled(name, help string, p gpu.Point, scale float64) Series {
	return Series{Name: name, Help: help, Points: []gpu.Point{p}, value: func(d *gpu.Device) float64 { return math.Round(number(d, p) * scale) }}
}

// ratio is a series that DCGM has as it is here.
func ratio(name, help string, p gpu.Point) Series {
	return Series{Name: name, Help: help, Points: []gpu.Point{p}, value: func(d *gpu.Device) float64 { return number(d, p) }}
}

func memory(name, help string, p gpu.Point) Series {
	return Series{Name: name, Help: help, Points: []gpu.Point{p}, memory: true, value: func(d *gpu.Device) float64 { return mebibytes(d.Int(p)) }}
}

func counted(s Series) Series {
	s.Counter = true
	return s
}

func pcieRate(what string) string {
	return "The rate of data " + what + " over the PCIe bus - including both protocol headers and data payloads - in bytes per second."
}

func nvlinkRate(what string) string {
	return "The rate of data " + what + " over NVLink, not including protocol headers, in bytes per second."
}

func number(d *gpu.Device, p gpu.Point) float64 {
	if gpu.Rows[p].Metric.Double {
		return d.Float(p)
	}
	return float64(d.Int(p))
}

// mebibytes are whole ones, as DCGM counts.
func mebibytes(bytes uint64) float64 { return float64(bytes >> 20) }

func free(d *gpu.Device) float64 {
	limit := d.Int(gpu.MemoryLimit)
	return mebibytes(limit - min(limit, d.Int(gpu.MemoryUsage)+d.Int(gpu.MemoryReserved)))
}

func usedShare(d *gpu.Device) float64 {
	limit := d.Int(gpu.MemoryLimit)
	usable := limit - min(limit, d.Int(gpu.MemoryReserved))
	if usable == 0 {
		return 0
	}
	return float64(d.Int(gpu.MemoryUsage)) / float64(usable)
}

var throttles = func() (all []gpu.Point) {
	for p := gpu.ThrottleIdle; p <= gpu.ThrottleDisplay; p++ {
		all = append(all, p)
	}
	return all
}()

func throttleBits(d *gpu.Device) float64 {
	bits := uint64(0)
	for _, p := range throttles {
		bits |= d.Int(p) << (p - gpu.ThrottleIdle)
	}
	return float64(bits)
}
