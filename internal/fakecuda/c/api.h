// SPDX-License-Identifier: Apache-2.0
// What of CUDA's headers the workload needs.
#pragma once
#include <stddef.h>

typedef unsigned long long address;
struct extent { size_t width, height, depth; };
struct pitched { address address; size_t pitch, width, height; };
struct dim3 { unsigned x, y, z; };

int cudaMalloc(address *, size_t);
int cudaMallocManaged(address *, size_t, unsigned);
int cudaMallocAsync(address *, size_t, void *);
int cudaMallocAsync_ptsz(address *, size_t, void *);
int cudaMallocFromPoolAsync(address *, size_t, void *, void *);
int cudaMallocPitch(address *, size_t *, size_t, size_t);
int cudaMalloc3D(struct pitched *, struct extent);
int cudaMallocHost(address *, size_t);
int cudaFree(address);
int cudaFreeAsync(address, void *);
int cudaFreeHost(address);
int cudaSetDevice(int);
int cudaDeviceReset(void);
int cudaLaunchKernel(void *, struct dim3, struct dim3, void **, size_t, void *);

int cuMemAlloc_v2(address *, size_t);
int cuMemAllocManaged(address *, size_t, unsigned);
int cuMemAllocAsync(address *, size_t, void *);
int cuMemAllocAsync_ptsz(address *, size_t, void *);
int cuMemAllocFromPoolAsync(address *, size_t, void *, void *);
int cuMemAllocPitch_v2(address *, size_t *, size_t, size_t, unsigned);
int cuMemCreate(address *, size_t, const void *, unsigned long long);
int cuMemFree_v2(address);
int cuMemFreeAsync(address, void *);
int cuMemFreeAsync_ptsz(address, void *);
int cuMemRelease(address);
int cuMemRetainAllocationHandle(address *, address);
int cuMemImportFromShareableHandle(address *, void *, int);
int cuMulticastCreate(address *, const void *);
int cuMemPoolImportPointer(address *, void *, void *);
int cuMemMap(address, size_t, size_t, address, unsigned long long);
int cuMemUnmap(address, size_t);
int cuDevicePrimaryCtxRetain(address *, int);
int cuDevicePrimaryCtxReset_v2(int);
int cuCtxCreate_v2(address *, unsigned, int);
int cuCtxDestroy_v2(address);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
int cuLaunchKernelEx(const void *, void *, void **, void **);
