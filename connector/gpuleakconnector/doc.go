// SPDX-License-Identifier: Apache-2.0

// Package gpuleakconnector says which processes leak GPU memory, how fast, when nothing will be left, and why: it hears the memory of
// processes and devices and the traffic of engines, and derives states and rates as metrics, and leaks that open and close as
// log events.
//
//	connectors:
//	  gpu_leak:
//	service:
//	  pipelines:
//	    metrics: {receivers: [nvidia_gpu, cuda_memory, prometheus], exporters: [gpu_leak]}
//	    metrics/leak: {receivers: [gpu_leak], exporters: [prometheus]}
//	    logs/leak: {receivers: [gpu_leak], exporters: [otlp_http]}
package gpuleakconnector
