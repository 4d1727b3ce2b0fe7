// SPDX-License-Identifier: Apache-2.0
// A fake libcudart: calls the driver that it finds, as the real one does, or has memory of its own where there is none.
#include "memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#define API __attribute__((visibility("default"), noinline))

static struct {
	int (*alloc)(unsigned long long *, size_t);
	int (*managed)(unsigned long long *, size_t, unsigned);
	int (*async)(unsigned long long *, size_t, void *);
	int (*pool)(unsigned long long *, size_t, void *, void *);
	int (*pitch)(unsigned long long *, size_t *, size_t, size_t, unsigned);
	int (*free)(unsigned long long);
	int (*free_async)(unsigned long long, void *);
	int (*retain)(unsigned long long *, int);
	int (*use)(unsigned long long);
	int (*reset)(int);
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
} driver;

static void find_driver(void)
{
	char path[4096] = "libcuda.so.1";
	Dl_info self;
	// Beside the runtime. A static runtime has only what the linker finds.
	if (dladdr(&driver, &self) && strstr(self.dli_fname, "libcudart") && strlen(self.dli_fname) < 4000)
		strcpy(strrchr(strcpy(path, self.dli_fname), '/') + 1, "libcuda.so.1");
	void *library = dlopen(path, RTLD_NOW);
	if (!library)
		return;
	driver.managed = dlsym(library, "cuMemAllocManaged");
	driver.async = dlsym(library, "cuMemAllocAsync");
	driver.pool = dlsym(library, "cuMemAllocFromPoolAsync");
	driver.pitch = dlsym(library, "cuMemAllocPitch_v2");
	driver.free = dlsym(library, "cuMemFree_v2");
	driver.free_async = dlsym(library, "cuMemFreeAsync");
	driver.retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	driver.use = dlsym(library, "cuCtxSetCurrent");
	driver.reset = dlsym(library, "cuDevicePrimaryCtxReset_v2");
	driver.launch = dlsym(library, "cuLaunchKernel");
	driver.alloc = dlsym(library, "cuMemAlloc_v2");
}

static int have_driver(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, find_driver);
	return driver.alloc != 0;
}

API int cudaMalloc(unsigned long long *out, size_t size)
{
	return have_driver() ? driver.alloc(out, size) : memory_alloc(out, size);
}

API int cudaMallocManaged(unsigned long long *out, size_t size, unsigned flags)
{
	return have_driver() ? driver.managed(out, size, flags) : memory_alloc(out, size);
}

API int cudaMallocAsync(unsigned long long *out, size_t size, void *stream)
{
	return have_driver() ? driver.async(out, size, stream) : memory_alloc(out, size);
}

API int cudaMallocAsync_ptsz(unsigned long long *out, size_t size, void *stream) { return cudaMallocAsync(out, size, stream); }

API int cudaMallocFromPoolAsync(unsigned long long *out, size_t size, void *pool, void *stream)
{
	return have_driver() ? driver.pool(out, size, pool, stream) : memory_alloc(out, size);
}

API int cudaMallocPitch(unsigned long long *out, size_t *pitch, size_t width, size_t height)
{
	if (have_driver())
		return driver.pitch(out, pitch, width, height, 4);
	*pitch = (width + 511) / 512 * 512;
	return memory_alloc(out, *pitch * height);
}

struct extent {
	size_t width, height, depth;
};

struct pitched {
	unsigned long long address;
	size_t pitch, width, height;
};

API int cudaMalloc3D(struct pitched *out, struct extent e)
{
	out->width = e.width, out->height = e.height;
	return cudaMallocPitch(&out->address, &out->pitch, e.width, e.height * e.depth);
}

API int cudaMallocHost(unsigned long long *out, size_t size) { return memory_alloc(out, size); }
API int cudaFreeHost(unsigned long long address) { return memory_free(address); }
API int cudaFree(unsigned long long address) { return have_driver() ? driver.free(address) : memory_free(address); }

API int cudaFreeAsync(unsigned long long address, void *stream)
{
	return have_driver() ? driver.free_async(address, stream) : memory_free(address);
}

static __thread int current;

API int cudaSetDevice(int device)
{
	unsigned long long context;
	if (device < 0 || device >= CONTEXTS)
		return INVALID_VALUE;
	current = device;
	if (!have_driver())
		return memory_use(device);
	return driver.retain(&context, device) || driver.use(context);
}

API int cudaDeviceReset(void) { return have_driver() ? driver.reset(current) : memory_reset(current); }

struct dim3 {
	unsigned x, y, z;
};

API int cudaLaunchKernel(void *function, struct dim3 grid, struct dim3 block, void **args, size_t shared, void *stream)
{
	if (have_driver())
		return driver.launch(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, stream, args, 0);
	return kernel_run();
}
