// SPDX-License-Identifier: Apache-2.0
//
// The calls of a reading and nothing else, in C.

#include "floor.h"

#include <stddef.h>
#include <sys/resource.h>

double floor_cpu(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e9 + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e3;
}

static unsigned u1, u2, u3, u4;
static unsigned long long ull;

static void cheap(nvmlDevice_t d) {
    static const unsigned ids[] = {197, 198, 138, 139, 202, 204, 94, 82, 74, 75, 76, 77, 78, 79, 80, 81, 269, 270, 271};
    nvmlFieldValue_t fields[sizeof ids / sizeof ids[0]];
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2};
    nvmlUtilization_t utilization;
    nvmlDeviceGetMemoryInfo_v2(d, &memory);
    nvmlDeviceGetUtilizationRates(d, &utilization);
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        fields[i].fieldId = ids[i];
        fields[i].scopeId = ids[i] >= 138 && ids[i] != 197 && ids[i] != 198 ? 0xFFFFFFFF : 0;
    }
    nvmlDeviceGetFieldValues(d, sizeof ids / sizeof ids[0], fields);
    nvmlDeviceGetEncoderUtilization(d, &u1, &u2);
    nvmlDeviceGetDecoderUtilization(d, &u1, &u2);
    nvmlDeviceGetPowerUsage(d, &u1);
    nvmlDeviceGetEnforcedPowerLimit(d, &u1);
    nvmlDeviceGetTemperature(d, NVML_TEMPERATURE_GPU, &u1);
    nvmlDeviceGetTemperatureThreshold(d, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN, &u1);
    nvmlDeviceGetTemperatureThreshold(d, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN, &u1);
    for (int clock = 0; clock < 4; clock++) nvmlDeviceGetClockInfo(d, clock, &u1);
    nvmlDeviceGetTotalEnergyConsumption(d, &ull);
    nvmlDeviceGetTotalEccErrors(d, NVML_MEMORY_ERROR_TYPE_CORRECTED, NVML_AGGREGATE_ECC, &ull);
    nvmlDeviceGetTotalEccErrors(d, NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_AGGREGATE_ECC, &ull);
    nvmlDeviceGetCurrentClocksEventReasons(d, &ull);
    nvmlDeviceGetMigMode(d, &u1, &u2);
}

// As the documentation has it: the size first, then the list.
static void processes(nvmlDevice_t d) {
    static nvmlReturn_t (*const lists[])(nvmlDevice_t, unsigned int *, nvmlProcessInfo_t *) = {
        nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDeviceGetMPSComputeRunningProcesses_v3};
    nvmlProcessInfo_t infos[64];
    nvmlProcessUtilizationSample_t samples[256];
    for (int i = 0; i < 3; i++) {
        unsigned n = 0;
        if (lists[i](d, &n, NULL) == NVML_ERROR_INSUFFICIENT_SIZE) {
            n = 64;
            lists[i](d, &n, infos);
        }
    }
    unsigned n = 0;
    nvmlDeviceGetProcessUtilization(d, NULL, &n, 0);
    nvmlDeviceGetProcessUtilization(d, samples, &n, 0);
}

static nvmlGpmSample_t samples[16][2];

static void expensive(nvmlDevice_t d, int gpu, int reading) {
    static const unsigned ids[] = {20, 21, 60, 61, 1, 2, 3, 5, 10, 11, 12, 13};
    static nvmlGpmMetricsGet_t get;
    nvmlDeviceGetRemappedRows(d, &u1, &u2, &u3, &u4);
    nvmlDeviceGetRetiredPages(d, 0, &u1, NULL);
    nvmlDeviceGetRetiredPages(d, 1, &u1, NULL);
    nvmlDeviceGetRetiredPagesPendingStatus(d, &u1);
    nvmlGpmSampleGet(d, samples[gpu][reading & 1]);
    get.version = NVML_GPM_METRICS_GET_VERSION;
    get.numMetrics = sizeof ids / sizeof ids[0];
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) get.metrics[i].metricId = ids[i];
    get.sample1 = samples[gpu][~reading & 1];
    get.sample2 = samples[gpu][reading & 1];
    nvmlGpmMetricsGet(&get);
}

double floor_in_c(int with_processes, int with_all, int readings) {
    nvmlDevice_t devices[16];
    unsigned n;
    if (nvmlInit_v2() != NVML_SUCCESS || nvmlDeviceGetCount_v2(&n) != NVML_SUCCESS || n > 16) return -1;
    for (unsigned i = 0; i < n; i++) {
        nvmlDeviceGetHandleByIndex_v2(i, &devices[i]);
        nvmlGpmSampleAlloc(&samples[i][0]);
        nvmlGpmSampleAlloc(&samples[i][1]);
    }
    const double before = floor_cpu();
    for (int reading = 0; reading < readings; reading++) {
        for (unsigned i = 0; i < n; i++) {
            cheap(devices[i]);
            if (with_processes) processes(devices[i]);
            if (with_all) expensive(devices[i], (int)i, reading);
        }
    }
    const double used = (floor_cpu() - before) / readings;
    nvmlShutdown();
    return used;
}
