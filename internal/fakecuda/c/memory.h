// SPDX-License-Identifier: Apache-2.0
// Addresses and handles without memory behind them, shared by the threads of a process.
#pragma once
#include <stddef.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2 };

// Whose memory is: a device's number is its primary context, from CONTEXTS on they are those that were created. Memory of NOBODY stays
// when a context goes.
enum { CONTEXTS = 64, NOBODY = -1 };

int memory_alloc(unsigned long long *out, size_t size);
int memory_alloc_of(int owner, unsigned long long *out, size_t size);
int memory_free(unsigned long long address);
// memory_hold makes memory take one more memory_free.
int memory_hold(unsigned long long address);
// memory_foreign is memory of another process, of which memory_free says that all is well.
int memory_foreign(unsigned long long *out);
// memory_use says in which context this thread allocates.
int memory_use(int owner);
// memory_reset frees all that a context has.
int memory_reset(int owner);
int kernel_run(void);
