// SPDX-License-Identifier: Apache-2.0

// Package probe counts what processes allocate on GPUs, by eBPF probes on the entry points of the CUDA runtime and driver.
//
//	p, err := probe.Start(probe.Options{Changed: func(c probe.Change) { … }})
//	for range time.Tick(time.Second) {
//		_, err = p.Scan()                                  // attaches to libraries that processes have mapped since
//		err = p.Read(func(x *probe.Process) { … })   // live bytes, counters and histograms of each process
//	}
//
// What counts: a call that returned 0, at the outermost of the functions that are probed, so that the driver's call below
// the runtime's is no second allocation. A free counts when it returned 0 and the allocation is known: what a process
// allocated before the probes came is not, and its frees are counted as unknown. A process that ends, or executes another
// program, releases everything.
//
// What goes with a context or a device (cudaDeviceReset, cuDevicePrimaryCtxReset, cuCtxDestroy) is released, where the process
// has named one device alone, or has created one context and named no device: there all that it has by an address is in it. Where
// it may be a part, all of it stays live, and an unknown free is counted. Handles (cuMemCreate) stay live.
//
// Memory by a handle is live until nobody holds it, who created it (cuMemRelease) or retained it (cuMemRetainAllocationHandle), and it
// is mapped nowhere (cuMemMap, cuMemUnmap). A handle that was imported, or is for multicast, is known, and nothing of it is live.
//
// A call that is left without returning, as by longjmp, is counted as such, when its thread calls next from as far up the stack, or the
// same function from further down, or many others: until then, those are taken to be below it.
//
// What cannot be seen: memory that goes with its pool (cuMemPoolDestroy), or when a primary context is given back
// (cuDevicePrimaryCtxRelease); it stays live until the process ends. Arrays and textures, host memory, and
// memory that another process shares do not count. Which device an allocation is on is not known.
//
// It needs Linux 6.6 for uprobe_multi, but none of those by which processes crash (ErrUnsafe), CAP_BPF and CAP_PERFMON; CAP_SYS_PTRACE to see processes of other users and containers;
// and CAP_DAC_READ_SEARCH where their files are not for everybody to read. Process ids are those of the initial PID
// namespace, as /proc of the host has them.
package probe
