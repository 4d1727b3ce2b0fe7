// SPDX-License-Identifier: Apache-2.0
//
// What the files of the fake NVML share: finding the device of a handle, under the lock of the world.
#ifndef OTELCOL_LLM_FAKEGPU_FAKENVML_H
#define OTELCOL_LLM_FAKEGPU_FAKENVML_H

#include "nvml.h"
#include "scenario.h"

#define EXPORT __attribute__((visibility("default")))
#define NO_INSTANCE 0xFFFFFFFFu

// Where a handle leads. device is the GPU's own, or that of an instance when mig is not -1.
struct place {
    struct world *world;
    struct gpu *gpu;
    struct device *device;
    int index, mig;
};

// Which handles a function takes: NVML refuses most on an instance.
enum takes { GPU_ONLY, GPU_OR_MIG };

// enter locks the world and finds the device; when it returns anything but NVML_SUCCESS, it has unlocked again.
nvmlReturn_t enter(const char *function, nvmlDevice_t handle, enum takes takes, struct place *place);
// enter_library is enter for what has no device.
nvmlReturn_t enter_library(const char *function, struct world **world);
// enter_free is enter_library for what gives memory of the library back: that works without a driver, too.
nvmlReturn_t enter_free(void);
nvmlReturn_t leave(nvmlReturn_t result);

// handle_of returns the handle for GPU index (mig -1) or for one of its instances.
nvmlDevice_t handle_of(struct world *world, int index, int mig);

// The common shapes: a number of the scenario, NOT_SUPPORTED when it has none, and a text with its buffer's size.
nvmlReturn_t get_u64(const char *function, nvmlDevice_t handle, enum takes takes, enum key key, unsigned long long *out);
nvmlReturn_t get_u32(const char *function, nvmlDevice_t handle, enum takes takes, enum key key, unsigned int *out);
nvmlReturn_t put_text(const char *text, char *out, unsigned int length);

uint64_t now_us(void);
void sleep_us(uint64_t us);

#endif
