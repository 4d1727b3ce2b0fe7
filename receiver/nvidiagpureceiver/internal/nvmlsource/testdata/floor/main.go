// SPDX-License-Identifier: Apache-2.0

// Command floor makes the calls of a reading and nothing else, in C and from Go by cgo, and prints the CPU time of one reading
// of each, in nanoseconds. It is built by the benchmark, which says where nvml.h and the library are.
package main

// #include "floor.h"
import "C"

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	processes, all := os.Args[1] != "cheap", os.Args[1] == "all"
	readings, _ := strconv.Atoi(os.Args[2])
	fmt.Printf("%.0f %.0f\n", float64(C.floor_in_c(bit(processes), bit(all), C.int(readings))), inGo(processes, all, readings))
}

func bit(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// What is told goes into the same memory each time.
var (
	memory      = C.nvmlMemory_v2_t{}
	utilization C.nvmlUtilization_t
	fields      [19]C.nvmlFieldValue_t
	u           [4]C.uint
	ull         C.ulonglong
	infos       [64]C.nvmlProcessInfo_t
	loads       [256]C.nvmlProcessUtilizationSample_t
	metrics     C.nvmlGpmMetricsGet_t
)

func inGo(processes, all bool, readings int) float64 {
	var n C.uint
	var devices [16]C.nvmlDevice_t
	var samples [16][2]C.nvmlGpmSample_t
	C.nvmlInit_v2()
	C.nvmlDeviceGetCount_v2(&n)
	for i := range n {
		C.nvmlDeviceGetHandleByIndex_v2(i, &devices[i])
		C.nvmlGpmSampleAlloc(&samples[i][0])
		C.nvmlGpmSampleAlloc(&samples[i][1])
	}
	for i, id := range [19]C.uint{197, 198, 138, 139, 202, 204, 94, 82, 74, 75, 76, 77, 78, 79, 80, 81, 269, 270, 271} {
		fields[i].fieldId = id
		if id == 138 || id == 139 || id == 202 || id == 204 {
			fields[i].scopeId = 0xFFFFFFFF
		}
	}
	before := C.floor_cpu()
	for reading := range readings {
		for i := range n {
			cheap(devices[i])
			if processes {
				listProcesses(devices[i])
			}
			if all {
				expensive(devices[i], &samples[i], reading)
			}
		}
	}
	used := float64(C.floor_cpu()-before) / float64(readings)
	C.nvmlShutdown()
	return used
}

func cheap(d C.nvmlDevice_t) {
	memory.version = C.nvmlMemory_v2
	C.nvmlDeviceGetMemoryInfo_v2(d, &memory)
	C.nvmlDeviceGetUtilizationRates(d, &utilization)
	C.nvmlDeviceGetFieldValues(d, C.int(len(fields)), &fields[0])
	C.nvmlDeviceGetEncoderUtilization(d, &u[0], &u[1])
	C.nvmlDeviceGetDecoderUtilization(d, &u[0], &u[1])
	C.nvmlDeviceGetPowerUsage(d, &u[0])
	C.nvmlDeviceGetEnforcedPowerLimit(d, &u[0])
	C.nvmlDeviceGetTemperature(d, C.NVML_TEMPERATURE_GPU, &u[0])
	C.nvmlDeviceGetTemperatureThreshold(d, C.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, &u[0])
	C.nvmlDeviceGetTemperatureThreshold(d, C.NVML_TEMPERATURE_THRESHOLD_SHUTDOWN, &u[0])
	for clock := range C.nvmlClockType_t(4) {
		C.nvmlDeviceGetClockInfo(d, clock, &u[0])
	}
	C.nvmlDeviceGetTotalEnergyConsumption(d, &ull)
	C.nvmlDeviceGetTotalEccErrors(d, C.NVML_MEMORY_ERROR_TYPE_CORRECTED, C.NVML_AGGREGATE_ECC, &ull)
	C.nvmlDeviceGetTotalEccErrors(d, C.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, C.NVML_AGGREGATE_ECC, &ull)
	C.nvmlDeviceGetCurrentClocksEventReasons(d, &ull)
	C.nvmlDeviceGetMigMode(d, &u[0], &u[1])
}

// listProcesses asks for the size first and then for the list, as the documentation has it.
func listProcesses(d C.nvmlDevice_t) {
	n := &u[0]
	*n = 0
	if C.nvmlDeviceGetComputeRunningProcesses_v3(d, n, nil) == C.NVML_ERROR_INSUFFICIENT_SIZE {
		*n = C.uint(len(infos))
		C.nvmlDeviceGetComputeRunningProcesses_v3(d, n, &infos[0])
	}
	*n = C.uint(len(infos))
	C.nvmlDeviceGetGraphicsRunningProcesses_v3(d, n, &infos[0])
	*n = C.uint(len(infos))
	C.nvmlDeviceGetMPSComputeRunningProcesses_v3(d, n, &infos[0])
	*n = 0
	C.nvmlDeviceGetProcessUtilization(d, nil, n, 0)
	C.nvmlDeviceGetProcessUtilization(d, &loads[0], n, 0)
}

func expensive(d C.nvmlDevice_t, samples *[2]C.nvmlGpmSample_t, reading int) {
	C.nvmlDeviceGetRemappedRows(d, &u[0], &u[1], &u[2], &u[3])
	C.nvmlDeviceGetRetiredPages(d, 0, &u[0], nil)
	C.nvmlDeviceGetRetiredPages(d, 1, &u[0], nil)
	C.nvmlDeviceGetRetiredPagesPendingStatus(d, (*C.nvmlEnableState_t)(&u[0]))
	C.nvmlGpmSampleGet(d, samples[reading&1])
	metrics.version, metrics.numMetrics = C.NVML_GPM_METRICS_GET_VERSION, 12
	for i, id := range [12]C.uint{20, 21, 60, 61, 1, 2, 3, 5, 10, 11, 12, 13} {
		metrics.metrics[i].metricId = id
	}
	metrics.sample1, metrics.sample2 = samples[1-reading&1], samples[reading&1]
	C.nvmlGpmMetricsGet(&metrics)
}
