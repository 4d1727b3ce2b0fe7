// SPDX-License-Identifier: Apache-2.0
// Addresses and handles without memory behind them, shared by the threads of a process.
#pragma once
#include <stddef.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2 };

int memory_alloc(unsigned long long *out, size_t size);
int memory_free(unsigned long long address);
int kernel_run(void);
