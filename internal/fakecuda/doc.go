// SPDX-License-Identifier: Apache-2.0

// Package fakecuda makes fakes of the CUDA runtime and driver and a program that calls them, for tests without a GPU.
//
//	built, err := fakecuda.Build(dir)               // libcudart.so.12, libcuda.so.1, libcudart_static.a and programs, by gcc
//	w, err := fakecuda.Run(exec.Command(built.Workload))
//	out, err := w.Do("load " + built.Runtime)       // dlopen, and the driver with it, as the real one does
//	out, err = w.Do("alloc cudaMalloc 10000 4096")  // "ok 10000 0": calls that succeeded, and failed
//	out, err = w.Do("free cudaFree 10000")
//	err = w.Close()
//
// The fakes keep to what CUDA does where a probe could go wrong: the runtime calls the driver in the same thread, an address
// that was freed is given again, freeing what is not allocated is an error, more than Capacity is out of memory, and every
// function starts with `push %rbp`, which the kernel's probes need not single-step. There is no memory behind the addresses.
// An allocation is of the device or the context that its thread uses, and goes with it; all devices have one Capacity.
//
// Commands of the workload, one a line, each answered by one line:
//
//	load PATH                    a library (dlopen); functions are looked up in all that are loaded, newest first
//	unload                       the newest library again
//	alloc FUNCTION N SIZE [THREADS]   N calls in each thread; what they return is kept
//	free FUNCTION N [THREADS]    N calls in each thread, newest first
//	refree FUNCTION N            frees once more what was freed last
//	null FUNCTION                frees NULL
//	unknown FUNCTION N           frees N addresses that nobody allocated, and the fake says that all is well
//	launch FUNCTION N [THREADS]  N kernels
//	map FUNCTION N SIZE          maps the newest N handles, in a row behind all that is mapped, from 105553116266496 on
//	unmap FUNCTION N SIZE        N calls, each of the newest SIZE bytes that are mapped
//	device FUNCTION N            cudaSetDevice and the like of device N, cuCtxDestroy_v2 of the Nth context that was created
//	churn FUNCTION FUNCTION N SIZE [THREADS]   N times an allocation and its free
//	rate FUNCTION FUNCTION N SIZE PER_SECOND   the same, so many pairs a second
//	cpu                          the nanoseconds of CPU time that it has used, after ok
//	leave FUNCTION SIZE          an allocation, or a launch, that is left without returning, by longjmp
//	title TEXT                   writes it in place of the arguments, as setproctitle does
//	fork                         a child does what follows, and its parent waits; the child's exit ends it
//	retire                       the thread that listens ends, and another one does what follows; there is no answer
//	exec                         the program starts anew
//	exit                         without freeing anything
package fakecuda
