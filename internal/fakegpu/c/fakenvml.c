// SPDX-License-Identifier: Apache-2.0
//
// Opening and closing, handles, and who a device is.

#include "fakenvml.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

// A handle is good until the library is shut down. An instance's handle goes bad when another instance has its place.
struct nvmlDevice_st {
    int gpu, mig;
    uint64_t opening;
    char uuid[96];
};

static struct nvmlDevice_st handles[MAX_GPUS][1 + MAX_MIG];
static uint64_t opening; // counts the times that the library was opened
static int device_count; // as when it was opened: NVML does not find new GPUs later

uint64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000;
}

void sleep_us(uint64_t us) {
    struct timespec t = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}

nvmlReturn_t leave(nvmlReturn_t result) {
    world_unlock();
    return result;
}

// obey applies the rule for this function and device. A slow function sleeps without the lock.
static nvmlReturn_t obey(struct world **world, const char *function, int gpu, int mig) {
    if ((*world)->rule_count == 0) return NVML_SUCCESS;
    const struct rule *rule = world_rule(*world, function, gpu, mig);
    if (rule == NULL) return NVML_SUCCESS;
    nvmlReturn_t result = (nvmlReturn_t)rule->result;
    if (rule->delay_us != 0) {
        unsigned us = rule->delay_us;
        world_unlock();
        sleep_us(us);
        *world = world_lock();
        if (*world == NULL) return NVML_ERROR_DRIVER_NOT_LOADED;
    }
    return result;
}

nvmlReturn_t enter_library(const char *function, struct world **world) {
    *world = world_lock();
    stats->calls++;
    if (stats->initialised == 0) {
        stats->uninitialised++;
        return leave(NVML_ERROR_UNINITIALIZED);
    }
    if (*world == NULL) return leave(NVML_ERROR_DRIVER_NOT_LOADED);
    nvmlReturn_t result = obey(world, function, -1, -1);
    return result == NVML_SUCCESS ? result : leave(result);
}

nvmlReturn_t enter_free(void) {
    world_lock();
    stats->calls++;
    if (stats->initialised > 0) return NVML_SUCCESS;
    stats->uninitialised++;
    return leave(NVML_ERROR_UNINITIALIZED);
}

nvmlReturn_t enter(const char *function, nvmlDevice_t handle, enum takes takes, struct place *place) {
    struct world *world = world_lock();
    stats->calls++;
    if (stats->initialised == 0) {
        stats->uninitialised++;
        return leave(NVML_ERROR_UNINITIALIZED);
    }
    if (world == NULL) return leave(NVML_ERROR_DRIVER_NOT_LOADED);
    struct nvmlDevice_st *h = handle.handle;
    if (h < &handles[0][0] || h >= &handles[0][0] + MAX_GPUS * (1 + MAX_MIG) || h->opening != opening) {
        stats->invalid++;
        return leave(NVML_ERROR_INVALID_ARGUMENT);
    }
    nvmlReturn_t result = obey(&world, function, h->gpu, h->mig);
    if (result != NVML_SUCCESS) return leave(result);
    if (h->gpu >= world->gpu_count) return leave(NVML_ERROR_GPU_IS_LOST);
    struct gpu *gpu = &world->gpus[h->gpu];
    *place = (struct place){world, gpu, &gpu->device, h->gpu, h->mig};
    if (h->mig == -1) return NVML_SUCCESS;
    if (h->mig >= gpu->mig_count || strcmp(h->uuid, gpu->mig[h->mig].uuid) != 0) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if (takes == GPU_ONLY) return leave(NVML_ERROR_NOT_SUPPORTED);
    place->device = &gpu->mig[h->mig];
    return NVML_SUCCESS;
}

nvmlDevice_t handle_of(struct world *world, int index, int mig) {
    struct nvmlDevice_st *h = &handles[index][1 + mig];
    h->gpu = index, h->mig = mig, h->opening = opening;
    if (mig >= 0) strcpy(h->uuid, world->gpus[index].mig[mig].uuid);
    return (nvmlDevice_t){h};
}

nvmlReturn_t get_u64(const char *function, nvmlDevice_t handle, enum takes takes, enum key key, unsigned long long *out) {
    struct place p;
    nvmlReturn_t result = enter(function, handle, takes, &p);
    if (result != NVML_SUCCESS) return result;
    if (out == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if (!p.device->values[key].known) return leave(NVML_ERROR_NOT_SUPPORTED);
    *out = p.device->values[key].u;
    return leave(NVML_SUCCESS);
}

nvmlReturn_t get_u32(const char *function, nvmlDevice_t handle, enum takes takes, enum key key, unsigned int *out) {
    unsigned long long value;
    nvmlReturn_t result = get_u64(function, handle, takes, key, out == NULL ? NULL : &value);
    if (result == NVML_SUCCESS) *out = (unsigned int)value;
    return result;
}

nvmlReturn_t put_text(const char *text, char *out, unsigned int length) {
    if (out == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (text[0] == '\0') return NVML_ERROR_NOT_SUPPORTED;
    if (strlen(text) + 1 > length) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_SUCCESS;
}

// ——— opening and closing ———

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    if (!world_open("nvml")) return NVML_ERROR_DRIVER_NOT_LOADED;
    struct world *world = world_lock();
    if (world == NULL) return leave(NVML_ERROR_DRIVER_NOT_LOADED);
    nvmlReturn_t result = obey(&world, "nvmlInit", -1, -1);
    if (result != NVML_SUCCESS) return leave(result);
    if (stats->initialised++ == 0) {
        opening++;
        device_count = world->gpu_count;
    }
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
EXPORT nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }

EXPORT nvmlReturn_t nvmlShutdown(void) {
    world_lock();
    if (stats->initialised == 0) return leave(NVML_ERROR_UNINITIALIZED);
    if (stats->initialised == 1 && stats->waiting != 0) stats->invalid++; // somebody still waits for events
    stats->initialised--;
    return leave(NVML_SUCCESS);
}

EXPORT const char *nvmlErrorString(nvmlReturn_t result) { return result == NVML_SUCCESS ? "The operation was successful" : "An error of the fake"; }

// ——— the system ———

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length) {
    struct world *w;
    nvmlReturn_t result = enter_library(__func__, &w);
    return result != NVML_SUCCESS ? result : leave(put_text(w->driver, version, length));
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length) {
    struct world *w;
    nvmlReturn_t result = enter_library(__func__, &w);
    return result != NVML_SUCCESS ? result : leave(put_text(w->nvml, version, length));
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    struct world *w;
    nvmlReturn_t result = enter_library(__func__, &w);
    if (result != NVML_SUCCESS) return result;
    if (version == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    *version = w->cuda;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

// ——— handles ———

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) {
    struct world *w;
    nvmlReturn_t result = enter_library(__func__, &w);
    if (result != NVML_SUCCESS) return result;
    if (count == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    *count = (unsigned int)device_count;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) { return nvmlDeviceGetCount_v2(count); }

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device) {
    struct world *w;
    nvmlReturn_t result = enter_library(__func__, &w);
    if (result != NVML_SUCCESS) return result;
    if (device == NULL || index >= (unsigned)device_count) return leave(NVML_ERROR_INVALID_ARGUMENT);
    result = obey(&w, __func__, (int)index, -1);
    if (result == NVML_SUCCESS && (int)index >= w->gpu_count) result = NVML_ERROR_GPU_IS_LOST;
    if (result == NVML_SUCCESS) *device = handle_of(w, (int)index, -1);
    return leave(result);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device) { return nvmlDeviceGetHandleByIndex_v2(index, device); }

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device) {
    struct world *w;
    nvmlReturn_t result = enter_library(__func__, &w);
    if (result != NVML_SUCCESS) return result;
    if (device == NULL || uuid == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    for (int i = 0; i < w->gpu_count && i < device_count; i++) {
        for (int m = -1; m < w->gpus[i].mig_count; m++) {
            const char *have = m == -1 ? w->gpus[i].device.uuid : w->gpus[i].mig[m].uuid;
            if (strcmp(have, uuid) != 0) continue;
            *device = handle_of(w, i, m);
            return leave(NVML_SUCCESS);
        }
    }
    return leave(NVML_ERROR_NOT_FOUND);
}

// ——— who a device is ———

#define TEXT(name, takes, field)                                                                \
    EXPORT nvmlReturn_t name(nvmlDevice_t device, char *out, unsigned int length) {             \
        struct place p;                                                                         \
        nvmlReturn_t result = enter(__func__, device, takes, &p);                               \
        return result != NVML_SUCCESS ? result : leave(put_text(p.device->field, out, length)); \
    }

TEXT(nvmlDeviceGetUUID, GPU_OR_MIG, uuid)
TEXT(nvmlDeviceGetName, GPU_OR_MIG, name)
TEXT(nvmlDeviceGetSerial, GPU_ONLY, serial)
TEXT(nvmlDeviceGetVbiosVersion, GPU_ONLY, vbios)

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_OR_MIG, &p);
    if (result != NVML_SUCCESS) return result;
    if (index == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    *index = (unsigned)(p.mig == -1 ? p.index : p.mig);
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_OR_MIG, &p);
    if (result != NVML_SUCCESS) return result;
    if (pci == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    const struct device *d = &p.gpu->device;
    memset(pci, 0, sizeof *pci);
    if (sscanf(d->bus_id, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device) != 3) return leave(NVML_ERROR_NOT_SUPPORTED);
    snprintf(pci->busId, sizeof pci->busId, "%s", d->bus_id);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xFFFF, pci->bus & 0xFF, pci->device & 0xFF);
    pci->pciDeviceId = (unsigned)d->values[KEY_PCI_DEVICE_ID].u;
    pci->pciSubSystemId = (unsigned)d->values[KEY_PCI_SUBSYSTEM_ID].u;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci) { return nvmlDeviceGetPciInfo_v3(device, pci); }
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *pci) { return nvmlDeviceGetPciInfo_v3(device, pci); }

EXPORT nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor) { return get_u32(__func__, device, GPU_ONLY, KEY_MINOR, minor); }
EXPORT nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *arch) { return get_u32(__func__, device, GPU_ONLY, KEY_ARCHITECTURE, arch); }
EXPORT nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t *brand) { return get_u32(__func__, device, GPU_ONLY, KEY_BRAND, (unsigned int *)brand); }
EXPORT nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned int *cores) { return get_u32(__func__, device, GPU_ONLY, KEY_CORES, cores); }
EXPORT nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode) { return get_u32(__func__, device, GPU_ONLY, KEY_COMPUTE_MODE, (unsigned int *)mode); }
