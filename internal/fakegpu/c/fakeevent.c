// SPDX-License-Identifier: Apache-2.0
//
// Events. A set is told what happens after its GPUs were registered, each event once, in order.

#include "fakenvml.h"

#include <stdlib.h>

#define SUPPORTED_EVENTS (nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError | nvmlEventTypeXidCriticalError | nvmlEventTypeClock | nvmlEventMigConfigChange)
#define POLL_US 2000

struct nvmlEventSet_st {
    uint64_t types[MAX_GPUS];
    uint64_t told; // the sequence of the newest event that this set knows, or that came before it
    struct nvmlEventSet_st *next;
};

static struct nvmlEventSet_st *sets;

static int is_set(const struct nvmlEventSet_st *set) {
    for (const struct nvmlEventSet_st *s = sets; s != NULL; s = s->next) {
        if (s == set) return 1;
    }
    stats->invalid++;
    return 0;
}

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *out) {
    struct world *w;
    nvmlReturn_t result = enter_library(__func__, &w);
    if (result != NVML_SUCCESS) return result;
    if (out == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    struct nvmlEventSet_st *set = calloc(1, sizeof *set);
    for (int i = 0; i < w->event_count; i++) {
        if (w->events[i].sequence > set->told) set->told = w->events[i].sequence;
    }
    set->next = sets;
    sets = set;
    stats->event_sets++;
    out->handle = set;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    nvmlReturn_t result = enter_free();
    if (result != NVML_SUCCESS) return result;
    if (!is_set(set.handle)) return leave(NVML_ERROR_INVALID_ARGUMENT);
    for (struct nvmlEventSet_st **s = &sets; *s != NULL; s = &(*s)->next) {
        if (*s != set.handle) continue;
        *s = set.handle->next;
        free(set.handle);
        stats->event_sets--;
        break;
    }
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_ONLY, &p);
    if (result != NVML_SUCCESS) return result;
    if (types == NULL) return leave(NVML_ERROR_INVALID_ARGUMENT);
    *types = SUPPORTED_EVENTS;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set) {
    struct place p;
    nvmlReturn_t result = enter(__func__, device, GPU_ONLY, &p);
    if (result != NVML_SUCCESS) return result;
    if (!is_set(set.handle)) return leave(NVML_ERROR_INVALID_ARGUMENT);
    if ((types & ~(unsigned long long)SUPPORTED_EVENTS) != 0) return leave(NVML_ERROR_NOT_SUPPORTED);
    set.handle->types[p.index] |= types;
    return leave(NVML_SUCCESS);
}

// next_event finds the oldest event that the set was not told, and 0 when there is none.
static int next_event(struct world *w, struct nvmlEventSet_st *set, nvmlEventData_t *data) {
    const struct event *next = NULL;
    for (int i = 0; i < w->event_count; i++) {
        const struct event *e = &w->events[i];
        if (e->sequence <= set->told || e->gpu < 0 || e->gpu >= w->gpu_count) continue;
        if ((set->types[e->gpu] & e->type) == 0) continue;
        if (next == NULL || e->sequence < next->sequence) next = e;
    }
    if (next == NULL) return 0;
    set->told = next->sequence;
    *data = (nvmlEventData_t){handle_of(w, next->gpu, -1), next->type, next->data, next->gi, next->ci};
    return 1;
}

EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) {
    struct world *w;
    nvmlReturn_t result = enter_library("nvmlEventSetWait", &w);
    if (result != NVML_SUCCESS) return result;
    if (data == NULL || !is_set(set.handle)) return leave(NVML_ERROR_INVALID_ARGUMENT);
    stats->waiting++;
    const uint64_t until = now_us() + timeout_ms * 1000ull;
    while (!(w != NULL && next_event(w, set.handle, data))) {
        const uint64_t now = now_us();
        if (now >= until) {
            stats->waiting--;
            return leave(NVML_ERROR_TIMEOUT);
        }
        world_unlock();
        sleep_us(until - now < POLL_US ? until - now : POLL_US);
        w = world_lock();
    }
    stats->waiting--;
    return leave(NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms) { return nvmlEventSetWait_v2(set, data, timeout_ms); }
