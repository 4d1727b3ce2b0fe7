// SPDX-License-Identifier: Apache-2.0
// A fake libcuda.so.1.
#include "memory.h"

#include <signal.h>

#define API __attribute__((visibility("default"), noinline))

typedef unsigned long long CUdeviceptr;

API int cuMemAlloc_v2(CUdeviceptr *out, size_t size) { return memory_alloc(out, size); }
API int cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned flags) { return flags ? memory_alloc(out, size) : INVALID_VALUE; }
API int cuMemAllocAsync(CUdeviceptr *out, size_t size, void *stream) { return (void)stream, memory_alloc(out, size); }
API int cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t size, void *stream) { return (void)stream, memory_alloc(out, size); }
API int cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, void *pool, void *stream) { return (void)pool, (void)stream, memory_alloc(out, size); }

API int cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
	(void)element;
	*pitch = (width + 511) / 512 * 512;
	return memory_alloc(out, *pitch * height);
}

API int cuMemFree_v2(CUdeviceptr address) { return memory_free(address); }
API int cuMemFreeAsync(CUdeviceptr address, void *stream) { return (void)stream, memory_free(address); }
API int cuMemFreeAsync_ptsz(CUdeviceptr address, void *stream) { return (void)stream, memory_free(address); }

struct properties {
	int kind, handles, location, id;
};

API int cuMemCreate(unsigned long long *handle, size_t size, const struct properties *what, unsigned long long flags)
{
	return what && !flags ? memory_alloc_of(NOBODY, handle, size) : INVALID_VALUE;
}

API int cuMemRelease(unsigned long long handle) { return handle ? memory_free(handle) : INVALID_VALUE; }

// What is mapped, for one thread.
static struct { unsigned long long address, size, handle; } mappings[1 << 12];
static unsigned mapped;

static int find(unsigned long long address)
{
	for (unsigned i = 0; i < mapped; i++)
		if (mappings[i].address == address)
			return i;
	return -1;
}

API int cuMemMap(unsigned long long address, size_t size, size_t offset, unsigned long long handle, unsigned long long flags)
{
	if (!size || offset || flags || mapped == sizeof mappings / sizeof *mappings || find(address) >= 0 || memory_hold(handle))
		return INVALID_VALUE;
	mappings[mapped].address = address, mappings[mapped].size = size, mappings[mapped++].handle = handle;
	return SUCCESS;
}

// Whole mappings, one or several in a row.
API int cuMemUnmap(unsigned long long address, size_t size)
{
	unsigned long long at = address, end = address + size;
	while (at < end) {
		int i = find(at);
		if (i < 0 || mappings[i].size > end - at)
			return INVALID_VALUE;
		at += mappings[i].size;
	}
	for (at = address; at < end;) {
		int i = find(at);
		at += mappings[i].size;
		memory_free(mappings[i].handle);
		mappings[i] = mappings[--mapped];
	}
	return SUCCESS;
}

API int cuMemRetainAllocationHandle(unsigned long long *out, unsigned long long address)
{
	int i = find(address);
	return i < 0 ? INVALID_VALUE : memory_hold(*out = mappings[i].handle);
}

API int cuMemImportFromShareableHandle(unsigned long long *out, void *handle, int type) { return (void)handle, (void)type, memory_foreign(out); }
API int cuMulticastCreate(unsigned long long *out, const void *what) { return (void)what, memory_foreign(out); }
API int cuMemPoolImportPointer(CUdeviceptr *out, void *pool, void *data) { return (void)pool, (void)data, memory_foreign(out); }

// A context is its owner's number and one, for none to be NULL.
typedef unsigned long long CUcontext;

static __attribute__((noinline)) int primary(CUcontext *out, int device)
{
	return device >= 0 && device < CONTEXTS ? *out = device + 1, SUCCESS : INVALID_VALUE;
}

API int cuDevicePrimaryCtxRetain(CUcontext *out, int device) { return primary(out, device); }

API int cuCtxSetCurrent(CUcontext context) { return context ? memory_use(context - 1) : INVALID_VALUE; }
API int cuDevicePrimaryCtxReset_v2(int device) { return memory_reset(device); }

API int cuCtxCreate_v2(CUcontext *out, unsigned flags, int device)
{
	static int created;
	if (flags || device < 0 || device >= CONTEXTS)
		return INVALID_VALUE;
	*out = CONTEXTS + __sync_add_and_fetch(&created, 1);
	return cuCtxSetCurrent(*out);
}

API int cuCtxDestroy_v2(CUcontext context) { return context > CONTEXTS ? memory_reset(context - 1) : INVALID_VALUE; }

API int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
	(void)shared, (void)stream, (void)params, (void)extra;
	if (function == (void *)8) // which the workload's leave has
		raise(SIGSEGV);
	return gx && gy && gz && bx && by && bz ? kernel_run() : INVALID_VALUE;
}

API int cuLaunchKernelEx(const void *config, void *function, void **params, void **extra)
{
	return (void)function, (void)params, (void)extra, config ? kernel_run() : INVALID_VALUE;
}
