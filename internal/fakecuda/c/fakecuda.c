// SPDX-License-Identifier: Apache-2.0
// A fake libcuda.so.1.
#include "memory.h"

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
	return what && !flags ? memory_alloc(handle, size) : INVALID_VALUE;
}

API int cuMemRelease(unsigned long long handle) { return handle ? memory_free(handle) : INVALID_VALUE; }

API int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
	(void)function, (void)shared, (void)stream, (void)params, (void)extra;
	return gx && gy && gz && bx && by && bz ? kernel_run() : INVALID_VALUE;
}

API int cuLaunchKernelEx(const void *config, void *function, void **params, void **extra)
{
	return (void)function, (void)params, (void)extra, config ? kernel_run() : INVALID_VALUE;
}
