// SPDX-License-Identifier: Apache-2.0
//
// The state of a device: memory, load, power, temperature, clocks, links, errors.

#include "fakenvml.h"

#include <string.h>

// ——— memory ———

static int memory_known(const struct device *d) { return d->values[KEY_MEMORY_TOTAL].known && d->values[KEY_MEMORY_USED].known; }

// Version 1 counts what is reserved as used; version 2 has a field for it.
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_OR_MIG, &p);
    if (result != NVML_SUCCESS) return result;
    if (memory == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if (!memory_known(p.device)) return leave(NVML_ERROR_NOT_SUPPORTED);
    memory->total = p.device->values[KEY_MEMORY_TOTAL].u;
    memory->used = p.device->values[KEY_MEMORY_USED].u + p.device->values[KEY_MEMORY_RESERVED].u;
    memory->free = memory->total - memory->used;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_OR_MIG, &p);
    if (result != NVML_SUCCESS) return result;
    if (memory == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if (memory->version != nvmlMemory_v2) return leave(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    if (!memory_known(p.device)) return leave(NVML_ERROR_NOT_SUPPORTED);
    memory->total = p.device->values[KEY_MEMORY_TOTAL].u;
    memory->reserved = p.device->values[KEY_MEMORY_RESERVED].u;
    memory->used = p.device->values[KEY_MEMORY_USED].u;
    memory->free = memory->total - memory->used - memory->reserved;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_OR_MIG, &p);
    if (result != NVML_SUCCESS) return result;
    if (memory == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if (!p.device->values[KEY_BAR1_TOTAL].known) return leave(NVML_ERROR_NOT_SUPPORTED);
    memory->bar1Total = p.device->values[KEY_BAR1_TOTAL].u;
    memory->bar1Used = p.device->values[KEY_BAR1_USED].u;
    memory->bar1Free = memory->bar1Total - memory->bar1Used;
    return leave(NVML_SUCCESS);
}

// ——— load ———

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_ONLY, &p);
    if (result != NVML_SUCCESS) return result;
    if (utilization == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if (!p.device->values[KEY_UTILIZATION_GPU].known) return leave(NVML_ERROR_NOT_SUPPORTED);
    utilization->gpu = (unsigned)p.device->values[KEY_UTILIZATION_GPU].u;
    utilization->memory = (unsigned)p.device->values[KEY_UTILIZATION_MEMORY].u;
    return leave(NVML_SUCCESS);
}

#define ENGINE(name, key)                                                                                   \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, unsigned int *utilization, unsigned int *samplingPeriodUs) { \
        if (samplingPeriodUs != NULL) *samplingPeriodUs = 167000;                                           \
        return get_u32(__func__, device, GPU_ONLY, key, utilization);                                       \
    }

ENGINE(nvmlDeviceGetEncoderUtilization, KEY_UTILIZATION_ENCODER)
ENGINE(nvmlDeviceGetDecoderUtilization, KEY_UTILIZATION_DECODER)
ENGINE(nvmlDeviceGetJpgUtilization, KEY_UTILIZATION_JPEG)
ENGINE(nvmlDeviceGetOfaUtilization, KEY_UTILIZATION_OFA)

// The driver samples six times a second and keeps the last 100.
EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, unsigned long long lastSeen, nvmlValueType_t *valueType,
                                         unsigned int *count, nvmlSample_t *samples) {
    static const enum key keys[] = {[NVML_TOTAL_POWER_SAMPLES] = KEY_POWER, [NVML_GPU_UTILIZATION_SAMPLES] = KEY_UTILIZATION_GPU,
                                    [NVML_MEMORY_UTILIZATION_SAMPLES] = KEY_UTILIZATION_MEMORY, [NVML_ENC_UTILIZATION_SAMPLES] = KEY_UTILIZATION_ENCODER,
                                    [NVML_DEC_UTILIZATION_SAMPLES] = KEY_UTILIZATION_DECODER, [NVML_PROCESSOR_CLK_SAMPLES] = KEY_CLOCK_SM,
                                    [NVML_MEMORY_CLK_SAMPLES] = KEY_CLOCK_MEMORY};
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_ONLY, &p);
    if (result != NVML_SUCCESS) return result;
    if (count == NULL || valueType == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if (type >= sizeof keys / sizeof keys[0] || !p.device->values[keys[type]].known) return leave(NVML_ERROR_NOT_SUPPORTED);
    *valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    if (samples == NULL) {
        *count = 100;
        return leave(NVML_SUCCESS);
    }
    const uint64_t period = 166667, newest = now_us() / period * period;
    unsigned n = 0;
    for (uint64_t at = newest - 99 * period; at <= newest && n < *count; at += period) {
        if (at <= lastSeen) continue;
        samples[n].timeStamp = at;
        samples[n++].sampleValue.uiVal = (unsigned)p.device->values[keys[type]].u;
    }
    *count = n;
    return leave(n == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS);
}

// ——— power, temperature, clocks ———

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned int *v) { return get_u32(__func__, d, GPU_ONLY, KEY_POWER, v); }
EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t d, unsigned int *v) { return get_u32(__func__, d, GPU_ONLY, KEY_POWER_LIMIT, v); }
EXPORT nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned int *v) { return get_u32(__func__, d, GPU_ONLY, KEY_POWER_LIMIT_ENFORCED, v); }
EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t d, unsigned int *v) { return get_u32(__func__, d, GPU_ONLY, KEY_POWER_LIMIT_DEFAULT, v); }
EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t d, unsigned long long *v) { return get_u64(__func__, d, GPU_ONLY, KEY_ENERGY, v); }
EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t d, unsigned int *v) { return get_u32(__func__, d, GPU_ONLY, KEY_FAN_SPEED, v); }
EXPORT nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t d, nvmlPstates_t *v) { return get_u32(__func__, d, GPU_ONLY, KEY_PERFORMANCE_STATE, (unsigned *)v); }

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t d, unsigned int *min, unsigned int *max) {
    nvmlReturn_t result = get_u32(__func__, d, GPU_ONLY, KEY_POWER_LIMIT_MIN, min);
    return result != NVML_SUCCESS ? result : get_u32(__func__, d, GPU_ONLY, KEY_POWER_LIMIT_MAX, max);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t sensor, unsigned int *v) {
    return sensor != NVML_TEMPERATURE_GPU ? NVML_ERROR_INVALID_ARGUMENT : get_u32(__func__, d, GPU_ONLY, KEY_TEMPERATURE, v);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t d, nvmlTemperature_t *t) {
    if (t == NULL || t->sensorType != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
    if (t->version != nvmlTemperature_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return get_u32(__func__, d, GPU_ONLY, KEY_TEMPERATURE, (unsigned *)&t->temperature);
}

EXPORT nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t d, nvmlMarginTemperature_t *t) {
    if (t == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (t->version != nvmlMarginTemperature_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return get_u32(__func__, d, GPU_ONLY, KEY_TEMPERATURE_MARGIN, (unsigned *)&t->marginTemperature);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t d, nvmlTemperatureThresholds_t threshold, unsigned int *v) {
    switch (threshold) {
    case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN: return get_u32(__func__, d, GPU_ONLY, KEY_TEMPERATURE_SHUTDOWN, v);
    case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN: return get_u32(__func__, d, GPU_ONLY, KEY_TEMPERATURE_SLOWDOWN, v);
    case NVML_TEMPERATURE_THRESHOLD_MEM_MAX: return get_u32(__func__, d, GPU_ONLY, KEY_TEMPERATURE_MEMORY_MAX, v);
    case NVML_TEMPERATURE_THRESHOLD_GPU_MAX: return get_u32(__func__, d, GPU_ONLY, KEY_TEMPERATURE_GPU_MAX, v);
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
}

static const enum key clocks[] = {KEY_CLOCK_GRAPHICS, KEY_CLOCK_SM, KEY_CLOCK_MEMORY, KEY_CLOCK_VIDEO};
static const enum key max_clocks[] = {KEY_CLOCK_GRAPHICS_MAX, KEY_CLOCK_SM_MAX, KEY_CLOCK_MEMORY_MAX, KEY_CLOCK_VIDEO_MAX};

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *v) {
    return (unsigned)type > NVML_CLOCK_VIDEO ? NVML_ERROR_INVALID_ARGUMENT : get_u32(__func__, d, GPU_ONLY, clocks[type], v);
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned int *v) {
    return (unsigned)type > NVML_CLOCK_VIDEO ? NVML_ERROR_INVALID_ARGUMENT : get_u32(__func__, d, GPU_ONLY, max_clocks[type], v);
}

// The same bits under their new and their old name; drivers before 535 only know the old.
EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, unsigned long long *v) { return get_u64(__func__, d, GPU_ONLY, KEY_EVENT_REASONS, v); }
EXPORT nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, unsigned long long *v) { return get_u64(__func__, d, GPU_ONLY, KEY_EVENT_REASONS, v); }
EXPORT nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t d, unsigned long long *v) { return get_u64(__func__, d, GPU_ONLY, KEY_EVENT_REASONS_SUPPORTED, v); }
EXPORT nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t d, unsigned long long *v) { return get_u64(__func__, d, GPU_ONLY, KEY_EVENT_REASONS_SUPPORTED, v); }

// ——— PCIe ———

// The driver counts for 20 ms and blocks meanwhile.
EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t d, nvmlPcieUtilCounter_t counter, unsigned int *v) {
    if ((unsigned)counter > NVML_PCIE_UTIL_RX_BYTES) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t result = get_u32(__func__, d, GPU_ONLY, counter == NVML_PCIE_UTIL_TX_BYTES ? KEY_PCIE_TX : KEY_PCIE_RX, v);
    if (result != NVML_SUCCESS) return result;
    world_lock();
    stats->pcie_throughput++;
    world_unlock();
    sleep_us(20000);
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t d, unsigned int *v) { return get_u32(__func__, d, GPU_ONLY, KEY_PCIE_REPLAY, v); }
EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t d, unsigned int *v) { return get_u32(__func__, d, GPU_ONLY, KEY_PCIE_GENERATION, v); }
EXPORT nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t d, unsigned int *v) { return get_u32(__func__, d, GPU_ONLY, KEY_PCIE_GENERATION_MAX, v); }
EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t d, unsigned int *v) { return get_u32(__func__, d, GPU_ONLY, KEY_PCIE_WIDTH, v); }
EXPORT nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t d, unsigned int *v) { return get_u32(__func__, d, GPU_ONLY, KEY_PCIE_WIDTH_MAX, v); }

// ——— errors ———

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter, unsigned long long *v) {
    static const enum key keys[2][2] = {{KEY_ECC_CORRECTED_VOLATILE, KEY_ECC_CORRECTED_AGGREGATE}, {KEY_ECC_UNCORRECTED_VOLATILE, KEY_ECC_UNCORRECTED_AGGREGATE}};
    if ((unsigned)type > 1 || (unsigned)counter > 1) return NVML_ERROR_INVALID_ARGUMENT;
    return get_u64(__func__, d, GPU_OR_MIG, keys[type][counter], v);
}

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t d, nvmlEnableState_t *current, nvmlEnableState_t *pending) {
    nvmlReturn_t result = get_u32(__func__, d, GPU_ONLY, KEY_ECC_MODE, (unsigned *)current);
    if (result == NVML_SUCCESS && pending != NULL) *pending = *current;
    return result;
}

static nvmlReturn_t retired(const char *function, nvmlDevice_t d, nvmlPageRetirementCause_t cause, unsigned int *count, unsigned long long *addresses) {
    struct place p;
    nvmlReturn_t result = enter(function, d, GPU_ONLY, &p);
    if (result != NVML_SUCCESS) return result;
    if (count == NULL || (unsigned)cause > 1) return leave(NVML_ERROR_INVALID_ARGUMENT);
    const struct value v = p.device->values[cause == NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS ? KEY_RETIRED_SBE : KEY_RETIRED_DBE];
    if (!v.known) return leave(NVML_ERROR_NOT_SUPPORTED);
    unsigned room = *count;
    *count = (unsigned)v.u;
    if (v.u > room) return leave(NVML_ERROR_INSUFFICIENT_SIZE);
    if (addresses != NULL) memset(addresses, 0, sizeof *addresses * (size_t)v.u);
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t d, nvmlPageRetirementCause_t cause, unsigned int *count, unsigned long long *addresses) {
    return retired(__func__, d, cause, count, addresses);
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t d, nvmlPageRetirementCause_t cause, unsigned int *count, unsigned long long *addresses,
                                                 unsigned long long *timestamps) {
    nvmlReturn_t result = retired(__func__, d, cause, count, addresses);
    if (result == NVML_SUCCESS && timestamps != NULL) memset(timestamps, 0, sizeof *timestamps * *count);
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t d, nvmlEnableState_t *pending) { return get_u32(__func__, d, GPU_ONLY, KEY_RETIRED_PENDING, (unsigned *)pending); }

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t d, unsigned int *corrected, unsigned int *uncorrected, unsigned int *pending, unsigned int *failed) {
    struct place p;
    nvmlReturn_t result = enter(__func__, d, GPU_ONLY, &p);
    if (result != NVML_SUCCESS) return result;
    if (corrected == NULL || uncorrected == NULL || pending == NULL || failed == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if (!p.device->values[KEY_REMAPPED_CORRECTABLE].known) return leave(NVML_ERROR_NOT_SUPPORTED);
    *corrected = (unsigned)p.device->values[KEY_REMAPPED_CORRECTABLE].u;
    *uncorrected = (unsigned)p.device->values[KEY_REMAPPED_UNCORRECTABLE].u;
    *pending = (unsigned)p.device->values[KEY_REMAPPED_PENDING].u;
    *failed = (unsigned)p.device->values[KEY_REMAPPED_FAILURE].u;
    return leave(NVML_SUCCESS);
}

// ——— fields ———

static const struct {
    unsigned id;
    enum key key;
    nvmlValueType_t type;
} fields[] = {
    {NVML_FI_DEV_ECC_SBE_VOL_TOTAL, KEY_ECC_CORRECTED_VOLATILE, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {NVML_FI_DEV_ECC_DBE_VOL_TOTAL, KEY_ECC_UNCORRECTED_VOLATILE, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {NVML_FI_DEV_ECC_SBE_AGG_TOTAL, KEY_ECC_CORRECTED_AGGREGATE, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {NVML_FI_DEV_ECC_DBE_AGG_TOTAL, KEY_ECC_UNCORRECTED_AGGREGATE, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {NVML_FI_DEV_RETIRED_SBE, KEY_RETIRED_SBE, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_RETIRED_DBE, KEY_RETIRED_DBE, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_RETIRED_PENDING, KEY_RETIRED_PENDING, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_MEMORY_TEMP, KEY_TEMPERATURE_MEMORY, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, KEY_ENERGY, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {NVML_FI_DEV_PCIE_REPLAY_COUNTER, KEY_PCIE_REPLAY, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, KEY_NVLINK_DATA_TX, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, KEY_NVLINK_DATA_RX, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX, KEY_NVLINK_RAW_TX, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX, KEY_NVLINK_RAW_RX, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {NVML_FI_DEV_REMAPPED_COR, KEY_REMAPPED_CORRECTABLE, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_REMAPPED_UNC, KEY_REMAPPED_UNCORRECTABLE, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_REMAPPED_PENDING, KEY_REMAPPED_PENDING, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_REMAPPED_FAILURE, KEY_REMAPPED_FAILURE, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_POWER_AVERAGE, KEY_POWER_AVERAGE, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_POWER_INSTANT, KEY_POWER_INSTANT, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_POWER_MIN_LIMIT, KEY_POWER_LIMIT_MIN, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_POWER_MAX_LIMIT, KEY_POWER_LIMIT_MAX, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_POWER_DEFAULT_LIMIT, KEY_POWER_LIMIT_DEFAULT, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_POWER_CURRENT_LIMIT, KEY_POWER_LIMIT_ENFORCED, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_ENERGY, KEY_ENERGY, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {NVML_FI_DEV_POWER_REQUESTED_LIMIT, KEY_POWER_LIMIT, NVML_VALUE_TYPE_UNSIGNED_INT},
    {NVML_FI_DEV_PCIE_COUNT_TX_BYTES, KEY_PCIE_TX_BYTES, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {NVML_FI_DEV_PCIE_COUNT_RX_BYTES, KEY_PCIE_RX_BYTES, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, KEY_NVLINK_TX_BYTES, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, KEY_NVLINK_RX_BYTES, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
};

static int is_nvlink(enum key key) { return key >= KEY_NVLINK_DATA_TX && key <= KEY_NVLINK_RX_BYTES; }

// share is what one link carries of a counter that the scenario gives for all of them; scope UINT32_MAX asks for all.
static nvmlReturn_t share(const struct device *d, unsigned scope, unsigned long long *value) {
    if (scope == 0xFFFFFFFFu) return NVML_SUCCESS;
    const uint64_t links = d->values[KEY_NVLINK_LINKS].u;
    if (scope >= links) return NVML_ERROR_INVALID_ARGUMENT;
    *value = *value / links + (scope == 0 ? *value % links : 0);
    return NVML_SUCCESS;
}

// read_field reads one of the fields below end, which are those that the driver knows.
static void read_field(const struct device *d, nvmlFieldValue_t *f, unsigned end) {
    f->nvmlReturn = NVML_ERROR_INVALID_ARGUMENT;
    if (f->fieldId == 0 || f->fieldId >= end) return;
    f->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    for (int i = 0; i < d->field_count; i++) {
        if (d->fields[i].id != f->fieldId) continue;
        f->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
        f->value.ullVal = d->fields[i].value.u;
        f->nvmlReturn = NVML_SUCCESS;
        return;
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].id != f->fieldId) continue;
        if (!d->values[fields[i].key].known) return;
        unsigned long long v = d->values[fields[i].key].u;
        f->nvmlReturn = is_nvlink(fields[i].key) ? share(d, f->scopeId, &v) : NVML_SUCCESS;
        f->valueType = fields[i].type;
        if (fields[i].type == NVML_VALUE_TYPE_UNSIGNED_INT) f->value.uiVal = (unsigned)v;
        else f->value.ullVal = v;
        return;
    }
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_ONLY, &p);
    if (result != NVML_SUCCESS) return result;
    if (values == NULL || count <= 0) return leave(NVML_ERROR_INVALID_ARGUMENT);
    const long long at = (long long)now_us();
    for (int i = 0; i < count; i++) {
        values[i].timestamp = at;
        values[i].latencyUsec = 0;
        memset(&values[i].value, 0, sizeof values[i].value);
        read_field(p.device, &values[i], p.world->fields != 0 ? p.world->fields : NVML_FI_MAX);
    }
    return leave(NVML_SUCCESS);
}
