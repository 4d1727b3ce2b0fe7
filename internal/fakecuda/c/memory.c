// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static const unsigned long long capacity = 80ULL << 30;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Slot i has the address base + (i << 21), as if all were of 2 MiB.
static const unsigned long long base = 0x7f0000000000;
static size_t *sizes;    // + 1; 0: not allocated
static int *owners;
static unsigned *holds; // but the first one
static unsigned *unused; // slots that were freed
static size_t slots, unused_count, room;
static unsigned long long used;

static __thread int current;

int memory_use(int owner) { return current = owner, SUCCESS; }

int memory_alloc(unsigned long long *out, size_t size) { return memory_alloc_of(current, out, size); }

int memory_alloc_of(int owner, unsigned long long *out, size_t size)
{
	if (!out)
		return INVALID_VALUE;
	*out = 0;
	if (!size)
		return SUCCESS;
	pthread_mutex_lock(&lock);
	int result = OUT_OF_MEMORY;
	if (size <= capacity - used) {
		size_t slot;
		if (unused_count) {
			slot = unused[--unused_count];
		} else {
			if (slots == room) {
				room = room ? 2 * room : 1024;
				sizes = realloc(sizes, room * sizeof *sizes);
				owners = realloc(owners, room * sizeof *owners);
				holds = realloc(holds, room * sizeof *holds);
				unused = realloc(unused, room * sizeof *unused);
			}
			slot = slots++;
		}
		sizes[slot] = size + 1;
		owners[slot] = owner;
		holds[slot] = 0;
		used += size;
		*out = base + ((unsigned long long)slot << 21);
		result = SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

int memory_free(unsigned long long address)
{
	if (!address)
		return SUCCESS;
	size_t slot = (address - base) >> 21;
	pthread_mutex_lock(&lock);
	int result = INVALID_VALUE;
	if (address >= base && slot < slots && sizes[slot] && holds[slot]) {
		holds[slot]--;
		result = SUCCESS;
	} else if (address >= base && slot < slots && sizes[slot]) {
		used -= sizes[slot] - 1;
		sizes[slot] = 0;
		unused[unused_count++] = slot;
		result = SUCCESS;
	} else if (address >> 60 == 1) { // foreign, and the workload's unknown ones
		result = SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

int memory_hold(unsigned long long address)
{
	size_t slot = (address - base) >> 21;
	pthread_mutex_lock(&lock);
	int known = address >= base && slot < slots && sizes[slot];
	if (known)
		holds[slot]++;
	pthread_mutex_unlock(&lock);
	return known || address >> 60 == 1 ? SUCCESS : INVALID_VALUE;
}

int memory_foreign(unsigned long long *out)
{
	static unsigned long long n;
	*out = (1ULL << 60) + (__sync_add_and_fetch(&n, 1) << 40);
	return SUCCESS;
}

int memory_reset(int owner)
{
	pthread_mutex_lock(&lock);
	for (size_t slot = 0; slot < slots; slot++)
		if (sizes[slot] && owners[slot] == owner) {
			used -= sizes[slot] - 1;
			sizes[slot] = 0;
			unused[unused_count++] = slot;
		}
	pthread_mutex_unlock(&lock);
	return SUCCESS;
}

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// FAKECUDA_LAUNCH_NS is how long a launch takes, at least.
int kernel_run(void)
{
	static long long takes = -1;
	if (takes < 0) {
		const char *text = getenv("FAKECUDA_LAUNCH_NS");
		takes = text ? atoll(text) : 0;
	}
	if (takes)
		for (long long end = now() + takes; now() < end;)
			;
	return SUCCESS;
}
