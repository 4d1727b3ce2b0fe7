// SPDX-License-Identifier: Apache-2.0

package probe

// kind is what a function does with memory: the cookie of its probe. The numbers are those of enum kind in bpf/probe.c.
type kind uint64

const (
	alloc       kind = iota + 1 // (void **out, size_t size)
	managed                     // the same, of memory that may be the host's
	pitch                       // (void **out, size_t *pitch, size_t width, size_t height)
	extent                      // (cudaPitchedPtr *out, cudaExtent)
	create                      // (handle *out, size_t size, properties *)
	free                        // (void *)
	release                     // (handle)
	device                      // (int device)
	retain                      // (context *out, int device)
	context                     // (context *out, …)
	destroy                     // (context)
	reset                       // of a device: (), (int device)
	acquire                     // (handle *out, …)
	mapMemory                   // (void *address, size_t size, size_t offset, handle)
	unmapMemory                 // (void *address, size_t size)
	shared                      // (void **out, …)
	launch                      // by programs of its own
)

// functions are those that are probed. The runtime's are probed beside the driver's, because the runtime may call the driver
// by entry points that no symbol names.
var functions = func() map[string]kind {
	all := map[string]kind{}
	for k, names := range map[kind][]string{
		alloc: {
			"cudaMalloc", "cudaMallocAsync", "cudaMallocFromPoolAsync",
			"cuMemAlloc", "cuMemAlloc_v2", "cuMemAllocAsync", "cuMemAllocFromPoolAsync",
		},
		managed:     {"cudaMallocManaged", "cuMemAllocManaged"},
		pitch:       {"cudaMallocPitch", "cuMemAllocPitch", "cuMemAllocPitch_v2"},
		extent:      {"cudaMalloc3D"},
		create:      {"cuMemCreate"},
		free:        {"cudaFree", "cudaFreeAsync", "cuMemFree", "cuMemFree_v2", "cuMemFreeAsync"},
		release:     {"cuMemRelease"},
		device:      {"cudaSetDevice"},
		retain:      {"cuDevicePrimaryCtxRetain"},
		context:     {"cuCtxCreate", "cuCtxCreate_v2", "cuCtxCreate_v3", "cuCtxCreate_v4"},
		destroy:     {"cuCtxDestroy", "cuCtxDestroy_v2"},
		acquire:     {"cuMemRetainAllocationHandle", "cuMemImportFromShareableHandle", "cuMulticastCreate"},
		mapMemory:   {"cuMemMap"},
		unmapMemory: {"cuMemUnmap"},
		shared:      {"cudaMemPoolImportPointer", "cuMemPoolImportPointer"},
		reset:       {"cudaDeviceReset", "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2"},
		launch: {
			"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel",
			"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel",
		},
	} {
		for _, name := range names {
			// With a default stream of each thread, the compiler calls others.
			all[name], all[name+"_ptsz"], all[name+"_ptds"] = k, k, k
		}
	}
	return all
}()

// libraries are the names under which CUDA's own libraries are mapped: also as wheels rename them, libcudart-d0da41ae.so.11.0.
var libraries = []string{"libcuda.so*", "libcudart.so*", "libcudart-*.so*"}
