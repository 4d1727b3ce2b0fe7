// SPDX-License-Identifier: Apache-2.0
//
// Multi-instance GPUs.

#include "fakenvml.h"

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned int *current, unsigned int *pending) {
    nvmlReturn_t result = get_u32(__func__, d, GPU_ONLY, KEY_MIG_CURRENT, current);
    return result != NVML_SUCCESS ? result : get_u32(__func__, d, GPU_ONLY, KEY_MIG_PENDING, pending);
}

// How many instances there may be, not how many there are; 0 where MIG cannot be.
EXPORT nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, unsigned int *count) {
    nvmlReturn_t result = get_u32(__func__, d, GPU_ONLY, KEY_MIG_MAX, count);
    if (result == NVML_ERROR_NOT_SUPPORTED && count != NULL) {
        *count = 0;
        return NVML_SUCCESS;
    }
    return result;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_ONLY, &p);
    if (result != NVML_SUCCESS) return result;
    if (mig == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if (!p.device->values[KEY_MIG_CURRENT].u) return leave(NVML_ERROR_NOT_SUPPORTED);
    if (index >= p.device->values[KEY_MIG_MAX].u) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if ((int)index >= p.gpu->mig_count || p.gpu->mig[index].uuid[0] == '\0') return leave(NVML_ERROR_NOT_FOUND);
    *mig = handle_of(p.world, p.index, (int)index);
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device) {
    struct place p;
    nvmlReturn_t result = enter(__func__, mig, GPU_OR_MIG, &p);
    if (result != NVML_SUCCESS) return result;
    if (device == NULL || p.mig == -1) return leave(NVML_ERROR_INVALID_ARGUMENT);
    *device = handle_of(p.world, p.index, -1);
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_OR_MIG, &p);
    if (result != NVML_SUCCESS) return result;
    if (is == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    *is = p.mig != -1;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t d, unsigned int *id) { return get_u32(__func__, d, GPU_OR_MIG, KEY_GPU_INSTANCE, id); }
EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t d, unsigned int *id) { return get_u32(__func__, d, GPU_OR_MIG, KEY_COMPUTE_INSTANCE, id); }

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *out) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_OR_MIG, &p);
    if (result != NVML_SUCCESS) return result;
    if (out == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if (p.mig == -1) return leave(NVML_ERROR_NOT_SUPPORTED);
    *out = (nvmlDeviceAttributes_t){.multiprocessorCount = (unsigned)p.device->values[KEY_MULTIPROCESSORS].u,
                                    .gpuInstanceSliceCount = (unsigned)p.device->values[KEY_GPU_INSTANCE_SLICES].u,
                                    .computeInstanceSliceCount = (unsigned)p.device->values[KEY_COMPUTE_INSTANCE_SLICES].u,
                                    .memorySizeMB = p.device->values[KEY_MEMORY_TOTAL].u >> 20};
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t *out) { return nvmlDeviceGetAttributes_v2(device, out); }
