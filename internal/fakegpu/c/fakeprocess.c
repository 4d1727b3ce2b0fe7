// SPDX-License-Identifier: Apache-2.0
//
// Processes: three versions of the list for each kind, and their load.

#include "fakenvml.h"

#include <string.h>

// The wide record of some 535 drivers, which callers built against other headers read as 24 bytes each.
struct wide_process {
    unsigned pid;
    unsigned long long memory;
    unsigned gi, ci;
    unsigned long long protected_memory;
};

static int listed(const struct place *p, const struct process *process, enum kind kind) {
    if (process->kind != kind) return 0;
    return p->mig == -1 || process->gi == (unsigned)p->device->values[KEY_GPU_INSTANCE].u;
}

static void put(void *out, size_t size, int wide, unsigned i, const struct process *p) {
    if (size == sizeof(nvmlProcessInfo_v1_t)) {
        ((nvmlProcessInfo_v1_t *)out)[i] = (nvmlProcessInfo_v1_t){p->pid, p->memory};
    } else if (wide) {
        ((struct wide_process *)out)[i] = (struct wide_process){p->pid, p->memory, p->gi, p->ci, 0};
    } else {
        ((nvmlProcessInfo_v2_t *)out)[i] = (nvmlProcessInfo_v2_t){p->pid, p->memory, p->gi, p->ci};
    }
}

static nvmlReturn_t list(const char *function, nvmlDevice_t device, enum kind kind, unsigned int *count, void *out, size_t size, int may_be_wide) {
    struct place p;
    nvmlReturn_t result = enter(function, device, GPU_OR_MIG, &p);
    if (result != NVML_SUCCESS) return result;
    if (count == NULL || (out == NULL && *count != 0)) return leave(NVML_ERROR_INVALID_ARGUMENT);
    const int wide = may_be_wide && p.world->wide_processes;
    unsigned n = 0;
    for (int i = 0; i < p.gpu->process_count; i++) n += (unsigned)listed(&p, &p.gpu->processes[i], kind);
    const unsigned room = *count;
    // A wide record takes more room than its caller thinks; what does not fit would be written into foreign memory, and
    // is that in the real driver. Here it is left out, so that what is tested is the reader and not the allocator.
    const unsigned fits = wide ? room * (unsigned)size / (unsigned)sizeof(struct wide_process) : room;
    *count = n;
    if (n > room) return leave(NVML_ERROR_INSUFFICIENT_SIZE);
    unsigned at = 0;
    for (int i = 0; i < p.gpu->process_count && at < fits; i++) {
        if (listed(&p, &p.gpu->processes[i], kind)) put(out, size, wide, at++, &p.gpu->processes[i]);
    }
    return leave(NVML_SUCCESS);
}

#define LIST(name, kind)                                                                                         \
    EXPORT nvmlReturn_t name(nvmlDevice_t d, unsigned int *count, nvmlProcessInfo_v1_t *infos) {                 \
        return list(__func__, d, kind, count, infos, sizeof *infos, 0);                                          \
    }                                                                                                            \
    EXPORT nvmlReturn_t name##_v2(nvmlDevice_t d, unsigned int *count, nvmlProcessInfo_v2_t *infos) {            \
        return list(__func__, d, kind, count, infos, sizeof *infos, 0);                                          \
    }                                                                                                            \
    EXPORT nvmlReturn_t name##_v3(nvmlDevice_t d, unsigned int *count, nvmlProcessInfo_t *infos) {               \
        return list(__func__, d, kind, count, infos, sizeof *infos, 1);                                          \
    }

LIST(nvmlDeviceGetComputeRunningProcesses, COMPUTE)
LIST(nvmlDeviceGetGraphicsRunningProcesses, GRAPHICS)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, MPS)

// The size asked for first is that of the driver's buffer; whether there are samples is known only by the second call.
EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *out, unsigned int *count, unsigned long long lastSeen) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_ONLY, &p);
    if (result != NVML_SUCCESS) return result;
    if (count == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    unsigned n = 0, room = *count;
    for (int i = 0; i < p.gpu->process_count; i++) n += (unsigned)p.gpu->processes[i].active;
    *count = n < 100 ? 100 : n;
    if (out == NULL || room < n) return leave(NVML_ERROR_INSUFFICIENT_SIZE);
    const unsigned long long at = now_us();
    *count = 0;
    if (n == 0 || at <= lastSeen) return leave(NVML_ERROR_NOT_FOUND);
    for (int i = 0; i < p.gpu->process_count; i++) {
        const struct process *process = &p.gpu->processes[i];
        if (process->active) out[(*count)++] = (nvmlProcessUtilizationSample_t){process->pid, at, process->sm, process->mem, process->enc, process->dec};
    }
    return leave(NVML_SUCCESS);
}
