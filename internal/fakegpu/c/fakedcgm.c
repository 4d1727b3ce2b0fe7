// SPDX-License-Identifier: Apache-2.0
//
// A fake of libdcgm.so.4 on the scenario that the fake NVML reads: as much of DCGM as it takes to watch fields and to read
// them. See dcgm.go for the rules of a scenario that only this library knows.

#include "scenario.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

enum { OK = 0, BADPARAM = -1, NOT_SUPPORTED = -6, UNINITIALIZED = -10, VER_MISMATCH = -12, UNKNOWN_FIELD = -13, NO_DATA = -14,
       NOT_WATCHED = -16, IS_LOST = -18, RESET_REQUIRED = -19, NOT_VALID = -21, MAX_LIMIT = -24, DUPLICATE_KEY = -26,
       INSUFFICIENT_SIZE = -31, PROFILING_NOT_SUPPORTED = -36, NVML_NOT_LOADED = -56 };
enum { FE_GPU = 1, FE_GPU_I = 4, FE_GPU_CI = 5 };
enum { GROUP_ALL_GPUS = 0x7fffffff, GROUP_ALL_INSTANCES = 0x7ffffffd };

#define INT64_BLANK 0x7ffffffffffffff0
#define FP64_BLANK 140737488355328.0
#define MAX_SESSIONS 16
#define MAX_GROUPS 64
#define MAX_GROUP_FIELDS 128
#define MAX_FIELD 1100
#define MIB 1048576.0

struct entity { uint32_t kind, id; };
struct connect_params { uint32_t version, persist, timeout_ms, is_unix; };
struct part { struct entity entity, parent; char uuid[128]; uint32_t gpu_index, gi, ci, profile, slices; };
struct hierarchy { uint32_t version, count; struct part list[32 * 14]; };
struct field_value {
    uint32_t version, kind, entity;
    uint16_t field, type;
    int32_t status;
    uint32_t unused;
    int64_t ts;
    union { int64_t i64; double dbl; char str[256]; char blob[4096]; } value;
};
_Static_assert(sizeof(struct field_value) == 4128 && offsetof(struct field_value, ts) == 24, "dcgmFieldValue_v2");
_Static_assert(sizeof(struct hierarchy) == 73480, "dcgmMigHierarchy_v2");
_Static_assert(sizeof(struct connect_params) == 16, "dcgmConnectV2Params_v2");

struct session {
    int open, embedded;
    int generation; // of the host engine that it was made with
    int group_count;
    struct { int count; uint16_t fields[MAX_GROUP_FIELDS]; } groups[MAX_GROUPS];
    unsigned char watched[2][MAX_FIELD]; // of GPUs, of instances
};

static struct session sessions[MAX_SESSIONS];
static int initialised;
static struct { uint64_t sequence; int64_t ts; } last_xid[MAX_GPUS];

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int leave(int result) {
    world_unlock();
    return result;
}

// A named rule only: "*" is about the driver, which a host engine outlives.
static int own_rule(const struct world *w, const char *name) {
    const struct rule *r = world_rule(w, name, -1, -1);
    return r == NULL || strcmp(r->function, "*") == 0 ? 0 : r->result;
}

// The time that a function takes, slept without the lock.
static struct world *dawdle(struct world *w, const char *name) {
    const struct rule *r = w == NULL ? NULL : world_rule(w, name, -1, -1);
    if (r == NULL || strcmp(r->function, "*") == 0 || r->delay_us == 0) return w;
    struct timespec t = {(time_t)(r->delay_us / 1000000), (long)(r->delay_us % 1000000) * 1000};
    world_unlock();
    nanosleep(&t, NULL);
    return world_lock();
}

static int enter(uintptr_t handle, const char *function, struct world **w, struct session **s) {
    *w = dawdle(world_lock(), function);
    stats->calls++;
    if (!initialised) {
        stats->uninitialised++;
        return leave(UNINITIALIZED);
    }
    if (handle == 0 || handle > MAX_SESSIONS || !sessions[handle - 1].open) {
        stats->invalid++;
        return leave(BADPARAM);
    }
    if (*w == NULL) return leave(NVML_NOT_LOADED);
    *s = &sessions[handle - 1];
    if (!(*s)->embedded && (*s)->generation != own_rule(*w, "hostengine")) return leave(NOT_VALID);
    int result = own_rule(*w, function);
    return result == OK ? OK : leave(result);
}

// ——— opening and closing ———

EXPORT int dcgmInit(void) {
    if (!world_open("dcgm")) return NVML_NOT_LOADED;
    world_lock();
    initialised++;
    stats->initialised++;
    return leave(OK);
}

EXPORT int dcgmShutdown(void) {
    world_lock();
    if (!initialised) return leave(UNINITIALIZED);
    initialised--;
    stats->initialised--;
    if (!initialised) memset(sessions, 0, sizeof sessions);
    return leave(OK);
}

static int start(const char *function, int embedded, uintptr_t *handle) {
    struct world *w = dawdle(world_lock(), function);
    stats->calls++;
    if (!initialised) {
        stats->uninitialised++;
        return leave(UNINITIALIZED);
    }
    if (handle == NULL) return leave(BADPARAM);
    if (w == NULL) return leave(NVML_NOT_LOADED);
    int result = own_rule(w, function);
    if (result != OK) return leave(result);
    for (int i = 0; i < MAX_SESSIONS; i++) {
        if (sessions[i].open) continue;
        memset(&sessions[i], 0, sizeof sessions[i]);
        sessions[i].open = 1, sessions[i].embedded = embedded, sessions[i].generation = own_rule(w, "hostengine");
        *handle = (uintptr_t)(i + 1);
        stats->event_sets++; // here: sessions
        return leave(OK);
    }
    return leave(MAX_LIMIT);
}

EXPORT int dcgmStartEmbedded(int mode, uintptr_t *handle) {
    return mode != 1 && mode != 2 ? BADPARAM : start(__func__, 1, handle);
}

EXPORT int dcgmConnect_v2(const char *address, struct connect_params *params, uintptr_t *handle) {
    if (address == NULL || params == NULL) return BADPARAM;
    if (params->version != (16u | 2u << 24)) return VER_MISMATCH;
    if (params->is_unix != (address[0] == '/')) return NOT_VALID;
    return start(__func__, 0, handle);
}

static int stop(uintptr_t handle, int embedded) {
    world_lock();
    if (!initialised) return leave(UNINITIALIZED);
    if (handle == 0 || handle > MAX_SESSIONS || !sessions[handle - 1].open || sessions[handle - 1].embedded != embedded) {
        stats->invalid++;
        return leave(BADPARAM);
    }
    sessions[handle - 1].open = 0;
    stats->event_sets--;
    return leave(OK);
}

EXPORT int dcgmStopEmbedded(uintptr_t handle) { return stop(handle, 1); }
EXPORT int dcgmDisconnect(uintptr_t handle) { return stop(handle, 0); }
EXPORT const char *errorString(int result) { return result == OK ? "Success" : "An error of the fake"; }

// ——— what there is ———

EXPORT int dcgmGetEntityGroupEntities(uintptr_t handle, uint32_t kind, uint32_t *entities, int *count, uint32_t flags) {
    struct world *w;
    struct session *s;
    (void)flags;
    int result = enter(handle, __func__, &w, &s);
    if (result != OK) return result;
    if (entities == NULL || count == NULL) return leave(BADPARAM);
    if (kind != FE_GPU) return leave(NOT_SUPPORTED);
    int room = *count;
    *count = w->gpu_count;
    if (room < w->gpu_count) return leave(INSUFFICIENT_SIZE);
    for (int i = 0; i < w->gpu_count; i++) entities[i] = (uint32_t)i;
    return leave(OK);
}

static void add_part(struct hierarchy *h, struct world *w, int gpu, int mig, int kind) {
    struct part *p = &h->list[h->count++];
    const struct device *d = &w->gpus[gpu].mig[mig];
    memset(p, 0, sizeof *p);
    uint32_t id = (uint32_t)(gpu * MAX_MIG + mig);
    p->entity = (struct entity){(uint32_t)kind, id};
    p->parent = kind == FE_GPU_I ? (struct entity){FE_GPU, (uint32_t)gpu} : (struct entity){FE_GPU_I, id};
    snprintf(p->uuid, sizeof p->uuid, "%s", w->gpus[gpu].device.uuid);
    p->gpu_index = (uint32_t)gpu;
    p->gi = (uint32_t)d->values[KEY_GPU_INSTANCE].u;
    p->ci = kind == FE_GPU_I ? 0xffffffffu : (uint32_t)d->values[KEY_COMPUTE_INSTANCE].u;
    p->slices = (uint32_t)d->values[KEY_GPU_INSTANCE_SLICES].u;
}

EXPORT int dcgmGetGpuInstanceHierarchy(uintptr_t handle, struct hierarchy *h) {
    struct world *w;
    struct session *s;
    int result = enter(handle, __func__, &w, &s);
    if (result != OK) return result;
    if (h == NULL) return leave(BADPARAM);
    if (h->version != (sizeof *h | 2u << 24)) return leave(VER_MISMATCH);
    h->count = 0;
    for (int i = 0; i < w->gpu_count; i++) {
        for (int m = 0; m < w->gpus[i].mig_count; m++) {
            add_part(h, w, i, m, FE_GPU_I);
            add_part(h, w, i, m, FE_GPU_CI);
        }
    }
    return leave(OK);
}

// ——— watching ———

EXPORT int dcgmFieldGroupCreate(uintptr_t handle, int count, uint16_t *fields, const char *name, uintptr_t *group) {
    struct world *w;
    struct session *s;
    int result = enter(handle, __func__, &w, &s);
    if (result != OK) return result;
    if (count < 1 || count > MAX_GROUP_FIELDS || fields == NULL || name == NULL || group == NULL) return leave(BADPARAM);
    if (s->group_count == MAX_GROUPS) return leave(MAX_LIMIT);
    for (int i = 0; i < count; i++) {
        if (fields[i] == 0 || fields[i] >= MAX_FIELD) return leave(UNKNOWN_FIELD);
    }
    s->groups[s->group_count].count = count;
    memcpy(s->groups[s->group_count].fields, fields, (size_t)count * sizeof *fields);
    *group = (uintptr_t)++s->group_count;
    return leave(OK);
}

EXPORT int dcgmWatchFields(uintptr_t handle, uintptr_t group, uintptr_t field_group, long long every_us, double keep_seconds, int keep) {
    struct world *w;
    struct session *s;
    int result = enter(handle, __func__, &w, &s);
    if (result != OK) return result;
    if (group != GROUP_ALL_GPUS && group != GROUP_ALL_INSTANCES) return leave(BADPARAM);
    if (field_group == 0 || (int)field_group > s->group_count) return leave(BADPARAM);
    if (every_us < 1000 || !(keep_seconds >= 1) || keep < 0) return leave(BADPARAM);
    int profiling = own_rule(w, "profiling");
    for (int i = 0; i < s->groups[field_group - 1].count; i++) {
        if (s->groups[field_group - 1].fields[i] >= 1001 && profiling != OK) return leave(profiling);
    }
    for (int i = 0; i < s->groups[field_group - 1].count; i++) {
        s->watched[group == GROUP_ALL_INSTANCES][s->groups[field_group - 1].fields[i]] = 1;
    }
    return leave(OK);
}

EXPORT int dcgmUpdateAllFields(uintptr_t handle, int wait) {
    struct world *w;
    struct session *s;
    int result = enter(handle, __func__, &w, &s);
    if (result != OK) return result;
    return leave(wait == 0 || wait == 1 ? OK : BADPARAM);
}

// ——— values ———

static void put_int(struct field_value *v, struct value from) {
    v->type = 'i';
    v->value.i64 = !from.known ? INT64_BLANK + 2 : from.u == UINT64_MAX ? INT64_BLANK : (int64_t)from.u;
}

static void put_double(struct field_value *v, struct value from, double scale) {
    v->type = 'd';
    v->value.dbl = !from.known ? FP64_BLANK + 2 : from.u == UINT64_MAX ? FP64_BLANK : from.d * scale;
}

static void put_mebibytes(struct field_value *v, struct value from) {
    if (from.known && from.u != UINT64_MAX) from.u = (uint64_t)(from.d / MIB);
    put_int(v, from);
}

static void put_text(struct field_value *v, const char *text) {
    v->type = 's';
    snprintf(v->value.str, sizeof v->value.str, "%s", text[0] == '\0' ? "<<<NOT_SUPPORTED>>>" : text);
}

static struct value nvml_field(const struct device *d, unsigned id) {
    for (int i = 0; i < d->field_count; i++) {
        if (d->fields[i].id == id) return d->fields[i].value;
    }
    return (struct value){0, 0, 0};
}

// The last Xid of a GPU, and when this library heard of it.
static void put_xid(struct field_value *v, const struct world *w, int gpu) {
    v->type = 'i';
    v->status = NO_DATA;
    v->value.i64 = INT64_BLANK + 1;
    for (int i = w->event_count - 1; i >= 0; i--) {
        if (w->events[i].gpu != gpu || w->events[i].type != 8) continue;
        if (last_xid[gpu].sequence != w->events[i].sequence) {
            last_xid[gpu].sequence = w->events[i].sequence;
            last_xid[gpu].ts = now_us();
        }
        v->status = OK;
        v->value.i64 = (int64_t)w->events[i].data;
        v->ts = last_xid[gpu].ts;
        return;
    }
}

static void put_profiling(struct field_value *v, const struct device *d, int field) {
    static const int gpm[] = {1, 2, 3, 5, 10, 11, 12, 13, 20, 21, 61, 60}; // from field 1001 on
    put_double(v, d->gpm[gpm[field - 1001]], field <= 1008 ? 0.01 : MIB);
}

// What a GPU and an instance both have.
static int put_common(struct field_value *v, const struct device *d, int field) {
    struct value free = d->values[KEY_MEMORY_TOTAL];
    switch (field) {
    case 250: put_mebibytes(v, d->values[KEY_MEMORY_TOTAL]); return 1;
    case 251:
        free.d -= d->values[KEY_MEMORY_USED].d + d->values[KEY_MEMORY_RESERVED].d;
        put_mebibytes(v, free);
        return 1;
    case 252: put_mebibytes(v, d->values[KEY_MEMORY_USED]); return 1;
    case 253: put_mebibytes(v, d->values[KEY_MEMORY_RESERVED]); return 1;
    }
    if (field < 1001 || field > 1012) return 0;
    put_profiling(v, d, field);
    return 1;
}

static void put_gpu(struct field_value *v, struct world *w, int gpu) {
    static const struct { int field; enum key key; } ints[] = {
        {55, KEY_MINOR}, {67, KEY_MIG_CURRENT}, {100, KEY_CLOCK_SM}, {101, KEY_CLOCK_MEMORY}, {102, KEY_CLOCK_VIDEO}, {112, KEY_EVENT_REASONS},
        {140, KEY_TEMPERATURE_MEMORY}, {150, KEY_TEMPERATURE}, {156, KEY_ENERGY}, {158, KEY_TEMPERATURE_SLOWDOWN}, {159, KEY_TEMPERATURE_SHUTDOWN},
        {202, KEY_PCIE_REPLAY}, {203, KEY_UTILIZATION_GPU}, {204, KEY_UTILIZATION_MEMORY}, {206, KEY_UTILIZATION_ENCODER},
        {207, KEY_UTILIZATION_DECODER}, {312, KEY_ECC_CORRECTED_AGGREGATE}, {313, KEY_ECC_UNCORRECTED_AGGREGATE},
        {393, KEY_REMAPPED_UNCORRECTABLE}, {394, KEY_REMAPPED_CORRECTABLE}, {395, KEY_REMAPPED_FAILURE}, {396, KEY_REMAPPED_PENDING},
    };
    const struct device *d = &w->gpus[gpu].device;
    if (put_common(v, d, v->field)) return;
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
        if (ints[i].field == v->field) {
            put_int(v, d->values[ints[i].key]);
            return;
        }
    }
    switch (v->field) {
    case 1: put_text(v, w->driver); return;
    case 50: put_text(v, d->name); return;
    case 52: v->type = 'i', v->value.i64 = gpu; return;
    case 53: put_text(v, d->serial); return;
    case 54: put_text(v, d->uuid); return;
    case 57: put_text(v, d->bus_id); return;
    case 68: put_text(v, d->uuid); return;
    case 85: put_text(v, d->vbios); return;
    case 155: put_double(v, d->values[KEY_POWER], 0.001); return;
    case 157: put_double(v, d->values[KEY_POWER_INSTANT], 0.001); return;
    case 160: put_double(v, d->values[KEY_POWER_LIMIT], 0.001); return;
    case 164: put_double(v, d->values[KEY_POWER_LIMIT_ENFORCED], 0.001); return;
    case 230: put_xid(v, w, gpu); return;
    }
    if (v->field >= 240 && v->field <= 245) put_int(v, nvml_field(d, (unsigned)v->field - 240 + 74));
    else if (v->field == 246 || v->field == 247) put_int(v, nvml_field(d, (unsigned)v->field - 246 + 80));
    else put_int(v, (struct value){0, 0, 0});
}

static void put_instance(struct field_value *v, struct world *w, int gpu, int mig) {
    const struct device *d = &w->gpus[gpu].mig[mig];
    if (put_common(v, d, v->field)) return;
    const char *profile = strstr(d->name, "MIG ");
    switch (v->field) {
    case 50: put_text(v, profile == NULL ? "" : profile + 4); return;
    case 68: put_text(v, d->uuid); return;
    default: put_int(v, (struct value){0, 0, 0});
    }
}

static int put_value(struct field_value *v, struct world *w, struct session *s, struct entity e, uint16_t field, int live) {
    if (v->version != (sizeof *v | 2u << 24)) return VER_MISMATCH;
    int whole = e.kind == FE_GPU;
    int gpu = whole ? (int)e.id : (int)e.id / MAX_MIG, mig = whole ? -1 : (int)e.id % MAX_MIG;
    if ((!whole && e.kind != FE_GPU_I && e.kind != FE_GPU_CI) || gpu >= w->gpu_count || (mig >= 0 && mig >= w->gpus[gpu].mig_count)) return BADPARAM;
    v->kind = e.kind, v->entity = e.id, v->field = field, v->status = OK, v->ts = now_us();
    whole ? put_gpu(v, w, gpu) : put_instance(v, w, gpu, mig);
    char name[32];
    snprintf(name, sizeof name, "dcgm.%u", field);
    const struct rule *r = world_rule(w, name, gpu, mig);
    int result = r == NULL ? 0 : r->result;
    if (!live && !s->watched[!whole][field]) result = NOT_WATCHED;
    if (r != NULL && strcmp(r->function, "*") == 0) result = r->result == 15 ? IS_LOST : r->result == 16 ? RESET_REQUIRED : NO_DATA;
    if (result == 1) memset(&v->value, 0, 16);
    if (result == 2) v->ts -= 3600 * 1000000LL;
    if (result >= 0) return OK;
    v->status = result;
    if (v->type == 'd') v->value.dbl = FP64_BLANK;
    else if (v->type == 'i') v->value.i64 = INT64_BLANK;
    else snprintf(v->value.str, sizeof v->value.str, "<<<NULL>>>");
    return OK;
}

EXPORT int dcgmEntitiesGetLatestValues(uintptr_t handle, struct entity *entities, unsigned entity_count, uint16_t *fields, unsigned field_count,
                                       unsigned flags, struct field_value *values) {
    struct world *w;
    struct session *s;
    int result = enter(handle, __func__, &w, &s);
    if (result != OK) return result;
    if (entities == NULL || fields == NULL || values == NULL || entity_count == 0 || field_count == 0) return leave(BADPARAM);
    for (unsigned f = 0; f < field_count; f++) { // not in the order of the entities: DCGM does not promise any
        for (unsigned e = 0; e < entity_count; e++) {
            result = put_value(values++, w, s, entities[e], fields[f], (flags & 1) != 0);
            if (result != OK) return leave(result);
        }
    }
    return leave(OK);
}
