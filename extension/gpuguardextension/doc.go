// SPDX-License-Identifier: Apache-2.0

// Package gpuguardextension ends processes that fill the memory of a GPU or leak it: those that a policy names, none by default, as
// a dry run by default, so many an hour, and with a record of each.
//
//	extensions:
//	  gpu_guard:
//	    policy:
//	      victims: [{namespace: [batch]}]
//	receivers:
//	  nvidia_gpu: {collection_interval: 1s, guard: gpu_guard}
//	service:
//	  extensions: [gpu_guard]
package gpuguardextension
