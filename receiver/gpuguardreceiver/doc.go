// SPDX-License-Identifier: Apache-2.0

// Package gpuguardreceiver tells what the gpu_guard extension does as log events, since an extension has no pipeline.
//
//	receivers:
//	  gpu_guard:
//	service:
//	  extensions: [gpu_guard]
//	  pipelines:
//	    logs: {receivers: [gpu_guard], exporters: [otlp_http]}
package gpuguardreceiver
