# SPDX-License-Identifier: Apache-2.0
"""Reads the fake NVML through NVIDIA's own bindings and prints what it read as JSON.

An error stands as the text of its code, e.g. "error 3", so that what a device refuses is compared as well.
"""
import ctypes
import json
import sys

import pynvml as n

out = {}


def read(name, function, *arguments, pick=lambda value: value):
    try:
        out[name] = pick(function(*arguments))
    except n.NVMLError as error:
        out[name] = f"error {error.value}"


def processes(found):
    return [[p.pid, p.usedGpuMemory, p.gpuInstanceId, p.computeInstanceId] for p in found]


def fields(*ids):
    def pick(values):
        kinds = {n.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal", n.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal"}
        return [f"error {v.nvmlReturn}" if v.nvmlReturn else getattr(v.value, kinds[v.valueType]) for v in values]
    return list(ids), pick


read("before init", n.nvmlDeviceGetCount)
n.nvmlInit()
read("driver", n.nvmlSystemGetDriverVersion)
read("nvml", n.nvmlSystemGetNVMLVersion)
read("cuda", n.nvmlSystemGetCudaDriverVersion_v2)
read("count", n.nvmlDeviceGetCount)
read("beyond", n.nvmlDeviceGetHandleByIndex, 7)

gpu = n.nvmlDeviceGetHandleByIndex(0)
read("by uuid", n.nvmlDeviceGetHandleByUUID, n.nvmlDeviceGetUUID(gpu), pick=lambda h: n.nvmlDeviceGetIndex(h))
for name, function in {
    "name": n.nvmlDeviceGetName, "uuid": n.nvmlDeviceGetUUID, "serial": n.nvmlDeviceGetSerial, "vbios": n.nvmlDeviceGetVbiosVersion,
    "minor": n.nvmlDeviceGetMinorNumber, "architecture": n.nvmlDeviceGetArchitecture,
    "power": n.nvmlDeviceGetPowerUsage, "limit": n.nvmlDeviceGetEnforcedPowerLimit, "limits": n.nvmlDeviceGetPowerManagementLimitConstraints,
    "energy": n.nvmlDeviceGetTotalEnergyConsumption, "fan": n.nvmlDeviceGetFanSpeed, "margin": n.nvmlDeviceGetMarginTemperature,
    "reasons": n.nvmlDeviceGetCurrentClocksEventReasons, "throttle": n.nvmlDeviceGetCurrentClocksThrottleReasons,
    "replay": n.nvmlDeviceGetPcieReplayCounter, "remapped": n.nvmlDeviceGetRemappedRows, "mig": n.nvmlDeviceGetMigMode, "max mig": n.nvmlDeviceGetMaxMigDeviceCount,
    "encoder": n.nvmlDeviceGetEncoderUtilization, "is mig": n.nvmlDeviceIsMigDeviceHandle, "attributes": n.nvmlDeviceGetAttributes,
}.items():
    read(name, function, gpu)
read("pci", n.nvmlDeviceGetPciInfo, gpu, pick=lambda p: [p.busId, p.bus, p.device, p.pciDeviceId])
read("memory 1", n.nvmlDeviceGetMemoryInfo, gpu, pick=lambda m: [m.total, m.used, m.free])
read("memory 2", n.nvmlDeviceGetMemoryInfo, gpu, n.nvmlMemory_v2, pick=lambda m: [m.total, m.reserved, m.used, m.free])
wrong = n.c_nvmlMemory_v2_t()
wrong.version = n.nvmlMemory_v2 + 1
out["wrong version"] = n._nvmlGetFunctionPointer("nvmlDeviceGetMemoryInfo_v2")(gpu, ctypes.byref(wrong))
read("utilization", n.nvmlDeviceGetUtilizationRates, gpu, pick=lambda u: [u.gpu, u.memory])
read("temperature", n.nvmlDeviceGetTemperature, gpu, n.NVML_TEMPERATURE_GPU)
read("temperature v", n.nvmlDeviceGetTemperatureV, gpu, n.NVML_TEMPERATURE_GPU)
read("slowdown", n.nvmlDeviceGetTemperatureThreshold, gpu, n.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
read("clocks", lambda: [n.nvmlDeviceGetClockInfo(gpu, kind) for kind in range(4)])
read("ecc", lambda: [n.nvmlDeviceGetTotalEccErrors(gpu, kind, counter) for kind in range(2) for counter in range(2)])
read("throughput", n.nvmlDeviceGetPcieThroughput, gpu, n.NVML_PCIE_UTIL_RX_BYTES)
read("retired", n.nvmlDeviceGetRetiredPages, gpu, 0)
read("samples", n.nvmlDeviceGetSamples, gpu, n.NVML_GPU_UTILIZATION_SAMPLES, 0, pick=lambda s: [len(s[1]), s[1][0].sampleValue.uiVal])
wanted, pick = fields(82, 83, 94, (138, 0xFFFFFFFF), (139, 0), 142, 145, 185, 186, 197, 198, 202, 74)
read("fields", n.nvmlDeviceGetFieldValues, gpu, wanted, pick=pick)
read("compute", n.nvmlDeviceGetComputeRunningProcesses, gpu, pick=processes)
read("compute 1", n.nvmlDeviceGetComputeRunningProcesses_v2, gpu, pick=processes)
read("graphics", n.nvmlDeviceGetGraphicsRunningProcesses, gpu, pick=processes)
read("mps", n.nvmlDeviceGetMPSComputeRunningProcesses, gpu, pick=processes)
read("process utilization", n.nvmlDeviceGetProcessUtilization, gpu, 0, pick=lambda found: [[p.pid, p.smUtil, p.encUtil] for p in found])


def gpm(take):
    try:
        first, second = n.nvmlGpmSampleAlloc(), n.nvmlGpmSampleAlloc()
        take(first)
        ctypes.CDLL(None).usleep(1000)
        take(second)
        get = n.c_nvmlGpmMetricsGet_t()
        get.version, get.numMetrics, get.sample1, get.sample2 = n.NVML_GPM_METRICS_GET_VERSION, 3, first, second
        for i, metric in enumerate((n.NVML_GPM_METRIC_SM_UTIL, n.NVML_GPM_METRIC_DRAM_BW_UTIL, 99)):
            get.metrics[i].metricId = metric
        n.nvmlGpmMetricsGet(get)
        n.nvmlGpmSampleFree(first)
        n.nvmlGpmSampleFree(second)
        return [f"error {m.nvmlReturn}" if m.nvmlReturn else m.value for m in get.metrics[:3]]
    except n.NVMLError as error:
        return f"error {error.value}"


read("gpm support", n.nvmlGpmQueryDeviceSupport, gpu, pick=lambda s: s.isSupportedDevice)
out["gpm"] = gpm(lambda sample: n.nvmlGpmSampleGet(gpu, sample))

instances = []
for index in range(n.nvmlDeviceGetMaxMigDeviceCount(gpu)):
    try:
        h = n.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
    except n.NVMLError as error:
        instances.append(f"error {error.value}")
        continue
    memory, attributes = n.nvmlDeviceGetMemoryInfo(h), n.nvmlDeviceGetAttributes(h)
    parent = n.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(h)
    refused = []
    for function in (n.nvmlDeviceGetUtilizationRates, n.nvmlDeviceGetEncoderUtilization, n.nvmlDeviceGetPowerUsage, n.nvmlDeviceGetRemappedRows):
        try:
            function(h)
        except n.NVMLError as error:
            refused.append(error.value)
    instances.append([n.nvmlDeviceGetUUID(h), n.nvmlDeviceGetName(h), n.nvmlDeviceGetGpuInstanceId(h), n.nvmlDeviceGetComputeInstanceId(h), memory.total, memory.used,
                      attributes.multiprocessorCount, n.nvmlDeviceGetUUID(parent), len(n.nvmlDeviceGetComputeRunningProcesses(h)), refused])
out["instances"] = instances

events = n.nvmlEventSetCreate()
n.nvmlDeviceRegisterEvents(gpu, n.nvmlEventTypeXidCriticalError, events)
read("no event", n.nvmlEventSetWait_v2, events, 5)
print(json.dumps(out, default=lambda c: c.value), flush=True)
sys.stdin.readline()  # meanwhile the world gets an Xid
read("event", n.nvmlEventSetWait_v2, events, 2000, pick=lambda e: [n.nvmlDeviceGetUUID(e.device), e.eventType, e.eventData, e.gpuInstanceId])
read("told once", n.nvmlEventSetWait_v2, events, 5)
n.nvmlEventSetFree(events)
n.nvmlShutdown()
read("after shutdown", n.nvmlDeviceGetName, gpu)
print(json.dumps(out, default=lambda c: c.value), flush=True)
