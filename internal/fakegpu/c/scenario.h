// SPDX-License-Identifier: Apache-2.0
//
// The world that the fake libraries show: a file of lines, read again when it has changed. See scenario.go for the lines.
#ifndef OTELCOL_LLM_FAKEGPU_SCENARIO_H
#define OTELCOL_LLM_FAKEGPU_SCENARIO_H

#include <stddef.h>
#include <stdint.h>

#define MAX_GPUS 16
#define MAX_MIG 8
#define MAX_PROCESSES 512
#define MAX_FIELDS 32
#define MAX_RULES 64
#define MAX_EVENTS 256
#define MAX_GPM 128

enum key {
#define X(id, name) KEY_##id,
#include "keys.def"
#undef X
    KEYS
};

// A number as written: as an integer (blank is all ones, as a driver writes it) and as a fraction.
struct value {
    int known;
    uint64_t u;
    double d;
};

struct field {
    unsigned id;
    struct value value;
};

// A GPU, or an instance of one.
struct device {
    char uuid[96], name[96], serial[32], vbios[32], bus_id[32];
    struct value values[KEYS];
    struct value gpm[MAX_GPM];
    struct field fields[MAX_FIELDS]; // NVML fields that have no key
    int field_count;
};

enum kind { COMPUTE, GRAPHICS, MPS };

struct process {
    enum kind kind;
    unsigned pid;
    uint64_t memory;
    unsigned gi, ci; // 0xFFFFFFFF off MIG
    int active;      // has a utilization sample
    unsigned sm, mem, enc, dec;
};

struct gpu {
    struct device device;
    struct device mig[MAX_MIG];
    int mig_count;
    struct process processes[MAX_PROCESSES];
    int process_count;
};

// A function that fails or is slow. "*" is every function, -1 every GPU, and mig -1 the GPU with all its instances.
struct rule {
    char function[64];
    int gpu, mig;
    int result;
    unsigned delay_us;
};

struct event {
    uint64_t sequence;
    int gpu;
    uint64_t type, data;
    unsigned gi, ci;
};

struct world {
    char driver[80], nvml[80];
    int cuda;
    unsigned fields;    // the first field that this driver does not know; 0 when it knows all
    int wide_processes; // 32 bytes a process where callers expect 24, as some 535 drivers wrote
    struct gpu gpus[MAX_GPUS];
    int gpu_count;
    struct rule rules[MAX_RULES];
    int rule_count;
    struct event events[MAX_EVENTS];
    int event_count;
};

// What a fake counts, mapped from <scenario>.<library>.stats so that a test can look while the library is in use elsewhere.
// Go reads it by the same order: stats.go.
struct stats {
    uint64_t initialised, event_sets, gpm_samples, calls, uninitialised, invalid, waiting, pcie_throughput, reloads;
};

// world_open reads the file that OTELCOL_LLM_FAKEGPU names, for the library "nvml" or "dcgm". 0 when there is no such file
// or it says something unknown.
int world_open(const char *library);

// world_lock returns the world as the file has it now, NULL when there is none; always call world_unlock after it.
struct world *world_lock(void);
void world_unlock(void);

// The counters; between world_lock and world_unlock only.
extern struct stats *stats;

// The rule for this function and device, NULL when there is none.
const struct rule *world_rule(const struct world *w, const char *function, int gpu, int mig);

#endif
