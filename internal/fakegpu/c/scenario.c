// SPDX-License-Identifier: Apache-2.0

#include "scenario.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// The file is looked at when this time has passed since the last look: a look at each call would cost more than the call.
#define LOOK_EVERY_NS 1000000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct world worlds[2];
static struct world *now; // one of worlds, or NULL
static char path[4096];
static struct stat seen;
static uint64_t looked;
static struct stats unmapped;
struct stats *stats = &unmapped;

static const char *const key_names[KEYS] = {
#define X(id, name) name,
#include "keys.def"
#undef X
};

static int fail(const char *line, const char *why) {
    fprintf(stderr, "fakegpu: %s: %s in: %s\n", path, why, line);
    return 0;
}

static struct value number(const char *text) {
    struct value v = {1, 0, 0};
    if (strcmp(text, "blank") == 0) {
        v.u = UINT64_MAX;
        v.d = NAN;
        return v;
    }
    v.u = text[0] == '-' ? (uint64_t)strtoll(text, NULL, 10) : strtoull(text, NULL, 10);
    v.d = strtod(text, NULL);
    return v;
}

static int set_text(char *to, size_t size, const char *text) {
    snprintf(to, size, "%s", text);
    return 1;
}

static int set_field(struct device *d, unsigned id, const char *text) {
    if (d->field_count == MAX_FIELDS) return 0;
    d->fields[d->field_count++] = (struct field){id, number(text)};
    return 1;
}

static int set(struct device *d, const char *key, const char *text) {
    if (strcmp(key, "uuid") == 0) return set_text(d->uuid, sizeof d->uuid, text);
    if (strcmp(key, "name") == 0) return set_text(d->name, sizeof d->name, text);
    if (strcmp(key, "serial") == 0) return set_text(d->serial, sizeof d->serial, text);
    if (strcmp(key, "vbios") == 0) return set_text(d->vbios, sizeof d->vbios, text);
    if (strcmp(key, "bus_id") == 0) return set_text(d->bus_id, sizeof d->bus_id, text);
    if (strncmp(key, "field.", 6) == 0) return set_field(d, (unsigned)atoi(key + 6), text);
    if (strncmp(key, "gpm.", 4) == 0) {
        int id = atoi(key + 4);
        if (id <= 0 || id >= MAX_GPM) return 0;
        d->gpm[id] = number(text);
        return 1;
    }
    for (int k = 0; k < KEYS; k++) {
        if (strcmp(key, key_names[k]) == 0) {
            d->values[k] = number(text);
            return 1;
        }
    }
    return 0;
}

static int system_line(struct world *w, const char *key, const char *text) {
    if (strcmp(key, "driver") == 0) return set_text(w->driver, sizeof w->driver, text);
    if (strcmp(key, "nvml") == 0) return set_text(w->nvml, sizeof w->nvml, text);
    if (strcmp(key, "cuda") == 0) return w->cuda = atoi(text), 1;
    if (strcmp(key, "fields") == 0) return w->fields = (unsigned)atoi(text), 1;
    if (strcmp(key, "wide_processes") == 0) return w->wide_processes = atoi(text), 1;
    return 0;
}

static int process_line(struct world *w, const char *line) {
    int gpu, gi, ci, sm, mem, enc, dec;
    unsigned pid;
    char kind[16], memory[32];
    if (sscanf(line, "process %d %15s %u %31s %d %d %d %d %d %d", &gpu, kind, &pid, memory, &gi, &ci, &sm, &mem, &enc, &dec) != 10) return 0;
    if (gpu < 0 || gpu >= w->gpu_count || w->gpus[gpu].process_count == MAX_PROCESSES) return 0;
    struct process p = {COMPUTE, pid, number(memory).u, (unsigned)gi, (unsigned)ci, sm != -1, (unsigned)sm, (unsigned)mem, (unsigned)enc, (unsigned)dec};
    if (strcmp(kind, "graphics") == 0) p.kind = GRAPHICS;
    else if (strcmp(kind, "mps") == 0) p.kind = MPS;
    else if (strcmp(kind, "compute") != 0) return 0;
    w->gpus[gpu].processes[w->gpus[gpu].process_count++] = p;
    return 1;
}

static int rule_line(struct world *w, const char *line) {
    struct rule r = {.gpu = -1, .mig = -1};
    if (sscanf(line, "rule %63s %d %d %d %u", r.function, &r.gpu, &r.mig, &r.result, &r.delay_us) != 5) return 0;
    if (w->rule_count == MAX_RULES) return 0;
    w->rules[w->rule_count++] = r;
    return 1;
}

static int event_line(struct world *w, const char *line) {
    struct event e;
    unsigned long long sequence, type, data;
    int gi, ci;
    if (sscanf(line, "event %llu %d %llu %llu %d %d", &sequence, &e.gpu, &type, &data, &gi, &ci) != 6) return 0;
    if (w->event_count == MAX_EVENTS) return 0;
    e.sequence = sequence, e.type = type, e.data = data, e.gi = (unsigned)gi, e.ci = (unsigned)ci;
    w->events[w->event_count++] = e;
    return 1;
}

static int device_line(struct world *w, char *line) {
    int gpu, mig, used = 0;
    char key[64];
    struct device *d = NULL;
    if (sscanf(line, "gpu %d %63s %n", &gpu, key, &used) == 2 && used > 0) {
        if (gpu < 0 || gpu >= MAX_GPUS) return 0;
        if (gpu >= w->gpu_count) w->gpu_count = gpu + 1;
        d = &w->gpus[gpu].device;
    } else if (sscanf(line, "mig %d %d %63s %n", &gpu, &mig, key, &used) == 3 && used > 0) {
        if (gpu < 0 || gpu >= w->gpu_count || mig < 0 || mig >= MAX_MIG) return 0;
        struct gpu *g = &w->gpus[gpu];
        if (mig >= g->mig_count) g->mig_count = mig + 1;
        d = &g->mig[mig];
    }
    return d != NULL && set(d, key, line + used);
}

static int read_line(struct world *w, char *line) {
    char key[64];
    int used = 0;
    if (line[0] == '\0' || line[0] == '#') return 1;
    if (strncmp(line, "gpu ", 4) == 0 || strncmp(line, "mig ", 4) == 0) return device_line(w, line);
    if (strncmp(line, "process ", 8) == 0) return process_line(w, line);
    if (strncmp(line, "rule ", 5) == 0) return rule_line(w, line);
    if (strncmp(line, "event ", 6) == 0) return event_line(w, line);
    return sscanf(line, "system %63s %n", key, &used) == 1 && used > 0 && system_line(w, key, line + used);
}

static int load(struct world *w) {
    FILE *file = fopen(path, "re");
    if (file == NULL) return 0;
    memset(w, 0, sizeof *w);
    char line[512];
    int ok = 1;
    while (ok && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (!read_line(w, line)) ok = fail(line, "what does not belong there");
    }
    fclose(file);
    return ok;
}

static void look(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t at = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    if (looked != 0 && at - looked < LOOK_EVERY_NS) return;
    looked = at;
    struct stat s;
    if (path[0] == '\0' || stat(path, &s) != 0) {
        now = NULL;
        memset(&seen, 0, sizeof seen);
        return;
    }
    if (s.st_ino == seen.st_ino && s.st_size == seen.st_size && s.st_mtim.tv_sec == seen.st_mtim.tv_sec && s.st_mtim.tv_nsec == seen.st_mtim.tv_nsec) return;
    seen = s;
    struct world *next = now == &worlds[0] ? &worlds[1] : &worlds[0];
    now = load(next) ? next : NULL;
    stats->reloads++;
}

static void map_stats(const char *library) {
    char name[sizeof path + 32];
    snprintf(name, sizeof name, "%s.%s.stats", path, library);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return;
    if (ftruncate(fd, sizeof *stats) == 0) {
        void *p = mmap(NULL, sizeof *stats, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p != MAP_FAILED) {
            stats = p;
            memset(stats, 0, sizeof *stats);
        }
    }
    close(fd);
}

int world_open(const char *library) {
    pthread_mutex_lock(&mutex);
    const char *named = getenv("OTELCOL_LLM_FAKEGPU");
    if (named == NULL) named = "";
    if (strcmp(named, path) != 0) {
        snprintf(path, sizeof path, "%s", named);
        map_stats(library);
    }
    looked = 0;
    look();
    int ok = now != NULL;
    pthread_mutex_unlock(&mutex);
    return ok;
}

struct world *world_lock(void) {
    pthread_mutex_lock(&mutex);
    look();
    return now;
}

void world_unlock(void) { pthread_mutex_unlock(&mutex); }

const struct rule *world_rule(const struct world *w, const char *function, int gpu, int mig) {
    for (int i = 0; i < w->rule_count; i++) {
        const struct rule *r = &w->rules[i];
        if (r->gpu != -1 && r->gpu != gpu) continue;
        if (r->mig == -2 ? mig != -1 : r->mig != -1 && r->mig != mig) continue;
        if (strcmp(r->function, "*") == 0 || strcmp(r->function, function) == 0) return r;
    }
    return NULL;
}
