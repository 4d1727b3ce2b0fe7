// SPDX-License-Identifier: Apache-2.0

// Package cudamemoryreceiver sees the CUDA allocations of every process on the machine, by probes in the kernel: what each has
// allocated and not given back, how often and how much it allocates, and how long its kernels take to launch. The processes are
// not changed and need not be started anew. Without the privileges for it, or a process that uses CUDA, it waits.
//
//	receivers:
//	  cuda_memory:
//	service:
//	  pipelines:
//	    metrics: {receivers: [cuda_memory], exporters: [prometheus]}
package cudamemoryreceiver
