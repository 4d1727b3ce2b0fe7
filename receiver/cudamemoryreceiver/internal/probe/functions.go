// SPDX-License-Identifier: Apache-2.0

package probe

// kind is what a function does with memory: the cookie of its probe. The numbers are those of enum kind in bpf/probe.c.
type kind uint64

const (
	alloc   kind = iota + 1 // (void **out, size_t size)
	pitch                   // (void **out, size_t *pitch, size_t width, size_t height)
	extent                  // (cudaPitchedPtr *out, cudaExtent)
	create                  // (handle *out, size_t size, properties *)
	free                    // (void *)
	release                 // (handle)
	launch                  // by programs of its own
)

// functions are those that are probed. The runtime's are probed beside the driver's, because the runtime may call the driver
// by entry points that no symbol names.
var functions = func() map[string]kind {
	all := map[string]kind{}
	for k, names := range map[kind][]string{
		alloc: {
			"cudaMalloc", "cudaMallocManaged", "cudaMallocAsync", "cudaMallocFromPoolAsync",
			"cuMemAlloc", "cuMemAlloc_v2", "cuMemAllocManaged", "cuMemAllocAsync", "cuMemAllocFromPoolAsync",
		},
		pitch:   {"cudaMallocPitch", "cuMemAllocPitch", "cuMemAllocPitch_v2"},
		extent:  {"cudaMalloc3D"},
		create:  {"cuMemCreate"},
		free:    {"cudaFree", "cudaFreeAsync", "cuMemFree", "cuMemFree_v2", "cuMemFreeAsync"},
		release: {"cuMemRelease"},
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
